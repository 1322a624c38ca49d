"""Reads an assertion by its words alone: its subject, scope and values, the values it gives up, and who asserts it.

`clauses` reads its clauses, and `superseding` compares the results; a part that is not understood stays empty, and
nothing is replaced because of it.
"""

import re
from dataclasses import dataclass, replace

from esker.server.core.facts.same_fact import Fingerprint, fingerprint
from esker.server.core.sized_cache import cached_up_to
from esker.server.core.text import labels
from esker.server.providers.extractive.clause_values import Value
from esker.server.providers.extractive.clauses import ClauseReader
from esker.server.providers.extractive.grammar import Grammar, grammar_of
from esker.server.providers.extractive.value_kinds import with_joined_days

# Characters of a statement that are read; a longer one is rarely about one thing.
_MOST_CHARACTERS = 500
_SPEAKER = re.compile(r"^([^\W\d_][^:\n]{0,40}?) said: ")


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
    read = ClauseReader(grammar, statement, is_planned=labels.is_planned(said), corrects=corrects)
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
