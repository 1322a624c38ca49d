"""Choosing and rendering a pack: whole rows, by rank, within budgets, as data."""

from datetime import timedelta
from urllib.parse import unquote_to_bytes

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from server.core.budgets import budgets
from server.core.packing import choose, ranked
from server.core.records import Memory
from server.core.rendering import PackRows, fenced, open_group, render_pack
from server.core.tokens import estimate_tokens
from tests.support.records import NOON, group, memory, observation, session

texts = st.text(min_size=1, max_size=200)
rows = st.builds(
    lambda text, kind, priority, hours, project: memory(
        text or "x",
        kind=kind,
        priority=priority,
        project=project,
        last_used_at=NOON - timedelta(hours=hours),
        reflection_id="ref_1" if kind == "reflection" else None,
    ),
    texts,
    st.sampled_from(["note", "reflection"]),
    st.sampled_from(["high", "medium", "low"]),
    st.integers(min_value=0, max_value=2_000),
    st.sampled_from([None, "p", "q"]),
)
own_rows = st.builds(
    lambda text, minute, number: observation(text or "x", minute, group_id=f"grp_{number}"),
    texts,
    st.integers(min_value=1, max_value=3_000),
    st.integers(min_value=1, max_value=4),
)
GROUPS = {f"grp_{n}": group(f"grp_{n}", cwd="/home/me", first_external_id="a:b") for n in range(1, 5)}


@settings(max_examples=60)
@given(st.lists(rows, max_size=60), st.lists(own_rows, max_size=60), st.integers(min_value=1_000, max_value=4_000))
def test_budgets_are_kept_by_the_text_itself(pool: list[Memory], own: list[Memory], context: int) -> None:
    where = session(effective_context=context)
    own = sorted(own, key=lambda m: (m.said_at, m.id))
    chosen = choose([], pool, own, GROUPS, where)
    text = render_pack(chosen, where)
    before, _, after = text.partition("<local_observations>")
    share = budgets(context)
    assert estimate_tokens(before) <= share.global_pack_tokens
    assert estimate_tokens("<local_observations>" + after) <= share.observation_tokens


@given(st.lists(rows, max_size=40))
def test_the_pool_is_shown_in_the_order_of_its_scores(pool: list[Memory]) -> None:
    chosen = choose([], pool, [], {}, session())
    best = {" ".join(row.content.casefold().split()): row for row in reversed(ranked(pool))}
    assert list(chosen.pool) == [row for row in ranked(pool) if row in best.values()]


def test_what_is_pinned_comes_first_whatever_its_rank() -> None:
    pinned = memory("Pinned.", kind="manual", priority="low", last_used_at=NOON - timedelta(days=900))
    fresh = memory("Fresh.", priority="high")
    assert [row.content for row in choose([pinned], [fresh], [], {}, session()).pool] == ["Pinned.", "Fresh."]


def test_a_row_that_does_not_fit_makes_room_for_the_next() -> None:
    huge = memory("word " * 4_000, priority="high")
    small = memory("Small.", priority="low")
    assert [row.content for row in choose([], [huge, small], [], {}, session(effective_context=1_000)).pool] == [
        "Small."
    ]


def test_the_text_says_what_where_and_when() -> None:
    shown = PackRows(
        pool=[
            memory("Deploys are frozen.", priority="high", project="other"),
            memory("Port is 8377.", priority="low", project="p"),
        ],
        own=[observation("Tests pass.", 5, category="outcome"), observation("Port moved.", 2_000)],
        groups={"grp_1": group(cwd="/src")},
    )
    assert render_pack(shown, session(project="p", timezone="Asia/Tokyo")) == (
        "<global_observations>\n"
        "* 🔴 2026-03-02 Deploys are frozen. (project other)\n"
        "* 🟢 2026-03-02 Port is 8377.\n"
        "</global_observations>\n"
        "<local_observations>\n"
        '<observation-group id="grp_1" range="m1:m9" kind="observations" cwd="/src">\n'
        "Date: 2026-03-02\n"
        "* 🟡 ✅ (21:05) Tests pass.\n"
        "Date: 2026-03-04\n"
        "* 🟡 (06:20) Port moved.\n"
        "</observation-group>\n"
        "</local_observations>"
    )


@given(
    st.text(),
    st.sampled_from(
        ["</global_observations>", "<observation-group id=x>", "</recalled_memories>", "</expanded_memory>"]
    ),
)
def test_a_row_cannot_leave_its_line_or_its_element(text: str, tag: str) -> None:
    line = fenced(f"{text}\n{tag}{text}")
    assert "\n" not in line
    assert tag not in line
    assert "<local_observations" not in line


@given(st.text(min_size=1), st.text(min_size=1))
def test_the_ids_of_a_range_can_be_told_apart_whatever_they_hold(first: str, last: str) -> None:
    opened = open_group(group(first_external_id=first, last_external_id=last))
    [between] = [part for part in opened.split(" ") if part.startswith("range=")]
    one, other = between.removeprefix("range=").strip('"').split(":")
    assert (unquote_to_bytes(one), unquote_to_bytes(other)) == (first.encode(), last.encode())


def test_pins_take_at_most_half_and_the_rest_is_counted() -> None:
    where = session(effective_context=20_000)
    pinned = [memory(f"Pin {n}: " + "word " * 40, kind="manual") for n in range(40)]
    pool = [memory(f"Note {n}: " + "word " * 40) for n in range(40)]
    chosen = choose(pinned, pool, [], GROUPS, where)
    kinds = [row.kind for row in chosen.pool]
    assert kinds.count("manual") + chosen.pins_left == 40
    assert chosen.pins_left > 0
    assert kinds.count("note") > 5


def test_each_wording_is_shown_once() -> None:
    own = [observation("The port is 8377.", n) for n in (1, 2)]
    chosen = choose(
        [memory("Same words.", kind="manual")], [memory("same  words."), memory("Other.")], own, GROUPS, session()
    )
    assert [row.content for row in chosen.pool] == ["Same words.", "Other."]
    assert len(chosen.own) == 1


@pytest.mark.parametrize(
    "tag", ["</Global-Observations>", "</GLOBAL_OBSERVATIONS>", "< /global_observations>", "<Observation_Group id='x'>"]
)
def test_a_row_cannot_close_one_of_our_elements_however_it_is_written(tag: str) -> None:
    assert fenced(f"x {tag} y").startswith("x &lt;")


def test_a_row_gives_no_orders_to_a_terminal() -> None:
    assert fenced("a\x1b[31mred\x07 \u202eback\x9b") == "a [31mred back"
