"""The comparison of `make clients` finds what the gateway must not do to a request, in every protocol."""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from tests.clients.exchanges import Exchange
from tests.clients.gateway.comparison import Compared, compare, pack_faults
from tests.clients.gateway.stored import stored_faults

Body = dict[str, Any]
PACK = "Memories of earlier sessions: Ä"
MARK = {"cache_control": {"type": "ephemeral"}}


def messages(system: list[Any], history: list[Any]) -> Body:
    """Return a request of the Messages API."""
    return {"system": system, "tools": [{"name": "Bash"}], "messages": history}


def rounds(count: int) -> list[Any]:
    """Return a history: a prompt, then calls with their results."""
    found: list[Any] = [{"role": "user", "content": "Build."}]
    for number in range(count):
        call = {"type": "tool_use", "id": f"t{number}", "name": "Bash", "input": {}}
        found += [
            {"role": "assistant", "content": [{"type": "thinking", "thinking": "hm", "signature": f"s{number}"}, call]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": f"t{number}", "content": "ok"}]},
        ]
    return found


BEFORE = messages([{"type": "text", "text": "You build."}, {"type": "text", "text": "Rules.", **MARK}], rounds(20))


def with_pack(body: Body, pack: str = PACK, place: int = 1) -> Body:
    """Return a request with a pack in its system prompt."""
    system = [*body["system"]]
    system.insert(place, {"type": "text", "text": pack})
    return {**body, "system": system}


def exchange(body: Body, path: str = "/v1/messages", **more: Any) -> Exchange:
    """Return a request and its answer."""
    # As clients write it, without spaces.
    written = json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()
    return Exchange("1", "POST", path, [("x-api-key", "k")], written, 200, [], b"event", is_whole=True, **more)


def compared(mode: str, before: Body, after: Body, path: str = "/v1/messages") -> Compared:
    """Compare two requests."""
    return compare(mode, exchange(before, f"/gateway/~mode={mode}/anthropic{path}"), exchange(after, path))


def test_a_pack_at_its_place_is_no_fault() -> None:
    assert compared("pack", BEFORE, with_pack(BEFORE)) == Compared([], PACK)


def test_a_pack_stands_behind_the_prompt_if_a_mark_of_the_conversation_covers_it() -> None:
    marked = {"role": "user", "content": [{"type": "text", "text": "Go on.", **MARK}]}
    body = {**BEFORE, "messages": [*BEFORE["messages"], marked]}
    assert compared("pack", body, with_pack(body, place=2)).faults == []
    assert compared("pack", body, with_pack(body)).faults == ["the pack is not where it was promised"]


@pytest.mark.parametrize("mode", ["off", "watch"])
def test_no_byte_may_differ_in_the_modes_that_change_nothing(mode: str) -> None:
    assert compared(mode, BEFORE, BEFORE).faults == []
    assert compared(mode, BEFORE, with_pack(BEFORE)).faults == ["the body was changed"]


CHANGED: list[tuple[str, Body]] = [
    ("the pack is not where it was promised", with_pack(BEFORE, place=0)),
    ("the pack is not in the body once", with_pack(with_pack(BEFORE), place=3)),
    ("more than the pack was changed", {**with_pack(BEFORE), "messages": rounds(19)}),
]


@pytest.mark.parametrize(("fault", "after"), CHANGED)
def test_a_pack_elsewhere_or_more_than_a_pack_is_a_fault(fault: str, after: Body) -> None:
    assert fault in compared("pack", BEFORE, after).faults


def test_a_document_that_was_written_anew_is_a_fault() -> None:
    before = exchange(BEFORE)
    spaced = replace(before, body=json.dumps(with_pack(BEFORE), ensure_ascii=False, indent=1).encode())
    assert compare("pack", before, spaced).faults


def test_a_fifth_breakpoint_is_a_fault() -> None:
    marked = messages([*BEFORE["system"], *({"type": "text", "text": f"{n}", **MARK} for n in range(4))], rounds(1))
    assert "5 cache breakpoints" in compared("pack", marked, with_pack(marked, place=4)).faults


def left_out(cut: Callable[[list[Any]], list[Any]]) -> list[str]:
    """Return the faults of a request whose history is cut."""
    return compared("manage", BEFORE, with_pack({**BEFORE, "messages": cut(BEFORE["messages"])})).faults


def test_a_middle_of_whole_turns_may_be_left_out() -> None:
    assert left_out(lambda all_of_it: [all_of_it[0], *all_of_it[21:]]) == []
    cut = with_pack({**BEFORE, "messages": [BEFORE["messages"][0], *BEFORE["messages"][21:]]})
    assert compared("manage", BEFORE, cut).left_out == 20


CUTS: list[tuple[str, Callable[[list[Any]], list[Any]]]] = [
    ("results without their calls: t10", lambda whole: [whole[0], *whole[22:]]),
    ("the tail has 8 items", lambda whole: [whole[0], *whole[33:]]),
    ("the turns before the first answer are missing", lambda whole: whole[21:]),
    ("the tail is not the end of the history", lambda whole: [whole[0], *whole[21:-2]]),
    ("more than one part is missing, or bytes were changed", lambda whole: [*whole[:5], *whole[7:9], *whole[11:]]),
    ("the tail is not the end of the history", lambda whole: [whole[0], unsigned(whole[21]), *whole[22:]]),
]


def unsigned(turn: Any) -> Any:
    """Return an answer whose thought has another signature."""
    thought, *others = turn["content"]
    return {**turn, "content": [{**thought, "signature": "other"}, *others]}


@pytest.mark.parametrize(("fault", "cut"), CUTS)
def test_a_history_that_a_provider_would_refuse_is_a_fault(fault: str, cut: Callable[[list[Any]], list[Any]]) -> None:
    assert fault in left_out(cut)


def test_a_header_that_is_lost_added_or_esker_s_own_is_a_fault() -> None:
    before, after = exchange(BEFORE), exchange(BEFORE)
    assert compare("watch", before, replace(after, headers=[])).faults == ["headers differ: x-api-key"]
    more = replace(after, headers=[*after.headers, ("x-esker-mode", "pack")])
    assert compare("watch", before, more).faults == []
    assert compare("watch", before, replace(after, headers=[*after.headers, ("via", "1.1 esker")])).faults == []


OTHERS: list[tuple[str, Body, Body]] = [
    (
        "/v1/responses",
        {"tools": [{}], "input": [{"role": "user", "content": "Build."}]},
        {"type": "message", "role": "developer", "content": [{"type": "input_text", "text": PACK}]},
    ),
    (
        "/v1/chat/completions",
        {
            "tools": [{}],
            "messages": [{"role": "system", "content": "You build."}, {"role": "user", "content": "Build."}],
        },
        {"role": "system", "content": PACK},
    ),
    (
        "/v1beta/models/m:streamGenerateContent",
        {"tools": [{}], "contents": [{"role": "user", "parts": []}], "systemInstruction": {"parts": [{"text": "Y"}]}},
        {"text": PACK},
    ),
]


@pytest.mark.parametrize(("path", "before", "item"), OTHERS)
def test_every_protocol_has_one_place_for_the_pack(path: str, before: Body, item: Body) -> None:
    listed = before.get("input") or before.get("messages") or before["systemInstruction"]["parts"]
    place = {"/v1/responses": 0}.get(path, 1)
    after = json.loads(json.dumps(before))
    (after.get("input") or after.get("messages") or after["systemInstruction"]["parts"]).insert(place, item)
    assert compared("pack", before, after, path) == Compared([], PACK)
    elsewhere = json.loads(json.dumps(before))
    there = elsewhere.get("input") or elsewhere.get("messages") or elsewhere["systemInstruction"]["parts"]
    there.insert(0 if place else len(listed), item)
    assert compared("pack", before, elsewhere, path).faults


def test_the_answer_comes_back_as_it_was_sent() -> None:
    before, after = exchange(BEFORE), exchange(BEFORE)
    assert compare("watch", replace(before, status=502), after).faults == ["the status 200 came back as 502"]
    assert compare("watch", replace(before, answer=b"events"), after).faults == ["the answer was changed"]
    cut = replace(after, is_whole=False)
    assert compare("watch", replace(before, answer=b"ev", is_whole=False), cut).faults == []
    assert compare("watch", before, cut).faults == ["an answer that was cut off came back as a whole one"]


def test_a_session_has_one_pack_until_its_tail_moves() -> None:
    first, moved = Compared([], "a"), Compared([], "b", 20)
    assert [*pack_faults([first, first, moved, moved])] == []
    assert [*pack_faults([first, Compared([], "b")])] == ["the pack changed within the session"]
    assert [*pack_faults([first, Compared()])] == ["1 of 2 requests have no pack"]


def said(role: str, *blocks: Body) -> Body:
    """Return a stored message."""
    return {"role": role, "content": [*blocks], "text": " ".join(block.get("text", "") for block in blocks)}


def text(words: str) -> Body:
    """Return a text block."""
    return {"type": "text", "text": words}


def test_what_is_stored_twice_or_is_nobody_s_is_found() -> None:
    prompt, call = said("user", text("Build.")), said("assistant", {"type": "tool_use", "id": "t1"})
    result = said("user", {"type": "tool_result", "tool_use_id": "t1"})
    assert [*stored_faults([prompt, call, result], ["Build."])] == []
    assert [*stored_faults([prompt, prompt], ["Build."])] == ["'Build.' is stored 2 times"]
    assert [*stored_faults([prompt, said("user", text("A title?"))], ["Build."])] == ["the user did not say 'A title?'"]
    assert [*stored_faults([call], [])] == ["call t1 is stored without its result"]
    assert [*stored_faults([call, result, result], [])] == ["the result of t1 is stored 2 times"]
