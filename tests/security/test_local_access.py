"""Access without a key: for the user who runs the server, and for nobody else on the machine."""

import asyncio
import json
import os
import socket
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from ipaddress import ip_network
from pathlib import Path
from unittest.mock import Mock
from urllib.parse import urlsplit

import httpx2
import pytest
from starlette.datastructures import Headers

from esker.server.agents.api import Api
from esker.server.app import make_app
from esker.server.client.esker import Esker
from esker.server.core.config.client_settings import ClientSettings
from esker.server.core.config.local_token import own_token, token_for
from esker.server.core.config.settings import Settings
from esker.server.core.errors import UnknownKey
from esker.server.rest import access, connections, peers
from esker.server.rest.peers import Peer, uid_of
from esker.server.usecases.authenticate import authenticate, create_key
from esker.server.usecases.parts import Parts
from tests.support.kept_servers import KeptServer
from tests.support.serving import serving_app
from tests.support.waiting import PATIENCE

STRANGER = 60_001
"""A user id that nobody has."""
linux_root = pytest.mark.skipif(sys.platform != "linux" or os.geteuid() != 0, reason="only root can be another user")

ASK = """
import sys, urllib.error, urllib.request
request = urllib.request.Request(sys.argv[1], headers=dict(pair.split(": ") for pair in sys.argv[2:]))
try:
    print(urllib.request.urlopen(request).status)
except urllib.error.HTTPError as error:
    print(error.code, error.read().decode())
"""


@pytest.fixture
def served(kept_server: KeptServer) -> str:
    """The URL of a server on the test's database."""
    return kept_server.url


@pytest.fixture
def unknown_peers(monkeypatch: pytest.MonkeyPatch) -> None:
    """A system that does not tell whose a connection is."""

    async def nobody_knows(_: Peer) -> bool:
        return False

    monkeypatch.setattr(Peer, "is_owner", nobody_knows)


@pytest.fixture
def connected() -> Iterator[tuple[socket.socket, socket.socket]]:
    """Both ends of a connection on this machine."""
    with socket.create_server(("127.0.0.1", 0)) as listener, socket.create_connection(listener.getsockname()) as ours:
        theirs, _ = listener.accept()
        with theirs:
            yield ours, theirs


def python_for_everyone() -> str:
    """Return a Python that other users can run: this one may be in the home of root."""
    for python in (Path(sys.executable).resolve(), Path("/usr/bin/python3")):
        if python.exists() and all(folder.stat().st_mode & stat.S_IXOTH for folder in (python, *python.parents)):
            return str(python)
    pytest.skip("no Python is here that another user can run")


async def asked_as(user: int, url: str, *headers: str) -> str:
    """Return the answer that another user gets."""
    command = [python_for_everyone(), "-c", ASK, url, *headers]
    done = await asyncio.to_thread(
        lambda: subprocess.run(command, user=user, group=user, extra_groups=[], cwd="/", capture_output=True, text=True)
    )
    return done.stdout or done.stderr


async def test_the_owner_needs_neither_key_nor_token(served: str) -> None:
    async with httpx2.AsyncClient(base_url=served, timeout=PATIENCE) as client:
        assert (await client.get("/v1/memories")).status_code == 200
        assert (await client.post("/mcp", json={})).status_code != 401


@linux_root
async def test_another_user_of_the_machine_is_refused_and_told_what_to_do(served: str) -> None:
    answer = await asked_as(STRANGER, f"{served}/v1/memories")
    assert answer.startswith("401 ")
    assert "Only the user who runs this server" in answer
    assert "`token`" in answer
    assert "esker key create" in answer
    assert (await asked_as(STRANGER, f"{served}/livez")).strip() == "200"


@linux_root
async def test_another_user_gets_in_with_a_key(served: str, parts: Parts) -> None:
    key = await create_key(parts, name="theirs", pool="default", scopes=["read"])
    answer = await asked_as(STRANGER, f"{served}/v1/memories", f"Authorization: Bearer {key.key}")
    assert answer.strip() == "200"


@pytest.mark.parametrize(
    "header", ["X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "Forwarded", "Via", "X-Real-IP"]
)
async def test_a_request_that_a_proxy_passed_on_is_not_the_owners(served: str, header: str) -> None:
    async with httpx2.AsyncClient(base_url=served, timeout=PATIENCE, headers={header: "127.0.0.1"}) as client:
        assert (await client.get("/v1/memories")).status_code == 401


def test_the_kernel_tells_whose_a_connection_is(connected: tuple[socket.socket, socket.socket]) -> None:
    ours, theirs = connected
    assert uid_of(theirs.getpeername(), theirs.getsockname()) == os.geteuid()
    assert uid_of(("127.0.0.1", 1), theirs.getsockname()) is None
    # The kernel says root for a socket that was closed.
    ours.close()
    assert uid_of(theirs.getpeername(), theirs.getsockname()) is None


def test_a_connection_is_found_in_either_family_of_addresses() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener, socket.socket(socket.AF_INET6) as mapped:
        mapped.connect(("::ffff:127.0.0.1", listener.getsockname()[1]))
        accepted, _ = listener.accept()
        with accepted:
            assert uid_of(accepted.getpeername(), accepted.getsockname()) == os.geteuid()


async def test_a_connection_from_elsewhere_is_never_the_owners(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peers, "uid_of", lambda *_: os.geteuid())
    for host in ("192.168.1.5", "10.0.0.1", "::ffff:192.168.1.5", "fe80::1%eth0", "localhost", ""):
        assert not await Peer((host, 1), ("127.0.0.1", 2)).is_owner(), host


async def test_users_that_a_namespace_does_not_know_are_not_the_owner(
    monkeypatch: pytest.MonkeyPatch, connected: tuple[socket.socket, socket.socket]
) -> None:
    ours, theirs = connected
    assert await Peer(ours.getsockname(), theirs.getsockname()).is_owner()
    monkeypatch.setattr(peers, "uid_of", lambda *_: 65_534)
    monkeypatch.setattr(os, "geteuid", lambda: 65_534)
    assert not await Peer(ours.getsockname(), theirs.getsockname()).is_owner()


async def test_other_systems_look_among_the_users_own_processes(
    monkeypatch: pytest.MonkeyPatch, connected: tuple[socket.socket, socket.socket]
) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    ours, theirs = connected
    assert await Peer(ours.getsockname(), theirs.getsockname()).is_owner()
    assert not await Peer(("127.0.0.1", 1), theirs.getsockname()).is_owner()


async def test_where_the_system_does_not_tell_the_token_opens(parts: Parts, unknown_peers: None) -> None:
    async with serving_app(make_app(parts, "the token")) as url, httpx2.AsyncClient(base_url=url) as client:
        assert (await client.get("/v1/memories")).status_code == 401
        for token, status in (("the token", 200), ("another", 401), ("the toke", 401)):
            answer = await client.get("/v1/memories", headers={"Authorization": f"Bearer {token}"})
            assert answer.status_code == status, token


async def test_once_a_key_exists_neither_the_owner_nor_the_token_gets_in_without_it(parts: Parts) -> None:
    async with serving_app(make_app(parts, "the token")) as url, httpx2.AsyncClient(base_url=url) as client:
        assert (await client.get("/v1/memories", headers={"Authorization": "Bearer the token"})).status_code == 200
        await create_key(parts, name="a", pool="default", scopes=["read"])
        assert (await client.get("/v1/memories")).status_code == 401
        for _ in range(100):  # it is not a wrong key, which would be slowed down
            answer = await client.get("/v1/memories", headers={"Authorization": "Bearer the token"})
            assert answer.status_code == 401


def test_the_token_is_made_once_and_only_its_owner_reads_it(tmp_path: Path) -> None:
    token = own_token(tmp_path)
    assert own_token(tmp_path) == token
    assert token.startswith("esk_")
    assert (tmp_path / "token").stat().st_mode & 0o777 == 0o600
    (tmp_path / "token").chmod(0o644)
    own_token(tmp_path)
    assert (tmp_path / "token").stat().st_mode & 0o777 == 0o600
    assert [path.name for path in tmp_path.iterdir()] == ["token"]


def test_an_empty_token_file_is_made_again(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("")
    token = own_token(tmp_path)
    assert token.startswith("esk_")
    assert own_token(tmp_path) == token


def test_a_crash_while_the_token_is_written_leaves_no_empty_token(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", Mock(side_effect=OSError("full")))
        with pytest.raises(OSError, match="full"):
            own_token(tmp_path)
    assert not (tmp_path / "token").exists()
    assert own_token(tmp_path).startswith("esk_")


def holder(folder: Path, url: str, pid: int) -> dict[str, str]:
    """Say that a process listens; return the environment of a client."""
    (folder / "esker.holder").write_text(json.dumps({"pid": pid, "role": "serve", "url": url}))
    return {"ESKER_DATA_DIR": str(folder)}


def test_clients_send_the_token_to_the_users_own_server_and_to_no_other(tmp_path: Path) -> None:
    token, url = own_token(tmp_path), "http://127.0.0.1:8377"
    environ = holder(tmp_path, url, os.getpid())
    for same in (url, "http://127.0.0.1:8377/"):
        assert token_for(same, environ) == token
    for other in ("http://127.0.0.1:8378", "http://10.0.0.1:8377", "http://127.0.0.1.example:8377", "nonsense", ""):
        assert token_for(other, environ) is None
    # Programs of other users may listen there.
    for beside in ("http://[::1]:8377", "http://127.0.0.2:8377", "http://localhost:8377"):
        assert token_for(beside, environ) is None
    for everywhere, reached, beside in (
        ("http://0.0.0.0:8377", "http://127.0.0.1:8377", "http://[::1]:8377"),
        ("http://[::]:8377", "http://[::1]:8377", "http://127.0.0.1:8377"),
    ):
        assert token_for(reached, holder(tmp_path, everywhere, os.getpid())) == token
        assert token_for(beside, environ) is None
        assert token_for("http://10.0.0.1:8377", environ) is None
    assert token_for(url, {"ESKER_DATA_DIR": str(tmp_path / "elsewhere")}) is None
    with subprocess.Popen([sys.executable, "-c", ""]) as ended:
        pass
    assert token_for(url, holder(tmp_path, url, ended.pid)) is None


async def test_our_clients_get_in_by_the_token(
    parts: Parts, unknown_peers: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with serving_app(make_app(parts, own_token(tmp_path))) as url:
        monkeypatch.setattr(os, "environ", dict(os.environ) | holder(tmp_path, url, os.getpid()))
        async with Esker(url) as client:
            assert (await client.status()).pool == "default"
        with closing(Api.to(ClientSettings(url=url))) as api:
            assert (await asyncio.to_thread(api.get, "/v1/status"))["pool"] == "default"


# Slow requests -----------------------------------------------------------------------------------------------------


async def raw(url: str, sent: bytes) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Open a connection and send the beginning of a request."""
    port = urlsplit(url).port
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(sent)
    return reader, writer


@pytest.mark.parametrize("sent", [b"", b"G", b"GET /livez HTTP/1.1\r\nHost: localhost\r\nX: "])
async def test_a_connection_without_a_whole_head_is_closed(
    served: str, sent: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "HEADER_SECONDS", 0.05)
    reader, writer = await raw(served, sent)
    try:
        assert await reader.read() == b""
    except ConnectionResetError:
        pass
    finally:
        writer.close()


async def test_bytes_that_trickle_in_do_not_keep_a_connection_open(
    served: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "HEADER_SECONDS", 0.2)
    reader, writer = await raw(served, b"GET /livez HTTP/1.1\r\nHost: localhost\r\nX: ")
    closed = asyncio.create_task(reader.read())
    while not closed.done():
        writer.write(b"x")
        await asyncio.sleep(0.01)
    assert isinstance(closed.exception(), ConnectionResetError) or closed.result() == b""
    writer.close()


async def test_a_second_request_on_a_connection_has_the_same_time(served: str, monkeypatch: pytest.MonkeyPatch) -> None:
    reader, writer = await raw(served, b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n")
    await reader.readuntil(b'{"status":"alive"}')
    monkeypatch.setattr(connections, "HEADER_SECONDS", 0.05)
    writer.write(b"GET /livez HTTP/1.1\r\n")
    try:
        assert await reader.read() == b""
    except ConnectionResetError:
        pass
    finally:
        writer.close()


async def test_a_large_part_of_a_body_earns_no_silence(served: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(access, "_SILENT_SECONDS", 0.2)
    head = "POST /v1/recall HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    sent = f"{head}Content-Length: 2000000\r\n\r\n{'{' * 1_000_000}"
    reader, writer = await raw(served, sent.encode())
    answer = await reader.read()
    writer.close()
    assert answer.startswith(b"HTTP/1.1 408 ")


@pytest.mark.parametrize("path", ["/v1/recall", "/mcp", "/v1/import"])
async def test_a_body_that_does_not_arrive_is_answered_and_the_connection_closed(
    served: str, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(access, "_BODY_SECONDS", 0.05)
    head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{{"
    reader, writer = await raw(served, head.encode())
    answer = await reader.read()
    writer.close()
    assert answer.startswith(b"HTTP/1.1 408 ")
    assert b"did not arrive in time" in answer


# Limits ------------------------------------------------------------------------------------------------------------


async def test_wrong_keys_are_slowed_down_and_right_ones_are_not(parts: Parts) -> None:
    key = await create_key(parts, name="a", pool="default", scopes=["read"])
    right = {"Authorization": f"Bearer {key.key}"}
    async with serving_app(make_app(parts)) as url, httpx2.AsyncClient(base_url=url, timeout=PATIENCE) as client:
        assert (await client.get("/v1/memories", headers=right)).status_code == 200
        answers = [
            await client.get("/v1/memories", headers={"Authorization": f"Bearer esk_wrong{n}"}) for n in range(40)
        ]
        assert [answer.status_code for answer in answers] == [401] * 20 + [429] * 20
        assert 1 <= int(answers[-1].headers["retry-after"]) <= 3
        assert answers[-1].headers["content-type"] == "application/problem+json"
        assert (await client.get("/v1/memories", headers=right)).status_code == 200


async def test_a_right_key_that_was_never_seen_gets_in_beside_a_guesser(parts: Parts) -> None:
    limited = parts.settings.model_copy(update={"address_requests_per_minute": 5, "wrong_keys_per_minute": 2})
    app = make_app(Parts(parts.database, parts.clock, limited))
    async with serving_app(app) as url, httpx2.AsyncClient(base_url=url, timeout=PATIENCE) as client:
        key = await create_key(parts, name="a", pool="default", scopes=["read"])
        for given in ("Bearer esk_wrong", None):
            headers = {"X-Forwarded-For": "1.2.3.4"} | ({"Authorization": given} if given else {})
            statuses = [(await client.get("/v1/memories", headers=headers)).status_code for _ in range(8)]
            assert statuses[-1] == 429
            right = {"Authorization": f"Bearer {key.key}"}
            assert [(await client.get("/v1/memories", headers=right)).status_code for _ in range(8)] == [200] * 8


async def test_a_mistyped_key_is_refused_without_a_question_to_the_database(parts: Parts) -> None:
    key = (await create_key(parts, name="a", pool="default", scopes=["read"])).key
    mistyped = key[:-1] + ("0" if key[-1] != "0" else "1")
    unreachable = Parts(None, parts.clock, parts.settings)  # pyright: ignore[reportArgumentType]
    with pytest.raises(UnknownKey, match="checksum"):
        await authenticate(unreachable, mistyped, is_owner=False)


async def test_a_key_has_a_rate_and_the_owner_has_none(parts: Parts) -> None:
    limited = parts.settings.model_copy(update={"requests_per_minute": 3, "address_requests_per_minute": 5})
    app = make_app(Parts(parts.database, parts.clock, limited))
    async with serving_app(app) as url, httpx2.AsyncClient(base_url=url, timeout=PATIENCE) as client:
        assert {(await client.get("/v1/memories")).status_code for _ in range(10)} == {200}
        key = await create_key(parts, name="a", pool="default", scopes=["read"])
        header = {"Authorization": f"Bearer {key.key}"}
        statuses = [(await client.get("/v1/memories", headers=header)).status_code for _ in range(4)]
        assert statuses == [200, 200, 200, 429]
        # Requests without a key count for the address, and only they.
        by_proxy = {"X-Forwarded-For": "1.2.3.4"}
        statuses = [(await client.get("/v1/memories", headers=by_proxy)).status_code for _ in range(6)]
        assert statuses == [401] * 5 + [429]
        assert (await client.get("/livez")).status_code == 200


@pytest.mark.parametrize(
    ("trusted", "forwarded", "counted"),
    [
        ((), ("1.2.3.4",), "127.0.0.1"),
        (("127.0.0.1",), ("1.2.3.4",), "1.2.3.4"),
        (("127.0.0.1",), ("9.9.9.9, 1.2.3.4",), "1.2.3.4"),
        (("127.0.0.1",), ("9.9.9.9", "1.2.3.4"), "1.2.3.4"),
        (("127.0.0.1", "10.0.0.1"), ("9.9.9.9, 1.2.3.4, 10.0.0.1",), "1.2.3.4"),
        (("127.0.0.1", "10.0.0.0/8"), ("9.9.9.9, 1.2.3.4", "10.7.0.1"), "1.2.3.4"),
        (("127.0.0.1", "10.0.0.0/8"), ("9.9.9.9, 1.2.3.4, ::ffff:10.7.0.1",), "1.2.3.4"),
        (("127.0.0.1", "10.0.0.0/8"), ("9.9.9.9, 11.0.0.1",), "11.0.0.1"),
        (("127.0.0.1",), ("9.9.9.9, unknown",), "unknown"),
        (("127.0.0.1",), (), "127.0.0.1"),
        (("127.0.0.1",), ("",), "127.0.0.1"),
        (("127.0.0.1",), ("2001:db8::1",), "2001:db8::/64"),
        (("127.0.0.1",), ("::ffff:1.2.3.4",), "1.2.3.4"),
    ],
)
def test_limits_count_the_address_that_a_trusted_proxy_names(
    parts: Parts, trusted: tuple[str, ...], forwarded: tuple[str, ...], counted: str
) -> None:
    settings = Settings(trusted_proxies=tuple(map(ip_network, trusted)))
    middleware = access.Access(make_app(parts), None, settings, None, None)  # type: ignore[arg-type]
    scope = {"type": "http", "client": ("127.0.0.1", 5)}
    headers = Headers(raw=[(b"x-forwarded-for", line.encode()) for line in forwarded])
    assert middleware._address(scope, headers) == counted
