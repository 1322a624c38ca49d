"""Messages are cut to a size that the server accepts, before they are sent; nothing that is excluded is."""

import pytest

from esker.server.agents.api import Api
from esker.server.agents.sending import as_batches, deliver_allowed
from esker.server.agents.transcript import TranscriptEntry
from esker.server.core.config.settings import Settings
from esker.server.core.errors import Unavailable
from esker.server.core.json_input import Json, text_characters

IMAGE: Json = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "A" * 4_000_000}}


def test_long_text_is_cut_to_what_the_server_accepts_and_an_image_stays() -> None:
    entry = TranscriptEntry("m1", "user", [IMAGE, {"type": "text", "text": "x" * 8_000_001}], None)
    [[message]] = as_batches([entry])
    image, text = message["content"]
    assert image == IMAGE
    assert text["text"].endswith("… [7,000,001 more characters]")
    assert text_characters(message["content"]) <= Settings().max_message_characters


def test_a_message_that_fits_is_sent_as_it_is() -> None:
    content: list[Json] = [IMAGE, {"type": "text", "text": "x" * 3_000_000}]
    [[message]] = as_batches([TranscriptEntry("m1", "user", content, None)])
    assert message["content"] == content


def test_what_was_excluded_after_it_was_spooled_is_not_sent() -> None:
    nowhere = Api("http://127.0.0.1:1", timeout=1)
    for session in ({"cwd": "/work/secret/x", "project": "x"}, {"cwd": None, "project": "acme/secret"}):
        parcel = {"session": {"client": "pi", "external_id": "s1"} | session, "messages": []}
        assert deliver_allowed(["/work/secret", "acme/secret"])(nowhere, parcel) == {}
        with pytest.raises(Unavailable):
            deliver_allowed(["/work/other"])(nowhere, parcel)


def test_a_key_or_a_text_that_looks_like_an_image_counts_as_text() -> None:
    assert text_characters([IMAGE]) == 0
    hidden: Json = {"type": "tool_use", "input": {"type": "image", "x": "y" * 100, "k" * 100: 1}}
    assert text_characters([hidden]) > 200
