"""What should become of what was said: the gold that people write, and what is scored against it.

docs/evals.md tells the fields in prose.
"""

from collections.abc import Iterator, Mapping
from datetime import date
from typing import Annotated

from pydantic import AwareDatetime, Field

from esker.server.core.records import Category, Priority, Trust
from evals.case_files import CaseText, Language, Name, StrictPart
from evals.scoring.text import holds

Domain = Name
"""What a case is about, for its table: ours are `coding`, `infrastructure`, `assistant` and `research`."""


class LogRow(StrictPart):
    """A row of a log, as an observer wrote it: `by` is who it goes back to, `session` which sitting it is from."""

    id: Name
    at: AwareDatetime
    text: CaseText
    by: Trust = "user"
    session: Name = "1"
    priority: Priority = "medium"
    category: Category = "fact"


class Atom(StrictPart):
    """One thing that was said.

    `fact` says it in a sentence, `exact` lists what of that must stay letter by letter (identifiers, numbers, names),
    `rows` are where it stands, `by` who said it, `dated` which day has to be known of it, `ask` a question about it.
    """

    fact: CaseText
    exact: tuple[CaseText, ...] = ()
    rows: Annotated[tuple[Name, ...], Field(min_length=1)]
    by: Trust | None = None
    dated: date | None = None
    ask: CaseText | None = None


class FactChange(StrictPart):
    """What held first, which may have changed more than once, and what holds now."""

    old: Annotated[tuple[Atom, ...], Field(min_length=1)]
    new: Atom


class Gold(StrictPart):
    """What should be left: a fact is in one of these lists.

    `keep` has to survive. `replaced` has to be there as it is now, and not as though the old still held. `noise` has to
    go. `open` was put off, planned, or holds within limits, and must not read as done or as unlimited. `unsettled` was
    asked about, offered, claimed or turned down: it may be told as that, and must not read as though it held.
    `asserted` was ruled by somebody, and a later question or doubt does not undo it. `never` are words that stand in no
    row of the log.
    """

    keep: tuple[Atom, ...] = ()
    replaced: tuple[FactChange, ...] = ()
    noise: tuple[Atom, ...] = ()
    open: tuple[Atom, ...] = ()
    unsettled: tuple[Atom, ...] = ()
    asserted: tuple[Atom, ...] = ()
    never: tuple[CaseText, ...] = ()

    def lasting(self) -> Iterator[Atom]:
        """Yield what has to be there afterwards."""
        yield from self.keep
        yield from (change.new for change in self.replaced)
        yield from self.open
        yield from self.asserted

    def atoms(self) -> Iterator[Atom]:
        """Yield all that was said and is judged."""
        yield from self.lasting()
        yield from (old for change in self.replaced for old in change.old)
        yield from self.unsettled
        yield from self.noise

    def faults(self, texts: Mapping[str, str], language: Language) -> Iterator[str]:
        """Yield what is wrong with it as the gold of these texts, which have names."""
        for atom in self.atoms():
            yield from _atom_faults(atom, texts, language)
        for change in self.replaced:
            for old in change.old:
                if all(holds(change.new.fact, words, language) for words in old.exact):
                    yield f"what tells the old from the new has to be in `exact` of the old: {old.fact!r}"
        for words in self.never:
            if any(holds(text, words, language) for text in texts.values()):
                yield f"{words!r} is never to be said, and is said"


def _atom_faults(atom: Atom, texts: Mapping[str, str], language: Language) -> Iterator[str]:
    if unknown := [row for row in atom.rows if row not in texts]:
        yield f"there is no row {', '.join(unknown)}"
    told = "\n".join(texts[row] for row in atom.rows if row in texts)
    for words in atom.exact:
        if not holds(atom.fact, words, language):
            yield f"{words!r} is not in the fact {atom.fact!r}"
        if not holds(told, words, language):
            yield f"{words!r} is in none of the rows of {atom.fact!r}"
