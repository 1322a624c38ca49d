"""How long a pool keeps raw messages, images, passages, and memories by kind."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from esker.server.core.conversation.records import Block
from esker.server.core.json_input import Json
from esker.server.core.records import Kind

EXPIRED_IMAGE: Block = {"type": "text", "text": "[image expired]"}
"""Replaces an image."""
# The members of which an image has one: in the Messages API, in MCP, and in chat completions and the Responses API.
_DATA = frozenset(("source", "data", "image_url", "file_id"))


@dataclass(frozen=True, slots=True)
class Retention:
    """Days for which texts are kept after they were said; None, or a kind that is not named: for ever.

    Passages are the words of messages, so they are kept no longer than these.
    """

    messages_days: int | None = None
    images_days: int | None = None
    passages_days: int | None = None
    memories_days: Mapping[Kind, int] = field(default_factory=dict[Kind, int])


@dataclass(frozen=True, slots=True)
class Retained:
    """How much was deleted because of its age."""

    messages: int = 0
    images: int = 0
    passages: int = 0
    memories: int = 0

    @property
    def any(self) -> bool:
        """Whether anything was."""
        return bool(self.messages or self.images or self.passages or self.memories)


def without_images(content: Json) -> tuple[Json, int]:
    """Return content blocks with a note in place of each image, at any depth, and the number of images."""
    match content:
        case list():
            parts = [without_images(part) for part in content]
            return [part for part, _ in parts], sum(count for _, count in parts)
        case {"type": "image" | "image_url" | "input_image"} if not _DATA.isdisjoint(content):
            return dict(EXPIRED_IMAGE), 1
        case dict():
            members = {key: without_images(item) for key, item in content.items()}
            return {key: item for key, (item, _) in members.items()}, sum(count for _, count in members.values())
        case _:
            return content, 0
