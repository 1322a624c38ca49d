"""Pairs that belong together, such as a host and its address: a text that swaps two addresses has all the right words.

The nearest neighbours of identifiers, numbers and exact words are compared in both texts. A pair of a fact counts as
torn apart only if both its halves have other partners, or if one has the partner of another pair.
"""

import re
from bisect import bisect
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, get_args

from esker.server.core.words.lists import any_of, words
from evals.scoring.claims import Claim, located
from evals.scoring.text import normalised

_SENTENCE = re.compile(r"[.;。!?](?![0-9])")
_CLAUSE = re.compile(rf"[.;。!?](?![0-9])|,\s|\s{any_of(words('scores.clause_conjunctions'))}\s")
_SENTENCE_GAP, _CLAUSE_GAP = 40, 20
"""Distance in characters that the end of a sentence and that of a clause add."""


TokenKind = Literal["quantity", "code", "word"]


@dataclass(frozen=True, slots=True)
class _Token:
    """Words with their kind and position."""

    words: str
    kind: TokenKind
    start: int
    end: int


_Kinds = Mapping[TokenKind, Sequence[_Token]]
"""Tokens by kind, in the order of the text."""


@lru_cache(maxsize=16_384)
def torn_apart(fact: str, exact: tuple[str, ...], statement: str) -> str | None:
    """Return which pair of a fact a statement tears apart, in words; None if it does not."""
    tokens, pairs = _tokens(statement, exact), [*_pairs(fact, _tokens(fact, exact))]
    kinds = _kinds(tokens)
    for one, other in (*pairs, *((other, one) for one, other in pairs)):
        ones = [token for token in tokens if token.words == one.words]
        others = [token for token in tokens if token.words == other.words]
        if not ones or not others:
            continue
        one_rivals = [_rival(fact, statement, token, other, kinds) for token in ones]
        other_rivals = [_rival(fact, statement, token, one, kinds) for token in others]
        swapped = any(each in pair for pair in ({a.words, b.words} for a, b in pairs) for each in one_rivals)
        if all(one_rivals) and (all(other_rivals) or swapped):
            return f"{one.words!r} goes with {one_rivals[0]!r}, and not with {other.words!r}"
    return None


def _rival(fact: str, statement: str, token: _Token, wanted: _Token, kinds: _Kinds) -> str | None:
    """Return the partner of a token instead of the wanted one, unless they are together in the fact, too."""
    partner = _partner(statement, token, wanted.kind, kinds)
    if partner is None or partner.words == wanted.words or _together(fact, token.words, partner.words):
        return None
    return partner.words


def _together(text: str, one: str, other: str) -> bool:
    """Whether a clause of a text has both."""
    return any(one in part and other in part for part in _CLAUSE.split(normalised(text)))


def _tokens(text: str, exact: Sequence[str]) -> list[_Token]:
    plain = normalised(text)
    found = [*_exact(plain, exact)]
    taken = [(token.start, token.end) for token in found]
    for start, claim in located(plain):
        if not any(begin < start + len(claim.words) and start < end for begin, end in taken):
            found.append(_token(claim, start))
    return found


def _token(claim: Claim, start: int) -> _Token:
    return _Token(claim.words, _kind(claim.words), start, start + len(claim.words))


def _kind(words: str) -> TokenKind:
    if words[0].isdigit():
        return "quantity"
    return "code" if re.search(r"[0-9_./:-]", words) else "word"


def _exact(plain: str, exact: Iterable[str]) -> Iterable[_Token]:
    for whole in sorted({normalised(each) for each in exact if _is_whole(each)}, key=lambda each: (-len(each), each)):
        for match in re.finditer(rf"(?<![\w]){re.escape(whole)}(?![\w])", plain, re.ASCII):
            yield _Token(whole, _kind(whole), match.start(), match.end())


def _is_whole(words: str) -> bool:
    """Whether words are a name or one identifier, not a phrase with a number (`weight 100`)."""
    return not re.search(r"[0-9]", words) or not re.search(r"\s", words)


def _pairs(text: str, tokens: Sequence[_Token]) -> Iterator[tuple[_Token, _Token]]:
    """Yield pairs of different kinds that are nearest to each other, such as a name and its quantity."""
    kinds = _kinds(tokens)
    for kind in get_args(TokenKind):
        for token in tokens:
            if token.kind < kind and (partner := _partner(text, token, kind, kinds)):
                yield token, partner


def _partner(text: str, token: _Token, kind: TokenKind, kinds: _Kinds) -> _Token | None:
    """Return the nearest token of a kind if the reverse holds as well; else None."""
    nearest = _nearest(text, token, kinds[kind])
    return nearest if nearest and _nearest(text, nearest, kinds[token.kind]) == token else None


def _nearest(text: str, token: _Token, of_kind: Sequence[_Token]) -> _Token | None:
    """Return the nearest token of a kind, before or after."""
    at = bisect(of_kind, token.start, key=lambda each: each.start)
    beside = [each for each in of_kind[max(0, at - 2) : at + 2] if each != token]
    return min(beside, key=lambda each: _distance(text, token, each), default=None)


def _kinds(tokens: Iterable[_Token]) -> _Kinds:
    in_order = sorted(tokens, key=lambda each: each.start)
    return {kind: [each for each in in_order if each.kind == kind] for kind in get_args(TokenKind)}


def _distance(text: str, one: _Token, other: _Token) -> int:
    first, second = sorted((one, other), key=lambda token: token.start)
    between = normalised(text)[first.end : second.start]
    return len(between) + _SENTENCE_GAP * len(_SENTENCE.findall(between)) + _CLAUSE_GAP * len(_CLAUSE.findall(between))
