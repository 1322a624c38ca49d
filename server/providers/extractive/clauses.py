"""Reads a statement clause by clause: its values and those it gives up, its topic and scope, and whether it is firm.

A sentence is cut into clauses, and a clause into segments at the words that say how its parts belong together: verbs of
being, using and changing, and prepositions. The words differ by language (`grammar`), the rules below do not. A part
that is not understood stays empty.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from esker.server.providers.extractive.clause_values import MARKS, ClauseValues, Value, terms_of
from esker.server.providers.extractive.grammar import Grammar, places_of_software
from esker.server.providers.extractive.segments import VERBS, Segment, as_meant
from esker.server.providers.extractive.value_kinds import amount_at

# Kinds of segments beside which "from" precedes a former value.
_LEAVES = frozenset(("changes", "becomes", "inherits", "to", "puts", "sets"))
CLAUSE = re.compile(
    r"[,;:!?()—–][\s]+|(?<!\d)(?<!\b[A-Z][a-z])[.…]\s+|[，。；：！？、（）]|\s[—–-]\s|\s?(?:->|→)\s?|[.)]+$"
)
_DASH = re.compile(r"\s[—–-]\s")
_NUMBER = re.compile(r"[$€£¥]?\d[\d.,:]*\d|[$€£¥]?\d")


class ClauseReader:
    """Reads a statement clause by clause."""

    def __init__(self, grammar: Grammar, statement: str, *, is_planned: bool, corrects: bool) -> None:
        self.grammar = grammar
        self.values: list[Value] = []
        self.given_up: list[frozenset[str]] = []
        self.ended: set[str] = set()
        self.topic: set[str] = set()
        self.scope: set[str] = set()
        self.attributes = frozenset(f"@{key}" for key, pattern in grammar.attributes if pattern.search(statement))
        self._former: list[frozenset[str]] = []
        self._moved: list[Segment] = []
        self._for_a_while = False
        self._swapped = False
        self.marked = False
        self._corrects = corrects
        asserts = not statement.rstrip(" \"'”)").endswith(("?", "？")) and not grammar.cue["others"].search(statement)
        if grammar.copula:
            statement = _DASH.sub(f" {grammar.copula[0]} ", statement)
        is_choice = grammar.cue["undecided"].search(statement) is not None
        self.open = ("choice" if is_choice else "plan") if asserts and (is_choice or is_planned) else ""
        self.firm = asserts and not self.open
        for clause in CLAUSE.split(grammar.cue["corrects"].sub(" ", statement)):
            if grammar.cue["unsure"].search(clause) and not is_planned:
                # A clause behind a condition or a plan depends on it; a clause before it does not.
                if self.firm and not (self.values or self.given_up):
                    self.firm, self.open = False, "doubt"
                break
            for segments in self._clauses(grammar.cue["unsure"].sub(" ", clause)):
                self._read(self._with_moved(segments))
        if self.values:
            self.given_up += self._former
        said = frozenset[str]().union(*(value.terms for value in self.values))
        gone = frozenset[str]().union(*self.given_up)
        self.topic -= said | gone
        self.loose = {term for term in grammar.terms(statement) if _NUMBER.fullmatch(term)} - said

    def _with_moved(self, segments: list[Segment]) -> list[Segment]:
        """Return a clause that gives the value of a change together with the clause before it, which has the subject.

        "The office moved; we're at 88 Harbour Road now", "we pushed the demo, to 10 June".
        """
        begins_with = segments[1].kind if len(segments) > 1 and not segments[0].text else ""
        moved, self._moved = self._moved, []
        if moved and (begins_with == "to" or (begins_with and moved[0].text)):
            return [*moved, *segments[1:]]
        if _only_changes(segments) and not self.grammar.postpositions:
            self._moved = segments
        return segments

    def _clauses(self, text: str) -> Iterator[list[Segment]]:
        """Yield the segments of a text, cut at conjunctions."""
        clause: list[Segment] = []
        for segment in self._segments(self.grammar.cue["when"].sub(" ", text)):
            if segment.kind == "breaks":
                yield clause
                clause = [Segment("start", "", segment.text)]
            elif segment.kind == "now" and len(clause) == 1 and not clause[0].text and not self.grammar.postpositions:
                # "from Monday X leads": the subject follows the adverb.
                clause = [replace(clause[0], text=segment.text), replace(segment, text="")]
            elif segment.kind in ("now", "also") and clause and segment.text and not self.grammar.postpositions:
                # "is now X": the content goes on after the adverb.
                goes_on = "is" if clause[-1].kind == "start" else clause[-1].kind
                clause += [
                    Segment(segment.kind, segment.word, ""),
                    replace(clause[-1], kind=goes_on, text=segment.text),
                ]
            else:
                clause.append(segment)
        yield clause

    def _segments(self, text: str) -> Iterator[Segment]:
        found = list(self.grammar.opener.finditer(text))
        kinds = [(match.lastgroup or "").partition("__")[0] for match in found]
        if self.grammar.postpositions:
            starts = [0, *(match.end() for match in found)]
            for match, kind, start in zip(found, kinds, starts, strict=False):
                yield Segment(kind, match[0], self._content(text[start : match.start()]))
            yield Segment("start", "", self._content(text[starts[-1] :]))
            return
        ends = [*(match.start() for match in found), len(text)]
        yield Segment("start", "", self._content(text[: ends[0]]))
        for match, kind, end in zip(found, kinds, ends[1:], strict=True):
            yield Segment(kind, match[0].casefold(), self._content(text[match.end() : end]))

    def _content(self, text: str) -> str:
        return self.grammar.cue["small"].sub(" ", text).lstrip(" \t\"'“”„«»`*,").rstrip(" \t\"'“”„«»`*.,")

    def _read(self, segments: Sequence[Segment]) -> None:
        segments = as_meant(segments, self.grammar)
        kinds = {segment.kind for segment in segments}
        # "Last try: 22 May": the mark of a clause without other words is that of the next one.
        is_bare_mark = kinds == {"start", "now"} and not any(segment.text for segment in segments)
        self._swapped = self._swapped or "swaps" in kinds or is_bare_mark
        self.marked = self.marked or bool(kinds & MARKS)
        if self.grammar.cue["one_of_many"].match(segments[0].text) if segments else True:
            return
        if rejected := self._rejected(segments):
            self._former.append(rejected)
            return
        denied = self._denies(segments)
        own = list(self._given_up(segments, kinds, denied=denied))
        self.given_up += own
        if "gone" in kinds and len(own) > 1 and segments[0].text:
            self.ended |= own[0]  # "the release branch is no longer protected" says nothing of other branches
        subject = terms_of(
            self.grammar, (segment for segment in self._about(segments, kinds) if segment.kind != "gone")
        )
        # "On staging, …": all words of a clause that only names a place.
        is_place = kinds <= {"start", "at", "for", "from", "topic"} and not any(
            one.text for one in segments if one.kind == "start"
        )
        self.scope |= terms_of(self.grammar, (one for one in segments if is_place or one.kind in ("at", "for")))
        values = [] if denied or "gone" in kinds else list(self._values(segments))
        # "For the next hour only, …" limits the clauses that follow.
        self._for_a_while = self._for_a_while or ("also" in kinds and kinds <= {"start", "also", "for", "at"} != kinds)
        if own or values:
            self.topic |= subject - frozenset[str]().union(*own)
        if self._is_past(segments, kinds):
            self._former += [value.terms for value in values]
        else:
            self.values += values

    def _rejected(self, segments: Sequence[Segment]) -> frozenset[str]:
        """Return the terms of an amount that is rejected: "03:30 won't work", where another value follows."""
        amount = amount_at(segments[0].text)
        denied = [one.text for one in segments if one.kind == "not"]
        return frozenset(self.grammar.terms(amount)) if denied and not any(map(amount_at, denied)) else frozenset()

    def _denies(self, segments: Sequence[Segment]) -> bool:
        """Whether a verb is denied: a negation without content of its own precedes it."""
        places = [place for place, segment in enumerate(segments) if segment.kind == "not" and not segment.text]
        return any(segment.kind in VERBS for place in places for segment in segments[place + 1 : place + 3])

    def _is_past(self, segments: Sequence[Segment], kinds: set[str]) -> bool:
        changed = kinds & {"replaces", "becomes", "inherits", "changes", "now"}
        return not changed and any(self.grammar.cue["past"].search(f"{one.word} {one.text}") for one in segments)

    def _about(self, segments: Sequence[Segment], kinds: set[str]) -> list[Segment]:
        """Return the segments of a clause that can be about its subject."""
        left_out = _not_subject(kinds)
        return [one for one in segments if one.kind not in left_out or self._is_of(one, segments)]

    def _is_of(self, segment: Segment, segments: Sequence[Segment]) -> bool:
        """Whether "from" joins two names, where it also means "of": "le serveur de test est à Lyon"."""
        if segment.kind != "from" or segment.word not in self.grammar.genitives or not segment.text:
            return False
        place = next(place for place, one in enumerate(segments) if one is segment)
        follows_name = bool(segments[place - 1].text) and segments[place - 1].kind in ("start", "at")
        if frozenset(self.grammar.terms(segment.text)) <= places_of_software("environments"):
            return follows_name
        followed_by = segments[2].kind if len(segments) > 2 else ""
        return place == 1 and follows_name and followed_by in ("is", "changes")

    def _given_up(self, segments: Sequence[Segment], kinds: set[str], *, denied: bool) -> Iterator[frozenset[str]]:
        """Yield the terms of what a clause may give up; only the value of an earlier assertion is given up by it.

        A change that is denied ("don't switch from X to Y") or that was called off gives up nothing.
        """
        if (denied and "changes" in kinds) or {"gone", "from", "to"} <= kinds:
            return
        start = segments[0].text
        for place, segment in enumerate(segments):
            options = [segment.text]
            if segment.kind == "gone":
                options = [one.text for one in segments]
            elif segment.kind == "replaces":
                options = [segment.text or start]
            elif segment.kind == "becomes" and place == 1:
                options = [start]  # the former name of something that was renamed
            elif segment.kind == "changes" and self.grammar.cue["renames"].fullmatch(segment.word):
                options = [segment.text or start]  # "renamed X to Y", "X in Y umbenannt"
            elif segment.kind == "from":
                options = options if kinds & _LEAVES and not self._is_of(segment, segments) else []
            elif segment.kind not in ("instead", "not"):
                continue
            yield from (found for text in options if (found := frozenset(self.grammar.terms(text))))

    def _values(self, segments: Sequence[Segment]) -> Iterator[Value]:
        return ClauseValues(
            grammar=self.grammar,
            segments=segments,
            about=self._about(segments, {segment.kind for segment in segments}),
            attributes=self.attributes,
            swapped=self._swapped,
            for_a_while=self._for_a_while,
            chosen=self._corrects and not self.given_up,
        ).read()


def _only_changes(segments: Sequence[Segment]) -> bool:
    """Whether a clause names what changes, and no value."""
    with_text = {segment.kind for segment in segments if segment.text}
    kinds = {segment.kind for segment in segments}
    return "changes" in kinds and bool(with_text) and with_text <= {"start", "changes"} and not kinds & {"not", "gone"}


def _not_subject(kinds: set[str]) -> tuple[str, ...]:
    """Return the kinds of segments of a clause that are not about its subject.

    Without a change, "de" is the "of" of "la responsable de compras" and not the "from" before a former value.
    """
    return ("from", "instead", "not") if kinds & _LEAVES else ("instead", "not")
