"""JSON from outside: hostile text is cleaned, hostile structure is refused."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from esker.server.core.errors import InvalidInput
from esker.server.core.json_input import MAX_DEPTH, clean_document, clean_text, parse_json

# Every JSON value, including lone surrogates and NUL.
any_text = st.text(alphabet=st.characters(exclude_categories=()))
any_json: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | any_text,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(any_text, inner, max_size=4),
)


@given(any_text)
def test_cleaned_text_can_be_stored(text: str) -> None:
    cleaned = clean_text(text)
    assert "\0" not in cleaned
    cleaned.encode("utf-8")


@given(st.text(alphabet=st.characters(exclude_categories=("Cs",), exclude_characters="\0")))
def test_text_that_can_be_stored_is_unchanged(text: str) -> None:
    assert clean_text(text) == text


@given(any_json)
def test_all_valid_json_is_read(value: Any) -> None:
    read = parse_json(json.dumps(value).encode())
    json.dumps(read, ensure_ascii=False, allow_nan=False).encode("utf-8")


def test_a_pair_of_escaped_surrogates_is_one_character() -> None:
    assert parse_json(b'"\\ud83d\\ude00"') == "😀"
    assert parse_json(b'"\\ud83d x \\u0000"') == "\ufffd x \ufffd"


@pytest.mark.parametrize("depth", [MAX_DEPTH + 2, 5_000, 200_000])
@pytest.mark.parametrize("brackets", ["[]", '{"a":}'])
def test_extreme_depth_is_refused(depth: int, brackets: str) -> None:
    opening, closing = brackets[:-1], brackets[-1]
    body = opening * depth + ("1" if brackets != "[]" else "") + closing * depth
    with pytest.raises(InvalidInput, match="levels deep"):
        parse_json(body.encode())


@pytest.mark.parametrize("body", [b"", b"{", b"[1,]", b"NaN", b"-Infinity", b'{"a": 1} x', b"'a'", b"1" * 5_000])
def test_broken_syntax_is_refused(body: bytes) -> None:
    with pytest.raises(InvalidInput, match="not valid JSON"):
        parse_json(body)


def test_numbers_that_a_database_cannot_store_become_text() -> None:
    assert parse_json(b"[1e999, -1e999]") == ["inf", "-inf"]
    assert parse_json(b"9" * 400) == "9" * 400


def test_bytes_that_are_not_utf8_are_replaced() -> None:
    assert parse_json(b'"caf\xe9"') == "caf\ufffd"


@given(any_json)
def test_cleaning_a_document_keeps_its_value(value: Any) -> None:
    document = json.dumps(value).encode()
    assert parse_json(clean_document(document)) == parse_json(document)


@pytest.mark.parametrize("document", [b'{"a": "cut \\ud83d"}', b'{"a": "\\u0000"}', b'{"a": "\\uDFFF\\ud83d\\ude42"}'])
def test_any_parser_reads_a_cleaned_document(document: bytes) -> None:
    cleaned = clean_document(document).decode()
    assert "\\u0000" not in cleaned
    json.loads(cleaned)["a"].encode()


@pytest.mark.parametrize("document", [b"", b"no json \\ud83d", b'["\\ud83d"' + b"[" * 100, b'{"a": 1}'])
def test_a_document_that_cannot_be_cleaned_is_unchanged(document: bytes) -> None:
    assert clean_document(document) == document
