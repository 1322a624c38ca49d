"""A client of a server with an empty pool; what the frameworks warn of is theirs."""

from collections.abc import Generator

import httpx2
import pytest

from esker import SyncEsker
from tests.support.waiting import PATIENCE


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let warnings of frameworks be warnings."""
    for item in items:
        if item.path.parent.name == "integrations":
            item.add_marker(pytest.mark.filterwarnings("default"))


@pytest.fixture
def sync_esker(client: httpx2.AsyncClient) -> Generator[SyncEsker]:
    """A client for use in a thread, since the server runs in the event loop of the test."""
    with SyncEsker(str(client.base_url), timeout=PATIENCE) as connected:
        yield connected
