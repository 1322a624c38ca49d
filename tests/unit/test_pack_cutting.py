"""A pack cut to fewer characters: whole rows, the best and the latest, each under its tags and date."""

import re

from hypothesis import given
from hypothesis import strategies as st

from esker.server.core.pack.cutting import Measure, cut_pack, has_rows, shown_ids

EMPTY = "<global_observations>\n</global_observations>\n<local_observations>\n</local_observations>"
TEXTS = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Zl", "Zp"]), min_size=1, max_size=60)


@st.composite
def packs(draw: st.DrawFn) -> str:
    """A pack as it is rendered: rows of the pool, then groups of own rows by day."""
    lines = ["<global_observations>"]
    lines += [f"* 🔴 2026-01-01 {n} {text}" for n, text in enumerate(draw(st.lists(TEXTS, max_size=12)))]
    lines += ["</global_observations>", "<local_observations>"]
    for group in range(draw(st.integers(0, 4))):
        grouped = draw(st.booleans())
        lines += [f'<observation-group id="g{group}" kind="observe">'] if grouped else []
        for day in range(draw(st.integers(1, 2))):
            lines.append(f"Date: 2026-02-{group * 2 + day + 1:02d}")
            lines += [f"* 🟡 (10:0{n}) {text}" for n, text in enumerate(draw(st.lists(TEXTS, min_size=1, max_size=4)))]
        lines += ["</observation-group>"] if grouped else []
    return "\n".join([*lines, "</local_observations>"])


def rows(pack: str) -> tuple[list[str], list[str]]:
    """The rows of both parts."""
    pool, _, own = pack.partition("<local_observations>")
    return [row for row in pool.splitlines() if row[:2] == "* "], [row for row in own.splitlines() if row[:2] == "* "]


@given(packs(), st.integers(0, 3_000), st.sampled_from([len, lambda text: len(text.encode())]))
def test_a_cut_pack_keeps_its_limit_and_shows_whole_rows_the_best_and_the_latest(
    pack: str, limit: int, measure: Measure
) -> None:
    cut = cut_pack(pack, limit, measure, "An intro.")
    pool, own = rows(pack)
    shown_pool, shown_own = rows(cut)
    assert shown_pool == pool[: len(shown_pool)]
    assert shown_own == own[len(own) - len(shown_own) :]
    missing = len(pool) + len(own) - len(shown_pool) - len(shown_own)
    assert (f"({missing} more rows are not shown; recall_memory finds them.)" in cut) == (missing > 0)
    if shown_pool or shown_own:
        assert measure(cut) <= limit
    if missing:
        assert measure(pack) + len("An intro.\n") > limit


@given(packs(), st.integers(0, 3_000))
def test_the_ids_of_the_rows_in_a_cut_pack_are_returned(pack: str, limit: int) -> None:
    pool, own = rows(pack)
    # Here each row is its own id.
    cut = cut_pack(pack, limit, intro="An intro.")
    shown_pool, shown_own = rows(cut)
    assert shown_ids(cut, [*pool, *own]) == [*shown_pool, *shown_own]


@given(packs(), st.integers(300, 3_000))
def test_every_own_row_stays_under_its_group_and_date(pack: str, limit: int) -> None:
    assert places(cut_pack(pack, limit)).items() <= places(pack).items()


def places(pack: str) -> dict[str, tuple[str, str]]:
    """The group and the date of each row of the session; no two rows of these packs have the same."""
    found: dict[str, tuple[str, str]] = {}
    group = date = ""
    for line in pack.partition("<local_observations>")[2].splitlines():
        if line.startswith("<"):
            opened = re.match(r'<observation-group id="(\w+)"', line)
            group, date = (opened[1] if opened else ""), ""
        elif line.startswith("Date: "):
            date = line
        elif line.startswith("* "):
            found[f"{group} {date} {line}"] = (group, date)
    return found


@given(packs())
def test_a_pack_that_fits_is_unchanged(pack: str) -> None:
    assert cut_pack(pack, 100_000) == pack


def test_a_row_that_fits_exactly_is_shown() -> None:
    pack = EMPTY.replace("s>\n</global", f"s>\n* 🔴 The first.\n* 🔴 {'A second. ' * 20}\n</global")
    rest = "(1 more rows are not shown; recall_memory finds them.)\n"
    with_one = len(EMPTY) + len("* 🔴 The first.\n") + len(rest)
    assert [len(rows(cut_pack(pack, limit))[0]) for limit in (with_one - 1, with_one)] == [0, 1]


def test_two_long_parts_get_half_each_and_a_short_one_leaves_its_rest_to_the_other() -> None:
    def pack(pool: int, own: int) -> str:
        best = "".join(f"* 🔴 {n:04d} {'x' * 90}\n" for n in range(pool))
        latest = "".join(f"* 🔴 {n:04d} {'y' * 90}\n" for n in range(own))
        return EMPTY.replace("s>\n</global", f"s>\n{best}</global").replace("s>\n</local", f"s>\n{latest}</local")

    both, few_own, few_pool = (rows(cut_pack(pack(*counts), 9_000)) for counts in ((500, 500), (500, 3), (3, 500)))
    assert abs(len(both[0]) - len(both[1])) <= 1
    assert sum(map(len, both)) >= 85
    assert (len(few_own[1]), len(few_pool[0])) == (3, 3)
    assert len(few_own[0]) >= 82
    assert len(few_pool[1]) >= 82


def test_a_pack_without_rows_says_so() -> None:
    assert not has_rows(EMPTY)
    assert has_rows(EMPTY.replace("s>\n</global", "s>\n* 🔴 2026-01-01 A rule.\n</global"))
