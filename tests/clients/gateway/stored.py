"""The transcript of a session that Esker has kept, against the words that were said in it."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from tests.clients.model.script import SUMMARY

Message = dict[str, Any]


def stored_faults(messages: Sequence[Message], prompts: Sequence[str]) -> Iterator[str]:
    """Yield the prompts, answers, calls and results that are stored never or more than once, and what is nobody's."""
    told = Counter(words_of(message) for message in messages if message["role"] == "user")
    yield from (f"{prompt!r} is stored {told[prompt]} times" for prompt in prompts if told[prompt] != 1)
    others = [words for words in told if words and words not in prompts]
    yield from (f"the user did not say {words[:120]!r}" for words in others)
    yield from (f"a summary is kept: {words[:80]!r}" for words in map(words_of, messages) if SUMMARY in words)
    answers = Counter(words_of(message) for message in messages if message["role"] == "assistant")
    yield from (f"{words[:80]!r} was answered {count} times" for words, count in answers.items() if words and count > 1)
    calls, results = _ids(messages, "id", "tool_use"), _ids(messages, "tool_use_id", "tool_result")
    yield from (f"call {call} is stored {count} times" for call, count in calls.items() if count > 1)
    yield from (f"the result of {call} is stored {count} times" for call, count in results.items() if count > 1)
    yield from (f"the result of {call} is stored without its call" for call in results.keys() - calls.keys())
    yield from (f"call {call} is stored without its result" for call in calls.keys() - results.keys())


def words_of(message: Message) -> str:
    """Return the words of a message as Esker reads them: without what the client put around them.

    A message with calls or results has none. OpenCode puts quotation marks around its argument.
    """
    has_others = any(block["type"] != "text" for block in message["content"])
    return "" if has_others else message["text"].strip().strip('"')


def _ids(messages: Sequence[Message], name: str, kind: str) -> Counter[str]:
    return Counter(block[name] for message in messages for block in message["content"] if block["type"] == kind)
