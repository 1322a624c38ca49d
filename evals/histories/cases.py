"""Histories: the sittings of one project in order, their facts, and the questions of a later session."""

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

    `signals` are utterances that characterise the person, `asked` are the facts that answer questions.
    """

    sittings: Annotated[tuple[Sitting, ...], Field(min_length=1)]
    gold: Gold
    signals: tuple[Atom, ...] = ()
    asked: tuple[Atom, ...] = ()

    def log(self) -> list[LogRow]:
        """Return all messages as the log that rows cite."""
        return [message.row() for message in messages(self.sittings)]


class ChainRule(StrictPart):
    """A rule that a task of a chain sets: the user's turn that sets it, and the fact that must be known."""

    rule: Name
    turn: Annotated[int, Field(ge=1)]
    fact: CaseText
    exact: tuple[CaseText, ...] = ()


class Rules(StrictPart):
    """The rules that tasks of a chain set, and those that other tasks need without stating them."""

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
