"""`esker scan` finds and masks secrets that an older version has stored, with everything that was made of them."""

import json
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, LiteralString

import psycopg
import pytest

from esker.server.core.conversation.hidden_calls import HiddenCalls
from esker.server.core.facts.forgetting import ForgetRequest, Selection
from esker.server.core.json_input import Json
from esker.server.core.records import Principal
from esker.server.providers.text_processes import TextProcesses
from esker.server.store import text_columns
from esker.server.usecases.forget import forget
from esker.server.usecases.hidden_calls import keep_hidden_calls
from esker.server.usecases.ingest import IncomingMessage, ingest
from esker.server.usecases.open_session import SessionRequest, open_session
from esker.server.usecases.pack import get_pack
from esker.server.usecases.parts import Parts
from esker.server.usecases.prove_forgotten import prove_forgotten
from esker.server.usecases.remember import Note, remember
from esker.server.usecases.scan import ScanReport, scan
from tests.support.databases import contents
from tests.support.processes import esker

KEY = "glpat-" + "aB3dE5gH7jK9" * 2
PASSWORD = "Trout77lake"
STORED_BY = ("remember.redact", "remember.redact_name", "ingest.redact_content", "ingest.redact_name")
STORED_BY += ("open_session.redact", "open_session.redact_name", "hidden_calls.redact_json")


@contextmanager
def nothing_masked(monkeypatch: pytest.MonkeyPatch) -> Generator[None]:
    """Store texts like a version that knows no secrets."""

    def as_given(value: Json) -> Json:
        return value

    with monkeypatch.context() as patch:
        for name in STORED_BY:
            patch.setattr(f"esker.server.usecases.{name}", as_given)
        yield


async def store(parts: Parts, who: Principal) -> str:
    """Store secrets in memories, messages, passages, names and a pack; return the session."""
    session = await open_session(
        parts, who.pool_id, SessionRequest("api", f"chat-{KEY}", project="harbour", cwd=f"/srv/{KEY}")
    )
    await remember(
        parts,
        who,
        [Note(f"The crane's password is {PASSWORD} since spring.", manual=True, project="harbour", tags=[KEY])],
    )
    said: list[Json] = [f"Please deploy with {KEY} from the quay.", [{"type": "text", "text": f"password: {PASSWORD}"}]]
    batch = [IncomingMessage(f"m{number}-{KEY}", "user", content) for number, content in enumerate(said)]
    await ingest(parts, who.pool_id, session.id, batch)
    await ingest(parts, who.pool_id, session.id, [IncomingMessage("m9", "user", "The tide was high at noon.")])
    await get_pack(parts, who.pool_id, session.id)
    hidden = HiddenCalls("place", [json.dumps({"role": "user", "content": f"password: {PASSWORD}\n{KEY}"})], [], "")
    assert await keep_hidden_calls(parts, who.pool_id, session.id, hidden)
    return session.id


async def scanned(parts: Parts, who: Principal, *, mask: bool) -> ScanReport:
    """Scan the pool."""
    return await scan(parts, who, lambda _: None, mask=mask)


def columns(report: ScanReport) -> set[str]:
    """Return the columns in which something was found."""
    return {f"{finding.table}.{finding.column}" for finding in report.findings}


FOUND = {
    "hidden_calls.items", "memories.content", "memories.tags", "messages.content", "messages.external_id",
    "messages.text", "packs.text",
    "passages.text", "sessions.cwd", "sessions.external_id",
}  # fmt: skip


async def test_a_dry_run_reports_places_and_kinds_but_no_secret_and_changes_nothing(
    parts: Parts, who: Principal, owner_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with nothing_masked(monkeypatch):
        session = await store(parts, who)
    before = contents(owner_url)
    report = await scanned(parts, who, mask=False)
    assert columns(report) == FOUND
    assert report.left == report.findings
    [message] = [each for each in report.findings if each.table == "messages" and each.column == "text"][:1]
    assert message.row == (session, "1")
    assert message.kinds == {"gitlab-token": 1}
    assert KEY not in str(report)
    assert PASSWORD not in str(report)
    assert contents(owner_url) == before


async def test_masking_leaves_no_secret_in_any_table_and_all_other_words(
    parts: Parts, who: Principal, owner_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with nothing_masked(monkeypatch):
        session = await store(parts, who)
    report = await scanned(parts, who, mask=True)
    assert columns(report) == FOUND
    assert report.left == []
    dump = "\n".join(contents(owner_url)).lower()
    assert KEY.lower() not in dump
    assert PASSWORD.lower() not in dump
    assert (
        "The crane's password is [redacted:secret] since spring." in (await get_pack(parts, who.pool_id, session)).text
    )
    with psycopg.connect(owner_url) as connection:
        [(text,)] = connection.execute("SELECT text FROM passages").fetchall()
        terms = {term for (term,) in connection.execute("SELECT term FROM postings").fetchall()}
    assert "Please deploy with [redacted:gitlab-token] from the quay." in text
    assert "The tide was high at noon." in text
    assert {"crane", "quay", "tide"} <= {term.strip("'") for term in terms} | terms


async def test_a_masked_message_is_known_when_its_client_sends_it_again(
    parts: Parts, who: Principal, monkeypatch: pytest.MonkeyPatch
) -> None:
    with nothing_masked(monkeypatch):
        session = await store(parts, who)
    await scanned(parts, who, mask=True)
    again = [IncomingMessage(f"m0-{KEY}", "user", f"Please deploy with {KEY} from the quay.")]
    report = await ingest(parts, who.pool_id, session, again)
    assert (report.accepted, report.conflicts) == (0, [])


async def test_a_message_stored_under_older_rules_conflicts_when_sent_again_until_it_is_masked(
    parts: Parts, who: Principal, monkeypatch: pytest.MonkeyPatch
) -> None:
    message = IncomingMessage("m10", "user", f"Take {KEY} along.")
    with nothing_masked(monkeypatch):
        session = await store(parts, who)
        await ingest(parts, who.pool_id, session, [message])
    assert (await ingest(parts, who.pool_id, session, [message])).conflicts == ["m10"]
    await scanned(parts, who, mask=True)
    assert (await ingest(parts, who.pool_id, session, [message])).conflicts == []


async def test_a_second_scan_finds_nothing(parts: Parts, who: Principal, monkeypatch: pytest.MonkeyPatch) -> None:
    with nothing_masked(monkeypatch):
        await store(parts, who)
    await scanned(parts, who, mask=True)
    assert (await scanned(parts, who, mask=True)).findings == []


async def test_a_masked_memory_is_embedded_again(
    parts: Parts, who: Principal, owner_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with nothing_masked(monkeypatch):
        await store(parts, who)
    with psycopg.connect(owner_url) as connection:
        connection.execute("SELECT create_embedding_space('masked_3', 3)")
        connection.execute(
            "INSERT INTO embedding_spaces "
            "(pool_id, name, model, revision, dimension, prefix, source, state, created_at) "
            "SELECT id, 'masked_3', 'm', 'r', 3, '', 'none', 'active', now() FROM pools WHERE id = %s",
            [who.pool_id],
        )
    await scanned(parts, who, mask=True)
    with psycopg.connect(owner_url) as connection:
        queued = connection.execute("SELECT tier FROM embedding_attempts WHERE space = 'masked_3'").fetchall()
    assert {tier for (tier,) in queued} == {"m", "p"}


async def test_other_pools_are_left_alone(
    parts: Parts, who: Principal, owner_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with nothing_masked(monkeypatch):
        await store(parts, who)
    with psycopg.connect(owner_url) as connection:
        found: Any = connection.execute("INSERT INTO pools (name) VALUES ('other') RETURNING id").fetchone()
    other = Principal(str(found[0]), "other", "test", who.scopes)
    assert (await scanned(parts, other, mask=True)).texts == 0
    assert KEY in "\n".join(contents(owner_url))


class Meanwhile(TextProcesses):
    """Does all work itself; lets something happen after it, and remembers its name and how many rows it had."""

    def __init__(self, happen: Callable[[str, Any], object]) -> None:
        super().__init__()
        self._happen = happen
        self.made: list[tuple[str, int]] = []

    async def run(self, characters: int, work: Any, *arguments: Any) -> Any:
        """Do some work."""
        result = work(*arguments)
        self.made.append((work.__name__, len(arguments[-1])))
        self._happen(work.__name__, arguments)
        return result


async def test_a_text_that_is_changed_while_it_is_masked_keeps_the_change(
    parts: Parts, who: Principal, owner_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with nothing_masked(monkeypatch):
        session = await store(parts, who)
        await ingest(parts, who.pool_id, session, [IncomingMessage("m10", "user", f"Take {KEY} along.")])

    changes: dict[str, LiteralString] = {
        "sessions.cwd": "UPDATE sessions SET cwd = '/moved'",
        "memories.tags": "UPDATE memories SET tags = '{fresh}'",
        "_masked_messages": """UPDATE messages SET text = 'fresh', content = '[{"type": "text", "text": "fresh"}]'
                               WHERE external_id = 'm10'""",
    }

    def happen(work: str, arguments: Any) -> None:
        # Once: masking is followed by a second look.
        name = arguments[0].name if work == "_masked_rows" else work
        if change := changes.pop(name, None):
            with psycopg.connect(owner_url) as connection:
                connection.execute(change)

    await scanned(replace(parts, processes=Meanwhile(happen)), who, mask=True)
    with psycopg.connect(owner_url) as connection:
        assert connection.execute("SELECT cwd, tags FROM sessions, memories").fetchall() == [("/moved", ["fresh"])]
        [(text,)] = connection.execute("SELECT text FROM messages WHERE external_id = 'm10'").fetchall()
    assert text == "fresh"
    assert not changes
    assert KEY not in "\n".join(contents(owner_url))


async def test_no_transaction_is_open_while_texts_are_searched_and_large_ones_come_alone(
    parts: Parts, who: Principal, monkeypatch: pytest.MonkeyPatch
) -> None:
    with nothing_masked(monkeypatch):
        session = await store(parts, who)
    large = [IncomingMessage(f"l{number}", "user", f"{KEY} " + "sand " * 50_000) for number in range(3)]
    with nothing_masked(monkeypatch):
        await ingest(parts, who.pool_id, session, large)
    monkeypatch.setattr(text_columns, "_BYTES_AT_ONCE", 2_000)
    receipt = await forget(parts, who, ForgetRequest(Selection(words=["tide was high"])))
    in_use: list[int] = []
    pool = parts.database._pool

    def happen(_: str, __: Any) -> None:
        stats = pool.get_stats()
        in_use.append(stats["pool_size"] - stats["pool_available"])

    processes = Meanwhile(happen)
    parts = replace(parts, processes=processes)
    await prove_forgotten(parts, who.pool_id, receipt.id)
    assert [rows for name, rows in processes.made if name == "_count"].count(1) >= 3
    report = await scanned(parts, who, mask=True)
    assert report.left == []
    assert {name for name, _ in processes.made} >= {"_count", "_masked_rows", "_masked_messages"}
    assert set(in_use) == {0}


async def test_every_text_is_looked_at_once_however_few_are_read_at_once(
    parts: Parts, who: Principal, monkeypatch: pytest.MonkeyPatch
) -> None:
    with nothing_masked(monkeypatch):
        await store(parts, who)
    usual = await scanned(parts, who, mask=False)
    monkeypatch.setattr(text_columns, "_AT_ONCE", 1)
    assert await scanned(parts, who, mask=False) == usual


async def test_the_command_fails_as_long_as_something_is_left(
    parts: Parts, who: Principal, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with nothing_masked(monkeypatch):
        await store(parts, who)
    dry = esker("scan", ESKER_DATABASE_URL=database_url)
    assert dry.returncode == 1
    assert "memories.tags" in dry.stdout
    assert KEY not in dry.stdout
    masked = esker("scan", "--mask", "--json", ESKER_DATABASE_URL=database_url)
    assert masked.returncode == 0, masked.stderr
    [report] = json.loads(masked.stdout)
    assert (report["pool"], report["left"]) == ("default", [])
    assert len(report["findings"]) >= len(FOUND)
    assert esker("scan", ESKER_DATABASE_URL=database_url).returncode == 0
