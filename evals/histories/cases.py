"""Histories: the sittings of one project in their order, what they say, and what a later session asks."""

from collections.abc import Iterator
from typing import Annotated

from pydantic import Field

from evals.case_files import AnyCase, Name, Strict, Text
from evals.observation.cases import Said
from evals.scoring.gold import Atom, Gold, Row


class Sitting(Strict):
    """One session."""

    id: Name
    messages: Annotated[tuple[Said, ...], Field(min_length=1)]


class Persona(AnyCase):
    """A person who talked to an assistant for months.

    `signals` are utterances that say something of the person, `asked` what the answers to questions hold.
    """

    sittings: Annotated[tuple[Sitting, ...], Field(min_length=1)]
    gold: Gold
    signals: tuple[Atom, ...] = ()
    asked: tuple[Atom, ...] = ()

    def log(self) -> list[Row]:
        """Return all that was said, as the log that rows go back to."""
        return [Row(id=each.id, at=each.at, text=each.text) for sitting in self.sittings for each in sitting.messages]


class Rule(Strict):
    """A rule that a task of a chain sets: in which of its user's turns, and what has to be known of it."""

    rule: Name
    turn: Annotated[int, Field(ge=1)]
    fact: Text
    exact: tuple[Text, ...] = ()


class Rules(Strict):
    """What the tasks of a chain set, and which rules, that they do not tell again, others need."""

    chain: Name
    about: Text
    sets: dict[Name, tuple[Rule, ...]]
    needs: dict[Name, tuple[Name, ...]]


class Task(AnyCase):
    """A task of a chain: it `sets` rules in its `sitting`, or `needs` some for its `prompt`."""

    sitting: Sitting | None = None
    sets: tuple[Atom, ...] = ()
    prompt: str | None = None
    needs: tuple[Atom, ...] = ()


def messages(sittings: tuple[Sitting, ...]) -> Iterator[Said]:
    """Yield all messages of sittings."""
    for sitting in sittings:
        yield from sitting.messages
