"""The changes of a reflection as the page shows them: other words first, each text once."""

from hypothesis import given
from hypothesis import strategies as st

from esker.server.usecases.reflections import Changed
from esker.server.web.row_changes import shown_changes, word_changes
from tests.support.records import memory

WORDS = st.lists(st.sampled_from(["boat", "mast", "is", "blue", "red", " ", "\n"])).map(" ".join)


def test_a_reworded_row_shows_only_the_words_that_went_and_came() -> None:
    pieces = word_changes("The old boat is blue.", "The old boat is red.")
    assert [(piece.mark, piece.text) for piece in pieces or ()] == [
        ("same", "The old boat is"),
        ("del", " blue."),
        ("ins", " red."),
    ]


@given(WORDS, WORDS)
def test_both_texts_can_be_read_from_the_pieces(before: str, after: str) -> None:
    pieces = word_changes(before, after)
    if pieces is not None:
        assert "".join(piece.text for piece in pieces if piece.mark != "ins") == before
        assert "".join(piece.text for piece in pieces if piece.mark != "del") == after


def test_texts_with_nothing_in_common_or_of_great_length_are_shown_one_after_the_other() -> None:
    assert word_changes("The boat is blue.", "Deploys wait for Monday") is None
    assert word_changes("The old boat in the harbour is blue.", "The crew sails to Oslo every second week.") is None
    assert word_changes("boat " * 5_000, "boat " * 4_999) is None


def test_rows_that_kept_every_word_are_set_apart() -> None:
    old, same, other = memory("The boat is blue."), memory("The boat is blue."), memory("The boat is red.")
    moved, reworded = Changed("became", [old], same), Changed("became", [old], other)
    merged, dropped, kept = (
        Changed("became", [old, old], same),
        Changed("dropped", [old], None),
        Changed("kept", [old], None),
    )
    shown = shown_changes([moved, reworded, merged, dropped, kept])
    assert (shown.changed, shown.unchanged) == ([reworded, merged, dropped], [moved, kept])
