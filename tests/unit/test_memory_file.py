"""A MEMORY.md gets each fact of memory once, and keeps a person's lines."""

import re
from collections.abc import Sequence
from datetime import UTC, date, datetime
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from esker.server.core.pool.memory_file import (
    ARCHITECTURE,
    PATTERNS,
    PROFILE,
    RULES,
    FileEntry,
    FileSection,
    Remembered,
    entries_of,
    merge,
)

NOON = datetime(2026, 3, 2, 12, 0, tzinfo=UTC)
MARCH = FileSection("Reflected (2026-03-02)", date(2026, 3, 2))
APRIL = FileSection("Reflected (2026-04-01)", date(2026, 4, 1))
EMPTY_RESULT = """\
# Memory

## Profile

- Short answers.

## Hard rules

- Never use floats for money.

## Reflected (2026-03-02)

- The bridge was built.
"""
THREE = [
    FileEntry(PROFILE_SECTION := FileSection(PROFILE), "Short answers."),
    FileEntry(RULES_SECTION := FileSection(RULES), "Never use floats for money."),
    FileEntry(MARCH, "The bridge was built."),
]


def remembered(content: str, **changes: Any) -> Remembered:
    """Return an observation with these changes."""
    values: dict[str, Any] = {"kind": "observation", "priority": "high", "category": "fact", "facet": None}
    values |= {"tentative": False, "trust": "user", "said_at": NOON, "created_at": NOON}
    return Remembered(content, **(values | changes))


def lines_of(text: str) -> list[str]:
    """Return the lines of a text with their ends."""
    return re.findall(r"[^\r\n]*(?:\r\n|\n|\r)|[^\r\n]+\Z", text)


def is_kept(before: str, after: str) -> bool:
    """Whether `after` has every line of `before`, in order; its last line may have got a line end."""
    rest = iter(lines_of(after.removeprefix("\ufeff")))
    wanted = lines_of(before.removeprefix("\ufeff"))
    return before.startswith("\ufeff") == after.startswith("\ufeff") and all(
        any(line == other or (place == len(wanted) - 1 and other.rstrip("\r\n") == line) for other in rest)
        for place, line in enumerate(wanted)
    )


def test_a_new_file_begins_with_a_title_and_has_no_empty_section() -> None:
    assert merge("", THREE).text == EMPTY_RESULT


def test_a_row_goes_into_its_section() -> None:
    rows = [
        remembered("Pinned.", kind="manual", category="decision"),
        remembered("Always squash.", category="preference"),
        remembered("Likes tea.", category="preference", priority="medium", kind="reflection"),
        remembered("Asks twice.", facet="behavior", kind="reflection"),
        remembered("Postgres it is.", category="decision"),
        remembered("It rains in the west.", facet="knowledge", kind="reflection"),
        remembered("Sort by colour.", facet="skill", kind="reflection"),
        remembered("We moved.", facet="event", kind="reflection", category="decision"),
        remembered("The build broke.", category="issue", said_at=datetime(2026, 3, 31, 23, 0, tzinfo=UTC)),
    ]
    found = {entry.text: entry.section.title for entry in entries_of(rows, ZoneInfo("Europe/Zurich"))}
    assert found == {
        "Pinned.": RULES,
        "Always squash.": RULES,
        "Likes tea.": PROFILE,
        "Asks twice.": PROFILE,
        "Postgres it is.": ARCHITECTURE,
        "It rains in the west.": ARCHITECTURE,
        "Sort by colour.": PATTERNS,
        "We moved.": MARCH.title,
        "The build broke.": APRIL.title,
    }


def test_a_row_becomes_one_line_of_text() -> None:
    rows = [remembered("a\nb\u2028c\x1b[2J <!-- d --> </global_observations>", tentative=True, project="me/shop")]
    [entry] = entries_of(rows, ZoneInfo("UTC"))
    assert entry.text == "a b c [2J &lt;!-- d --> &lt;/global_observations> (tentative) (project me/shop)"
    assert entries_of([remembered("\n \x00", tentative=True, project="p")], ZoneInfo("UTC")) == []


def test_entries_follow_the_last_line_of_their_section_in_its_style() -> None:
    before = (
        "# Mine\n\n## profile:\n\n* I am Ana.\n  From Basel.\n\n### Sub\n\ntext\n\n"
        "## Hard Rules ##\nBe kind.\n## Other\n"
    )
    after = merge(before, [*THREE[:2], FileEntry(PROFILE_SECTION, "Tall.")]).text
    assert after == (
        "# Mine\n\n## profile:\n\n* I am Ana.\n  From Basel.\n* Short answers.\n* Tall.\n\n### Sub\n\ntext\n\n"
        "## Hard Rules ##\nBe kind.\n\n- Never use floats for money.\n\n## Other\n"
    )


def test_a_new_section_has_its_place_and_the_level_of_the_others() -> None:
    before = "# Notes\n\n### Architecture\n\n- Postgres.\n\n### Reflected (2026-04-01)\n\n- x\n\n# Appendix\n"
    after = merge(
        before, [*THREE, FileEntry(APRIL, "April came."), FileEntry(FileSection(PATTERNS), "Try twice.")]
    ).text
    titles = [line.strip() for line in after.split("\n") if line.startswith("#")]
    assert titles == [
        "# Notes", "### Profile", "### Hard rules", "### Architecture", "### Patterns", "### Reflected (2026-03-02)",
        "### Reflected (2026-04-01)", "# Appendix",
    ]  # fmt: skip
    assert "- x\n- April came.\n\n# Appendix" in after
    assert is_kept(before, after)


@pytest.mark.parametrize(
    "before",
    [
        "---\ntitle: x\n## Profile\n---\n\nText.",
        "```md\n## Profile\n```\n",
        "<!--\n## Profile\n-->\n",
        "    ## Profile\n",
        "\ufeff---\n## Profile: y\n...\n",
    ],
)
def test_a_heading_in_frontmatter_code_or_a_comment_is_not_a_section(before: str) -> None:
    after = merge(before, THREE[:1]).text
    assert is_kept(before, after)
    assert after.endswith("\n## Profile\n\n- Short answers.\n")


@pytest.mark.parametrize("before", ["Profile\n=======\n\nI am Ana.\n", "Profile\n---\n", "``` lost\n## Profile\n- a\n"])
def test_other_forms_of_a_heading_are_recognised(before: str) -> None:
    after = merge(before, THREE[:1]).text
    assert after.lower().count("profile") == 1
    assert after.endswith("- Short answers.\n")


def test_a_file_keeps_its_line_ends_and_its_last_line_gets_one() -> None:
    before = "# Mine\r\n\r\n## Profile\r\n\r\n- I am Ana."
    after = merge(before, THREE).text
    assert after.startswith(f"{before}\r\n- Short answers.\r\n\r\n## Hard rules\r\n")
    assert "\n" not in after.replace("\r\n", "")


@pytest.mark.parametrize(
    "there",
    [
        "never use floats for MONEY",
        "1. [ ] **Never** use `floats` for money!",
        "> Never use floats\n> for money.",
        "- Never use\n  floats for money.",
        "Be kind. Never use floats for money. Sleep well.",
        "```\nNever use floats for money.\n```",
        "User preference: Never use floats for money.",
    ],
)
def test_a_fact_that_the_file_contains_in_any_form_is_not_added(there: str) -> None:
    merged = merge(there, THREE[1:2])
    assert (merged.text, merged.added, merged.known) == (there, [], 1)


@pytest.mark.parametrize(
    "there",
    ["Use floats for money.", "Never use floats for time.", "Never use floats", "Never use 2 floats for money."],
)
def test_a_different_fact_in_the_file_does_not_keep_an_entry_out(there: str) -> None:
    assert merge(there, THREE[1:2]).added == THREE[1:2]


def test_equal_entries_are_added_once() -> None:
    twice = [THREE[1], FileEntry(MARCH, "Never use floats for money!")]
    assert merge("", twice).added == [THREE[1]]


MARKUP = st.sampled_from(
    """
# Memory
## Profile
### hard RULES
## Patterns:
Architecture
---
===
```
~~~~
<!--
-->
- item
* [x] done
1. one
  wrapped
\tcode
> quoted

## Reflected (2026-03-02)
## Reflected (2026-13-99)
Short answers.
\ufeff
- Never use floats for money.
…""".split("\n")
)
LINES = st.lists(st.tuples(MARKUP | st.text(max_size=20), st.sampled_from(["\n", "\r\n", "\r", "\n"])), max_size=25)
FILES = st.builds(lambda lines, last: "".join(line + end for line, end in lines) + last, LINES, MARKUP)
SECTIONS = [PROFILE_SECTION, RULES_SECTION, FileSection(ARCHITECTURE), FileSection(PATTERNS), MARCH, APRIL]


@st.composite
def any_entries(draw: st.DrawFn) -> list[FileEntry]:
    """Return any entries in any sections."""
    contents = draw(st.lists(MARKUP | st.text(max_size=40), max_size=8))
    made = entries_of([remembered(content) for content in contents], ZoneInfo("UTC"))
    return [FileEntry(draw(st.sampled_from(SECTIONS)), entry.text) for entry in made]


@given(before=FILES, entries=any_entries())
def test_lines_are_kept_and_a_second_merge_adds_nothing(before: str, entries: Sequence[FileEntry]) -> None:
    merged = merge(before, entries)
    assert is_kept(before, merged.text)
    assert len(merged.added) + merged.known == len(entries)
    again = merge(merged.text, entries)
    assert (again.text, again.added) == (merged.text, [])
    for entry in merged.added:
        assert any(line.rstrip("\r\n")[2:] == entry.text for line in lines_of(merged.text))


@given(before=FILES, first=any_entries(), more=any_entries())
def test_later_entries_are_added_to_earlier_ones(
    before: str, first: Sequence[FileEntry], more: Sequence[FileEntry]
) -> None:
    once = merge(before, first).text
    after = merge(once, [*first, *more])
    assert is_kept(once, after.text)
    assert not {entry.text for entry in after.added} & {entry.text for entry in first}
