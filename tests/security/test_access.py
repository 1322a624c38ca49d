"""Access: once a key exists, only health is open without one, and foreign pages are refused."""

from dataclasses import replace
from datetime import timedelta

import httpx2
import psycopg
import pytest

from esker.server.app import make_app, make_parts
from esker.server.core.clock import system_clock
from esker.server.core.config.settings import Settings
from esker.server.core.errors import Conflict, InvalidInput, NotFound
from esker.server.db.database import Database
from esker.server.rest.access import OPEN_PATHS, hosts_for, is_loopback
from esker.server.usecases.authenticate import create_key, create_pool, list_keys, revoke_key
from esker.server.usecases.parts import Parts
from tests.support.kept_servers import KeptServer
from tests.support.serving import serving_app
from tests.support.waiting import PATIENCE


@pytest.fixture
def served(kept_server: KeptServer) -> str:
    """The URL of a server on the test's database."""
    return kept_server.url


def bearer(key: str) -> dict[str, str]:
    """Return the header that carries a key."""
    return {"Authorization": f"Bearer {key}"}


def every_route(settings: Settings) -> list[tuple[str, str]]:
    """Return every (method, path) that the app answers to."""
    app = make_app(make_parts(settings, Database("postgresql://nowhere")))
    found = [(method, path) for path, item in app.openapi()["paths"].items() for method in item]
    return [*found, ("get", "/openapi.json"), ("get", "/docs"), ("post", "/mcp"), ("get", "/nowhere")]


async def test_without_any_key_loopback_is_open(served: str) -> None:
    async with httpx2.AsyncClient(base_url=served, timeout=PATIENCE) as client:
        assert (await client.get("/v1/memories")).status_code == 200


async def test_once_a_key_exists_only_health_answers_without_one(served: str, parts: Parts, settings: Settings) -> None:
    await create_key(parts, name="laptop", pool="default", scopes=["read", "write"])
    async with httpx2.AsyncClient(base_url=served, timeout=PATIENCE) as client:
        for method, path in every_route(settings):
            answer = await client.request(method.upper(), path)
            expected = 200 if path in OPEN_PATHS else 401
            assert answer.status_code == expected, (method, path)
            if expected == 401:
                assert answer.headers["www-authenticate"] == "Bearer"
                kind = "text/html; charset=utf-8" if path == "/docs" else "application/problem+json"
                assert answer.headers["content-type"] == kind


async def test_a_key_opens_its_own_pool_and_no_other(served: str, parts: Parts) -> None:
    await create_pool(parts, "other")
    mine = await create_key(parts, name="a", pool="default", scopes=["read", "write"])
    theirs = await create_key(parts, name="b", pool="other", scopes=["read", "write", "forget"])
    async with httpx2.AsyncClient(base_url=served, timeout=PATIENCE) as client:
        written = await client.post("/v1/memories", json={"content": "Ours."}, headers=bearer(mine.key))
        memory = written.json()["id"]
        assert (await client.get(f"/v1/memories/{memory}", headers=bearer(mine.key))).status_code == 200
        assert (await client.get(f"/v1/memories/{memory}", headers=bearer(theirs.key))).status_code == 404
        assert (await client.delete(f"/v1/memories/{memory}", headers=bearer(theirs.key))).status_code == 404
        listed = await client.get("/v1/memories", headers=bearer(theirs.key))
        assert listed.json()["memories"] == []
        assert (await client.get(f"/v1/memories/{memory}", headers=bearer(mine.key))).status_code == 200


@pytest.mark.parametrize(
    "header", ["", "Bearer", "Bearer ", "Basic abc", "Bearer esk_wrong", "bearer \x00", "Bearer " + "x" * 5_000]
)
async def test_an_invalid_authorization_header_opens_nothing(served: str, parts: Parts, header: str) -> None:
    await create_key(parts, name="a", pool="default", scopes=["read"])
    async with httpx2.AsyncClient(base_url=served, timeout=PATIENCE) as client:
        try:
            answer = await client.get("/v1/memories", headers={"Authorization": header})
        except (httpx2.LocalProtocolError, ValueError):
            return  # the client itself refuses to send it
        assert answer.status_code in (400, 401)


async def test_a_revoked_key_is_refused_at_once_and_keys_stay_required(served: str, parts: Parts) -> None:
    key = await create_key(parts, name="a", pool="default", scopes=["read"])
    async with httpx2.AsyncClient(base_url=served, timeout=PATIENCE) as client:
        assert (await client.get("/v1/memories", headers=bearer(key.key))).status_code == 200
        assert await revoke_key(parts, key="a", pool="default") == [key.id]
        assert (await client.get("/v1/memories", headers=bearer(key.key))).status_code == 401
        assert (await client.get("/v1/memories")).status_code == 401


async def test_a_key_that_was_revoked_on_one_server_is_refused_by_another_at_once(served: str, parts: Parts) -> None:
    key = await create_key(parts, name="a", pool="default", scopes=["read"])
    async with (
        serving_app(make_app(parts)) as other,
        httpx2.AsyncClient(timeout=PATIENCE, headers=bearer(key.key)) as client,
    ):
        servers = (served, other)
        assert [(await client.get(f"{url}/v1/memories")).status_code for url in servers] == [200, 200]
        await revoke_key(parts, key="a", pool="default")
        assert [(await client.get(f"{url}/v1/memories")).status_code for url in servers] == [401, 401]


async def test_a_key_expires_by_the_clock_of_the_database(served: str, parts: Parts) -> None:
    """The clocks of the machines that make and check keys may be wrong."""
    asked: list[int] = []
    for hours in (25, 23):
        ago = replace(parts, clock=lambda hours=hours: system_clock() - timedelta(hours=hours))
        key = await create_key(ago, name=f"{hours} hours old", pool="default", scopes=["read"], days=1)
        async with httpx2.AsyncClient(base_url=served, timeout=PATIENCE) as client:
            asked.append((await client.get("/v1/memories", headers=bearer(key.key))).status_code)
    assert asked == [401, 200]


async def test_a_key_with_the_read_scope_cannot_write(served: str, parts: Parts) -> None:
    key = await create_key(parts, name="a", pool="default", scopes=["read"])
    async with httpx2.AsyncClient(base_url=served, timeout=PATIENCE, headers=bearer(key.key)) as client:
        assert (await client.get("/v1/memories")).status_code == 200
        assert (await client.post("/v1/recall", json={"query": "x"})).status_code == 200
        for method, path, body, scope in (
            ("POST", "/v1/memories", {"content": "x"}, "write"),
            ("POST", "/v1/sessions", {"client": "api", "external_id": "x"}, "write"),
            ("DELETE", "/v1/memories/mem_x", None, "forget"),
            ("GET", "/v1/forget/fgt_x", None, "forget"),
        ):
            answer = await client.request(method, path, json=body)
            assert answer.status_code == 403
            assert f"scope '{scope}'" in answer.json()["detail"]
            assert f"--scopes read,{scope}" in answer.json()["hint"]


async def test_who_may_write_may_not_forget_without_that_scope(served: str, parts: Parts) -> None:
    key = await create_key(parts, name="a", pool="default", scopes=["read", "write"])
    async with httpx2.AsyncClient(base_url=served, timeout=PATIENCE, headers=bearer(key.key)) as client:
        memory = (await client.post("/v1/memories", json={"content": "A fact."})).json()["id"]
        assert (await client.delete(f"/v1/memories/{memory}")).status_code == 403
        assert (await client.get(f"/v1/memories/{memory}")).status_code == 200


async def test_metrics_of_the_whole_server_need_the_admin_scope(served: str, parts: Parts) -> None:
    await create_pool(parts, "other")
    there = await create_key(parts, name="a", pool="other", scopes=["read", "write"])
    here = await create_key(parts, name="b", pool="default", scopes=["read"])
    operator = await create_key(parts, name="c", pool="default", scopes=["read", "admin"])
    async with httpx2.AsyncClient(base_url=served, timeout=PATIENCE) as client:
        opened = await client.post(
            "/v1/sessions", json={"client": "api", "external_id": "x"}, headers=bearer(there.key)
        )
        said = {"messages": [{"external_id": "m", "role": "user", "content": "The river is high."}]}
        path = f"/v1/sessions/{opened.json()['id']}/messages"
        assert (await client.post(path, json=said, headers=bearer(there.key))).status_code == 200
        shown = {
            each.name: (await client.get("/metrics", headers=bearer(each.key))).text for each in (there, here, operator)
        }
    assert "esker_messages 1.0" in shown["a"]
    assert "esker_messages 0.0" in shown["b"]
    assert "esker_messages 1.0" in shown["c"]
    assert ["http_request" in shown[name] for name in "abc"] == [False, False, True]
    assert {line.split()[0] for line in shown["b"].splitlines()} <= {
        line.split()[0] for line in shown["c"].splitlines()
    }


async def test_a_key_shows_the_day_of_its_last_use(served: str, parts: Parts) -> None:
    key = await create_key(parts, name="a", pool="default", scopes=["read"])
    assert [each.last_used_on for each in await list_keys(parts, "default")] == [None]
    async with httpx2.AsyncClient(base_url=served, timeout=PATIENCE, headers=bearer(key.key)) as client:
        await client.get("/v1/memories")
    assert [each.last_used_on for each in await list_keys(parts, "default")] == [system_clock().date()]


async def test_the_database_stores_only_hashes_of_keys(parts: Parts, owner_url: str) -> None:
    key = await create_key(parts, name="a", pool="default", scopes=["read"])
    with psycopg.connect(owner_url) as connection:
        rows = connection.execute("SELECT k::text FROM api_keys k UNION ALL SELECT a::text FROM audit a").fetchall()
    assert not [row for row in rows if key.key[8:] in row[0]]
    [listed] = await list_keys(parts, "default")
    assert key.key not in repr(listed)


async def test_the_name_of_a_key_is_unique_in_its_pool(parts: Parts) -> None:
    await create_key(parts, name="laptop", pool="default", scopes=["read"])
    with pytest.raises(Conflict):
        await create_key(parts, name="laptop", pool="default", scopes=["read", "write"])
    await revoke_key(parts, key="laptop", pool="default")
    await create_key(parts, name="laptop", pool="default", scopes=["read"])


async def test_unknown_http_methods_share_one_metric_series(served: str) -> None:
    async with httpx2.AsyncClient(base_url=served, timeout=PATIENCE) as client:
        for n in range(5):
            await client.request(f"MADE{n}", "/v1/memories")
        metrics = (await client.get("/metrics")).text
    assert "MADE" not in metrics
    assert 'method="other"' in metrics


@pytest.mark.parametrize("scopes", [[], ["everything"], ["read", "everything"]])
async def test_unknown_scopes_are_refused(parts: Parts, scopes: list[str]) -> None:
    with pytest.raises(InvalidInput):
        await create_key(parts, name="a", pool="default", scopes=scopes)


async def test_invalid_names_are_refused(parts: Parts) -> None:
    for name in ("", "Upper", "with space", "ü", "-", "a" * 64, "a;b"):
        with pytest.raises(InvalidInput):
            await create_pool(parts, name)
    with pytest.raises(NotFound):
        await create_key(parts, name="a", pool="nowhere", scopes=["read"])
    with pytest.raises(NotFound):
        await revoke_key(parts, key="nothing", pool="default")


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "", "localhost.evil.example:8377"])
async def test_a_foreign_host_is_refused_everywhere(served: str, host: str) -> None:
    async with httpx2.AsyncClient(base_url=served, headers={"Host": host}, timeout=PATIENCE) as client:
        for path in ("/v1/memories", "/livez", "/mcp"):
            assert (await client.get(path)).status_code == 421


@pytest.mark.parametrize("origin", ["https://evil.example", "null", "http://127.0.0.1:1", "file://"])
async def test_a_foreign_origin_is_refused(served: str, origin: str) -> None:
    async with httpx2.AsyncClient(base_url=served, headers={"Origin": origin}, timeout=PATIENCE) as client:
        assert (await client.get("/v1/memories")).status_code == 403
        assert (await client.post("/v1/memories", json={"content": "x"})).status_code == 403


async def test_the_servers_own_origin_is_allowed(served: str) -> None:
    async with httpx2.AsyncClient(base_url=served, headers={"Origin": served}, timeout=PATIENCE) as client:
        assert (await client.get("/v1/memories")).status_code == 200


def test_a_server_answers_only_to_its_host_names() -> None:
    loopback = hosts_for("127.0.0.1", ())
    assert loopback is not None
    assert {"localhost", "127.0.0.1", "[::1]"} <= loopback
    assert hosts_for("0.0.0.0", ()) is None  # noqa: S104
    assert hosts_for("0.0.0.0", ("Memory.LAN",)) == {"memory.lan"}  # noqa: S104


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.8.8", "::1", "localhost"])
def test_loopback_addresses_are_recognised(host: str) -> None:
    assert is_loopback(host)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.5", "memory.lan"])  # noqa: S104
def test_other_addresses_are_not_loopback(host: str) -> None:
    assert not is_loopback(host)
