"""Detects prompts that refer to earlier work, for which memory is asked before the model answers."""

from collections.abc import Mapping
from functools import cache
from itertools import chain
from typing import cast

from esker.server.core.words.lists import Cue, language_file

_MOST_CHARACTERS = 20_000


def refers_to_earlier_work(prompt: str) -> bool:
    """Return whether a prompt refers to something that was said or done in another session."""
    return bool(_reference().search(prompt[:_MOST_CHARACTERS]))


@cache
def _reference() -> Cue:
    phrases = cast(Mapping[str, list[str]], language_file("earlier_work")["phrases"])
    return Cue(*chain(*phrases.values()))
