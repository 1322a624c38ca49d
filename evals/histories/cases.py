"""Histories: the sittings of one project in their order, what they say, and what a later session asks."""

from collections.abc import Iterator
from typing import Annotated

from pydantic import Field

from evals.case_files import AnyCase, CaseText, Name, StrictPart
from evals.observation.cases import CaseMessage
from evals.scoring.gold import Atom, Gold, LogRow


class Sitting(StrictPart):
    """One session."""

    id: Name
    messages: Annotated[tuple[CaseMessage, ...], Field(min_length=1)]


class Persona(AnyCase):
    """A person who talked to an assistant for months.

    `signals` are utterances that say something of the person, `asked` what the answers to questions hold.
    """

    sittings: Annotated[tuple[Sitting, ...], Field(min_length=1)]
    gold: Gold
    signals: tuple[Atom, ...] = ()
    asked: tuple[Atom, ...] = ()

    def log(self) -> list[LogRow]:
        """Return all that was said, as the log that rows go back to."""
        return [message.row() for message in messages(self.sittings)]


class ChainRule(StrictPart):
    """A rule that a task of a chain sets: in which of its user's turns, and what has to be known of it."""

    rule: Name
    turn: Annotated[int, Field(ge=1)]
    fact: CaseText
    exact: tuple[CaseText, ...] = ()


class Rules(StrictPart):
    """What the tasks of a chain set, and which rules, that they do not tell again, others need."""

    chain: Name
    about: CaseText
    sets: dict[Name, tuple[ChainRule, ...]]
    needs: dict[Name, tuple[Name, ...]]


class Task(AnyCase):
    """A task of a chain: it `sets` rules in its `sitting`, or `needs` some for its `prompt`."""

    sitting: Sitting | None = None
    sets: tuple[Atom, ...] = ()
    prompt: str | None = None
    needs: tuple[Atom, ...] = ()


def messages(sittings: tuple[Sitting, ...]) -> Iterator[CaseMessage]:
    """Yield all messages of sittings."""
    for sitting in sittings:
        yield from sitting.messages
