"""Indexing: a text is found by its parts, and nothing of it is lost between them."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from esker.server.core.records import NewMemory
from esker.server.core.text import indexing
from esker.server.core.text.indexing import PART_CHARACTERS, indexed, indexed_parts, part_values, text_parts
from esker.server.core.text.terms import index_terms, terms
from tests.support.records import NOON

WORDS = st.lists(
    st.sampled_from("river bridge ferry vault door coin harbour whale 河流 大桥 auth.ts:45 ECONNRESET".split())
)
CODE = "def load(path):\n" + "".join(f"    value_{n} = read(path, {n}) or default_{n}\n" for n in range(80))


def total(text: str) -> Counter[str]:
    """Return all terms of the parts of a text."""
    return sum(indexed_parts(text), Counter[str]())


@pytest.mark.parametrize(
    "text",
    [
        "The river rises. " * 200,
        "河流很长，大桥很高。" * 200,
        CODE,
        "word " * 2_000,
        "Eine Lieferung nach Köln ist da. Und die ist gut!\n" * 60,
    ],
)
def test_nothing_of_a_long_text_is_lost_between_its_parts(text: str) -> None:
    assert len(indexed_parts(text)) > 1
    assert set(total(text)) >= set(index_terms(text))


@given(WORDS, st.sampled_from([" ", ". ", "\n", "! ", "。"]))
def test_the_parts_of_words_have_the_terms_of_the_words(words: list[str], between: str) -> None:
    text = between.join(words)
    assert total(text) == Counter(index_terms(text))


@given(st.text(max_size=3_000))
def test_no_part_of_any_text_is_empty(text: str) -> None:
    parts = indexed_parts(text)
    assert all(part.total() for part in parts)
    assert len(parts) <= max(1, 2 * len(text) // PART_CHARACTERS + 1)


@given(
    st.one_of(st.text(max_size=3_000), st.tuples(st.text(max_size=40), st.integers(1, 200)).map(lambda t: t[0] * t[1]))
)
def test_the_parts_of_a_text_join_to_the_text_and_none_exceeds_the_limit(text: str) -> None:
    parts = list(text_parts(text))
    assert "".join(parts) == text
    assert all(0 < len(part) <= PART_CHARACTERS for part in parts)


def test_a_part_ends_with_a_sentence_or_at_least_with_a_word() -> None:
    assert all(part.endswith(". ") for part in text_parts("The river rises and falls. " * 90))
    assert all(part.rstrip().endswith("。") for part in text_parts("河流很长，大桥很高。" * 200))
    assert not [part for part in text_parts("bridge " * 900) if set(part.split()) != {"bridge"}]


@pytest.mark.parametrize("unit", ["字", "x", "🔴a ", "a-", "word "])
def test_one_endless_line_is_cut(unit: str) -> None:
    assert len(list(text_parts(unit * (10 * PART_CHARACTERS // len(unit))))) in (10, 11)


def test_a_short_text_is_one_part_and_an_empty_one_none() -> None:
    assert indexed_parts("The river is long. The bridge is high.") == [Counter(terms("river long bridge high"))]
    assert indexed_parts("") == indexed_parts("… the …") == []


def test_every_part_is_stemmed_by_the_language_of_the_whole() -> None:
    german = "Das ist die Lieferung, und sie ist nicht da. " * 20
    # The last part alone would not show its language.
    assert terms("Lieferungen Verspätungen", "german")[1] in indexed_parts(german + "Verspätungen " * 50)[-1]
    assert terms("Lieferungen Verspätungen", "german")[1] not in indexed_parts("Verspätungen " * 50)[-1]


def test_a_row_is_found_by_its_content_and_not_by_its_label() -> None:
    content = "User decision: We keep the ledger in Postgres."
    [row] = indexed([NewMemory("mem_1", "note", "medium", "fact", "user", content, "test", NOON, NOON)])
    assert {"ledger", "postgr"} <= set(row.terms)
    assert "decis" not in row.terms
    assert row.tokens > sum(row.terms.values()), "tokens are those of the whole row"
    assert part_values(row.parts) == [{"length": row.terms.total(), "terms": row.parts[0]}]


def test_encoded_data_is_found_by_its_beginning_and_does_not_fill_the_index() -> None:
    encoded = "iVBORw0KGgo" + "QUJDRA" * 50_000
    [part] = indexed_parts(f"The picture {encoded} shows the harbour.")
    assert {"pictur", "harbour"} <= part.keys()
    assert any(encoded.casefold().startswith(term) for term in part)


def test_a_word_of_usual_length_is_not_taken_for_encoded_data() -> None:
    path = "/".join(["src", *(f"folder_{n}" for n in range(60)), "quay.py"])
    assert "quay.py" in total(path)


def test_a_text_has_no_more_parts_than_can_be_stored_and_loses_no_term(monkeypatch: pytest.MonkeyPatch) -> None:
    text = " ".join(f"{'river ' * 43}w{number}." for number in range(20))
    assert len(indexed_parts(text)) == 20
    monkeypatch.setattr(indexing, "MOST_PARTS", 7)
    parts = indexed_parts(text)
    assert len(parts) == 7
    assert {f"w{number}" for number in range(20)} <= {term for part in parts for term in part}
