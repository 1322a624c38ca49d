"""Gold written by people: which facts of a log must survive, be replaced or be dropped.

docs/evals.md explains the fields.
"""

from collections.abc import Iterator, Mapping
from datetime import date
from typing import Annotated

from pydantic import AwareDatetime, Field

from esker.server.core.records import Category, Priority, Trust
from evals.case_files import CaseText, Language, Name, StrictPart
from evals.scoring.text import holds

Domain = Name
"""Subject of a case, for its table: ours are `coding`, `infrastructure`, `assistant` and `research`."""


class LogRow(StrictPart):
    """A row of a log, as an observer wrote it: `by` is its speaker, `session` the session that it is from."""

    id: Name
    at: AwareDatetime
    text: CaseText
    by: Trust = "user"
    session: Name = "1"
    priority: Priority = "medium"
    category: Category = "fact"


class Atom(StrictPart):
    """One stated fact.

    `fact` is a sentence, `exact` lists its words that must be kept literally (identifiers, numbers, names), `rows` are
    the rows that state it, `by` is its speaker, `dated` the day that must be kept with it, `ask` a question about it.
    """

    fact: CaseText
    exact: tuple[CaseText, ...] = ()
    rows: Annotated[tuple[Name, ...], Field(min_length=1)]
    by: Trust | None = None
    dated: date | None = None
    ask: CaseText | None = None


class FactChange(StrictPart):
    """The former values of a fact, in order, and the current one."""

    old: Annotated[tuple[Atom, ...], Field(min_length=1)]
    new: Atom


class Gold(StrictPart):
    """The expected result: each fact is in one of these lists.

    `keep` must survive. `replaced` must be kept with its current value, and the former one must not be stated as
    current. `noise` must be dropped. `open` is deferred, planned or limited, and must not be stated as done or total.
    `unsettled` was asked, offered, claimed or rejected: it may be reported as such, but not stated as true. `asserted`
    is a ruling that a later question or doubt does not undo. `never` are words that no row of the log contains.
    """

    keep: tuple[Atom, ...] = ()
    replaced: tuple[FactChange, ...] = ()
    noise: tuple[Atom, ...] = ()
    open: tuple[Atom, ...] = ()
    unsettled: tuple[Atom, ...] = ()
    asserted: tuple[Atom, ...] = ()
    never: tuple[CaseText, ...] = ()

    def lasting(self) -> Iterator[Atom]:
        """Yield the facts that must survive."""
        yield from self.keep
        yield from (change.new for change in self.replaced)
        yield from self.open
        yield from self.asserted

    def atoms(self) -> Iterator[Atom]:
        """Yield all facts that are judged."""
        yield from self.lasting()
        yield from (old for change in self.replaced for old in change.old)
        yield from self.unsettled
        yield from self.noise

    def faults(self, texts: Mapping[str, str], language: Language) -> Iterator[str]:
        """Yield the faults of this gold for the texts of a log, by row id."""
        for atom in self.atoms():
            yield from _atom_faults(atom, texts, language)
        for change in self.replaced:
            for old in change.old:
                if all(holds(change.new.fact, words, language) for words in old.exact):
                    yield f"`exact` of the old value must distinguish it from the new one: {old.fact!r}"
        for words in self.never:
            if any(holds(text, words, language) for text in texts.values()):
                yield f"{words!r} is in `never`, but a row contains it"


def _atom_faults(atom: Atom, texts: Mapping[str, str], language: Language) -> Iterator[str]:
    if unknown := [row for row in atom.rows if row not in texts]:
        yield f"unknown row {', '.join(unknown)}"
    told = "\n".join(texts[row] for row in atom.rows if row in texts)
    for words in atom.exact:
        if not holds(atom.fact, words, language):
            yield f"{words!r} is not in the fact {atom.fact!r}"
        if not holds(told, words, language):
            yield f"{words!r} is in none of the rows of {atom.fact!r}"
