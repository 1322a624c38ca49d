"""The items of an answer: all of them, and the broken ones as text, so that they can be counted."""

import json
from time import process_time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from esker.server.core.json_input import Json, clean_json
from esker.server.providers.answers import items_of

WORDS = st.text(max_size=20)
ITEMS = st.lists(st.fixed_dictionaries({"text": WORDS, "sources": st.lists(st.integers(), max_size=3)}), max_size=5)


@given(ITEMS, st.sampled_from(['{{"facts": {}}}', "{}", 'Here:\n```json\n{{"facts" : {}, "thread_title": null}}\n```']))
def test_the_items_of_a_list_are_returned_as_they_are(items: list[Json], shape: str) -> None:
    assert items_of(shape.format(json.dumps(items)), "facts") == [clean_json(item) for item in items]


@given(ITEMS, ITEMS, ITEMS)
def test_several_lists_are_read_in_order(one: list[Json], two: list[Json], three: list[Json]) -> None:
    lists = [json.dumps({"facts": items}) for items in (one, two, three)]
    assert items_of("\n".join(lists), "facts") == [clean_json(item) for item in (*one, *two, *three)]


@pytest.mark.parametrize("broken", ['{"text": "say "hi" to"}', '{"text" 1}', "{text: 'x'}", '{"text": }'])
@given(ITEMS, ITEMS)
def test_a_broken_item_is_one_text_and_hides_no_other(broken: str, before: list[Json], behind: list[Json]) -> None:
    written = [*map(json.dumps, before), broken, *map(json.dumps, behind)]
    found = items_of(f'{{"facts": [{", ".join(written)}]}}', "facts")
    assert found[: len(before)] == [clean_json(item) for item in before]
    assert isinstance(found[len(before)], str)
    assert found[len(before) + 1 :] == [clean_json(item) for item in behind]


@given(ITEMS, st.integers(1, 40))
def test_whole_items_of_a_cut_off_list_are_returned(items: list[Json], missing: int) -> None:
    text = json.dumps({"facts": items})
    found = [item for item in items_of(text[: -min(missing, len(text) - 12)], "facts") if not isinstance(item, str)]
    assert found == [clean_json(item) for item in items[: len(found)]]
    whole = len(text) - missing
    ends = [len(json.dumps({"facts": items[: n + 1]})) - 2 for n in range(len(items))]
    assert len(found) == sum(end <= whole for end in ends)


@pytest.mark.parametrize("text", ["", "- User likes tabs [1]\n- And spaces [2, 3]", "[1, 2]", '{"facts": []}', "facts"])
def test_a_text_without_a_list_of_objects_has_no_items(text: str) -> None:
    assert items_of(text, "facts") == []


@pytest.mark.parametrize(
    "unit", ['"facts": [{', '{"a":[{},', '{"a":"},', "},{", '[{"facts":[', '{}, "facts": [{a},', "[", '"', "\\"]
)
def test_hostile_answers_take_time_in_proportion_to_their_length(unit: str) -> None:
    def seconds(length: int) -> float:
        text = '{"facts": [' + unit * (length // len(unit))
        began = process_time()
        items_of(text, "facts")
        return process_time() - began

    # Sixteen times the length would take 256 times as long if any step were quadratic. A slow run is measured again.
    bound = 60 * max(0.001, seconds(25_000))
    assert any(seconds(400_000) < bound for _ in range(3))
