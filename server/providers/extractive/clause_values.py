"""Reads the values that a clause gives its subject, from its segments."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from esker.server.providers.extractive.grammar import Grammar
from esker.server.providers.extractive.segments import VERBS, Segment
from esker.server.providers.extractive.value_kinds import is_amount, is_time, kind_of

# Maximum terms of a value that is made of ordinary words; a longer phrase is a description.
_MOST_WORDS = 2
# The same in characters, in scripts without spaces.
_MOST_CJK_CHARACTERS = 6
MARKS = frozenset(("replaces", "becomes", "gone", "swaps", "inherits", "changes", "instead", "now"))
"""Kinds of segments that mark a change of what their clause says."""

_Kinded = tuple[Segment, str]
"""A segment with the kind of value that its content is."""


@dataclass(frozen=True, slots=True)
class Value:
    """A value of a subject: its text and terms, its kind, and the terms of the subject and of the scope.

    `relation` is the kind of segment it was read from ("verbless" without a known verb) and the preposition before it.
    `thing` are the terms that name the subject, in order: those of "gateway timeout" in "our gateway timeout for
    exports". `marked`: its clause says that it changed; `added`: that it exists beside others.
    """

    text: str
    terms: frozenset[str]
    kind: str
    relation: str
    subject: frozenset[str]
    scope: frozenset[str]
    thing: tuple[str, ...]
    marked: bool
    added: bool

    @property
    def is_amount(self) -> bool:
        """Whether it is an amount, a date or a time of day, and not a name or a word."""
        return is_amount(self.kind)

    @property
    def lacks_verb(self) -> bool:
        """Whether its clause has no verb that the grammar knows."""
        return self.relation.startswith("verbless")


@dataclass(frozen=True, slots=True)
class ClauseValues:
    """Reads the values of a clause.

    `about` are its segments that can be about its subject, `attributes` what the whole statement is about, `swapped`:
    a clause before it marks a change, `for_a_while`: one limits it, `chosen`: a lone word is its value.
    """

    grammar: Grammar
    segments: Sequence[Segment]
    about: Sequence[Segment]
    attributes: frozenset[str]
    swapped: bool
    for_a_while: bool
    chosen: bool

    def read(self) -> Iterator[Value]:
        """Yield the values."""
        segments, kinds = self.segments, {segment.kind for segment in self.segments}
        marked = self.swapped or bool(kinds & MARKS) or {"sets", "to"} <= kinds or {"from", "to"} <= kinds
        # "Is now responsible for" is one verb.
        marked = marked or any(one.kind == "holds" and self.grammar.now.search(one.word) for one in segments)
        for segment, kind in self._candidates(segments, kinds):
            value = frozenset(self.grammar.terms(segment.text))
            beside = [one for one in self.about if one is not segment]
            named = [one for one in beside if one.kind not in ("at", "for", "now", "also") and one.text]
            heads = self.grammar.terms(named[0].text) if named else []
            if not value or (heads and heads[-1] in self.grammar.many):
                continue
            # A duration or a deadline is not part of a subject, unless it is compared with another.
            lasting = [one for one in beside if not (one.kind == "for" and is_time(kind_of(one.text)))]
            subject = terms_of(self.grammar, beside if is_time(kind) else lasting)
            yield Value(
                text=segment.text,
                terms=value,
                kind=kind,
                relation=self._relation(segment, known=bool(kinds & VERBS)),
                subject=subject | self.attributes,
                scope=terms_of(self.grammar, (one for one in lasting if one.kind in ("at", "for"))),
                thing=tuple(heads),
                marked=marked or segment.kind == "sets" or ("sets" in kinds and is_amount(kind)),
                added="also" in kinds or self.for_a_while,
            )

    def _relation(self, segment: Segment, *, known: bool) -> str:
        if not known:
            return f"verbless {segment.kind} {segment.word}".strip() if segment.kind in ("at", "by") else "verbless"
        return f"at {segment.word}" if segment.kind == "at" else segment.kind

    def _candidates(self, segments: Sequence[Segment], kinds: set[str]) -> Iterator[_Kinded]:
        """Yield the segments of a clause that can be its value, with their kinds."""
        by_kind = [(segment, kind_of(segment.text)) for segment in segments if segment.text]
        holders = [one for one in by_kind if one[0].kind in ("by", "start")]
        if (
            ("holds" in kinds and "uses" not in kinds)
            or "inherits" in kinds
            or ("replaces" in kinds and not any(one.kind in self.grammar.by for one in segments))
        ):
            yield from holders[-1:] if "by" in kinds else holders[:1]
            return
        if not kinds & VERBS:
            yield from _verbless(by_kind, is_chosen="now" in kinds or (self.chosen))
        elif goals := self._goals(by_kind, kinds):
            yield from goals
        else:
            yield from self._held(segments, by_kind)

    def _held(self, segments: Sequence[Segment], by_kind: Sequence[_Kinded]) -> Iterator[_Kinded]:
        """Yield the values that a clause without a change says that its subject has: amounts and a name, else words."""
        holding = ("object", "is", "uses") if self.grammar.postpositions else ("uses", "is", "puts", "sets")
        objects = [one for one in by_kind if one[0].kind in holding]
        telling = [one for one in objects if one[1] != "word"]
        places = [one for one in by_kind if one[0].kind in ("at", "to", "by")]
        opens = not segments[0].text
        at_names = [one for one in places if one[1] != "word" and not (opens and one[0] is segments[1])]
        amounts = [one for one in by_kind if is_amount(one[1]) and one[0].kind != "start" and one not in telling]
        if len({one[0] for one in (*telling, *amounts) if is_amount(one[1])}) > 1:
            # Of several amounts only a date says something by itself.
            telling, amounts = ([one for one in some if one[1] == "date"] for some in (telling, amounts))
        yield from telling
        yield from amounts
        used = any(segment.kind == "uses" and self._is_short(segment.text) for segment, _ in objects)
        # "I prefer tabs in Python": the place is no value beside what is used there.
        names = [one for one in at_names if not used and not is_amount(one[1])]
        if not [one for one in telling if not is_amount(one[1])] and len(names) == 1:
            yield from names
        if not telling and not names and not amounts:
            # "Logs go to a file": something is in one place, but not in the one that the clause begins with.
            put = (
                [one for one in places if one[0] is not segments[1]] if "puts" in {one.kind for one in segments} else ()
            )
            words_alone = [
                one
                for one in (*objects, *(places if self.attributes or self.grammar.unspaced else put))
                if one[0].kind
                in ("is", "uses", "object", "at", "to", *(("puts", "sets") if self.grammar.unspaced else ()))
            ]
            yield from (one for one in words_alone if self._is_short(one[0].text))

    def _is_short(self, text: str) -> bool:
        """Whether ordinary words are few enough to be a value."""
        return len(self.grammar.terms(text)) <= _MOST_WORDS or (
            self.grammar.unspaced and len(text) <= _MOST_CJK_CHARACTERS
        )

    def _goals(self, by_kind: Sequence[_Kinded], kinds: set[str]) -> list[_Kinded]:
        """Return the new values that a clause of change names."""
        if "replaces" in kinds:
            return [one for one in by_kind if one[0].kind in self.grammar.by][:1]
        if "becomes" in kinds:
            return [one for one in by_kind if one[0].kind == "becomes"][:1]
        if not kinds & {"changes", "sets", "puts", "is"} and not ("to" in kinds and "uses" in kinds):
            return []
        stating = ("is", "at") if kinds.isdisjoint(("changes", "sets", "puts", "uses")) else ("is", "sets")
        if any(segment.kind in stating and is_amount(kind) for segment, kind in by_kind):
            return []  # "my train to Basel is at 8:14", "make it Friday at 8"
        goals = [one for one in by_kind if one[0].kind == "to"]
        if not goals and kinds & {"changes", "sets"}:
            goals = _before_change([one for one in by_kind if one[0].kind == "at"], self.segments)
        if not goals and "changes" in kinds:
            goals = [one for one in by_kind if one[0].kind == "for" and one[1] == "date"]  # "extended until the 23rd"
        return goals[:1]


def terms_of(grammar: Grammar, segments: Iterable[Segment]) -> frozenset[str]:
    """Return the terms of segments."""
    return frozenset(term for segment in segments for term in grammar.terms(segment.text))


def _before_change(places: Sequence[_Kinded], segments: Sequence[Segment]) -> list[_Kinded]:
    """Return the places directly before a verb of change, if there are some: "bei X auf Y umgestiegen"; else all."""
    followed = [one for one, verb in pairwise(segments) if verb.kind == "changes"]
    return [place for place in places if any(place[0] is one for one in followed)] or list(places)


def _verbless(by_kind: Sequence[_Kinded], *, is_chosen: bool) -> Sequence[_Kinded]:
    """Return the value of a clause without a verb: an amount, a lone word, a place, a tool or a duration."""
    is_lone = is_chosen and len(by_kind) == 1
    alone = [one for one in by_kind if one[0].kind == "start" and (_is_bare_amount(*one) or is_lone)]
    places = [one for one in by_kind if one[0].kind in ("at", "to", "by") and one[1] != "word"]
    tools = [one for one in by_kind if one[0].kind == "by" and len(one[0].text.split()) <= _MOST_WORDS]
    lasting = [one for one in by_kind if one[0].kind == "for" and one[1] == "time"]
    return (alone or places or tools or lasting)[:1]


def _is_bare_amount(segment: Segment, kind: str) -> bool:
    """Whether a segment is an amount and hardly anything else."""
    return is_amount(kind) and len(segment.text.split()) <= _MOST_WORDS + (kind == "date")
