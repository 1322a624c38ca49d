"""Claims of a text that can be looked up literally: quotations, identifiers, numbers, dates and names."""

import re
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import date
from functools import lru_cache
from typing import Literal

from esker.server.core.words.lists import any_of, words
from evals.scoring import dates
from evals.scoring.text import holds, holds_all, normalised, sentences

ClaimKind = Literal["quotation", "identifier", "number", "date", "name"]

_QUOTED = re.compile(r"\"([^\"\n]{2,200})\"|“([^”\n]{2,200})”|«([^»\n]{2,200})»|「([^」\n]{2,200})」|`([^`\n]{2,200})`")
_IDENTIFIER = re.compile(
    r"--?[A-Za-z][\w-]+"
    r"|(?<![A-Za-z0-9_~])[A-Za-z0-9_~]*(?:[./:\\@#_-][A-Za-z0-9_]+)+(?:\(\))?"
    r"|\b[a-z]+[A-Z]\w*\b|\b[A-Z][a-z]+[A-Z]\w*\b|\b[A-Z]{2,}[0-9_]*[A-Z0-9_]*\b|\b(?=\w*[0-9])(?=\w*[A-Za-z])\w{3,}\b",
    re.ASCII,  # adjacent characters of another script are not part of it
)
_NUMBER = re.compile(r"(?<![\w.])[0-9]+(?:[.,'][0-9]+)*(?![\w])", re.ASCII)
_COMPOUND = re.compile(r"[^\W\d_]+(?:-[A-ZÄÖÜ][a-zäöüß]+)+")  # `XLSX-Export`, as German builds words
_LIST = re.compile(r"[A-Za-z]+(?:/[A-Za-z]+)+")  # `vegan/flexitarian`
_RANGE = re.compile(r"([0-9]+)-([0-9]+)")
_BETWEEN = f"{any_of(words('scores.between'))}|~"
"""Words between the ends of a range that is written without a dash."""
_ORDINAL = re.compile(r"\b([0-9]+)(st|nd|rd|th)\b")
_NAME = re.compile(r"(?<![\w'])[A-ZÄÖÜÁÉÍÓÚÑ][a-zäöüßáéíóúñ]{2,}(?:\s[A-ZÄÖÜÁÉÍÓÚÑ][a-zäöüßáéíóúñ]+)*")
# Words that are always capitalised and are not names.
_NO_NAMES = frozenset(words("scores.no_names"))


@dataclass(frozen=True, slots=True)
class Claim:
    """A part of a text that its sources contain, or that was made up."""

    kind: ClaimKind
    words: str


def claims(text: str, *, names: bool = True) -> list[Claim]:
    """Return the claims of a text. Without `names` those are left out: German capitalises all nouns."""
    text = unicodedata.normalize("NFKC", text)
    found = [Claim("quotation", next(filter(None, match.groups()))) for match in _QUOTED.finditer(text)]
    found += [claim for _, claim in located(text) if claim.kind == "number" or _is_identifier(claim.words)]
    rest = _IDENTIFIER.sub(" ", _without_dates(text))
    found += [Claim("name", words) for words in _names(rest)] if names else []
    return list(dict.fromkeys(found))


def located(text: str) -> Iterator[tuple[int, Claim]]:
    """Yield the identifiers and numbers of a text, each with its position."""
    rest = _ORDINAL.sub(lambda match: match[1] + " " * len(match[2]), _without_dates(text))
    for match in _IDENTIFIER.finditer(rest):
        yield match.start(), Claim("identifier", match.group().rstrip(".:"))
    rest = _IDENTIFIER.sub(lambda match: " " * len(match[0]), rest)
    yield from ((match.start(), Claim("number", match.group())) for match in _NUMBER.finditer(rest))


def _without_dates(text: str) -> str:
    said = text.lower()
    if len(said) != len(text):  # the positions would not be the same
        return text
    for start, end, *_ in dates.dates_in(said):
        text = text[:start] + " " * (end - start) + text[end:]
    return text


def _is_identifier(words: str) -> bool:
    return len(words) > 2 and not re.fullmatch(
        r"i\.e|e\.g|[a-z]+-[a-z]+(?:-[a-z]+)?|[A-Z]?[a-z]+-[a-z]+|[-./:]+[a-z]+", words
    )


def _names(text: str) -> Iterator[str]:
    for sentence in sentences(text):
        for match in _NAME.finditer(sentence):
            words = match.group().split()
            # The first word of a sentence is capitalised anyway.
            begins = not re.search(r"\w", sentence[: match.start()]) or sentence[: match.start()].rstrip().endswith(":")
            kept = [word for word in words[1 if begins else 0 :] if word.casefold() not in _NO_NAMES]
            if kept:
                yield " ".join(kept)


def one_source(texts: Iterable[str]) -> str:
    """Return texts joined for looking up claims. Join a log once: it may be long."""
    return _ORDINAL.sub(r"\1", "\n".join(texts))


def unsupported(text: str, whole: str, days: Iterable[date] = (), *, names: bool = True) -> list[Claim]:
    """Return the claims of a text that its source (see `one_source`) does not contain.

    `days` are supported as well. A number may have other separators, a name may be split, a day may be written in
    another way, and the items of a list or the ends of a range may be joined by other words.
    """
    return [
        *_unsupported_days(text, whole, days),
        *(each for each in claims(text, names=names) if not _in(each, whole)),
    ]


def _unsupported_days(text: str, whole: str, days: Iterable[date]) -> Iterator[Claim]:
    said = normalised(text)
    named = dates.dates_in(said)
    if not named:
        return  # searching a long log is slow
    known = {(year, month, day) for _, _, year, month, day in dates.dates_in(normalised(whole))}
    known |= {(day.year, day.month, day.day) for day in days}
    for start, end, year, month, day in named:
        if not any((month, day) == (m, d) and (year is None or y in (None, year)) for y, m, d in known):
            yield Claim("date", said[start:end])


@lru_cache(maxsize=16_384)
def _in(claim: Claim, whole: str) -> bool:
    if claim.kind == "name":
        return all(holds(whole, word, "en") for word in claim.words.split())
    if claim.kind == "number":
        plain = re.sub(r"[,']", "", claim.words)
        return holds(whole, claim.words, "en") or holds(re.sub(r"(?<=[0-9])[,'](?=[0-9]{3})", "", whole), plain, "en")
    if claim.kind == "identifier" and _COMPOUND.fullmatch(claim.words):
        return any(holds(whole, part, "en") for part in claim.words.split("-"))
    return holds(whole, claim.words, "en") or (claim.kind == "identifier" and _has_identifier(claim.words, whole))


def _has_identifier(words: str, whole: str) -> bool:
    # Adjacent characters of another script (`µmol/min`) are not part of an identifier.
    if re.search(rf"(?<![a-z0-9_]){re.escape(normalised(words))}(?![a-z0-9_])", normalised(whole)):
        return True
    if _LIST.fullmatch(words):
        return any(holds_all(line, words.split("/"), "en") for line in whole.splitlines())
    ends = _RANGE.fullmatch(words)
    return ends is not None and bool(
        re.search(rf"(?<![\w.,]){ends[1]} ?(?:{_BETWEEN}) ?{ends[2]}(?!\w|[.,][0-9])", normalised(whole))
    )
