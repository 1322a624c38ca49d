"""Esker as processes: it starts, explains itself, survives being killed, and leaves nothing running."""

import asyncio
import errno
import hashlib
import json
import os
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import httpx2
import psutil
import pytest

from esker.server.app import make_parts
from esker.server.core.clock import system_clock
from esker.server.core.config.local_token import own_token
from esker.server.core.config.settings import Settings
from esker.server.core.errors import Misconfigured, Unavailable
from esker.server.core.stop_signals import stop_signals
from esker.server.db.data_dir import explained, holder
from esker.server.db.database import Database
from esker.server.db.embedded import embedded
from tests.support.api import opened, said, until
from tests.support.made import made_at, shared_folder
from tests.support.model_server import ModelServer, ScriptedAnswer, model_server
from tests.support.processes import ROOT, environment, esker, ready, serve, served, using
from tests.support.serving import serving
from tests.support.waiting import PATIENCE, eventually_here


@pytest.fixture
def nothing() -> Generator[Path]:
    """The path of a data directory that does not exist yet, short enough for a Unix socket."""
    with tempfile.TemporaryDirectory(prefix="esker-proc-", dir=shared_folder()) as directory:
        yield Path(directory) / "data"


@pytest.fixture
def data_dir(nothing: Path) -> Path:
    """A data directory with a database."""
    return Path(made_at(nothing))


def get(url: str) -> Any:
    """Return the JSON at a URL."""
    with urllib.request.urlopen(url, timeout=PATIENCE) as answer:
        return json.load(answer)


def post(url: str, body: Any) -> Any:
    """Post JSON and return the JSON that comes back."""
    request = urllib.request.Request(url, json.dumps(body).encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
        return json.load(answer)


def test_a_new_server_stops_with_ctrl_c_and_keeps_its_data_after_a_restart(
    nothing: Path,
) -> None:
    with serve("--data-dir", str(nothing)) as (process, said):
        assert get(f"{said['url']}/readyz")["ready"] is True
        assert said["observer"] == "extractive"
        memory = post(f"{said['url']}/v1/memories", {"content": "Our river is the Rhine."})
        session = post(f"{said['url']}/v1/sessions", {"client": "api", "external_id": "s"})["id"]
        pack = get(f"{said['url']}/v1/sessions/{session}/pack")
        assert using(nothing)
        process.send_signal(signal.SIGINT)
        process.wait(timeout=PATIENCE)
        assert process.returncode == 0
    assert using(nothing) == []
    assert holder(nothing) is None
    with served("--data-dir", str(nothing)) as (_, said):
        assert get(f"{said['url']}/v1/memories/{memory['id']}") == memory
        assert get(f"{said['url']}/v1/sessions/{session}/pack") == pack


@pytest.mark.parametrize("number", [pytest.param(signal.SIGTERM, marks=pytest.mark.slow), signal.SIGHUP])
def test_other_signals_are_a_clean_stop_too(data_dir: Path, number: signal.Signals) -> None:
    with served("--data-dir", str(data_dir)) as (process, _):
        process.send_signal(number)
        assert process.wait(timeout=PATIENCE) == 0
    assert using(data_dir) == []


def test_a_server_that_shall_outlive_its_terminal_ignores_its_end() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        assert stop_signals() == [signal.SIGINT, signal.SIGTERM]
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
        assert signal.SIGHUP in stop_signals()
    finally:
        signal.signal(signal.SIGHUP, before)


@pytest.mark.slow
async def test_a_stopping_server_answers_who_still_waits(data_dir: Path) -> None:
    release = asyncio.Event()
    async with model_server() as model:
        model.say(ScriptedAnswer("too late", wait_for=release))
        running = served("--data-dir", str(data_dir), ESKER_LLM_BASE_URL=model.url)
        process, started = await asyncio.to_thread(running.__enter__)
        try:
            async with httpx2.AsyncClient(base_url=started["url"], timeout=PATIENCE) as client:
                session = await opened(client)
                await said(client, session, "Let's use Redis.")
                waiting = asyncio.create_task(client.post(f"/v1/sessions/{session}/observe?wait=true"))
                await model.arrived.wait()
                process.send_signal(signal.SIGHUP)
                answer = await waiting
                assert (answer.status_code, answer.headers["retry-after"]) == (503, "5")
                assert "The server is stopping" in answer.json()["detail"]
                assert await asyncio.to_thread(process.wait, PATIENCE) == 0
        finally:
            release.set()
            await asyncio.to_thread(running.__exit__, None, None, None)
    assert using(data_dir) == []


@pytest.mark.slow
def test_a_second_ctrl_c_still_stops_cleanly(data_dir: Path) -> None:
    with serve("--data-dir", str(data_dir)) as (process, said):
        get(f"{said['url']}/readyz")
        process.send_signal(signal.SIGINT)
        process.terminate()
        _, stderr = process.communicate(timeout=PATIENCE)
        assert process.returncode == 0
        assert "Traceback" not in stderr
    assert using(data_dir) == []


def test_a_second_server_on_the_same_directory_explains_itself(data_dir: Path) -> None:
    with served("--data-dir", str(data_dir)) as (process, said):
        same_port = said["url"].rsplit(":", 1)[1]
        second = esker("serve", "--port", same_port, "--data-dir", str(data_dir))
        assert second.returncode == 1
        assert str(process.pid) in second.stderr
        assert said["url"] in second.stderr
        assert "--data-dir" in second.stderr
        assert "already" in second.stderr
        assert "Traceback" not in second.stderr
        elsewhere = esker("serve", "--port", same_port, "--data-dir", str(data_dir.with_name("other")))
        assert "cannot listen" in elsewhere.stderr
        assert get(f"{said['url']}/readyz")["ready"] is True


def test_the_next_server_takes_over_after_a_killed_one(data_dir: Path) -> None:
    with served("--data-dir", str(data_dir)) as (process, said):
        memory = post(f"{said['url']}/v1/memories", {"content": "Our river is the Rhine."})
        process.kill()
        process.wait()
    assert using(data_dir), "Postgres goes on, since nobody stopped it"
    with served("--data-dir", str(data_dir)) as (_, said):
        assert get(f"{said['url']}/v1/memories/{memory['id']}") == memory
    assert using(data_dir) == []


def test_everything_killed_at_once_loses_nothing_that_was_acknowledged(data_dir: Path) -> None:
    with served("--data-dir", str(data_dir)) as (process, said):
        session = post(f"{said['url']}/v1/sessions", {"client": "api", "external_id": "s"})["id"]
        batch = [{"external_id": f"m{n}", "role": "user", "content": f"Message {n}."} for n in range(200)]
        post(f"{said['url']}/v1/sessions/{session}/messages", {"messages": batch})
        for victim in (process.pid, *(p.pid for p in using(data_dir))):
            os.kill(victim, signal.SIGKILL)
        process.wait()
    with served("--data-dir", str(data_dir)) as (_, said):
        assert get(f"{said['url']}/v1/sessions/{session}")["messages"] == 200


def test_a_killed_postgres_is_restarted_and_requests_meanwhile_get_503(data_dir: Path) -> None:
    with served("--data-dir", str(data_dir)) as (_, said):
        memory = post(f"{said['url']}/v1/memories", {"content": "Our river is the Rhine."})
        for victim in using(data_dir):
            if victim.name() == "postgres":
                victim.kill()
        assert {_status(f"{said['url']}/v1/memories/{memory['id']}") for _ in range(5)} <= {200, 503}
        eventually_here(lambda: _status(f"{said['url']}/v1/memories/{memory['id']}") == 200)


def _status(url: str) -> int:
    try:
        with urllib.request.urlopen(url, timeout=PATIENCE) as answer:
            return answer.status
    except urllib.error.HTTPError as error:
        return error.code


async def test_another_server_finishes_a_killed_servers_observation_long_before_its_lease_would_end(
    database_url: str,
) -> None:
    async with model_server() as model:
        shared = {
            "ESKER_EMBEDDER": "none",
            "ESKER_LLM_BASE_URL": model.url,
            "ESKER_JOB_LEASE_SECONDS": "100000",
        }
        session = await _killed_in_mid_call(model, ESKER_DATABASE_URL=database_url, **shared)
        fact = {"text": "User decided to use Redis.", "priority": "high", "category": "decision", "sources": [1]}
        model.say({"facts": [fact]})
        parts = make_parts(Settings.from_environment(shared), Database(database_url), system_clock)
        async with serving(parts) as url, httpx2.AsyncClient(base_url=url, timeout=PATIENCE) as other:
            shown = await until(other, f"/v1/sessions/{session}", lambda state: not state["jobs"])
            assert (shown["groups"], shown["observations"], shown["coverage"], shown["lost"]) == (1, 1, 1, 0)
            [row] = (await other.get("/v1/memories")).json()["memories"]
            assert (row["content"], row["source_seqs"]) == (fact["text"], [1])
        assert len(model.asked) == 2


async def _killed_in_mid_call(model: ModelServer, **settings: str) -> str:
    """Have a server ask a model that hangs, and kill it meanwhile; return the session that it was about."""
    release = asyncio.Event()
    model.say(ScriptedAnswer("too late", wait_for=release))
    running = served(**settings)
    process, started = await asyncio.to_thread(running.__enter__)
    try:
        async with httpx2.AsyncClient(base_url=started["url"], timeout=PATIENCE) as client:
            session = await opened(client)
            await said(client, session, "Let's use Redis.")
            await client.post(f"/v1/sessions/{session}/observe")
            await model.arrived.wait()
            state = (await client.get(f"/v1/sessions/{session}")).json()
            assert (state["jobs"][0]["state"], state["observed_messages"]) == ("running", 0)
            process.kill()
    finally:
        await asyncio.to_thread(running.__exit__, None, None, None)
        release.set()
    return session


@pytest.mark.slow
def test_no_worker_outlives_its_server(data_dir: Path) -> None:
    with served("--data-dir", str(data_dir), ESKER_EMBEDDER="openai:http://127.0.0.1:1/v1#none") as (process, _):
        workers = eventually_here(lambda: _workers_of(process.pid))
        process.kill()
        process.wait()
        gone, alive = psutil.wait_procs(workers, timeout=PATIENCE)
        assert (len(gone), alive) == (1, [])
    with served("--data-dir", str(data_dir)):
        pass


@pytest.mark.slow
def test_a_worker_that_dies_is_restarted(data_dir: Path) -> None:
    with served("--data-dir", str(data_dir), ESKER_EMBEDDER="openai:http://127.0.0.1:1/v1#none") as (process, _):
        first = eventually_here(lambda: _workers_of(process.pid))
        first[0].kill()
        assert eventually_here(lambda: [each for each in _workers_of(process.pid) if each.pid != first[0].pid])


def _workers_of(server: int) -> list[psutil.Process]:
    """Return the worker processes of a server."""
    all_workers = {each.pid for each in using(Path("embedding_worker"))}
    return [child for child in psutil.Process(server).children() if child.pid in all_workers]


def test_commands_join_the_database_of_a_running_server(data_dir: Path) -> None:
    there = {"ESKER_DATA_DIR": str(data_dir)}
    with served("--data-dir", str(data_dir)) as (_, said):
        made = json.loads(esker("pool", "create", "team", "--json", **there).stdout)
        assert made["name"] == "team"
        key = json.loads(esker("key", "create", "laptop", "--pool", "team", "--json", **there).stdout)
        refused = esker("recall", "anything", ESKER_URL=said["url"])
        assert refused.returncode == 1
        assert "key" in refused.stderr
        found = esker("recall", "anything", "--json", ESKER_URL=said["url"], ESKER_KEY=key["key"])
        assert json.loads(found.stdout)["abstained"] is True


def test_commands_work_without_a_server_and_leave_nothing_running(nothing: Path) -> None:
    there = {"ESKER_DATA_DIR": str(nothing)}
    assert "0001 spine" in esker("migrate", **there).stdout
    assert "up to date" in esker("migrate", **there).stdout
    assert "default" in esker("pool", "list", **there).stdout
    assert using(nothing) == []


@pytest.mark.slow
def test_commands_at_the_same_time_take_turns(data_dir: Path) -> None:
    there = {"ESKER_DATA_DIR": str(data_dir)}
    esker("migrate", **there)
    done: list[subprocess.CompletedProcess[str]] = []
    threads = [
        threading.Thread(target=lambda n=n: done.append(esker("pool", "create", f"team-{n}", **there)))
        for n in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [run.returncode for run in done] == [0] * 4, [run.stderr for run in done]
    assert sum(f"team-{n}" in esker("pool", "list", **there).stdout for n in range(4)) == 4


def test_without_a_key_the_server_refuses_to_listen_to_other_machines(data_dir: Path) -> None:
    for host in ("0.0.0.0", "::"):  # noqa: S104
        refused = esker("serve", "--host", host, "--port", "0", ESKER_DATA_DIR=str(data_dir))
        assert refused.returncode == 1, host
        assert "esker key create" in refused.stderr, host
        assert using(data_dir) == [], host


@pytest.mark.slow
def test_with_a_key_the_server_listens_to_other_machines(data_dir: Path) -> None:
    esker("key", "create", "laptop", ESKER_DATA_DIR=str(data_dir))
    with served("--data-dir", str(data_dir), "--host", "0.0.0.0") as (_, said):  # noqa: S104
        port = said["url"].rsplit(":", 1)[1]
        with pytest.raises(urllib.error.HTTPError, match="401"):
            get(f"http://127.0.0.1:{port}/v1/memories")


def test_other_users_cannot_enter_the_data_directory(data_dir: Path) -> None:
    with served("--data-dir", str(data_dir)):
        assert data_dir.stat().st_mode & 0o077 == 0
        assert (data_dir / "postgres").stat().st_mode & 0o077 == 0
        for process in using(data_dir):
            assert not [c for c in process.net_connections("tcp") if c.status == psutil.CONN_LISTEN] or (
                process.name() != "postgres"
            )


def test_a_data_directory_may_have_a_path_of_any_length(nothing: Path) -> None:
    deep = nothing / ("x" * 60) / 'o\'neil "$HOME", 部' / ("y" * 60)
    path = os.fsencode((deep / "postgres").resolve())
    sockets = Path(tempfile.gettempdir()) / f"esker-{os.geteuid()}-{hashlib.sha256(path).hexdigest()[:16]}"
    deep.parent.mkdir(parents=True)
    with served("--data-dir", made_at(deep)) as (_, said):
        assert get(f"{said['url']}/readyz")["ready"] is True
        assert "default" in esker("pool", "list", "--data-dir", str(deep)).stdout
        assert sockets.is_dir(), "the path of a socket is limited to about a hundred bytes"
    assert using(deep) == []
    assert not sockets.exists()


def test_an_unusable_data_directory_is_explained(nothing: Path) -> None:
    nothing.parent.joinpath("file").write_text("x")
    refused = esker("serve", "--port", "0", "--data-dir", str(nothing.parent / "file" / "data"))
    assert refused.returncode == 1
    assert "something else than a directory is in its place" in refused.stderr
    assert "Traceback" not in refused.stderr


def test_a_full_disk_is_named_at_the_start(nothing: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = shutil.disk_usage(nothing.parent)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=20 * 1024**2))
    with (
        pytest.raises(Misconfigured, match=r"needs 64 MB, and the disk of .* has 20\.0 MB left"),
        embedded(nothing, "serve"),
    ):
        pass
    assert using(nothing) == []


@pytest.mark.parametrize(
    ("number", "words"),
    [(errno.ENOSPC, "is full"), (errno.EROFS, "read-only file system"), (errno.EACCES, "Permission")],
)
def test_an_error_of_the_file_system_is_explained_with_the_way_out(nothing: Path, number: int, words: str) -> None:
    with pytest.raises(Misconfigured, match=words) as refused, explained(nothing):
        raise OSError(number, os.strerror(number), str(nothing))
    assert str(nothing) in str(refused.value)
    assert "--data-dir" in (refused.value.hint or "")


def test_a_failure_of_postgres_on_a_nearly_full_disk_says_so(nothing: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = shutil.disk_usage(nothing.parent)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=0))
    with pytest.raises(Unavailable, match="No way") as refused, explained(nothing):
        raise Unavailable("No way.", hint="Its log is there.")
    assert refused.value.hint == "Its disk has only 0.0 MB left. Free some space. Its log is there."


@pytest.mark.parametrize("found", [b"\xff\xfe", b"", b"abc"])
def test_a_damaged_version_of_postgres_is_explained(nothing: Path, found: bytes) -> None:
    (nothing / "postgres").mkdir(parents=True)
    (nothing / "esker.lock").touch()
    (nothing / "postgres/PG_VERSION").write_bytes(found)
    with pytest.raises(Misconfigured, match="PG_VERSION is damaged") as refused, embedded(nothing, "serve"):
        pass
    assert "backup" in (refused.value.hint or "")


def _without_control_file(postgres: Path) -> None:
    (postgres / "global/pg_control").unlink()


def _without_log(postgres: Path) -> None:
    for file in filter(Path.is_file, (postgres / "pg_wal").iterdir()):
        file.unlink()


def _with_a_wrong_setting(postgres: Path) -> None:
    with (postgres / "postgresql.conf").open("a") as file:
        file.write("\nnonsense = 7\n")


def _without_memory(postgres: Path) -> None:
    with (postgres / "postgresql.conf").open("a") as file:
        file.write("\nhuge_pages = on\n")


@pytest.mark.parametrize(
    ("damage", "reason", "way_out"),
    [
        (_without_control_file, "pg_control", "esker restore"),
        pytest.param(_without_log, "checkpoint record", "esker restore", marks=pytest.mark.slow),
        (_with_a_wrong_setting, 'parameter "nonsense" in file', "Mend the file"),
        pytest.param(_without_memory, "shared memory", "--shm-size", marks=pytest.mark.slow),
    ],
)
def test_a_postgres_that_does_not_start_says_why_and_what_to_do(
    data_dir: Path, damage: Callable[[Path], None], reason: str, way_out: str
) -> None:
    damage(data_dir / "postgres")
    with pytest.raises(Unavailable, match=reason) as refused, embedded(data_dir, "serve"):
        pass
    assert way_out in (refused.value.hint or "")
    assert str(data_dir / "postgres/log") in (refused.value.hint or "")


@pytest.mark.parametrize("content", [b"", b"\xff\0"])
def test_a_damaged_local_token_is_made_anew(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "token").write_bytes(content)
    token = own_token(tmp_path)
    assert own_token(tmp_path) == token == (tmp_path / "token").read_text().strip()


@pytest.mark.parametrize("mode", [0o777, 0o000])
def test_a_data_directory_with_a_wrong_mode_is_closed_to_others_again(data_dir: Path, mode: int) -> None:
    (data_dir / "postgres").chmod(mode)
    with embedded(data_dir, "serve"):
        assert stat.S_IMODE((data_dir / "postgres").stat().st_mode) == 0o700


@pytest.mark.slow
def test_another_process_with_the_old_pid_is_not_taken_for_postgres(data_dir: Path) -> None:
    with served("--data-dir", str(data_dir)) as (process, said):
        memory = post(f"{said['url']}/v1/memories", {"content": "Our river is the Rhine."})
        # The server first: it would start Postgres again.
        process.kill()
        process.wait()
        for running in using(data_dir):
            running.kill()
    pid_file = data_dir / "postgres/postmaster.pid"
    lines = pid_file.read_text().splitlines()
    with subprocess.Popen(["sleep", "1000"]) as victim:
        pid_file.write_text("\n".join([str(victim.pid), *lines[1:]]) + "\n")
        with served("--data-dir", str(data_dir)) as (_, said):
            assert get(f"{said['url']}/v1/memories/{memory['id']}") == memory
        assert victim.poll() is None
        victim.kill()


@pytest.mark.slow
def test_a_server_on_a_copied_data_directory_does_not_touch_the_original(data_dir: Path) -> None:
    copy = data_dir.with_name("copy")
    with served("--data-dir", str(data_dir)) as (_, said):
        memory = post(f"{said['url']}/v1/memories", {"content": "Our river is the Rhine."})
        subprocess.run(["cp", "-a", data_dir, copy], check=True)
        with served("--data-dir", str(copy)) as (_, other):
            assert get(f"{other['url']}/v1/memories/{memory['id']}") == memory
        assert get(f"{said['url']}/v1/memories/{memory['id']}") == memory
        assert "default" in esker("pool", "list", "--data-dir", str(copy)).stdout
        assert get(f"{said['url']}/v1/memories/{memory['id']}") == memory


def test_a_failed_start_is_explained_while_standard_input_is_open(data_dir: Path) -> None:
    command = [sys.executable, "-P", "-m", "esker", "serve", "--port", "0", "--data-dir", str(data_dir)]
    command.append("--until-stdin-closes")
    unreachable = environment() | {"ESKER_DATABASE_URL": "postgresql://nobody@127.0.0.1:1/x"}
    with subprocess.Popen(
        command, cwd=ROOT, env=unreachable, stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        said = process.stderr.read()
        assert process.wait() == 1, said
    assert "Fatal Python error" not in said
    assert "ESKER_DATABASE_URL" in said


def test_a_server_started_until_stdin_closes_ends_with_its_parent(data_dir: Path) -> None:
    command = [sys.executable, "-P", "-m", "esker", "serve", "--port", "0", "--json", "--data-dir", str(data_dir)]
    starter = (
        "import subprocess, sys, time\n"
        f"subprocess.Popen({[*command, '--until-stdin-closes']!r}, stdin=subprocess.PIPE)\n"
        "time.sleep(1000)"
    )
    with subprocess.Popen(
        [sys.executable, "-c", starter], cwd=ROOT, env=environment(), stdout=subprocess.PIPE, text=True
    ) as process:
        assert ready(process)["url"]
        process.kill()
        eventually_here(lambda: not using(data_dir))
    assert holder(data_dir) is None
