"""Changes from one session to the next, through the public surface."""

import httpx2

from tests.support.api import contents, observed, opened, recalled, said


async def told(client: httpx2.AsyncClient, session: str, text: str) -> None:
    """Have a statement said in a session of the project, and observed."""
    opened_session = await opened(client, session, project="shop")
    await said(client, opened_session, text)
    await observed(client, opened_session)


async def test_a_changed_value_is_found_first_by_the_subject_that_only_the_old_row_named(
    client: httpx2.AsyncClient,
) -> None:
    await told(client, "monday", "The checkout service caches carts in Redis.")
    await told(client, "friday", "We moved the cart cache from Redis to Valkey last week.")
    hits = contents(await recalled(client, "checkout service", project="shop", scope="project"))
    assert "Valkey" in hits[0]
    assert not any("caches carts in Redis" in hit for hit in hits)


async def test_a_value_without_a_subject_changes_the_latest_of_another_session(client: httpx2.AsyncClient) -> None:
    await told(client, "monday", "Our upload limit is 30 MB.")
    await told(client, "friday", "Actually, 45 MB instead.")
    hits = contents(await recalled(client, "upload limit", project="shop", scope="project"))
    assert "45 MB" in hits[0]
    assert not any("30 MB" in hit for hit in hits)


async def test_a_plan_changes_nothing(client: httpx2.AsyncClient) -> None:
    await told(client, "monday", "Our database is MySQL.")
    await told(client, "friday", "Next quarter we plan to move our database to Postgres.")
    hits = contents(await recalled(client, "database", project="shop", scope="project"))
    assert any("Our database is MySQL." in hit for hit in hits)
