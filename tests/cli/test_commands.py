"""The command line, as a process, against a real server."""

import json
import os
import re
import socket
import subprocess
import sys
import threading
from collections.abc import Generator
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import httpx2
import psycopg
import pytest
from typer.testing import CliRunner

from esker.server.agents.api import Api
from esker.server.cli.main import app
from esker.server.cli.verbs import VERBS
from esker.server.core.conversation.readable_calls import readable
from esker.server.core.http_answers import ServerRefused
from esker.server.db.embedded import embedded
from esker.server.db.migrate import migrations, pending
from tests.support.made import made_at
from tests.support.processes import ROOT, environment, esker, esker_alone, esker_in, served
from tests.support.reflecting import OVERTAKEN
from tests.support.waiting import PATIENCE

SAMPLES = ROOT / "server/agents/samples"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Generator[dict[str, str]]:
    """The environment of a command with a running server."""
    folder = tmp_path_factory.mktemp("d")
    with served("--data-dir", made_at(folder / "d")) as (_, said):
        yield {"ESKER_URL": said["url"], "ESKER_STATE_DIR": str(folder / "state")}


# Each command is a process of its own, forked when what all of them import has been imported.
LOADED_BY = """
import os, sys
from esker.server.cli.main import run
for command in sys.argv[1:]:
    if not os.fork():
        sys.argv = ["esker", *command.split()]
        try:
            run()
        finally:
            print("\\nmodules:", *{name.split(".")[0] for name in sys.modules}, flush=True)
            os._exit(0)
    os.wait()
"""


def loaded_by(*commands: str, **more: str) -> list[set[str]]:
    """Return the top-level modules that each command imports."""
    command = [sys.executable, "-c", LOADED_BY, *commands]
    done = subprocess.run(command, cwd=ROOT, env=environment(**more), capture_output=True, text=True, check=True)
    return [set(line.split()) for line in done.stdout.splitlines() if line.startswith("modules:")]


HEAVY = {"torch", "sentence_transformers", "fastapi", "mcp", "anthropic", "psycopg", "numpy", "uvicorn", "httpx2"}


def test_help_recall_and_status_import_nothing_heavy(server: dict[str, str]) -> None:
    shown, recalled, status, pool = loaded_by("--help", "recall river", "status", "pool --help", **server)
    assert not (shown | recalled | status) & HEAVY
    assert "psycopg" in pool, "the check can see what is imported"


def test_the_help_page_has_every_verb_with_its_own_line() -> None:
    page = " ".join(esker_alone("--help").stdout.replace("│", " ").split())
    for verb, (_, line) in VERBS.items():
        assert f"{verb} {line}" in page
        done = CliRunner().invoke(app, [verb, "--help"])
        own = " ".join(done.stdout.replace("│", " ").split())
        assert (done.exit_code, "Usage:" in own, line in own) == (0, True, True), verb
        assert not re.search(r"<\w+[\[>]", own), f"{verb} shows types of Python"


@pytest.mark.parametrize("asked", ["--help", "-h"])
def test_the_help_of_a_hook_is_not_taken_for_an_event(asked: str) -> None:
    done = esker("hook", asked)
    assert (done.returncode, "Usage:" in done.stdout) == (0, True)


@pytest.mark.parametrize(
    ("arguments", "named"),
    [(["rekall"], "rekall"), (["recall"], "query"), (["pool", "keep", "--memories", "x"], "KIND")],
)
def test_wrong_usage_with_json_is_one_document(arguments: list[str], named: str) -> None:
    done = esker(*arguments, "--json")
    problem = json.loads(done.stdout)
    assert (done.returncode, done.stderr, named in problem["error"]) == (2, "", True)
    assert "--help" in problem["hint"]


def test_a_memory_is_edited_and_pinned_from_the_command_line(server: dict[str, str]) -> None:
    written = json.loads(esker("remember", "The gate is blue.", "--everywhere", "--json", **server).stdout)
    edited = json.loads(esker("edit", written["id"], "The", "gate", "is", "red.", "--json", **server).stdout)
    assert edited["content"] == "The gate is red."
    pinned = json.loads(esker("pin", edited["id"], "--json", **server).stdout)
    assert (pinned["kind"], pinned["content"]) == ("manual", "The gate is red.")
    unpinned = json.loads(esker("pin", pinned["id"], "--undo", "--json", **server).stdout)
    assert unpinned["kind"] == "note"
    again = esker("edit", written["id"], "The gate is green.", **server)
    assert (again.returncode, "was replaced by" in again.stderr) == (1, True)


def test_a_wrong_verb_is_wrong_usage() -> None:
    done = esker_alone("recal", "x")
    assert done.returncode == 2
    assert "recall" in done.stderr


def _overtake(url: str, sessions: list[str]) -> None:
    """Let each session say something that a later message overtakes, so that there is something to reflect."""
    with httpx2.Client(base_url=url, timeout=PATIENCE) as client:
        for session in sessions:
            client.post(f"/v1/sessions/{session}/messages", json={"messages": OVERTAKEN}).raise_for_status()
            client.post(f"/v1/sessions/{session}/observe?wait=true").raise_for_status()


def _repeat(server: dict[str, str], first: dict[str, Any]) -> None:
    """Ingest the samples again, which adds nothing."""
    once_more = json.loads(esker("ingest", str(SAMPLES), "--observe", "--json", **server).stdout)
    assert (once_more["sessions"], once_more["memories"]) == (first["sessions"], 0)
    assert (once_more["accepted"], once_more["duplicates"]) == (0, 0)
    again = json.loads(esker("ingest", str(SAMPLES), "--observe", "--again", "--json", **server).stdout)
    assert (again["accepted"], again["duplicates"], again["memories"]) == (0, 60, 0)


def test_ingest_once_and_again_observe_recall_pack_and_forget(server: dict[str, str]) -> None:
    first = json.loads(esker("ingest", str(SAMPLES), "--observe", "--json", **server).stdout)
    assert (first["files"], first["accepted"], first["duplicates"]) == (2, 60, 0)
    assert first["skipped"] == {"summary line": 1, "injected context": 1}
    assert first["memories"] > 20
    _repeat(server, first)
    found = json.loads(esker("recall", "pnpm npm", "--json", **server).stdout)
    assert "pnpm" in found["hits"][0]["content"]
    shown = esker("recall", "pnpm npm", **server).stdout
    assert found["hits"][0]["content"] in shown
    assert "message 7 of ses_" in shown
    assert "months ago" in shown
    best = found["hits"][0]
    [[seq]] = [source["seqs"] for source in best["sources"]]
    [excerpt] = json.loads(esker("expand", best["id"], "--around", "1", "--json", **server).stdout)["excerpts"]
    assert [(m["seq"], m["cited"]) for m in excerpt["messages"]] == [(seq - 1, False), (seq, True), (seq + 1, False)]
    shown = esker("expand", best["id"], "--around", "1", **server).stdout
    assert all(readable(message["text"]) in shown for message in excerpt["messages"])
    assert f"> {seq} " in shown
    assert f"[{best['id']}]" in shown

    _overtake(server["ESKER_URL"], first["sessions"])
    [reflected] = json.loads(esker("reflect", first["sessions"][0], "--wait", "--json", **server).stdout)["sessions"]
    assert reflected["memories"] > 0
    assert "1 session reflected" in esker("reflect", "--sessions", "--wait", **server).stdout
    once_more = esker("reflect", "--sessions", "--wait", **server).stdout
    assert "nothing to do" in once_more or "nothing to condense" in once_more
    listed = esker("sessions", **server).stdout
    assert all(session in listed for session in first["sessions"])
    rows = json.loads(esker("memories", "--session", first["sessions"][0], "--json", **server).stdout)
    assert {row["session_id"] for row in rows} == {first["sessions"][0]}
    assert "<global_observations>" in esker("pack", first["sessions"][0], **server).stdout
    pack = json.loads(esker("pack", first["sessions"][0], "--json", **server).stdout)
    reasons = esker("pack", first["sessions"][0], "--explain", **server).stdout.splitlines()
    assert len(reasons) == 1 + len(pack["memory_ids"])
    assert reasons[0].split()[:4] == ["section", "rank", "why", "score"]
    assert all("its rank" in line for line in reasons[1:])
    gone = json.loads(esker("forget", pack["memory_ids"][0], "--json", **server).stdout)
    assert gone["memories"] >= 1
    missing = esker("forget", pack["memory_ids"][0], **server)
    assert (missing.returncode, "no memory" in missing.stderr) == (1, True)
    assert esker("expand", pack["memory_ids"][0], **server).returncode == 1


def test_remember_and_observe_without_a_session(server: dict[str, str]) -> None:
    written = json.loads(
        esker(
            "remember", "Our hill is the Brocken.", "--priority", "high", "--tag", "geo", "--pin", "--json", **server
        ).stdout
    )
    assert (written["kind"], written["priority"], written["tags"]) == ("manual", "high", ["geo"])
    assert "Brocken" in esker("recall", "hill", **server).stdout
    assert "manual by local" in esker("expand", written["id"], **server).stdout
    assert "nothing to do" in esker("observe", "--wait", **server).stdout


def test_the_words_of_a_memory_can_come_from_standard_input(server: dict[str, str]) -> None:
    def given(*arguments: str, words: str) -> tuple[int, str]:
        command = [sys.executable, "-P", "-m", "esker", *arguments]
        there = environment(**server)
        done = subprocess.run(
            command, cwd=ROOT, env=there, input=words, capture_output=True, text=True, timeout=PATIENCE, check=False
        )
        return done.returncode, done.stdout + done.stderr

    code, answer = given("remember", "-", "--json", words="The lock gate\nis steel.\n")
    written = json.loads(answer)
    assert (code, written["content"]) == (0, "The lock gate\nis steel.")
    assert "is oak." in given("edit", written["id"], "-", words="The lock gate is oak.")[1]
    code, answer = given("remember", "-", words=" \n")
    assert (code, "Standard input is empty." in answer) == (2, True)


def test_a_missing_thing_is_explained(server: dict[str, str], tmp_path: Path) -> None:
    nothing = esker("ingest", str(tmp_path / "nothing.jsonl"), **server)
    assert (nothing.returncode, "does not exist" in nothing.stderr) == (1, True)
    unknown = esker("ingest", str(SAMPLES), "--client", "emacs", **server)
    assert (unknown.returncode, "claude-code" in unknown.stderr) == (2, True)
    session = esker("pack", "no/such session", **server)
    assert (session.returncode, "There is no session 'no/such session'" in session.stderr) == (1, True)
    empty = esker("ingest", str(tmp_path), **server)
    assert (empty.returncode, "no transcript" in empty.stdout) == (1, True)


def test_with_json_an_error_is_json(server: dict[str, str]) -> None:
    done = esker_alone("forget", "mem_nope", "--json", **server)
    assert done.returncode == 1
    assert "mem_nope" in json.loads(done.stdout)["error"]


def test_a_command_behind_the_gateway_is_told_its_mode_and_recall_in_the_address(server: dict[str, str]) -> None:
    def address(*options: str) -> str:
        done = esker("gateway", *options, "--json", "--", "python", "agent.py", **server)
        return str(json.loads(done.stdout)["environment"]["ANTHROPIC_BASE_URL"])

    assert "~mode=manage~recall=on/anthropic" in address("--mode", "manage", "--recall")
    assert "~recall=off/" in address("--no-recall")
    assert "recall" not in address()


def test_a_missing_server_is_explained() -> None:
    done = esker_alone("recall", "x", ESKER_URL="http://127.0.0.1:1")
    assert done.returncode == 1
    assert "esker serve" in done.stderr
    assert "Traceback" not in done.stderr
    wrong = esker("recall", "x", ESKER_URL="gopher://x")
    assert "ESKER_URL" in wrong.stderr
    bad = esker("recall", "x", ESKER_PORT="many")
    assert "ESKER_PORT" in bad.stderr


def test_a_message_that_is_too_large_is_sent_shortened(server: dict[str, str], tmp_path: Path) -> None:
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "A" * 20_000_000}}
    lines = [
        {
            "type": "user",
            "uuid": "u1",
            "sessionId": "big",
            "message": {"role": "user", "content": [image, {"type": "text", "text": "See the Zugspitze."}]},
        },
        {"type": "user", "uuid": "u2", "sessionId": "big", "message": {"role": "user", "content": "x" * 20_000_000}},
    ]
    path = tmp_path / "big.jsonl"
    path.write_text("\n".join(json.dumps(line) for line in lines))
    report = json.loads(esker("ingest", str(path), "--observe", "--json", **server).stdout)
    assert report["accepted"] == 2
    assert "Zugspitze" in esker("recall", "Zugspitze", **server).stdout


def test_doctor_reports_a_problem_and_nothing_without_one(server: dict[str, str], tmp_path: Path) -> None:
    well = esker("doctor", "--json", **server, ESKER_DATA_DIR=str(tmp_path / "d"))
    findings = json.loads(well.stdout)
    assert well.returncode == 0, findings
    assert {finding["status"] for finding in findings} == {"ok", "warning"}  # no embedder is a warning
    sick = esker(
        "doctor", "--json", ESKER_DATA_DIR=str(tmp_path / "d"), ESKER_URL="http://127.0.0.1:1", ESKER_OBSERVER="model"
    )
    wrong = {finding["what"]: finding["hint"] for finding in json.loads(sick.stdout) if finding["status"] == "wrong"}
    assert sick.returncode == 1
    assert len(wrong) == 2
    assert any("observer is set to a model" in what for what in wrong)
    assert all(wrong.values())
    down = esker("doctor", "--quick", ESKER_DATA_DIR=str(tmp_path / "d"), ESKER_LLM_BASE_URL="http://127.0.0.1:1")
    assert "The language model cannot be used: it cannot be reached" in down.stdout
    down = esker(
        "doctor",
        "--quick",
        ESKER_DATA_DIR=str(tmp_path / "d"),
        ESKER_RERANKER="http:http://127.0.0.1:1#judge",
        ESKER_PARAPHRASE="true",
    )
    assert "The reranker cannot be reached" in down.stdout
    assert "Paraphrasing is switched on, but no model is configured" in down.stdout
    unset = esker("doctor", ESKER_PORT="many")
    assert (unset.returncode, "ESKER_PORT" in unset.stdout) == (1, True)


def test_doctor_reads_every_record_and_names_those_that_break_an_invariant(tmp_path: Path) -> None:
    there = {"ESKER_DATA_DIR": made_at(tmp_path / "d"), "ESKER_URL": "http://127.0.0.1:1"}
    with embedded(tmp_path / "d", "command") as cluster, psycopg.connect(cluster.url("esker")) as connection:
        connection.execute(
            "INSERT INTO sessions (pool_id, id, client, external_id, timezone, effective_context, last_seq,"
            " total_tokens, unobserved_tokens, created_at, begun_at, last_sent_at)"
            " SELECT id, 'ses_lost', 'api', 's', 'UTC', 200000, 3, 3, 3, now(), now(), now() FROM pools"
        )
    quick = json.loads(esker("doctor", "--quick", "--json", **there).stdout)
    whole = json.loads(esker("doctor", "--json", **there).stdout)
    said = [finding for finding in whole if finding not in quick]
    assert [finding["what"] for finding in said if finding["status"] == "wrong"] == [
        "Pool default: messages are missing, or stored twice, in sessions: ses_lost.",
        "Pool default: counters of tokens are wrong in sessions: ses_lost.",
    ]


def test_migrate_reports_for_machines(tmp_path: Path) -> None:
    there = {"ESKER_DATA_DIR": str(tmp_path / "d")}
    first = esker("migrate", "--json", **there)
    assert str(tmp_path / "d") in first.stderr.replace("\n", "")
    assert json.loads(first.stdout) == {
        "applied": [f"{migration.version:04d} {migration.name}" for migration in migrations()]
    }
    assert json.loads(esker("migrate", "--json", **there).stdout) == {"applied": []}
    broken = esker("migrate", ESKER_DATABASE_URL="postgresql://nobody@127.0.0.1:1/x")
    assert (broken.returncode, "ESKER_DATABASE_URL" in broken.stderr) == (1, True)


def test_read_only_commands_create_no_database(tmp_path: Path) -> None:
    there = {"ESKER_DATA_DIR": str(tmp_path / "d"), "ESKER_URL": "http://127.0.0.1:1"}
    for retry in ([], ["--retry"]):
        looked = esker("doctor", "--quick", "--json", *retry, **there)
        [none] = [finding for finding in json.loads(looked.stdout) if "There is no database" in finding["what"]]
        assert (none["status"], "esker serve" in none["hint"]) == ("warning", True)
        assert str(tmp_path / "d") in none["what"]
    for command in (["key", "list"], ["pool", "list"], ["key", "revoke", "x"], ["reembed", "--status"]):
        done = esker(*command, **there)
        assert (done.returncode, "There is no database" in done.stderr) == (1, True), command
    assert esker("export", "jsonl", str(tmp_path / "f"), "--pool", "default", **there).returncode == 1
    assert list(tmp_path.iterdir()) == []


def test_a_diagnosis_leaves_the_schema_as_it_is(tmp_path: Path) -> None:
    there = {"ESKER_DATA_DIR": made_at(tmp_path / "d"), "ESKER_URL": "http://127.0.0.1:1"}
    with embedded(tmp_path / "d", "command") as cluster, psycopg.connect(cluster.url("esker")) as connection:
        connection.execute("DELETE FROM schema_migrations WHERE version = (SELECT max(version) FROM schema_migrations)")
    looked = json.loads(esker("doctor", "--quick", "--json", **there).stdout)
    [lacks] = [finding for finding in looked if "lacks 1 migration." in finding["what"]]
    assert (lacks["status"], "esker migrate" in lacks["hint"]) == ("wrong", True)
    with embedded(tmp_path / "d", "command") as cluster:
        assert len(pending(cluster.url("esker"))) == 1


def test_a_command_that_makes_the_first_database_says_where(tmp_path: Path) -> None:
    there = {"ESKER_DATA_DIR": str(tmp_path / "d")}
    first = esker("key", "create", "x", **there)
    assert (first.returncode, str(tmp_path / "d") in first.stderr.replace("\n", "")) == (0, True)
    assert "no database" not in first.stdout
    assert "no database" not in esker("pool", "list", **there).stderr


def test_keys_are_made_listed_and_revoked(tmp_path: Path) -> None:
    there = {"ESKER_DATA_DIR": made_at(tmp_path / "d")}
    made = esker_alone("key", "create", "laptop", "--scopes", "read", **there)
    key = made.stdout.splitlines()[0]
    assert key.startswith("esk_")
    assert (made.stdout + made.stderr).count(key[8:]) == 1, "it is printed once, on standard output"
    listed = esker("key", "list", **there).stdout
    assert key not in listed
    assert "laptop" in listed
    assert "revoked" not in listed
    assert "Revoked key_" in esker("key", "revoke", "laptop", **there).stdout
    assert "revoked" in esker("key", "list", **there).stdout
    assert "no key" in esker("key", "revoke", "laptop", **there).stderr
    assert "no pool" in esker("key", "create", "x", "--pool", "nowhere", **there).stderr
    bound = esker("key", "create", "codex", "--client", "codex", "--project", "Acme/Shop", **there)
    assert "It writes only sessions of codex." in bound.stderr.replace("\n", " ")
    assert "only project acme/shop" in bound.stderr.replace("\n", " ")
    [_, shown] = json.loads(esker("key", "list", "--json", **there).stdout)
    assert (shown["client"], shown["project"], shown["scopes"]) == ("codex", "acme/shop", ["read", "write"])
    assert "acme/shop" in esker("key", "list", **there).stdout
    everything = esker("key", "create", "x", "--project", "shop", "--scopes", "read,forget", **there)
    assert (everything.returncode, "--project" in everything.stderr) == (1, True)
    assert esker("pool", "create", "Bad Name", **there).returncode == 1


def test_a_refused_message_is_reported_and_the_others_are_sent(server: dict[str, str], tmp_path: Path) -> None:
    deep: Any = "deep"
    for _ in range(60):
        deep = [deep]
    lines = [
        {"type": "user", "uuid": f"r{n}", "sessionId": "refused", "message": {"role": "user", "content": f"Rule {n}."}}
        for n in range(5)
    ]
    block = {"type": "unheard_of", "value": deep}
    lines[2] = {**lines[2], "message": {"role": "user", "content": [block]}}
    path = tmp_path / "refused.jsonl"
    path.write_text("\n".join(json.dumps(line) for line in lines))
    done = esker("ingest", str(path), "--json", **server)
    report = json.loads(done.stdout)
    assert (done.returncode, report["accepted"], list(report["refused"])) == (1, 4, ["r2"])
    assert "r2" in esker("ingest", str(path), **server).stdout


def test_an_unreadable_file_does_not_stop_the_others(server: dict[str, str], tmp_path: Path) -> None:
    line = {"type": "user", "message": {"role": "user", "content": "Our river is the Rhine."}}
    for name in (b"a.jsonl", b"bad\xff\xfename.jsonl", b"z.jsonl"):
        Path(os.fsdecode(bytes(tmp_path) + b"/" + name)).write_text(json.dumps(line))
    os.mkfifo(tmp_path / "fifo.jsonl")
    (tmp_path / "loop.jsonl").symlink_to("loop.jsonl")
    (tmp_path / "bad.jsonl").write_text("{\n" * 3 + json.dumps({"type": "progress", "sessionId": "s"}))
    done = esker("ingest", str(tmp_path), "--json", **server)
    report = json.loads(done.stdout)
    assert (done.returncode, report["files"], report["accepted"]) == (0, 4, 3)
    assert len(report["broken"]) == 3
    assert esker("ingest", str(tmp_path), **server).returncode == 0
    fifo = esker("ingest", str(tmp_path / "fifo.jsonl"), **server)
    assert (fifo.returncode, "it is a pipe" in fifo.stdout) == (1, True)


def test_a_closed_connection_is_reopened(server: dict[str, str]) -> None:
    with closing(Api(server["ESKER_URL"])) as api:
        assert api.get("/livez") == {"status": "alive"}
        api._connection.sock.shutdown(socket.SHUT_RDWR)  # like an idle connection closed by the server
        assert api.get("/livez") == {"status": "alive"}


class Nonsense(BaseHTTPRequestHandler):
    """Answers every request with JSON that is not a Messages API message."""

    def do_POST(self) -> None:
        """Answer."""
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")


@contextmanager
def serving_nonsense(kind: type[BaseHTTPRequestHandler]) -> Generator[str]:
    """The URL of a server with this handler."""
    with ThreadingHTTPServer(("127.0.0.1", 0), kind) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.fixture
def nonsense() -> Generator[str]:
    """The URL of a language model with useless answers."""
    with serving_nonsense(Nonsense) as url:
        yield url


def test_a_permanently_failed_job_is_shown_and_can_be_retried(nonsense: str, tmp_path: Path) -> None:
    there = {"ESKER_DATA_DIR": made_at(tmp_path / "d"), "ESKER_LLM_BASE_URL": nonsense, "ESKER_JOB_ATTEMPTS": "1"}
    with served(**there) as (_, said), closing(Api(said["url"])) as api:
        session = api.post("/v1/sessions", {"client": "api", "external_id": "s"})["id"]
        message = {"external_id": "m", "role": "user", "content": "Hello."}
        api.post(f"/v1/sessions/{session}/messages", {"messages": [message]})
        with pytest.raises(ServerRefused):
            api.post(f"/v1/sessions/{session}/observe?wait=true")
        shown = esker("doctor", "--quick", **there).stdout
        assert f"observe of {session} has failed for good" in shown
        assert "--retry" in shown
    retried = esker("doctor", "--quick", "--retry", **there).stdout
    assert "1 job and 0 rows" in retried
    assert "failed for good:" not in retried


@pytest.mark.parametrize("command", [["migrate"], ["doctor", "--quick"], ["key", "list"], ["serve", "--port", "0"]])
def test_foreign_folders_are_left_alone(tmp_path: Path, command: list[str]) -> None:
    kept = [tmp_path / "d" / "postgres" / "precious.txt", tmp_path / "d" / "postgres.new" / "precious.txt"]
    for file in kept:
        file.parent.mkdir(parents=True)
        file.write_text("precious")
    before = (tmp_path / "d").stat()
    done = esker(*command, ESKER_DATA_DIR=str(tmp_path / "d"))
    assert (done.returncode, "contains other files" in done.stdout + done.stderr) == (1, True)
    (tmp_path / "d" / "esker.lock").touch()
    done = esker(*command, ESKER_DATA_DIR=str(tmp_path / "d"))
    assert (done.returncode, "not a Postgres that Esker created" in done.stdout + done.stderr) == (1, True)
    assert [file.read_text() for file in kept] == ["precious", "precious"]
    assert (tmp_path / "d").stat().st_mode == before.st_mode


def test_a_key_that_has_expired_is_listed_as_such(tmp_path: Path) -> None:
    there = {"ESKER_DATA_DIR": made_at(tmp_path / "d")}
    made = esker("key", "create", "laptop", "--data-dir", str(tmp_path / "d"))
    assert "set ESKER_KEY" in made.stderr.replace("\n", " ")
    assert "valid" in esker("key", "list", **there).stdout
    assert "yes" in esker("pool", "list", **there).stdout
    [key] = json.loads(esker("key", "list", "--json", **there).stdout)
    assert key["expires_at"] is None


def test_a_busy_server_is_retried_and_no_message_counts_as_refused(tmp_path: Path) -> None:
    class Busy(Nonsense):
        """A server that is busy twice, and then broken."""

        asked: ClassVar[list[str]] = []

        def do_POST(self) -> None:
            self.asked.append(self.path)
            busy = len(self.asked) in (2, 3)
            body = b'{"id": "ses_1"}' if len(self.asked) == 1 else b'{"detail": "broken"}'
            self.send_response(200 if len(self.asked) == 1 else 503 if busy else 500)
            self.send_header("Retry-After", "0" if len(self.asked) == 2 else "Sat, 28 Nov 2026 04:00:00 GMT")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Length", "19")
            self.end_headers()
            self.wfile.write(b'{"observations": 0}')

    lines = [
        {"type": "user", "uuid": f"u{n}", "sessionId": "s", "message": {"role": "user", "content": f"Rule {n}."}}
        for n in range(5)
    ]
    path = tmp_path / "t.jsonl"
    path.write_text("\n".join(json.dumps(line) for line in lines))
    with serving_nonsense(Busy) as url:
        done = esker("ingest", str(path), ESKER_URL=url)
    assert (done.returncode, "broken" in done.stderr) == (1, True)
    assert len([path for path in Busy.asked if path.endswith("/messages")]) == 3


def test_passages_can_be_turned_off_and_on_again(tmp_path: Path) -> None:
    with served("--data-dir", made_at(tmp_path / "d")) as (_, said):
        there = {"ESKER_URL": said["url"], "ESKER_DATA_DIR": str(tmp_path / "d")}
        assert esker("ingest", str(SAMPLES), **there).returncode == 0
        found = json.loads(esker("recall", "pnpm npm", "--json", **there).stdout)["hits"]
        assert {hit["tier"] for hit in found} == {"passage"}
        shown = esker("expand", found[0]["id"], **there).stdout
        assert f"Messages {found[0]['sources'][0]['seqs'][0]} to" in shown
        assert "pnpm" in shown

        off = json.loads(esker("pool", "set", "--passages", "off", "--json", **there).stdout)["passages"]
        assert (off["on"], off["sessions"], off["deleted"] > 10) == (False, 0, True)
        [pool] = json.loads(esker("pool", "list", "--json", **there).stdout)
        assert pool["passages"] is False
        assert esker("pool", "list", **there).stdout.split()[-1] == "off"
        assert json.loads(esker("recall", "pnpm npm", "--json", **there).stdout)["hits"] == []

        on = esker("pool", "set", "default", "--passages", "on", **there)
        assert "Pool default has passages. Messages of 2 sessions were indexed." in on.stdout
        again = json.loads(esker("recall", "pnpm npm", "--json", **there).stdout)["hits"]
        assert [hit["content"] for hit in again] == [hit["content"] for hit in found]
        forgotten = esker("forget", again[0]["id"], **there)
        assert "Forgotten: 0 memories, 0 vectors, 0 packs, " in forgotten.stdout
        assert "pool" in esker("pool", "set", "nowhere", "--passages", "on", **there).stderr


def test_a_word_is_forgotten_purged_and_proven_gone(server: dict[str, str]) -> None:
    data_dir = str(Path(server["ESKER_STATE_DIR"]).with_name("d"))
    esker("remember", "The vault is called Xanadu.", "--project", "xanadu-shop", **server)
    plan = esker("forget", "--words", "Xanadu", "--dry-run", **server).stdout
    assert "Looked for: Xanadu." in plan
    assert "note: The vault is called Xanadu." in plan
    assert "name that is replaced by another: xanadu-shop" in plan
    unasked = esker("forget", "--words", "Xanadu", "--json", **server)
    assert (unasked.returncode, "Add --yes" in unasked.stderr + unasked.stdout) == (2, True)
    assert "Xanadu" in esker("forget", "--words", "Xanadu", "--dry-run", **server).stdout
    gone = esker("forget", "--words", "Xanadu", "--yes", "--purge", "--data-dir", data_dir, **server)
    assert "Forgotten: 1 memory, " in gone.stdout
    assert "of the write-ahead log." in gone.stdout
    receipt = gone.stdout.partition("Receipt ")[2].partition(".")[0]
    proof = esker("forget", "--prove", receipt, **server)
    assert (proof.returncode, f"Nothing that {receipt} forgot is left." in proof.stdout) == (0, True)
    assert esker("forget", "--words", "Xanadu", "--dry-run", **server).stdout.endswith("Nothing says it.\n")
    assert esker("forget", "--allow", receipt, **server).returncode == 0
    assert esker("forget", "--prove", receipt, **server).returncode == 1


def test_quarantine_and_retention_are_commands(server: dict[str, str]) -> None:
    held = json.loads(esker("quarantine", "--client", "gone-wrong", "--json", **server).stdout)
    assert (held["memories"], held["passages"]) == (0, 0)
    assert "active  client gone-wrong" in " ".join(esker("quarantine", **server).stdout.split(" "))
    assert f"Lifted {held['id']}" in esker("quarantine", "--lift", held["id"], **server).stdout
    keep = ("pool", "keep", "--data-dir", str(Path(server["ESKER_STATE_DIR"]).with_name("d")))
    set_days = esker(*keep, "--messages", "90", "--memories", "observation=365", **server)
    assert "messages: 90 days" in set_days.stdout
    kept = json.loads(esker(*keep, "--messages", "0", "--json", **server).stdout)
    assert (kept["messages_days"], kept["memories_days"]) == (None, {"observation": 365})
    assert esker("pool", "keep", "--memories", "dream=3", **server).returncode == 2


def test_recall_is_narrowed_by_every_option_of_the_command(tmp_path: Path) -> None:
    with served("--data-dir", made_at(tmp_path / "d")) as (_, said):
        there = {"ESKER_URL": said["url"]}
        assert esker("remember", "The river is the Rhine.", "--project", "p", **there).returncode == 0
        assert esker("remember", "The river is deep.", "--everywhere", "--priority", "high", **there).returncode == 0

        def found(*options: str) -> set[str]:
            answer = json.loads(esker("recall", "river", "--json", *options, **there).stdout)
            return {hit["content"] for hit in answer["hits"]}

        both, deep = {"The river is the Rhine.", "The river is deep."}, {"The river is deep."}
        assert found() == both
        assert found("--min-priority", "high") == deep
        assert found("--project", "other") == deep
        assert found("--kind", "note", "--kind", "manual") == both
        assert found("--kind", "observation") == set()
        assert found("--tier", "passages") == set()
        assert found("--tag", "x") == set()
        assert found("--since", "2199-01-01T00:00:00Z") == set()
        assert found("--until", "2000-01-01T00:00:00Z") == set()
        assert found("--as-of", "2000-01-01T00:00:00Z") == set()
        status = json.loads(esker("status", "--json", **there).stdout)
        assert status["memories"] == {"note": 2}
        assert "2 memories" in esker("status", **there).stdout


def test_a_session_is_shown_by_either_id(server: dict[str, str]) -> None:
    with closing(Api(server["ESKER_URL"])) as api:
        session = api.post("/v1/sessions", {"client": "api", "external_id": "looked-into", "project": "ferry"})["id"]
        texts = ["We decided to paint the ferry blue.", "Always sail with the lights on."]
        messages = [{"external_id": str(n), "role": "user", "content": text} for n, text in enumerate(texts)]
        api.post(f"/v1/sessions/{session}/messages", {"messages": messages})
        api.post(f"/v1/sessions/{session}/observe?wait=true")
        pack = api.get(f"/v1/sessions/{session}/pack")
        usage = {"input_tokens": 100, "output_tokens": 10, "cache_read_input_tokens": 300, "model": "claude-opus-5"}
        api.post(f"/v1/sessions/{session}/usage", usage)
        answer = api.get(f"/v1/sessions/{session}/memory")
    memory = json.loads(esker("sessions", "looked-into", "--json", **server).stdout)
    assert memory == answer
    shown = esker("sessions", session, **server).stdout
    assert shown.startswith(f"{session} (api looked-into, project ferry): up to date\n")
    assert "2 of 2 messages observed (100% in groups)" in shown
    assert pack["sha256"] in shown
    assert "1–2" in shown
    assert "1 call: 400 tokens sent, 10 written; 75% read from the cache" in shown
    assert f"${memory['usage']['savings']['saved_usd']:.4f} saved" in shown
    assert esker("sessions", "nobody", **server).returncode == 1
    assert esker("sessions", "ses_nobody", **server).returncode == 1


def test_a_briefing_is_shown_and_says_how_much_did_not_fit(server: dict[str, str]) -> None:
    rules = [{"content": f"Rule {n} of the lighthouse.", "priority": "high", "project": "light"} for n in range(40)]
    asked = ("briefing", "--project", "light", "--tokens", "200")
    with closing(Api(server["ESKER_URL"])) as api:
        api.post("/v1/memories/batch", {"memories": rules})
        answer = api.get("/v1/briefing", project="light", tokens=200)
    found = json.loads(esker(*asked, "--json", **server).stdout)
    assert found == answer
    done = esker(*asked, **server)
    assert done.stdout == found["text"] + "\n"
    assert f"{found['left_out']} more rows did not fit" in done.stderr


# Places and times ----------------------------------------------------------------------------------------------------


def test_a_memory_belongs_to_the_repository_it_is_written_in(server: dict[str, str], tmp_path: Path) -> None:
    inside, outside = tmp_path / "ferry" / "src", tmp_path / "ferries"
    for folder in (tmp_path / "ferry" / ".git", inside, outside):
        folder.mkdir(parents=True)

    def written(place: Path, *options: str, **more: str) -> tuple[str | None, str]:
        words = ["Memory", "written", "in", f"{place.name}{''.join(options)}."]
        done = esker_in(place, "remember", *words, *options, **server, **more)
        assert done.returncode == 0, done.stderr
        with closing(Api(server["ESKER_URL"])) as api:
            row = api.get(f"/v1/memories/{done.stdout.split()[2].rstrip(',')}")
        assert row["content"] == " ".join(words)
        return row["project"], done.stdout

    assert written(inside)[0] == "ferry"
    assert "for project ferry." in written(inside, "--pin")[1]
    assert written(inside, "--everywhere")[0] is None
    assert written(inside, "--project", "bridge")[0] == "bridge"
    assert "for all projects." in written(outside)[1]
    assert written(inside, "--priority=low", ESKER_EXCLUDE="ferry")[0] is None, "its name is not used"
    both = esker("remember", "x", "--everywhere", "--project", "bridge", **server)
    assert both.returncode == 2
    found = json.loads(esker_in(outside, "recall", "memory", "written", "in", "src", "--json", **server).stdout)
    assert "ferry" in {hit["project"] for hit in found["hits"]}, "a question goes to all projects from anywhere"


def test_words_are_one_question_and_a_misspelt_project_is_named(server: dict[str, str]) -> None:
    assert esker("remember", "The harbour crane lifts nine tons.", "--project", "me/port", **server).returncode == 0
    plain = json.loads(esker("recall", "which", "harbour", "crane", "--json", **server).stdout)
    quoted = json.loads(esker("recall", "which harbour crane", "--json", **server).stdout)
    assert [hit["id"] for hit in plain["hits"]] == [hit["id"] for hit in quoted["hits"]]
    assert plain["hits"][0]["content"] == "The harbour crane lifts nine tons."
    shown = esker("recall", "harbour crane", "--project", "prot", **server).stdout
    assert "Memory is empty" not in shown
    assert "Nothing in memory is about this." in shown
    assert "Memory has no project prot; names like it: me/port." in shown
    assert "Memory has no project prot" in esker("briefing", "--project", "prot", **server).stdout
    assert "has no project" not in esker("recall", "harbour crane", "--project", "me/port", **server).stdout


def test_times_have_one_syntax_and_others_are_refused_with_it(server: dict[str, str], tmp_path: Path) -> None:
    with closing(Api(server["ESKER_URL"])) as api:
        said_at = (datetime.now(UTC) - timedelta(days=5)).isoformat()
        api.post("/v1/memories", {"content": "The lighthouse is nine storeys high.", "said_at": said_at})

    def found(*options: str) -> bool:
        answer = json.loads(esker("recall", "lighthouse storeys", "--json", *options, **server).stdout)
        return "The lighthouse is nine storeys high." in {hit["content"] for hit in answer["hits"]}

    assert found("--since", "7d")
    assert found("--since", said_at)
    assert not found("--since", "3d")
    assert found("--until", "yesterday")
    assert found("--until", said_at[:10], "--timezone", "UTC"), "a whole day counts"
    assert not found("--until", "7d")
    assert found("--as-of", "today")
    for command in (["recall", "x", "--as-of", "soon"], ["export", "daily", str(tmp_path), "--since", "2026-W10"]):
        done = esker(*command, **server)
        answer = " ".join(done.stderr.replace("│", " ").split())
        assert done.returncode == 2
        assert "today, yesterday, 12h, 7d or 2w (ago), a date (2026-03-01)" in answer
    far = esker("recall", "x", "--since", "99999d", **server)
    assert (far.returncode, "between 1970 and 2199" in far.stderr) == (1, True)
    endless = esker("recall", "x", "--since", "999999w", **server)
    assert (endless.returncode, "Traceback" in endless.stderr) == (2, False)
