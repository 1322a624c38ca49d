"""Anthropic's memory tool with its files in Esker: output, storage and refusals."""

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

import httpx2
import pytest
from anthropic.lib.tools import ToolError
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from esker import Esker, EskerMemoryTool

NOTES = "/memories/notes.md"


@pytest.fixture
async def esker(client: httpx2.AsyncClient) -> AsyncGenerator[Esker]:
    """A client of a server with an empty pool."""
    async with Esker(str(client.base_url)) as connected:
        yield connected


@pytest.fixture
def tool(esker: Esker) -> EskerMemoryTool:
    """The tool."""
    return EskerMemoryTool(esker, project="shop")


async def do(tool: EskerMemoryTool, command: str, **given: Any) -> str:
    """Call the tool as the SDK's runner does."""
    result = await tool.call({"command": command, **given})
    assert isinstance(result, str)
    return result


async def text_of(tool: EskerMemoryTool, path: str) -> str:
    """Return a file's text, joined from its displayed lines."""
    lines = (await do(tool, "view", path=path)).split("\n")[1:]
    return "\n".join(line.partition("\t")[2] for line in lines)


async def test_a_file_is_made_read_changed_moved_and_deleted(tool: EskerMemoryTool) -> None:
    assert "(empty)" in await do(tool, "view", path="/memories")
    await do(tool, "create", path=NOTES, file_text="one\ntwo\nthree\n")
    assert await text_of(tool, NOTES) == "one\ntwo\nthree\n"
    some = await do(tool, "view", path=NOTES, view_range=[2, 3])
    assert some == f"{NOTES}, with line numbers:\n     2\ttwo\n     3\tthree"
    shown = await do(tool, "str_replace", path=NOTES, old_str="two", new_str="2\n2½")
    assert "     2\t2\n     3\t2½" in shown
    await do(tool, "insert", path=NOTES, insert_line=0, insert_text="zero\n")
    await do(tool, "insert", path=NOTES, insert_line=5, insert_text="four")
    assert await text_of(tool, NOTES) == "zero\none\n2\n2½\nthree\nfour\n"
    await do(tool, "rename", old_path=NOTES, new_path="/memories/old/notes.md")
    assert await do(tool, "view", path="/memories") == (
        "/memories, two levels deep:\n- /memories/old/\n- /memories/old/notes.md (25 characters)"
    )
    await do(tool, "delete", path="/memories/old")
    assert "(empty)" in await do(tool, "view", path="/memories")


async def test_a_file_is_recalled_with_its_path_and_only_in_its_latest_version(
    tool: EskerMemoryTool, esker: Esker
) -> None:
    await do(tool, "create", path=NOTES, file_text="The ferry to Lisbon leaves at noon.\n")
    [hit] = (await esker.recall("ferry Lisbon", project="shop")).hits
    assert hit.content == f"{NOTES}\nThe ferry to Lisbon leaves at noon."
    await do(tool, "str_replace", path=NOTES, old_str="noon", new_str="midnight")
    [hit] = (await esker.recall("ferry Lisbon", project="shop")).hits
    assert "midnight" in hit.content
    await do(tool, "delete", path=NOTES)
    assert (await esker.recall("ferry Lisbon", project="shop")).abstained


async def test_deleting_forgets_every_version_also_under_an_older_path(tool: EskerMemoryTool, esker: Esker) -> None:
    await do(tool, "create", path=NOTES, file_text="Secret number one is a walnut.")
    await do(tool, "str_replace", path=NOTES, old_str="one is a walnut", new_str="two is a completely other thing")
    await do(tool, "rename", old_path=NOTES, new_path="/memories/b.md")
    await do(tool, "str_replace", path="/memories/b.md", old_str="two", new_str="three")
    await do(tool, "delete", path="/memories/b.md")
    assert [row async for row in esker.memories(include_superseded=True)] == []
    await do(tool, "create", path=NOTES, file_text="Anew.")
    assert await text_of(tool, NOTES) == "Anew."


@pytest.mark.parametrize(
    "path",
    [
        "/etc/passwd",
        "/memories/../etc/passwd",
        "/memories/a/../../b",
        "/memories/..",
        "memories/a",
        "/memoriesx/a",
        "../memories/a",
        "/memories/%2e%2e/a",
        "/memories/%2E%2E%2Fa",
        "/memories\\..\\a",
        "/memories/a\x00b",
        "/memories/a\nb",
        "",
        "/",
        "/memories/" + "a" * 500,
    ],
)
async def test_a_path_outside_is_refused_without_a_request(path: str) -> None:
    given = {"path": path, "file_text": "x", "old_str": "x", "new_str": "y", "insert_line": 0, "insert_text": "x"}
    async with Esker("http://127.0.0.1:1") as nowhere:
        tool = EskerMemoryTool(nowhere)
        for command in ("view", "create", "str_replace", "insert", "delete"):
            with pytest.raises(ToolError, match="path"):
                await do(tool, command, **given)
        for pair in ({"old_path": path, "new_path": NOTES}, {"old_path": NOTES, "new_path": path}):
            with pytest.raises(ToolError, match="path"):
                await do(tool, "rename", **pair)


# Commands that are refused, and a part of the error.
REFUSED: list[tuple[str, dict[str, Any], str]] = [
    ("view", {"path": "/memories/none"}, "does not exist"),
    ("view", {"path": NOTES, "view_range": [9, 12]}, "has 3 lines"),
    ("create", {"path": NOTES, "file_text": "x"}, "already exists"),
    ("create", {"path": f"{NOTES}/below", "file_text": "x"}, "is a file"),
    ("create", {"path": "/memories/dir", "file_text": "x"}, "already exists"),
    ("create", {"path": "/memories", "file_text": "x"}, "is a directory"),
    ("create", {"path": "/memories/new", "file_text": "x" * 15_001}, "15,000"),
    ("str_replace", {"path": NOTES, "old_str": "absent", "new_str": ""}, "is not in"),
    ("str_replace", {"path": NOTES, "old_str": "o", "new_str": ""}, "occurs 2 times in"),
    ("str_replace", {"path": NOTES, "old_str": "", "new_str": "x"}, "is not in"),
    ("str_replace", {"path": "/memories/none", "old_str": "a", "new_str": "b"}, "does not exist"),
    ("insert", {"path": NOTES, "insert_line": 3, "insert_text": "x"}, "between 0 and 2"),
    ("insert", {"path": NOTES, "insert_line": -1, "insert_text": "x"}, "between 0 and 2"),
    ("delete", {"path": "/memories"}, "cannot be deleted"),
    ("delete", {"path": "/memories/none"}, "does not exist"),
    ("rename", {"old_path": "/memories/none", "new_path": "/memories/x"}, "does not exist"),
    ("rename", {"old_path": NOTES, "new_path": "/memories/dir/a"}, "already exists"),
    ("rename", {"old_path": NOTES, "new_path": "/memories/dir/a/b"}, "is a file"),
    ("rename", {"old_path": "/memories/dir", "new_path": "/memories/dir/in"}, "into itself"),
    ("rename", {"old_path": "/memories", "new_path": "/memories/in"}, "into itself"),
]


async def test_a_refused_command_says_why_and_changes_nothing(tool: EskerMemoryTool) -> None:
    await do(tool, "create", path=NOTES, file_text="one\ntwo\n")
    await do(tool, "create", path="/memories/dir/a", file_text="x")
    before = await do(tool, "view", path="/memories")
    for command, wrong, words in REFUSED:
        with pytest.raises(ToolError, match=words):
            await do(tool, command, **wrong)
        after = (await do(tool, "view", path="/memories"), await text_of(tool, NOTES))
        assert after == (before, "one\ntwo\n"), (command, wrong)


async def test_of_two_parallel_edits_one_gets_an_error(esker: Esker) -> None:
    one, other = EskerMemoryTool(esker), EskerMemoryTool(esker)
    await do(one, "create", path=NOTES, file_text="x\n")
    results = await asyncio.gather(
        *(do(tool, "insert", path=NOTES, insert_line=0, insert_text=name) for name, tool in (("a", one), ("b", other))),
        return_exceptions=True,
    )
    done = [name for name, result in zip("ab", results, strict=True) if isinstance(result, str)]
    failed = [result for result in results if isinstance(result, ToolError)]
    assert len(done) + len(failed) == 2
    text = await text_of(one, NOTES)
    assert all(name in text for name in done)
    assert len(text.split("\n")) == 2 + len(done)


async def test_parallel_creations_never_overwrite_each_other(esker: Esker) -> None:
    tools = [EskerMemoryTool(esker) for _ in range(4)]
    results = await asyncio.gather(
        *(do(tool, "create", path=NOTES, file_text=f"{number}") for number, tool in enumerate(tools)),
        return_exceptions=True,
    )
    assert sorted(isinstance(result, ToolError) for result in results) == [False, True, True, True]
    [winner] = [number for number, result in enumerate(results) if isinstance(result, str)]
    assert await text_of(tools[0], NOTES) == str(winner)


async def test_a_path_has_one_file_even_after_a_parallel_creation_and_move(esker: Esker) -> None:
    tools = [EskerMemoryTool(esker) for _ in range(4)]
    for number in range(4):
        await do(tools[0], "create", path=f"/memories/{number}", file_text=f"{number}")
    moved = [do(tool, "rename", old_path=f"/memories/{number}", new_path=NOTES) for number, tool in enumerate(tools)]
    made = [do(tool, "create", path=NOTES, file_text=f"new {number}") for number, tool in enumerate(tools)]
    results = await asyncio.gather(*moved, *made, return_exceptions=True)
    assert sum(isinstance(result, str) for result in results) == 1
    assert len([row async for row in esker.memories() if row.content.startswith(f"{NOTES}\n")]) == 1


async def test_deleting_a_file_that_another_client_changes_is_an_error_if_it_survives(esker: Esker) -> None:
    one, other = EskerMemoryTool(esker), EskerMemoryTool(esker)
    for _ in range(4):
        await do(one, "create", path=NOTES, file_text="0")
        deleted, _ = await asyncio.gather(
            do(one, "delete", path=NOTES),
            do(other, "str_replace", path=NOTES, old_str="0", new_str="1"),
            return_exceptions=True,
        )
        there = NOTES in await do(one, "view", path="/memories")
        assert isinstance(deleted, ToolError) is there
        await one.clear_all_memory()


async def test_a_lone_surrogate_is_replaced(tool: EskerMemoryTool) -> None:
    await do(tool, "create", path=NOTES, file_text="a\ud83db")
    assert await text_of(tool, NOTES) == "a\ufffdb"


async def test_projects_do_not_share_files(esker: Esker) -> None:
    shop, pool = EskerMemoryTool(esker, project="shop"), EskerMemoryTool(esker)
    await do(shop, "create", path=NOTES, file_text="of the shop")
    await do(pool, "create", path=NOTES, file_text="of all")
    assert (await text_of(shop, NOTES), await text_of(pool, NOTES)) == ("of the shop", "of all")
    await shop.clear_all_memory()
    assert await text_of(pool, NOTES) == "of all"


LINES = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs", "Zs", "Zl", "Zp"]), max_size=12)


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(LINES, min_size=1, max_size=6), st.integers(0, 3))
async def test_a_file_keeps_its_content_and_final_line_ends(tool: EskerMemoryTool, lines: list[str], ends: int) -> None:
    text = "\n".join(lines).strip("\n") + "\n" * ends
    await tool.clear_all_memory()
    await do(tool, "create", path=NOTES, file_text=text)
    assert await text_of(tool, NOTES) == text
