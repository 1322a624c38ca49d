"""Storing a data set in a server: every turn as a note, or turns as messages through the whole pipeline.

Each conversation has its own project, so that its questions do not see other conversations, and each of its sittings is
a session. External ids are derived from the content: sending it again changes nothing.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, Literal

from rich.progress import Progress

from esker.server.core.errors import EskerError
from esker.server.usecases.remember import MAX_CHARACTERS
from evals.retrieval.dataset import Conversation, DataSet, Turn
from evals.retrieval.traces import Traces
from evals.serving import POLL_SECONDS, Server, until_done, wait_for_vectors

StoredAs = Literal["rows", "sessions"]

_CLIENT = "evals"
_BATCH = 200


@dataclass(slots=True)
class StoredDataSet:
    """A stored data set: the traces to its turns, its sessions, and seconds since the first request.

    `sent_seconds` ends when the last turn was acknowledged (as `sessions`: observed, too), `found_seconds` when
    everything could be found by meaning. `blank` turns were not stored, `cut` ones were too long for a note.
    """

    traces: Traces
    sessions: list[str] = field(default_factory=list[str])
    sent_seconds: float = 0.0
    found_seconds: float = 0.0
    blank: int = 0
    cut: int = 0


def store(
    server: Server, data: DataSet, way: StoredAs, shown: Progress, *, shared: bool, reflect: bool
) -> StoredDataSet:
    """Store a data set in a server and wait until every text has its vector.

    A `shared` server may contain other data, so projects get unique names. With `reflect` each session is reflected.
    Raises Unavailable, InvalidInput.
    """
    name = data.sha256()[:12]
    prefix = f"{data.name} {name} as {way}/" if shared else ""
    stored = StoredDataSet(Traces({conversation.id: prefix + conversation.id for conversation in data.conversations}))
    put = _put_rows if way == "rows" else _put_messages
    wait_for_vectors(server, shown, "Loading the model")
    began = time.monotonic()
    task = shown.add_task("Storing turns", total=data.turns)
    for conversation in data.conversations:
        for sitting, turns in _sittings(conversation, stored):
            opened = {"client": _CLIENT, "external_id": f"{name}/{way}/{conversation.id}/{sitting}"}
            opened |= {"project": stored.traces.projects[conversation.id]}
            session = server.post("/v1/sessions", opened)["id"]
            stored.sessions.append(session)
            put(server, stored, session, turns, lambda count: shown.advance(task, count))
    shown.update(task, completed=data.turns)
    if way == "sessions":
        _observe(server, stored.sessions, shown, reflect=reflect)
    stored.sent_seconds = time.monotonic() - began
    wait_for_vectors(server, shown, "Embedding")
    stored.found_seconds = time.monotonic() - began
    return stored


def _sittings(conversation: Conversation, stored: StoredDataSet) -> Iterator[tuple[str, list[Turn]]]:
    """Yield the sittings of a conversation with their turns that are not blank; count the blank ones."""
    for sitting, turns in groupby(conversation.turns, key=lambda turn: turn.session):
        every = list(turns)
        spoken = [turn for turn in every if turn.words.strip()]
        stored.blank += len(every) - len(spoken)
        if spoken:
            yield sitting, spoken


Advance = Callable[[int], None]


def _put_rows(server: Server, stored: StoredDataSet, session: str, turns: Sequence[Turn], advance: Advance) -> None:
    stored.cut += sum(len(turn.words) > MAX_CHARACTERS for turn in turns)
    for batch in _batches(turns):
        notes = [_note(session, turn) for turn in batch]
        ids: list[str] = server.post("/v1/memories/batch", {"memories": notes})["ids"]
        stored.traces.memories |= {memory: frozenset({turn.id}) for memory, turn in zip(ids, batch, strict=True)}
        advance(len(batch))


def _note(session: str, turn: Turn) -> dict[str, Any]:
    note = {"content": turn.words[:MAX_CHARACTERS], "session_id": session, "external_id": f"{session}/{turn.id}"}
    return note | ({"said_at": turn.said_at.isoformat()} if turn.said_at else {})


def _put_messages(server: Server, stored: StoredDataSet, session: str, turns: Sequence[Turn], advance: Advance) -> None:
    for batch in _batches(turns):
        server.post(f"/v1/sessions/{session}/messages", {"messages": [_message(turn) for turn in batch]})
        advance(len(batch))
    after: int | None = 0
    while after is not None:
        page = server.get(f"/v1/sessions/{session}/messages", after=after, limit=1_000)
        stored.traces.messages |= {(session, message["seq"]): message["external_id"] for message in page["messages"]}
        after = page["next"]


def _message(turn: Turn) -> dict[str, Any]:
    message = {"external_id": turn.id, "role": turn.role, "content": turn.words}
    return message | ({"sent_at": turn.said_at.isoformat()} if turn.said_at else {})


def _batches(turns: Sequence[Turn]) -> Iterator[Sequence[Turn]]:
    for start in range(0, len(turns), _BATCH):
        yield turns[start : start + _BATCH]


def _observe(server: Server, sessions: Sequence[str], shown: Progress, *, reflect: bool) -> None:
    for session in shown.track(sessions, description="Observing"):
        until_done(server, f"/v1/sessions/{session}/observe?wait=true")
        if reflect:
            until_done(server, f"/v1/sessions/{session}/reflect?wait=true")
        _wait_for_reflection(server, session)


def _wait_for_reflection(server: Server, session: str) -> None:
    """Wait until no reflection of a session is queued. Raises EskerError if one failed."""
    while jobs := [job for job in server.get(f"/v1/sessions/{session}")["jobs"] if job["kind"] == "reflect"]:
        if error := jobs[0]["last_error"]:
            raise EskerError(f"Session {session} could not be reflected: {error}", hint=jobs[0]["hint"])
        time.sleep(POLL_SECONDS)
