"""A case of any suite in words: its input, and the expected result."""

import json
from collections.abc import Iterator, Sequence

from esker.server.core.json_input import JsonObject

_MOST = 600
"""Characters shown of a message; the output of a tool can be as long as a book."""
_MANY = 200
"""Messages shown of a case."""

_LISTS = {
    "keep": "must survive",
    "open": "is postponed, planned or limited, and must not read as done",
    "unsettled": "was asked, offered, claimed or rejected, and must not read as a fact",
    "asserted": "is a ruling that no later doubt undoes",
    "noise": "must be dropped",
    "signals": "is important",
    "sets": "is a rule set here",
    "needs": "is a rule needed here and not stated",
    "asked": "is an answer",
    "facts": "is worth a row",
    "topics": "may be a row",
}
"""The meaning of each list of atoms in a case or its gold."""
_WORDS = {
    "never": "must not be said",
    "planted": "was planted",
    "decoded": "is the decoded instruction",
    "must": "must be shown",
    "must_not": "must not be shown",
}
"""The same for lists of words."""


def case_lines(case: JsonObject) -> Iterator[str]:
    """Yield the lines for a case in a run's document."""
    yield "Input:"
    lines = [*_input(case)]
    yield from (f"  {line}" for line in lines[:_MANY])
    if len(lines) > _MANY:
        yield f"  … and {len(lines) - _MANY} more"
    yield from ("", "Expected:")
    yield from (f"  {line}" for line in _expected(case | case.get("gold", {})))
    yield from (f"  wrong: {each['why']}" for each in case.get("wrong", ()))
    yield from (f"  junk: {_named(messages)}: {kind}" for kind, messages in case.get("junk", {}).items())


def _input(case: JsonObject) -> Iterator[str]:
    for row in case.get("rows", ()):
        when = row.get("at") or f"{row.get('days_ago', 1):g} days ago"
        apart = ("id", "at", "text", "days_ago")
        about = ", ".join(f"{name} {of}" for name, of in row.items() if name not in apart)
        yield f"{row['id']} {when} {f'({about}) ' if about else ''}{_line(row['text'])}"
    sittings = [*case.get("sittings", ()), *([case["sitting"]] if case.get("sitting") else ())]
    if "transcript" in case:
        yield f"the transcript {case['transcript']}"
    for message in (*case.get("messages", ()), *(each for sitting in sittings for each in sitting["messages"])):
        yield f"{message['id']} {message['at']} {message['role']}: {_line(_content(message['content']))}"
    if case.get("prompt"):
        yield f"a new session begins with: {_line(case['prompt'])}"
    if isinstance(case.get("ask"), str):
        yield f"a later session asks: {case['ask']}"
    if "budget" in case:
        yield f"a session begins in {case.get('project') or 'no project'}, with {case['budget']} tokens for its pack"


def _content(content: str | Sequence[JsonObject]) -> str:
    if isinstance(content, str):
        return content
    return " ".join(map(_block, content))


def _block(block: JsonObject) -> str:
    match block:
        case {"type": "text", "text": str(text)}:
            return text
        case {"type": "tool_use", "name": name, "input": given}:
            return f"[{name} {json.dumps(given, ensure_ascii=False)}]"
        case {"type": "tool_result"}:
            return f"[result] {_content(block.get('content') or '')}"
        case _:
            return json.dumps(block, ensure_ascii=False)


def _line(text: str) -> str:
    whole = " ".join(text.split())
    return whole if len(whole) <= _MOST else f"{whole[:_MOST]}… ({len(whole) - _MOST} characters more)"


def _expected(case: JsonObject) -> Iterator[str]:
    for change in case.get("replaced", ()):
        for old in change["old"]:
            yield f"replaced: {_atom(old)}"
        yield f"  now: {_atom(change['new'])}"
    for name, meaning in _LISTS.items():
        yield from (f"{name} ({meaning}): {_atom(atom)}" for atom in case.get(name, ()))
    for name, meaning in _WORDS.items():
        yield from (f"{name} ({meaning}): {words}" for words in case.get(name, ()))


def _atom(atom: JsonObject) -> str:
    notes = [f"verbatim {', '.join(map(repr, atom['exact']))}"] if atom.get("exact") else []
    notes += [f"said by {atom['by']}"] if atom.get("by") else []
    notes += [f"on {atom['dated']}"] if atom.get("dated") else []
    notes += [f"question {atom['ask']!r}"] if atom.get("ask") else []
    notes += [f"keys {', '.join(atom['keys'])}"] if atom.get("keys") else []
    sources = ", ".join(atom["rows"]) if "rows" in atom else _named(atom["messages"])
    return "; ".join([f"{_line(atom['fact'])} [{sources}]", *notes])


def _named(messages: Sequence[int]) -> str:
    return f"messages {', '.join(map(str, messages))}"
