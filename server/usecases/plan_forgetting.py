"""Plan what is forgotten with what was asked for: what says the same, what was drawn from it, and what repeats it."""

import asyncio
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from esker.server.core.errors import Conflict, NotFound
from esker.server.core.facts.echo import names_in, other_words, own_words, repeats, repeats_somewhere
from esker.server.core.facts.forgetting import DoomedMessage, DoomedRow, ForgetPlan, ForgetRequest, RowReason, Selection
from esker.server.core.facts.same_fact import fingerprint, same_fact
from esker.server.core.ids import is_passage
from esker.server.core.pack.rendering import unknown_line
from esker.server.core.records import Memory
from esker.server.core.sources import sources_of
from esker.server.core.text.labels import without_label, without_notes
from esker.server.core.text.phrases import Phrases
from esker.server.db.database import Connection
from esker.server.db.pipeline import fetch
from esker.server.store import forgetting, memories, passages, projects, text_columns
from esker.server.store.forgetting import FoundMessage
from esker.server.usecases.find_phrases import any_saying, saying
from esker.server.usecases.find_projects import unknown_project
from esker.server.usecases.forgotten_places import with_new_names
from esker.server.usecases.parts import Parts

_SHOWN_CHARACTERS = 200
"""Characters of a message that a plan shows."""
_LONGEST_NAME = 100
"""Longest sentence, in characters, that a plan searches for besides the names: longer ones are not repeated
verbatim."""

_FIRST_ROWS = 100
"""Rows with a word that are read first, to learn whether another memory contains it."""

_PLACE = re.compile(r"[./:\\]")
"""Marks the name of a file, a host or another place."""

SaidIn = dict[str, set[int]]
"""Messages as session id → seqs."""


@dataclass(slots=True)
class Doomed:
    """All that is forgotten."""

    same: set[str]
    """The ids of the memories that state the fact."""
    taken: set[str] = field(default_factory=set[str])
    """The memories that were taken from the messages of the requested passages; they are among `same`."""
    rows: dict[str, Memory] = field(default_factory=dict[str, Memory])
    """All memories that are deleted: those that state the fact, and those drawn from them."""
    echoes: set[str] = field(default_factory=set[str])
    """The memories that only repeat the fact or contain one of its names; they are among `same`."""
    quoting: dict[str, Memory] = field(default_factory=dict[str, Memory])
    """Memories that stay and lose a quotation."""
    quoted: dict[str, Memory] = field(default_factory=dict[str, Memory])
    """Memories that contain a name only in a quotation; `quoting` has those of them that stay."""
    revived: dict[str, Memory] = field(default_factory=dict[str, Memory])
    """Memories that one of `rows` superseded."""
    said_in: SaidIn = field(default_factory=SaidIn)
    """The messages that stated the fact."""
    repeated_in: SaidIn = field(default_factory=SaidIn)
    """Other messages that contain one of its names or only repeat the fact."""
    own: SaidIn = field(default_factory=SaidIn)
    """The messages of the requested passages: their words are always deleted."""
    names: frozenset[str] = frozenset()
    """The requested words, or those that distinguish the fact from all others."""
    phrases: Phrases = field(default_factory=lambda: Phrases((), ()))
    """The phrases that are searched for in all columns: the names and the short sentences of the fact."""
    notes: set[str] = field(default_factory=set[str])
    """Tasks, continuations and titles of `noted_in`."""
    noted_in: set[str] = field(default_factory=set[str])
    """The sessions that lose these notes, or whose project, directory or ids get another name."""
    placed: set[str] = field(default_factory=set[str])
    """The memories whose project gets another name."""
    renamed: set[str] = field(default_factory=set[str])
    """The projects, directories, clients and ids of clients that get another name."""

    @property
    def messages(self) -> SaidIn:
        """All messages that are taken out of passages."""
        return merged(self.said_in, self.repeated_in, self.own)

    @property
    def sessions(self) -> set[str]:
        """The sessions that must be locked."""
        rows = (*self.rows.values(), *self.revived.values(), *self.quoting.values())
        return {*self.messages, *self.noted_in, *(row.session_id for row in rows if row.session_id)}

    def blanked(self, request: ForgetRequest) -> SaidIn:
        """Return the messages whose words are deleted."""
        return self.messages if request.with_messages else self.own


def merged(*all_said_in: Mapping[str, Collection[int]]) -> SaidIn:
    """Return messages (session id → seqs) in one mapping."""
    found: SaidIn = {}
    for said_in in all_said_in:
        for session_id, seqs in said_in.items():
            found.setdefault(session_id, set()).update(seqs)
    return found


async def doomed_by(parts: Parts, connection: Connection, request: ForgetRequest) -> Doomed:
    """Return everything that is forgotten with what a request names.

    Raises NotFound for an unknown id or project, and Conflict if keys are bound to a project whose name says a word.
    """
    request = replace(request, selection=await with_new_names(connection, request.selection))
    doomed = await (_by_ids if request.selection.ids else _by_selection)(parts, connection, request)
    await _add_drawn(connection, doomed)
    doomed.said_in = merged(doomed.said_in, await _said_in(connection, [doomed.rows[i] for i in sorted(doomed.same)]))
    if request.selection.ids:
        await _add_names(parts, connection, doomed)
        if request.echoes:
            await _add_echoes(parts, connection, doomed)
    await _add_notes(connection, doomed)
    if request.selection.words:
        await _check_keys(parts, connection, doomed.phrases)
        await _add_places(connection, doomed)
    return doomed


async def _by_ids(_: Parts, connection: Connection, request: ForgetRequest) -> Doomed:
    """Return the memories that are meant by ids, and what says the same; of a passage, the rows taken from it."""
    own, taken = SaidIn(), set[str]()
    windows = [text_id for text_id in request.selection.ids if is_passage(text_id)]
    found = await passages.get(connection, windows)
    for passage_id in windows:
        if passage_id not in found:
            raise passages.missing(passage_id)
        window = found[passage_id]
        seqs = range(window.first_seq, window.last_seq + 1)
        own = merged(own, {window.session_id: seqs})
        taken |= await memories.taken_from(connection, window.session_id, seqs)
    asked = {text_id for text_id in request.selection.ids if not is_passage(text_id)}
    there = await memories.get(connection, asked)
    for memory_id in request.selection.ids:
        if memory_id in asked and memory_id not in there:
            raise memories.missing(memory_id)
    return Doomed(await _saying_the_same(connection, asked | taken), taken=taken, own=own)


async def _by_selection(parts: Parts, connection: Connection, request: ForgetRequest) -> Doomed:
    """Return the memories and messages that say one of some words, or that are within some limits.

    Raises NotFound for an unknown project: its name is misspelt, and what was to be forgotten would stay.
    """
    selection, phrases = request.selection, Phrases.of(request.selection.words)
    if unknown := await unknown_project(connection, selection.project):
        raise NotFound(
            f"Nothing is forgotten. {unknown_line(unknown)}", hint="Give a project's name as Esker shows it."
        )
    rows = await memories.get(connection, await forgetting.selected_memories(connection, selection, phrases))
    found = await forgetting.selected_messages(connection, selection, phrases)
    said = await _saying(parts, phrases, found) if phrases else found
    long = sum(len(row.content) for row in rows.values())
    same, quoted = await parts.processes.run(long, _which_say, list(rows.values()), phrases)
    return Doomed(
        same,
        said_in=_by_session(said),
        names=frozenset(selection.words),
        phrases=phrases,
        quoted={i: rows[i] for i in quoted},
    )


def _which_say(rows: Sequence[Memory], phrases: Phrases) -> tuple[set[str], set[str]]:
    """Return the ids of the rows that say one of some phrases, or all if there is none, and of those that quote one."""
    same = {row.id for row in rows if not phrases or _row_says(row, phrases)}
    return same, {row.id for row in rows if row.id not in same and phrases.found_in(row.content)}


def _row_says(row: Memory, phrases: Phrases) -> bool:
    return any(map(phrases.found_in, (own_words(row.kind, row.content), row.external_id or "", *row.tags)))


async def _saying(parts: Parts, phrases: Phrases, found: Sequence[FoundMessage]) -> list[FoundMessage]:
    """Return the messages that say one of some phrases."""
    said = await saying(parts, phrases, [[one.text, one.content] for one in found])
    return [one for one, says in zip(found, said, strict=True) if says]


def _by_session(found: Iterable[FoundMessage]) -> SaidIn:
    return merged(*({message.session_id: {message.seq}} for message in found))


async def _add_drawn(connection: Connection, doomed: Doomed) -> None:
    """Add the rows drawn from those that say it, the rows that become live again, and those that quote one of them."""
    doomed.rows = await memories.get(connection, doomed.same | await memories.drawn_from(connection, doomed.same))
    doomed.same &= doomed.rows.keys()
    doomed.revived = await memories.get(connection, await memories.replaced_by(connection, doomed.rows))
    quoting = await memories.quoting(connection, doomed.rows.values())
    quoting |= doomed.quoted
    doomed.quoting = {memory_id: row for memory_id, row in quoting.items() if memory_id not in doomed.rows}


async def _saying_the_same(connection: Connection, memory_ids: Collection[str]) -> set[str]:
    """Return the ids of rows, of the rows kept behind them, and of rows that they replaced by a longer wording.

    Of an insight, which stands beside its sources, only the sources that say the same are included.
    """
    same = await _with_sources(connection, memory_ids)
    while True:
        replaced = await memories.replaced_by(connection, same) - same
        rows = await memories.get(connection, same | replaced)
        reworded = {row.id for row in rows.values() if row.id in replaced and _says_the_same(row, rows)}
        if not reworded:
            return same
        same |= await _with_sources(connection, reworded)


async def _with_sources(connection: Connection, memory_ids: Collection[str]) -> set[str]:
    asked = await memories.get(connection, memory_ids)
    insights = {row.id: row for row in asked.values() if row.facet}
    sources = await memories.get(connection, {source for row in insights.values() for source in row.source_ids})
    facts = [row.content for row in insights.values()]
    repeating = {row.id for row in sources.values() if repeats(row.content, facts)}
    plain = (asked.keys() - insights.keys()) | repeating
    return {*insights, *await memories.with_sources_of(connection, plain)}


def _says_the_same(row: Memory, rows: Mapping[str, Memory]) -> bool:
    by = rows.get(row.superseded_by or "")
    return by is not None and same_fact(fingerprint(row.content), fingerprint(by.content))


async def _said_in(connection: Connection, rows: Sequence[Memory]) -> SaidIn:
    """Return the messages in which rows were said, first or again."""
    other_sources = await fetch(connection, memories.other_sources([row.id for row in rows]))
    sources = [source for row in rows for source in sources_of(row, other_sources.get(row.id, ()))]
    return merged(*({source.session_id: source.seqs} for source in sources if source.session_id and source.seqs))


async def _add_names(parts: Parts, connection: Connection, doomed: Doomed) -> None:
    """Add the words that nothing else contains: a text with one of them states the forgotten fact.

    These are names, and other uncommon words that the assistant's next message takes up.
    """
    contents = [doomed.rows[memory_id].content for memory_id in sorted(doomed.same)]
    if not contents:
        return
    since = min(row.said_at for row in doomed.rows.values())
    replies = await forgetting.replies(connection, merged(doomed.said_in, doomed.own))
    names, taken_up = await asyncio.to_thread(_words_of, contents, [reply.text for reply in replies])
    # A name counts if no text had it before; another word only if no other session ever has it.
    asked = {**dict.fromkeys(taken_up, None), **dict.fromkeys(names, since)}
    of_person = any(row.trust == "user" for row in doomed.rows.values())
    if not of_person:
        # A file named in an agent's report is also the subject of its other messages, which must stay.
        asked = {word: until for word, until in asked.items() if not _PLACE.search(word)}
    telling = {
        word
        for word, until in asked.items()
        # Names of files do not spread: an agent reports about the files that it changed, even if a person named them
        # first.
        if not await _is_said_elsewhere(
            parts, connection, doomed, word, since, until, spreads=of_person and not _PLACE.search(word)
        )
    }
    whole = [said for content in contents if len(said := without_notes(without_label(content))) <= _LONGEST_NAME]
    if telling:
        named = Phrases.of(telling)
        rows = await memories.get(connection, await forgetting.selected_memories(connection, Selection(), named))
        doomed.quoted = {row.id: row for row in rows.values() if _only_quotes(row, named)}
        await _add_drawn(connection, doomed)
    doomed.names = frozenset(telling)
    doomed.phrases = Phrases.of([*telling, *whole])


async def _is_said_elsewhere(
    parts: Parts,
    connection: Connection,
    doomed: Doomed,
    word: str,
    since: datetime,
    until: datetime | None,
    *,
    spreads: bool,
) -> bool:
    """Whether a memory that stays, or a message of another session sent before `until`, contains a word.

    `until` None: at any time. Memories that got the word from a fact said at `since` do not count; those of agents and
    tools got it from there only if it `spreads`.
    """
    phrases = Phrases.of([word])
    # A common word is in one of the first rows already.
    for limit in (_FIRST_ROWS, None):
        others = await forgetting.other_memories(connection, phrases, doomed.rows, since, spreads=spreads, limit=limit)
        if await any_saying(parts, phrases, [own_words(kind, content) for kind, content in others]):
            return True
        if limit is not None and len(others) < limit:
            break
    return await forgetting.is_in_other_sessions(connection, phrases, doomed.messages, until)


def _says_name(row: Memory, names: Phrases) -> bool:
    return names.found_in(own_words(row.kind, row.content))


def _only_quotes(row: Memory, names: Phrases) -> bool:
    return names.found_in(row.content) and not _says_name(row, names)


def _words_of(contents: Sequence[str], replies: Sequence[str]) -> tuple[set[str], set[str]]:
    """Return the names in some rows, and the other uncommon words that a reply takes up."""
    names = set(names_in(contents))
    others = other_words(contents) - names
    return names, {word for word in others if any(map(Phrases.of([word]).found_in, replies))}


async def _add_echoes(parts: Parts, connection: Connection, doomed: Doomed) -> None:
    """Add the memories and messages that say a name or only repeat what is forgotten."""
    facts = [doomed.rows[memory_id].content for memory_id in sorted(doomed.same)]
    terms = await asyncio.to_thread(lambda: {term for fact in facts for term in fingerprint(fact).gist})
    names = Phrases.of(doomed.names)
    near = await forgetting.memories_sharing(connection, terms, doomed.rows)
    if names:
        named_ids = await forgetting.selected_memories(connection, Selection(), names)
        rows = await memories.get(connection, named_ids - doomed.rows.keys())
        near.extend((row.id, row.kind, row.content) for row in rows.values())
    doomed.echoes = await asyncio.to_thread(
        lambda: {
            memory_id
            for memory_id, kind, content in near
            if names.found_in(own_words(kind, content)) or repeats(content, facts)
        }
    )
    if doomed.echoes:
        doomed.same |= await _saying_the_same(connection, doomed.echoes)
        await _add_drawn(connection, doomed)
        heard = await _said_in(connection, [doomed.rows[i] for i in sorted(doomed.same)])
        doomed.repeated_in = _without(heard, doomed.said_in)
    said_in = merged(doomed.said_in, doomed.own)
    named = await forgetting.messages_with(connection, names)
    later = await forgetting.messages_after(connection, said_in)
    long = sum(len(message.text) for message in later)
    repeated = await parts.processes.run(long, _repeating, [message.text for message in later], facts)
    found = [
        *await _saying(parts, doomed.phrases, named),
        *(message for message, repeats_it in zip(later, repeated, strict=True) if repeats_it),
    ]
    doomed.repeated_in = merged(doomed.repeated_in, _without(_by_session(found), said_in))


def _repeating(texts: Sequence[str], facts: Sequence[str]) -> list[bool]:
    """Tell for each text whether one of its sentences only repeats a fact."""
    return [repeats_somewhere(text, facts) for text in texts]


def _without(said_in: SaidIn, others: SaidIn) -> SaidIn:
    return {s: left for s, seqs in said_in.items() if (left := seqs - others.get(s, set()))}


async def _add_notes(connection: Connection, doomed: Doomed) -> None:
    """Add the tasks, continuations and titles of sessions that were made of these messages, or that say a name."""
    doomed.notes = await forgetting.notes_of(connection, doomed.messages)
    doomed.noted_in = {*doomed.messages}
    for session_id, note in await forgetting.notes_with(connection, doomed.phrases):
        if doomed.phrases.found_in(note):
            doomed.notes.add(note)
            doomed.noted_in.add(session_id)


async def _check_keys(parts: Parts, connection: Connection, phrases: Phrases) -> None:
    """Raise Conflict if a key is bound to a project that would get another name: it would not open it any more."""
    for project, names in (await projects.bound_keys(connection, parts.clock())).items():
        if phrases.found_in(project):
            raise Conflict(
                f"Keys are bound to {project!r}, whose name would be forgotten: {', '.join(names)}. "
                "They would not open it any more, so nothing was forgotten.",
                hint="Revoke them (`esker key revoke`), forget, and create keys for the same project afterwards.",
            )


async def _add_places(connection: Connection, doomed: Doomed) -> None:
    """Add the names that say one of the words, and the memories and sessions that have one of them."""
    doomed.placed, sessions = await forgetting.in_places(connection, doomed.phrases)
    doomed.noted_in |= sessions
    said = await text_columns.places_saying(connection, doomed.phrases)
    doomed.renamed = {name for names in said.values() for name in names}


async def plan_of(connection: Connection, request: ForgetRequest, doomed: Doomed) -> ForgetPlan:
    """Return what a person is shown before it is forgotten."""
    blanked = doomed.blanked(request)
    found = await forgetting.some_messages(connection, doomed.messages)
    return ForgetPlan(
        names=sorted(doomed.names),
        memories=[_doomed_row(row, request, doomed) for _, row in sorted(doomed.rows.items())],
        messages=[
            DoomedMessage(
                session_id=message.session_id,
                seq=message.seq,
                role=message.role,
                text=_beginning(message.text),
                why="echo" if message.seq in doomed.repeated_in.get(message.session_id, ()) else "said",
                blanked=message.seq in blanked.get(message.session_id, ()),
            )
            for message in found
        ],
        notes=sorted(doomed.notes),
        rewritten=sorted(doomed.quoting),
        renamed=sorted(doomed.renamed),
    )


def _beginning(text: str) -> str:
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}…"


def _doomed_row(row: Memory, request: ForgetRequest, doomed: Doomed) -> DoomedRow:
    return DoomedRow(row.id, row.kind, row.content, _reason(row, request, doomed))


def _reason(row: Memory, request: ForgetRequest, doomed: Doomed) -> RowReason:
    if row.id in doomed.echoes:
        return "echo"
    if row.id in doomed.same and (not request.selection.ids or row.id in request.selection.ids):
        return "asked"
    if row.id in doomed.taken or row.id not in doomed.same:
        return "drawn"
    # An insight is left out: of its sources, only those that say the same go with it.
    whole = (doomed.rows[each] for each in doomed.same if not doomed.rows[each].facet)
    return "source" if any(row.id in each.source_ids for each in whole) else "same"
