"""Times that are counted from an event: "three days before the release", "发布前三天"."""

import re
from dataclasses import dataclass

from esker.server.core.dates.calendar import COUNT, UNIT, UNIT_OF, counted
from esker.server.core.dates.window import Anchor
from esker.server.core.words.lists import any_of, keyed, words


@dataclass(frozen=True, slots=True)
class Anchored:
    """An anchor in a question, and the start and end of the words that name the distance from it."""

    start: int
    end: int
    anchor: Anchor


_LONGEST_ANCHOR = 60
_SIDE_OF = keyed("dates.sides")
_SIDE = rf"(?P<side>{any_of(_SIDE_OF)})"
_ARTICLE = any_of(words("dates.anchor_articles"))
_WITHIN = any_of(words("dates.within"))
_DISTANCE = re.compile(
    rf"(?<!\w)(?:(?P<within>{_WITHIN})\s)?(?:(?P<article>{_ARTICLE})\s?)?(?:{COUNT}\s)?{UNIT}\s{_SIDE}\s",
    re.IGNORECASE,
)
# French and Spanish have words for "the day before" and "the day after".
_NEIGHBOUR = {
    side: any_of(word for word, its_side in keyed("dates.neighbouring_days").items() if its_side == side)
    for side in ("before", "after")
}
_EVE = re.compile(
    rf"(?<!\w)(?:la (?P<before>{_NEIGHBOUR['before']}) (?:de |du |d'|del )"
    rf"|(?:le |el )?(?P<after>{_NEIGHBOUR['after']}) (?:de |du |d'|del |a ))",
    re.IGNORECASE,
)
_CJK_UNIT = rf"{COUNT}\s?{UNIT}"
_NAME = r"(?P<name>[^\s，。？！、,.?!:：]{2,24}?)"
_CJK = (
    re.compile(rf"{_NAME}(?:之|的|の)?(?P<side>前|后|後)(?:的|の)?{_CJK_UNIT}"),
    re.compile(rf"{_NAME}(?:的|の){_CJK_UNIT}\s?(?P<side>前|后|後)"),
)

# Text before the name of an anchor, in scripts without spaces.
_CJK_LEAD = re.compile(r".*[在于从はがをにで]")
_NO_NAME = frozenset(words("dates.no_anchors"))
# The end of a name: punctuation, or a word with which the question continues.
_NAME_END = re.compile(rf"[?.!,;:\n]|\s{any_of(words('dates.anchor_ends'))}(?!\w)", re.IGNORECASE)


def anchor_in(text: str) -> Anchored | None:
    """Return the first anchor of a question."""
    for found in _DISTANCE.finditer(text):
        if anchored := _named_last(found):
            return anchored
    if (eve := _EVE.search(text)) and (name := _name(text, eve.end())):
        side = "before" if eve["before"] else "after"
        return Anchored(eve.start(), eve.end(), Anchor(name, 1, "day", side, within=False))
    for pattern in _CJK:
        if (found := pattern.search(text)) and (anchored := _named_first(found)):
            return anchored
    return None


def _name(text: str, start: int) -> str:
    rest = text[start : start + _LONGEST_ANCHOR]
    end = _NAME_END.search(rest)
    name = (rest[: end.start()] if end else rest).strip()
    return "" if name.casefold() in _NO_NAME else name


def _named_last(found: re.Match[str]) -> Anchored | None:
    """Return an anchor in a language with spaces; without a count or an article no particular time is meant."""
    name = _name(found.string, found.end())
    if not name or not (found["count"] or found["article"]):
        return None
    unit = UNIT_OF[found["unit"].casefold()]
    within = bool(found["within"]) or (bool(found["article"]) and (bool(found["count"]) or unit != "day"))
    side = _SIDE_OF[found["side"].casefold()]
    return Anchored(found.start(), found.end(), _anchor(name, found, side, within=within))


def _named_first(found: re.Match[str]) -> Anchored | None:
    """Return an anchor in Chinese or Japanese, where the name precedes the distance."""
    lead = _CJK_LEAD.match(found["name"])
    name = found["name"][lead.end() if lead else 0 :]
    if len(name) < 2 or name in _NO_NAME or not name[0].isalpha():
        return None
    within = found.end("side") < found.start("unit")
    return Anchored(found.end("name"), found.end(), _anchor(name, found, _SIDE_OF[found["side"]], within=within))


def _anchor(name: str, found: re.Match[str], side: str, *, within: bool) -> Anchor:
    count, unit = counted(found)
    return Anchor(name, count, unit, "before" if side == "before" else "after", within)
