"""The page shows a message whatever form its content blocks have."""

from typing import Any

import pytest

from esker.server.web.shown_blocks import part_text, picture, result_parts

PNG = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}}
SVG = {"type": "image", "source": {"type": "base64", "media_type": "image/svg+xml", "data": "AAAA"}}


@pytest.mark.parametrize(
    ("content", "shown"),
    [
        ("done", ["done"]),
        (None, []),
        ("", []),
        ([{"type": "text", "text": "done"}, "as a text", 5, None], ["done", "as a text", "5", "null"]),
        (
            [{"type": "text", "text": None}, {"type": "search_result", "title": "t"}, {}],
            ["[text]", "[search_result]", "{}"],
        ),
        ({"done": True}, ['{"done": true}']),
        (True, ["true"]),
        ([PNG, SVG], ["data:image/png;base64,AAAA", "[image]"]),
    ],
)
def test_the_result_of_a_tool_is_shown_in_any_form(content: Any, shown: list[str]) -> None:
    parts = result_parts({"type": "tool_result", "content": content})
    assert [picture(part) or part_text(part) for part in parts] == shown


@pytest.mark.parametrize(
    "source", [{}, {"type": "base64"}, {"type": "base64", "media_type": "image/png", "data": 1}, 5]
)
def test_an_image_without_its_data_is_no_picture(source: Any) -> None:
    assert picture({"type": "image", "source": source}) is None
