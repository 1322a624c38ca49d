"""The first output of a started server is checked before it is used."""

import pytest

from esker.server.core.announcement import read_announcement
from esker.server.core.errors import Unavailable


def test_a_server_is_known_by_its_url_however_its_json_is_laid_out() -> None:
    assert read_announcement(['{"url": "http://x"}\n'])["url"] == "http://x"
    assert read_announcement(["{\n", '  "pid": 7,\n', '  "url": "http://x"\n', "}\n", "later\n"])["pid"] == 7


def test_other_output_before_the_announcement_is_skipped() -> None:
    assert read_announcement(["a library's warning\n", "{\n", '"url": "http://x"\n', "}\n"]) == {"url": "http://x"}


def test_an_error_of_the_server_keeps_its_message_and_its_hint() -> None:
    with pytest.raises(Unavailable, match=r"^No room\.$") as caught:
        read_announcement(["{\n", '  "error": "No room.",\n', '  "hint": "Make some."\n', "}\n"])
    assert caught.value.hint == "Make some."


@pytest.mark.parametrize(
    "printed", ['{"url": 7}\n', '{"status": "fine"}\n', "[]\n", "killed\n", '{"url": "http://x"\n']
)
def test_output_that_is_not_an_announcement_is_quoted_in_the_error(printed: str) -> None:
    with pytest.raises(Unavailable, match="did not start") as caught:
        read_announcement([printed])
    assert printed.strip() in str(caught.value)


def test_a_server_that_prints_nothing_did_not_start() -> None:
    with pytest.raises(Unavailable, match=r"^The server did not start\.$"):
        read_announcement([])
