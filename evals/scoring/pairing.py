"""Whether what belongs together still does: a text that swaps two addresses has all words of the right one.

What stands nearest to what is compared, among the identifiers and numbers of both texts and what must stay letter by
letter. A pair of a fact counts as torn apart only where both its halves have found another partner each.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from evals.scoring.claims import Claim, placed
from evals.scoring.text import normalised

_BREAK = re.compile(r"[.;。；!?！？\n]")
_FAR = 40
"""How many characters an end of a sentence counts for."""


Kind = Literal["quantity", "code", "word"]


@dataclass(frozen=True, slots=True)
class _Token:
    """Words, of which kind they are, and where they stand."""

    words: str
    kind: Kind
    start: int
    end: int


def torn_apart(fact: str, exact: Sequence[str], statement: str) -> str | None:
    """Return in words which pair of a fact a statement tears apart, each half with another; None if it does not."""
    there = _tokens(statement, exact)
    for one, other in _pairs(fact, _tokens(fact, exact)):
        ones = [token for token in there if token.words == one.words]
        others = [token for token in there if token.words == other.words]
        if not ones or not others:
            continue
        of_ones = [_partner(statement, token, other.kind, there) for token in ones]
        of_others = [_partner(statement, token, one.kind, there) for token in others]
        if all(of_ones) and all(of_others) and not {*of_ones} & {*others} and not {*of_others} & {*ones}:
            with_one = of_ones[0].words if of_ones[0] else ""
            return f"{one.words!r} goes with {with_one!r}, and not with {other.words!r}"
    return None


def _tokens(text: str, exact: Sequence[str]) -> list[_Token]:
    said = normalised(text)
    found = [*_exact(said, exact)]
    taken = [(token.start, token.end) for token in found]
    for start, claim in placed(said):
        if not any(begin < start + len(claim.words) and start < end for begin, end in taken):
            found.append(_token(claim, start))
    return found


def _token(claim: Claim, start: int) -> _Token:
    return _Token(claim.words, _kind(claim.words), start, start + len(claim.words))


def _kind(words: str) -> Kind:
    if words[0].isdigit():
        return "quantity"
    return "code" if re.search(r"[0-9_./:-]", words) else "word"


def _exact(said: str, exact: Iterable[str]) -> Iterable[_Token]:
    for words in sorted({normalised(each) for each in exact}, key=len, reverse=True):
        for match in re.finditer(rf"(?<![\w]){re.escape(words)}(?![\w])", said, re.ASCII):
            yield _Token(words, _kind(words), match.start(), match.end())


def _pairs(text: str, tokens: Sequence[_Token]) -> Iterator[tuple[_Token, _Token]]:
    """Yield what stands nearest to each other of two kinds, such as a name and its quantity."""
    for kind in get_args(Kind):
        for token in tokens:
            if token.kind < kind and (partner := _partner(text, token, kind, tokens)):
                yield token, partner


def _partner(text: str, token: _Token, kind: Kind, tokens: Iterable[_Token]) -> _Token | None:
    """Return the nearest of a kind to which it is the nearest of its own; None if there is none."""
    nearest = _nearest(text, token, kind, tokens)
    return nearest if nearest and _nearest(text, nearest, token.kind, tokens) is token else None


def _nearest(text: str, token: _Token, kind: Kind, tokens: Iterable[_Token]) -> _Token | None:
    others = [each for each in tokens if each.kind == kind]
    return min(others, key=lambda each: _distance(text, token, each), default=None)


def _distance(text: str, one: _Token, other: _Token) -> int:
    first, second = sorted((one, other), key=lambda token: token.start)
    between = normalised(text)[first.end : second.start]
    return len(between) + _FAR * len(_BREAK.findall(between))
