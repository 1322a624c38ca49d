"""The answer of a server is checked before a command uses it."""

import pytest
from pydantic import TypeAdapter

from esker.server.cli.connection import read_as
from esker.server.core.errors import Unavailable
from esker.server.core.reports import PoolStatus


def test_an_answer_of_another_form_is_explained_and_not_an_unexpected_error() -> None:
    with pytest.raises(Unavailable, match="expected form") as caught:
        read_as(TypeAdapter(PoolStatus), {"detail": "a proxy's page"})
    assert "ESKER_URL" in (caught.value.hint or "")
