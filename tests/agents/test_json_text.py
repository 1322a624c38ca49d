"""JSON edited as text: only the requested part changes."""

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from esker.server.agents.json_text import (
    NotJson,
    WrongShape,
    append,
    find,
    parse,
    put,
    remove,
    replace,
    spread,
    value_of,
)

KEYS = st.sampled_from(["a", "b", "hooks", "esker", 'q"uote', "ü", "// no comment", "/* nor this */"])
SCALARS = (
    st.none() | st.booleans() | st.integers(-99, 99) | st.sampled_from(["", "x, y", "}", "//", "ü\u2028", 'a"b\\'])
)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3), max_leaves=8
)
OBJECTS = st.dictionaries(KEYS, VALUES, max_size=4)
# Match strings first, so that a string is not mistaken for a comment.
TOKENS = re.compile(r'"(?:[^"\\]|\\.)*"|(//[^\r\n]*|/\*.*?\*/)', re.DOTALL)


@st.composite
def documents(draw: st.DrawFn, values: st.SearchStrategy[Any] = OBJECTS) -> tuple[str, Any]:
    """Return a hand-written document, with comments and trailing commas, and its value."""
    line = draw(st.sampled_from(["\n", "\r\n"]))
    blanks = st.sampled_from(["", "", "", " ", "\t", line, line + "  ", f" // c{line}", f"{line}  // c, ]}}{line}"])
    blanks |= st.just("/* d, ] */")
    value = draw(values)

    def written(value: Any) -> str:
        if isinstance(value, dict):
            return listed("{", [f"{json.dumps(key)}{gap()}:{gap()}{written(item)}" for key, item in value.items()], "}")
        return listed("[", [written(item) for item in value], "]") if isinstance(value, list) else json.dumps(value)

    def listed(opening: str, items: list[str], closing: str) -> str:
        inner = ",".join(f"{gap()}{item}{gap()}" for item in items)
        return f"{opening}{inner}{',' if items and draw(st.booleans()) else ''}{gap()}{closing}"

    def gap() -> str:
        return draw(blanks)

    return gap() + written(value) + gap(), value


def comments(text: str) -> list[str]:
    """Return the comments of a document, in order."""
    return [found[1] for found in TOKENS.finditer(text) if found[1]]


def places(value: Any, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    """Return every path in a value except that of the root."""
    items: list[tuple[str | int, Any]] = []
    if isinstance(value, dict):
        items = list(value.items())
    elif isinstance(value, list):
        items = list(enumerate(value))
    return [each for key, item in items for each in [(*path, key), *places(item, (*path, key))]]


def at(value: Any, path: tuple[str | int, ...]) -> Any:
    """Return the value at a path."""
    for step in path:
        value = value[step]
    return value


@given(documents(VALUES))
def test_parsing_returns_the_documents_value(document: tuple[str, Any]) -> None:
    text, value = document
    assert value_of(parse(text)) == value


@given(documents(VALUES))
def test_a_spread_document_has_the_same_value_and_one_scalar_a_line(document: tuple[str, Any]) -> None:
    text, value = document
    lines = spread(text)
    assert json.loads(lines) == value
    assert lines == json.dumps(value, indent=2) + "\n"


def test_a_spread_document_keeps_literals_and_duplicate_keys() -> None:
    assert (
        spread('{"\\u0061":1.50,"a":"\\u00fc","b":{/* c */}}')
        == '{\n  "\\u0061": 1.50,\n  "a": "\\u00fc",\n  "b": {}\n}\n'
    )


@given(documents(), VALUES)
def test_adding_and_removing_a_member_gives_the_same_text(document: tuple[str, dict[str, Any]], value: Any) -> None:
    text, was = document
    edited = put(text, ("new", "inner"), value)
    assert value_of(parse(edited)) == {**was, "new": {"inner": value}}
    assert comments(edited) == comments(text)
    back = remove(edited, ("new",))
    assert value_of(parse(back)) == was
    assert comments(back) == comments(text)
    if was:
        assert back == text


@given(documents(), st.data())
def test_removing_deletes_one_value_and_the_comments_in_it(document: tuple[str, Any], data: st.DataObject) -> None:
    text, value = document
    if not (every := places(value)):
        return
    path = data.draw(st.sampled_from(every))
    node = find(parse(text), path)
    assert node is not None
    left = json.loads(json.dumps(value))
    del at(left, path[:-1])[path[-1]]
    removed = remove(text, path)
    assert value_of(parse(removed)) == left
    kept = comments(removed)
    gone = len(comments(text)) - len(kept)
    # Comments between the key and its value may be removed with them.
    assert gone >= len(comments(text[node.start : node.end]))
    start = text.rfind(json.dumps(path[-1]), 0, node.start) if isinstance(path[-1], str) else node.start
    assert gone <= len(comments(text[start : node.end]))


@given(documents(), VALUES, st.data())
def test_replacing_changes_one_span(document: tuple[str, Any], new: Any, data: st.DataObject) -> None:
    text, value = document
    if not (every := places(value)):
        return
    path = data.draw(st.sampled_from(every))
    node = find(parse(text), path)
    assert node is not None
    replaced = replace(text, path, new)
    assert replaced.startswith(text[: node.start])
    assert replaced.endswith(text[node.end :])
    expected = json.loads(json.dumps(value))
    at(expected, path[:-1])[path[-1]] = new
    assert value_of(parse(replaced)) == expected


@given(documents(st.dictionaries(KEYS, st.lists(VALUES, max_size=3), max_size=3)), KEYS, VALUES)
def test_appending_adds_the_last_element(document: tuple[str, dict[str, Any]], key: str, new: Any) -> None:
    text, value = document
    appended = append(text, (key,), new)
    assert value_of(parse(appended)) == {**value, key: [*value.get(key, []), new]}
    assert comments(appended) == comments(text)
    if value.get(key):
        assert remove(appended, (key, len(value[key]))) == text


@given(documents(), VALUES)
def test_an_edit_keeps_the_line_ends(document: tuple[str, Any], value: Any) -> None:
    text, _ = document
    edited = put(text, ("new",), value)
    if "\n" in text:
        assert ("\r\n" in edited) == ("\r\n" in text)
        assert edited.count("\n") == edited.count("\r\n") or "\r" not in edited


@given(st.text(alphabet='{}[],:"/*\\\n\r\t 01ae-.+tfn', max_size=30))
def test_invalid_text_only_raises_not_json(text: str) -> None:
    try:
        value = value_of(parse(text))
    except NotJson:
        with pytest.raises(json.JSONDecodeError):
            json.loads(text)
        return
    if not comments(text) and not re.search(r",\s*[}\]]", text):
        assert json.loads(text) == value


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("{", "line 1, column 2: expected a key in"),
        ('{"a": 1\n "b": 2}', "line 2, column 2: expected a comma or }"),
        ('{"a": 1,\n "b" 2}', "line 2, column 6: expected a colon"),
        ('{"a": nope}', "line 1, column 7: expected a value"),
        ('{"a": 01}', "line 1, column 7: expected a value"),
        ("{,}", "line 1, column 2: expected a key in"),
        ('{"a": 1} x', "line 1, column 10: text follows the end of the document"),
        ('{"a": 1 /* oops }', "line 1, column 9: a comment is not closed"),
        ('{"a": "x\n"}', "line 1, column 7: expected a value"),
        ("[" * 1000, "nested more than 200 levels deep"),
        ("<<<<<<< HEAD\n{}", "line 1, column 1: expected a value"),
    ],
)
def test_invalid_json_is_refused_with_its_position(text: str, place: str) -> None:
    with pytest.raises(NotJson, match=re.escape(place)):
        parse(text)


def test_a_value_of_another_type_on_the_path_is_named() -> None:
    with pytest.raises(WrongShape, match=r"a\.b is not an object"):
        put('{"a": {"b": 5}}', ("a", "b", "c"), 1)
    with pytest.raises(WrongShape, match=r"a is not a list"):
        append('{"a": {}}', ("a",), 1)
    with pytest.raises(WrongShape, match=r"the document is not an object"):
        put("[]", ("a",), 1)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", '{\n  "m": {\n    "x": 1\n  }\n}\n'),
        ("{}", '{\n  "m": {\n    "x": 1\n  }\n}'),
        ('{"a": 1}', '{"a": 1, "m": {"x": 1}}'),
        ('{"a":1}', '{"a":1,"m":{"x":1}}'),
        ('{\n\t"a": 1\n}\n', '{\n\t"a": 1,\n\t"m": {\n\t\t"x": 1\n\t}\n}\n'),
        ('{\n    "a": 1, // why\n}', '{\n    "a": 1, // why\n    "m": {\n        "x": 1\n    },\n}'),
        ('{\n  "a": 1 // why\n}', '{\n  "a": 1, // why\n  "m": {\n    "x": 1\n  }\n}'),
        ('{\r\n  "m": {}\r\n}\r\n', '{\r\n  "m": {\r\n    "x": 1\r\n  }\r\n}\r\n'),
        ('{\n  "m": {"w": 0}\n}\n', '{\n  "m": {"w": 0, "x": 1}\n}\n'),
        ('{\n  "m": null\n}\n', '{\n  "m": {\n    "x": 1\n  }\n}\n'),
        ('{\n  "m": 1,\n  "m": {"w": 0}\n}\n', '{\n  "m": 1,\n  "m": {"w": 0, "x": 1}\n}\n'),
    ],
)
def test_a_member_is_written_in_the_style_of_its_neighbours(text: str, expected: str) -> None:
    assert put(text, ("m", "x"), 1) == expected
    assert put(expected, ("m", "x"), 1) == expected
