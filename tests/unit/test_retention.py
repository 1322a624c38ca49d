"""Images are taken out of content blocks, and nothing else."""

from esker.server.core.conversation.retention import EXPIRED_IMAGE, without_images
from esker.server.core.json_input import Json

IMAGE: Json = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}}
TEXT: Json = {"type": "text", "text": "See this:"}


def test_every_image_is_replaced_also_in_tool_results() -> None:
    result: dict[str, Json] = {"type": "tool_result", "tool_use_id": "t1", "content": [TEXT, IMAGE]}
    kept, count = without_images([TEXT, IMAGE, result])
    assert count == 2
    assert kept == [TEXT, EXPIRED_IMAGE, {**result, "content": [TEXT, EXPIRED_IMAGE]}]


def test_content_without_images_stays_as_it_is() -> None:
    content: Json = [
        TEXT,
        {"type": "tool_result", "tool_use_id": "t1", "content": "done"},
        {"type": "tool_use", "input": {}},
    ]
    assert without_images(content) == (content, 0)
