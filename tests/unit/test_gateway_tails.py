"""A request without its middle: in each protocol the head, a tail of whole answers, and the call of each result."""

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from esker.server.gateway.history import starts
from esker.server.gateway.identity import identified
from esker.server.gateway.prompts import without_middle
from esker.server.gateway.protocols.chat import CHAT
from esker.server.gateway.protocols.gemini import GEMINI
from esker.server.gateway.protocols.messages import MESSAGES
from esker.server.gateway.protocols.responses import RESPONSES
from esker.server.gateway.records import Protocol

Items = list[dict[str, Any]]
PROTOCOLS = (MESSAGES, RESPONSES, CHAT, GEMINI)
RULES = "<system-reminder>\nBe brief.\n</system-reminder>"
# Prompts, of which rules alone are no turn; or an answer: whether it has a thought and words, and how many calls.
steps = st.lists(
    st.sampled_from([RULES, "Go on."]) | st.tuples(st.booleans(), st.booleans(), st.integers(0, 2)), max_size=20
)


def items_of(protocol: Protocol, steps: list[Any]) -> Items:
    """Return a conversation as a protocol writes it."""
    found: Items = []
    for n, step in enumerate(steps):
        if isinstance(step, str):
            found += prompt(protocol, step if step == RULES else f"{step} {n}")
        else:
            thinks, speaks, count = step
            found += answer(protocol, n, [f"c{n}_{each}" for each in range(count)], thinks=thinks, speaks=speaks)
    return found


def prompt(protocol: Protocol, words: str) -> Items:
    """Return a prompt."""
    return [{"role": "user", "parts": [{"text": words}]} if protocol is GEMINI else {"role": "user", "content": words}]


def answer(protocol: Protocol, n: int, calls: list[str], *, thinks: bool, speaks: bool) -> Items:
    """Return an answer, and the results of its calls."""
    words = f"Answer {n}." if speaks or not calls else ""
    if protocol is MESSAGES:
        blocks = [{"type": "thinking", "thinking": "hm"}] * thinks + [{"type": "text", "text": words}] * bool(words)
        blocks += [{"type": "tool_use", "id": call, "name": "ls", "input": {}} for call in calls]
        results = [{"type": "tool_result", "tool_use_id": call, "content": "cart.py"} for call in calls]
        return [{"role": "assistant", "content": blocks}, *([{"role": "user", "content": results}] if calls else [])]
    if protocol is CHAT:
        called = [{"id": call, "function": {"name": "ls", "arguments": "{}"}} for call in calls]
        results = [{"role": "tool", "tool_call_id": call, "content": "cart.py"} for call in calls]
        return [{"role": "assistant", "content": words, "tool_calls": called}, *results]
    if protocol is RESPONSES:
        return [
            *[{"type": "reasoning", "id": f"r{n}"}] * thinks,
            *[{"role": "assistant", "content": words}] * bool(words),
            *({"type": "function_call", "call_id": call, "name": "ls", "arguments": "{}"} for call in calls),
            *({"type": "function_call_output", "call_id": call, "output": "cart.py"} for call in calls),
        ]
    parts: Items = [*[{"text": "hm", "thought": True}] * thinks, *[{"text": words}] * bool(words)]
    parts += [{"functionCall": {"id": call, "name": "ls", "args": {}}} for call in calls]
    done = [{"functionResponse": {"id": call, "name": "ls", "response": {"output": "cart.py"}}} for call in calls]
    return [
        *({"role": "model", "parts": [part]} for part in parts),
        *([{"role": "user", "parts": done}] if done else []),
    ]


def is_of_a_model(item: dict[str, Any]) -> bool:
    """Return whether a model wrote an item."""
    return item.get("role") in ("assistant", "model") or item.get("type") in ("reasoning", "function_call")


@given(st.sampled_from(PROTOCOLS), steps)
def test_the_head_stays_and_a_tail_begins_with_a_whole_answer_or_a_prompt(protocol: Protocol, steps: list[Any]) -> None:
    whole = items_of(protocol, ["Build the shop.", *steps])
    document: dict[str, Any] = {protocol.history: whole}
    turns = identified(protocol.read_request(document).turns)
    head = next((place for place, item in enumerate(whole) if is_of_a_model(item)), len(whole))
    for start in starts(turns):
        left = json.loads(without_middle(protocol, json.dumps(document), turns, start))[protocol.history]
        assert left[:head] == whole[:head]
        place = len(whole) - (len(left) - head)
        assert left[head:] == whole[place:]
        assert not is_of_a_model(whole[place]) or not is_of_a_model(whole[place - 1])
        # No result is in the tail alone: each is written as `cart.py`, behind the id of its call.
        assert all(json.dumps(left).count(f'"{call}"') in (0, 2) for call in calls_of(steps))


def calls_of(steps: list[Any]) -> list[str]:
    """Return the ids of all calls."""
    return [f"c{n + 1}_{each}" for n, step in enumerate(steps) if not isinstance(step, str) for each in range(step[2])]


def test_rules_before_the_first_answer_stay_though_they_are_no_turn() -> None:
    whole = items_of(MESSAGES, [RULES, (False, True, 0), "Go on.", (False, True, 0), "Go on."])
    turns = identified(MESSAGES.read_request({"messages": whole}).turns)
    left = json.loads(without_middle(MESSAGES, json.dumps({"messages": whole}), turns, starts(turns)[-1]))["messages"]
    assert left == [whole[0], whole[-1]]


def test_a_conversation_that_its_provider_has_compacted_keeps_what_was_made_of_it() -> None:
    compacted = {"type": "compaction", "encrypted_content": "all of it"}
    whole = [items_of(RESPONSES, ["Build."])[0], compacted, *items_of(RESPONSES, [(True, True, 1), "Go on."] * 2)]
    turns = identified(RESPONSES.read_request({"input": whole}).turns)
    left = json.loads(without_middle(RESPONSES, json.dumps({"input": whole}), turns, starts(turns)[-1]))["input"]
    assert left == [*whole[:2], whole[-1]]
