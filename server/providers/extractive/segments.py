"""Gives a word that has two meanings the one that fits the other segments of its clause."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from esker.server.providers.extractive.grammar import Grammar

VERBS = frozenset(("replaces", "becomes", "inherits", "holds", "changes", "sets", "puts", "uses", "is"))
"""Kinds of segments that a verb opens."""
# Kinds of verbs that are also nouns, and kinds of segments that a noun follows directly.
_ALSO_NOUNS = ("holds", "puts")
_BEFORE_NOUNS = ("at", "for", "holds", "puts", "uses", "changes", "replaces")
# Kinds of segments beside which "para" precedes a new value and not a purpose.
_CHANGES = frozenset(("changes", "becomes", "inherits", "puts", "sets"))


@dataclass(frozen=True, slots=True)
class Segment:
    """A part of a clause: the word that opens it (in languages with postpositions: closes it), and its content."""

    kind: str
    word: str
    text: str


def as_meant(segments: Sequence[Segment], grammar: Grammar) -> list[Segment]:
    """Return the segments of a clause with the kinds that their words have in it."""
    return _with_purposes(_with_exchanges(_with_objects(_with_nouns(_with_agent(segments)), grammar), grammar), grammar)


def _with_agent(segments: Sequence[Segment]) -> Sequence[Segment]:
    """Make the one who does a task the subject: "测试由王芳负责" is read as "王芳负责测试"."""
    for place, (agent, verb) in enumerate(pairwise(segments)):
        task = segments[0].text
        if task and agent.kind == "from" and agent.text and verb.kind == "holds" and not verb.text:
            return [
                replace(segments[0], text=agent.text),
                *segments[1:place],
                replace(verb, text=task),
                *segments[place + 2 :],
            ]
    return segments


def _with_nouns(segments: Sequence[Segment]) -> list[Segment]:
    """Take a verb for a noun if it cannot be one: "reviews need 2 approvals", "write logs", "enough for reviews".

    It has no subject and another verb follows, or it directly follows another verb or "for".
    """
    meant: list[Segment] = []
    for place, one in enumerate(segments):
        if one.kind not in _ALSO_NOUNS or not meant:
            meant.append(one)
            continue
        noun = f"{one.word} {one.text}".strip()
        follows = () if one.kind == "puts" and one.text else segments[place + 1 :]
        verb_follows = any(other.kind in VERBS - {"holds"} for other in follows)
        if not meant[-1].text and meant[-1].kind in _BEFORE_NOUNS:
            meant[-1] = replace(meant[-1], text=noun)
        elif verb_follows and not any(other.text for other in meant):
            meant[0] = replace(meant[0], text=noun)
        else:
            meant.append(one)
    return meant


def _with_objects(segments: list[Segment], grammar: Grammar) -> list[Segment]:
    """Let a word that joins names precede what a verb without an object uses: "l'API renvoie du XML"."""
    meant: list[Segment] = []
    for one in segments:
        verb = next((place for place, other in enumerate(meant) if other.kind == "uses"), -1)
        is_object = one.kind == "from" and one.word in grammar.genitives and verb >= 0
        if is_object and not any(other.text for other in meant[verb:]):
            meant[verb] = replace(meant[verb], text=one.text)
        else:
            meant.append(one)
    return meant


def _with_exchanges(segments: list[Segment], grammar: Grammar) -> list[Segment]:
    """Let "for" precede what takes the place of something, if the clause has no other subject: "swap X for Y"."""
    for place, (verb, then) in enumerate(pairwise(segments)):
        if verb.kind == "replaces" and verb.text and then.kind == "for":
            if not any(one.text for one in segments[:place]):
                segments[place + 1] = replace(then, kind=grammar.by[0])
            break
    return segments


def _with_purposes(segments: list[Segment], grammar: Grammar) -> list[Segment]:
    """Let a word for both precede a purpose where nothing changes: "usamos X para Y"."""
    if any(one.kind in _CHANGES for one in segments):
        return segments
    return [replace(one, kind="for") if one.word in grammar.purposes else one for one in segments]
