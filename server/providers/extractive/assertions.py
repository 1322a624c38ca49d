"""Reads an assertion by its words alone: its subject, scope and values, the values it gives up, and who asserts it.

A sentence is cut into clauses, and a clause into segments at the words that say how its parts belong together: verbs of
being, using and changing, and prepositions. The words differ by language (`grammar`), the rules below do not.
`superseding` compares the results; a part that is not understood stays empty, and nothing is replaced because of it.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from esker.server.core.facts.same_fact import Fingerprint, fingerprint
from esker.server.core.sized_cache import cached_up_to
from esker.server.core.text import labels
from esker.server.providers.extractive.grammar import Grammar, grammar_of, places_of_software
from esker.server.providers.extractive.segments import VERBS, Segment, as_meant
from esker.server.providers.extractive.value_kinds import amount_at, is_amount, is_time, kind_of, with_joined_days

# Characters of a statement that are read; a longer one is rarely about one thing.
_MOST_CHARACTERS = 500
# Maximum terms of a value that is made of ordinary words; a longer phrase is a description.
_MOST_WORDS = 2
# The same in characters, in scripts without spaces.
_MOST_CJK_CHARACTERS = 6
# Kinds of segments that mark a change of what their clause says.
_MARKS = frozenset(("replaces", "becomes", "gone", "swaps", "inherits", "changes", "instead", "now"))
# Kinds of segments beside which "from" precedes a former value.
_LEAVES = frozenset(("changes", "becomes", "inherits", "to", "puts", "sets"))
_CLAUSE = re.compile(
    r"[,;:!?()—–][\s]+|(?<!\d)(?<!\b[A-Z][a-z])[.…]\s+|[，。；：！？、（）]|\s[—–-]\s|\s?(?:->|→)\s?|[.)]+$"
)
_DASH = re.compile(r"\s[—–-]\s")
_NUMBER = re.compile(r"[$€£¥]?\d[\d.,:]*\d|[$€£¥]?\d")
_SPEAKER = re.compile(r"^([^\W\d_][^:\n]{0,40}?) said: ")


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
class Assertion:
    """An assertion. `name` identifies it when it is replaced: the id of a row, or the content of a fact.

    `statement` is its text without label and notes. `terms` are its terms and those of what it replaced. `given_up` are
    the terms of each value that it gives up, `topic` those of all that it is about besides values, `context` those of
    the words that it answers. `firm`: it is asserted here and now, by the speaker. `marked`: it says that something
    changed. `open`: it is the speaker's "plan", undecided "choice", or "doubt" (a condition or a possibility), else
    empty. `corrects`: it takes back what was said before. `denies`: it calls what it answers wrong. `loose` are its
    numbers that belong to none of its values. `ended` are the terms of what is no longer something; the earlier
    assertion must be about it. `works`: if it says that something works now, its other terms. `explains`: the terms of
    what it gives a cause of.
    """

    name: str
    statement: str
    speaker: str
    fingerprint: Fingerprint
    terms: frozenset[str]
    values: tuple[Value, ...]
    given_up: tuple[frozenset[str], ...]
    ended: frozenset[str]
    topic: frozenset[str]
    scope: frozenset[str]
    context: frozenset[str]
    loose: frozenset[str]
    firm: bool
    marked: bool
    open: str
    corrects: bool
    denies: bool
    works: frozenset[str]
    explains: frozenset[str]


_Kinded = tuple[Segment, str]
"""A segment with the kind of value that its content is."""


def read_assertion(name: str, content: str) -> Assertion:
    """Return the assertion in the content of a row or fact."""
    return replace(_read(content), name=name)


def in_context(said: Assertion) -> Assertion:
    """Return an assertion whose values without a subject are of what it answers: "Who leads? Ada does"."""
    if not said.context:
        return said
    values = (value if value.subject else replace(value, subject=said.context - value.terms) for value in said.values)
    return replace(said, values=tuple(values), terms=said.terms | said.context)


# An observer compares each statement with many rows, and later slices with the same rows.
@cached_up_to(250_000)
def _read(content: str) -> Assertion:
    speaker = _SPEAKER.match(content)
    said = content[speaker.end() :] if speaker else content
    statement = with_joined_days(labels.own_statement(labels.question_and_answer(said)[1])[:_MOST_CHARACTERS].strip())
    grammar = grammar_of(statement)
    corrects = content.startswith(labels.CORRECTION) or bool(grammar.cue["corrects"].search(statement))
    read = _ClauseReader(grammar, statement, is_planned=labels.is_planned(said), corrects=corrects)
    told = frozenset(grammar.telling(statement))
    works = frozenset(grammar.telling(grammar.cue["works"].sub(" ", statement)))
    inherited = grammar.telling(content.partition(labels.REPLACES)[2])
    context = frozenset(grammar.telling(labels.context(said)))
    return Assertion(
        name=content,
        statement=statement,
        speaker=speaker[1] if speaker and not content.startswith(labels.SAID) else "",
        fingerprint=fingerprint(statement),
        terms=told.union(read.attributes, inherited),
        values=tuple(read.values),
        given_up=tuple(dict.fromkeys(read.given_up)),
        ended=frozenset(read.ended),
        topic=frozenset(read.topic),
        scope=frozenset(read.scope),
        context=context,
        loose=frozenset(read.loose),
        firm=read.firm,
        marked=read.marked,
        open=read.open,
        corrects=corrects,
        denies=bool(grammar.cue["wrong"].search(statement)),
        works=works if works < told else frozenset(),
        explains=_explained(grammar, statement),
    )


def _explained(grammar: Grammar, statement: str) -> frozenset[str]:
    """Return the terms of what a statement gives a cause of, if they are enough to name it."""
    cause = grammar.cue["because"].search(statement)
    explained = grammar.telling(statement[: cause.start()]) if cause else ()
    return frozenset(explained) if len(explained) > 1 else frozenset()


class _ClauseReader:
    """Reads a statement clause by clause."""

    def __init__(self, grammar: Grammar, statement: str, *, is_planned: bool, corrects: bool) -> None:
        self.grammar = grammar
        self.values: list[Value] = []
        self.given_up: list[frozenset[str]] = []
        self.ended: set[str] = set()
        self.topic: set[str] = set()
        self.scope: set[str] = set()
        self.attributes = {f"@{key}" for key, pattern in grammar.attributes if pattern.search(statement)}
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
        for clause in _CLAUSE.split(grammar.cue["corrects"].sub(" ", statement)):
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
        self.marked = self.marked or bool(kinds & _MARKS)
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
        subject = self._terms(segment for segment in self._about(segments, kinds) if segment.kind != "gone")
        # "On staging, …": all words of a clause that only names a place.
        is_place = kinds <= {"start", "at", "for", "from", "topic"} and not any(
            one.text for one in segments if one.kind == "start"
        )
        self.scope |= self._terms(one for one in segments if is_place or one.kind in ("at", "for"))
        values = [] if denied or "gone" in kinds else list(self._values(segments, kinds))
        # "For the next hour only, …" limits the clauses that follow.
        self._for_a_while = self._for_a_while or ("also" in kinds and kinds <= {"start", "also", "for", "at"} != kinds)
        if own or values:
            self.topic |= subject - frozenset[str]().union(*own)
        if self._is_past(segments, kinds):
            self._former += [value.terms for value in values]
        else:
            self.values += values

    def _terms(self, segments: Iterable[Segment]) -> frozenset[str]:
        return frozenset(term for segment in segments for term in self.grammar.terms(segment.text))

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

    def _values(self, segments: Sequence[Segment], kinds: set[str]) -> Iterator[Value]:
        marked = self._swapped or bool(kinds & _MARKS) or {"sets", "to"} <= kinds or {"from", "to"} <= kinds
        # "Is now responsible for" is one verb.
        marked = marked or any(one.kind == "holds" and self.grammar.now.search(one.word) for one in segments)
        for segment, kind in self._candidates(segments, kinds):
            value = frozenset(self.grammar.terms(segment.text))
            beside = [one for one in self._about(segments, kinds) if one is not segment]
            named = [one for one in beside if one.kind not in ("at", "for", "now", "also") and one.text]
            heads = self.grammar.terms(named[0].text) if named else []
            if not value or (heads and heads[-1] in self.grammar.many):
                continue
            # A duration or a deadline is not part of a subject, unless it is compared with another.
            lasting = [one for one in beside if not (one.kind == "for" and is_time(kind_of(one.text)))]
            subject = self._terms(beside if is_time(kind) else lasting)
            yield Value(
                text=segment.text,
                terms=value,
                kind=kind,
                relation=self._relation(segment, known=bool(kinds & VERBS)),
                subject=subject | self.attributes,
                scope=self._terms(one for one in lasting if one.kind in ("at", "for")),
                thing=tuple(heads),
                marked=marked or segment.kind == "sets" or ("sets" in kinds and is_amount(kind)),
                added="also" in kinds or self._for_a_while,
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
            yield from _verbless(by_kind, is_chosen="now" in kinds or (self._corrects and not self.given_up))
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
            goals = [one for one in by_kind if one[0].kind == "at"]
        if not goals and "changes" in kinds:
            goals = [one for one in by_kind if one[0].kind == "for" and one[1] == "date"]  # "extended until the 23rd"
        return goals[:1]


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
