"""Token estimates by script, and trimming with the same estimator.

No tokenizer ships with Esker, and the models behind it differ, so tokens are estimated: the text is cut into
pieces the way byte-pair vocabularies tend to (a short run of Latin letters, up to three digits, one CJK character,
a pair of punctuation marks, a run of white space). A piece counts as one token, an emoji as two. With runs of up to
five Latin letters that gives about 4 characters a token for English prose and 3 for code.
"""

import re

from esker.server.core.words.scripts import CJK

IMAGE_TOKENS = 1_600
"""Tokens of an image of any size (Anthropic's figure for an image of about one megapixel)."""

_EMOJI = "[\U0001f000-\U0001faff\u2600-\u27bf]"
_PIECE = re.compile(
    r"[A-Za-z]{1,5}"
    r"|[0-9]{1,3}"
    rf"|[{CJK}]"
    r"|[\u00c0-\u024f]{1,3}"  # accented Latin
    r"|\s{2,}|\n"  # whole runs: matching from each character of a run takes quadratic time
    r"|[\x21-\x2f\x3a-\x40\x5b-\x60\x7b-\x7e]{1,2}"  # ASCII punctuation
    r"|[^\W_]{1,2}"  # other alphabets
    r"|[^\s\x00-\x7f]"  # emoji, symbols, joiners
)
_EMOJI_CHARACTER = re.compile(_EMOJI)
# Characters that are matched at once: matching blocks every other thread.
_PART = 65_536
# Characters of a run of white space that count as one token; no other piece is as long.
_WIDEST = 16


def estimate_tokens(text: str) -> int:
    """Return the estimated number of tokens of `text`; 0 only for text without any visible character."""
    tokens, start = 0, 0
    while start < len(text):
        end = start + _PART
        pieces = _PIECE.findall(text, start, end)
        if end < len(text) and len(pieces) > 1:
            # The last piece may continue beyond this part, so the next part begins with it.
            end = text.rindex(pieces.pop(), start, end)
        tokens += len(pieces) + len(_EMOJI_CHARACTER.findall(text, start, end))
        tokens += sum((len(piece) - 1) // _WIDEST for piece in pieces if len(piece) > _WIDEST)
        start = end
    return tokens


def _cost(piece: str) -> int:
    return 1 + len(_EMOJI_CHARACTER.findall(piece)) + (len(piece) - 1) // _WIDEST


def trim_to_tokens(text: str, budget: int) -> str:
    """Return the longest prefix of `text` that costs at most `budget` tokens, cut at a piece boundary."""
    spent = 0
    for match in _PIECE.finditer(text):
        spent += _cost(match.group())
        if spent > budget:
            return text[: match.start()].rstrip()
    return text if budget > 0 else ""


def trim_tail_to_tokens(text: str, budget: int) -> str:
    """Return the longest suffix of `text` that costs at most `budget` tokens, cut at a piece boundary."""
    end = text[-max(0, budget + 1) * _WIDEST :]
    spent, start = 0, len(end)
    for match in reversed(list(_PIECE.finditer(end))):
        spent += _cost(match.group())
        if spent > budget:
            return end[start:]
        start = match.start()
    return end if budget > 0 else ""
