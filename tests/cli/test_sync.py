"""`esker sync` against a real server: what people do in files reaches memory, and the reverse; nothing is lost."""

import asyncio
import json
import re
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import pytest

from esker.server.agents.api import Api
from esker.server.cli import sync_files, sync_run
from esker.server.cli.sync_pool import SyncScope
from esker.server.cli.sync_run import Sync, SyncReport
from esker.server.cli.sync_state import SyncState
from esker.server.core.errors import Conflict
from tests.support.processes import esker

NOTES, PINNED = "shop/notes.md", "shop/pinned.md"


@dataclass
class Synced:
    """A folder, its state, and the server."""

    folder: Path
    state: Path
    client: httpx2.AsyncClient

    async def sync(
        self, *, check: bool = False, delete: bool = False, restore: bool = False, pool: str = "default"
    ) -> SyncReport:
        def run() -> SyncReport:
            url = str(self.client.base_url).rstrip("/")
            state = SyncState(self.state, self.folder, url, pool)
            with state.locked(), closing(Api(url)) as api:
                one = Sync(api, self.folder, SyncScope(pool, None), state, check)
                return one.run(delete=delete, restore=restore, ask=False)

        return await asyncio.to_thread(run)

    async def remember(self, content: str, **more: Any) -> str:
        body = {"content": content, "project": "shop", **more}
        return (await self.client.post("/v1/memories", json=body)).raise_for_status().json()["id"]

    async def live(self) -> dict[str, dict[str, Any]]:
        rows = (await self.client.get("/v1/memories", params={"limit": 1000})).raise_for_status().json()["memories"]
        return {row["content"]: row for row in rows}

    def read(self, name: str = NOTES) -> str:
        return (self.folder / name).read_bytes().decode()

    def edit(self, change: Callable[[str], str], name: str = NOTES) -> None:
        text = self.read(name)
        changed = change(text)
        assert changed != text
        (self.folder / name).write_bytes(changed.encode())

    def files(self) -> dict[str, bytes]:
        return {str(path): path.read_bytes() for path in self.folder.rglob("*") if path.is_file()}


@pytest.fixture
def synced(client: httpx2.AsyncClient, tmp_path: Path) -> Synced:
    return Synced(tmp_path / "vault", tmp_path / "state", client)


def line_of(text: str, words: str) -> str:
    return next(line for line in text.splitlines(keepends=True) if words in line)


async def test_what_a_person_does_in_files_comes_back(synced: Synced) -> None:
    for words in ("The gate is blue.", "Deploys are on Mondays.", "The cat is grey.", "Use pnpm."):
        await synced.remember(words)
    assert len((await synced.sync()).taken) == 4
    synced.edit(lambda text: text.replace("gate is blue", "gate is red").replace("- 🟡 Deploys", "- 🔴 Deploys"))
    synced.edit(lambda text: text.replace(line_of(text, "cat"), "") + "\n- Written by hand, see [[Gate]].\n")
    pinned = line_of(synced.read(), "pnpm")
    synced.edit(lambda text: text.replace(pinned, ""))
    (synced.folder / PINNED).write_text(synced.read().split("# Notes")[0].replace('"note"', '"manual"') + pinned)
    report = await synced.sync()
    assert (len(report.written), len(report.corrected), len(report.forgotten), report.problems) == (1, 3, 1, [])
    live = await synced.live()
    assert live.keys() == {"The gate is red.", "Deploys are on Mondays.", "Use pnpm.", "Written by hand, see [[Gate]]."}
    assert live["Deploys are on Mondays."]["priority"] == "high"
    assert live["Use pnpm."]["kind"] == "manual"
    assert live["Written by hand, see [[Gate]]."]["project"] == "shop"
    before = synced.files()
    again = await synced.sync()
    assert (again.files, again.needs_attention, synced.files()) == ([], False, before)
    assert all(row["id"] in synced.read() + synced.read(PINNED) for row in live.values())


async def test_changes_of_memory_reach_the_files(synced: Synced) -> None:
    gate, cat = await synced.remember("The gate is blue."), await synced.remember("The cat is grey.")
    await synced.sync()
    synced.edit(lambda text: text.replace("# Notes", "# Mine\n\nA paragraph with a [[link]].\n\n| a | b |"))
    await synced.client.patch(f"/v1/memories/{gate}", json={"content": "The gate is red."})
    await synced.client.delete(f"/v1/memories/{cat}")
    await synced.remember("Everywhere.", project=None)
    report = await synced.sync()
    assert (len(report.taken), report.dropped, report.conflicts) == (2, [cat], [])
    assert "The gate is red." in synced.read()
    assert "cat" not in synced.read()
    assert "# Mine\n\nA paragraph with a [[link]].\n\n| a | b |" in synced.read()
    assert "Everywhere." in synced.read("all-projects/notes.md")


async def test_a_conflict_is_shown_and_both_sides_are_kept(synced: Synced) -> None:
    gate, cat = await synced.remember("The gate is blue."), await synced.remember("The cat is grey.")
    await synced.sync()
    synced.edit(lambda text: text.replace("gate is blue", "gate is green").replace("cat is grey", "cat is black"))
    await synced.client.patch(f"/v1/memories/{gate}", json={"content": "The gate is red."})
    await synced.client.delete(f"/v1/memories/{cat}")
    report = await synced.sync()
    assert (sorted(report.conflicts), report.corrected, report.needs_attention) == (sorted([gate, cat]), [], True)
    assert (await synced.live()).keys() == {"The gate is red."}
    assert "- 🟡 The gate is red." in synced.read()
    assert "> The gate is green." in synced.read()
    assert "> The cat is black." in synced.read()
    before = synced.files()
    report = await synced.sync()
    assert (report.conflicts, report.unresolved, report.files) == ([], {NOTES: 2}, [])
    assert synced.files() == before
    synced.edit(lambda text: re.sub(r"\n<!-- esker-conflict -->.*?<!-- /esker-conflict -->\n", "", text, flags=re.S))
    assert not (await synced.sync()).needs_attention


async def test_a_check_changes_nothing_and_tells_what_would_happen(synced: Synced) -> None:
    await synced.remember("The gate is blue.")
    assert len((await synced.sync(check=True)).taken) == 1
    assert not synced.folder.exists()
    await synced.sync()
    synced.edit(lambda text: text.replace("blue", "red") + "- New.\n")
    before, live = synced.files(), await synced.live()
    report = await synced.sync(check=True)
    assert (report.written, len(report.corrected)) == (["New."], 1)
    assert (synced.files(), await synced.live()) == (before, live)


@pytest.mark.parametrize("how", ["file", "folder", "lines", "bytes"])
async def test_a_wiped_folder_does_not_wipe_memory(synced: Synced, how: str) -> None:
    for number in range(3):
        await synced.remember(f"Fact number {number}.")
    await synced.sync()
    before = synced.read()
    match how:
        case "file":
            (synced.folder / NOTES).unlink()
        case "folder":
            (synced.folder / NOTES).unlink()
            (synced.folder / "shop").rmdir()
            synced.folder.rmdir()
        case "lines":
            synced.edit(lambda text: text[: text.index("- 🟡")])
        case _:
            (synced.folder / NOTES).write_bytes(b"")
    report = await synced.sync()
    assert (len(report.not_forgotten), report.forgotten) == (3, [])
    await synced.remember("Fact of another.")
    for _ in range(2):
        report = await synced.sync()
        assert (len(report.not_forgotten), report.forgotten) == (3, []), "it asks until somebody answers"
    assert len(await synced.live()) == 4
    if how == "lines":
        assert len((await synced.sync(delete=True)).forgotten) == 3
        assert (await synced.live()).keys() == {"Fact of another."}
    else:
        await synced.sync(restore=True)
        files = "".join(data.decode() for data in synced.files().values())
        assert all(f"Fact number {number}." in files for number in range(3))
        assert sorted(re.findall("mem_[0-9a-z]+", before)) <= sorted(re.findall("mem_[0-9a-z]+", files))


@dataclass
class Mortal:
    """Kills a sync right after a given number of effects on the server and the disk."""

    lives: int

    def wrapped(self, real: Callable[..., Any]) -> Callable[..., Any]:
        def effect(*given: Any) -> Any:
            if self.lives == 0:
                raise KeyboardInterrupt
            self.lives -= 1
            return real(*given)

        return effect


async def test_a_sync_that_is_killed_anywhere_is_completed_by_the_next(
    synced: Synced, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is killed before its first effect, then after the first, the second and so on, until it completes."""
    lives, died = 0, True
    while died:
        name = f"round {lives}"
        for words in ("The gate is blue", "The cat is grey", "Use pnpm", "Pin this"):
            await synced.remember(f"{words} in {name}.")
        await synced.sync()
        pinned = line_of(synced.read(), f"Pin this in {name}")
        synced.edit(lambda text: text.replace("gate is blue", "gate is red").replace(line_of(text, "The cat"), ""))
        synced.edit(lambda text: text.replace(pinned, f"- By hand in {name}.\n"))  # noqa: B023
        head = synced.read().split("# Notes")[0].replace('"note"', '"manual"')
        (synced.folder / PINNED).write_text(head + pinned)
        with monkeypatch.context() as patched:
            mortal = Mortal(lives)
            for place, effect in ((Api, "post"), (Api, "patch"), (sync_files, "write"), (SyncState, "write")):
                patched.setattr(place, effect, mortal.wrapped(getattr(place, effect)))
            try:
                await synced.sync()
                died = False
            except KeyboardInterrupt:
                lives += 1
        report = await synced.sync()
        assert (report.conflicts, report.problems, report.not_forgotten) == ([], [], []), name
        words = {"The gate is red", "By hand", "Use pnpm", "Pin this"}
        live = await synced.live()
        assert live.keys() == {f"{each} in {name}." for each in words}
        assert live[f"Pin this in {name}."]["kind"] == "manual"
        text = synced.read() + synced.read(PINNED)
        assert [text.count(each) for each in (*words, "cat", "mem_")] == [1, 1, 1, 1, 0, 4], name
        assert (await synced.sync()).files == []
        (synced.folder / NOTES).unlink()
        (synced.folder / PINNED).unlink()
        await synced.sync(delete=True)
        assert await synced.live() == {}, "a corrected row is not live again because its correction was deleted"
    assert lives >= 6, "there are so many effects: a note, two corrections, a deletion, files and the state"


async def test_a_renamed_project_moves_its_lines_and_forgets_none(synced: Synced) -> None:
    for words in ("The gate is blue.", "Use pnpm."):
        await synced.remember(words)
    await synced.sync()
    synced.edit(lambda text: text.replace("blue", "red") + "- New.\n")
    await synced.client.post("/v1/projects/rename", json={"project": "shop", "name": "store"})
    report = await synced.sync()
    assert (report.forgotten, report.not_forgotten, report.conflicts, report.problems) == ([], [], [], [])
    assert "mem_" not in synced.read()
    moved = synced.read("store/notes.md")
    assert all(words in moved for words in ("The gate is red.", "Use pnpm.", "New."))
    assert (await synced.live()).keys() == {"The gate is red.", "Use pnpm.", "New."}
    again = await synced.sync()
    assert (again.files, again.needs_attention) == ([], False)


async def test_editors_save_as_they_like(synced: Synced) -> None:
    for words in ("First line\nsecond line", "Café.", "Third <!-- mem_x --> \\<!--."):
        await synced.remember(words)
    await synced.sync()
    lines = synced.read().split("\n")
    saved = "\ufeff" + "\r\n".join(f"{line} " for line in lines).replace("é", "e\u0301")
    (synced.folder / NOTES).write_bytes(saved.encode())
    (synced.folder / "shop/.notes.md.swp").write_text(saved)
    (synced.folder / ".trash").mkdir()
    (synced.folder / ".trash/notes.md").write_text(saved.replace("Third", "Other"))
    report = await synced.sync()
    assert (report.corrected, report.written, report.files, report.needs_attention) == ([], [], [], False)
    assert synced.read() == saved


async def test_lines_that_cannot_be_told_are_left_and_named(synced: Synced) -> None:
    gate, cat, pnpm, owl = [await synced.remember(w) for w in ("The gate.", "The cat.", "Use pnpm.", "The owl.")]
    await synced.sync()
    unknown = f"mem_{'0' * 26}"
    synced.edit(lambda text: text.replace("The gate.", "The gate, changed.") + f"- The gate, again. <!-- {gate} -->\n")
    synced.edit(lambda text: text.replace(f" <!-- {cat} -->", f" <!-- {cat} --> <!-- {pnpm} -->"))
    synced.edit(lambda text: text.replace(line_of(text, "pnpm."), "") + f"- Of another pool. <!-- {unknown} -->\n")
    synced.edit(lambda text: text.replace("The owl.", "x" * 16_001))
    before = synced.read()
    report = await synced.sync()
    assert len(report.problems) == 4
    assert all(any(name in str(problem) for problem in report.problems) for name in (gate, cat, unknown, "16,001"))
    assert (await synced.live()).keys() == {"The gate.", "The cat.", "Use pnpm.", "The owl."}
    assert synced.read() == before
    assert owl in synced.read()


async def test_a_line_in_a_block_of_code_is_not_forgotten(synced: Synced) -> None:
    gate = await synced.remember("The gate is blue.")
    await synced.remember("Use pnpm.")
    await synced.sync()
    synced.edit(lambda text: text.replace(line := line_of(text, "gate"), f"```\n{line}```\n"))
    report = await synced.sync()
    assert (report.forgotten, report.files, gate in synced.read()) == ([], [], True)
    assert len(await synced.live()) == 2


async def test_a_copied_line_that_was_changed_is_a_new_note(synced: Synced) -> None:
    gate = await synced.remember("The gate is blue.")
    await synced.sync()
    synced.edit(lambda text: text + line_of(text, "gate").replace("gate", "door"))
    assert len((await synced.sync()).written) == 1
    assert (await synced.live()).keys() == {"The gate is blue.", "The door is blue."}
    assert synced.read().count(gate) == 1


async def test_files_of_another_pool_are_refused(synced: Synced) -> None:
    await synced.remember("The gate is blue.")
    await synced.sync()
    before = synced.files()
    with pytest.raises(Conflict, match="belongs to pool default"):
        await synced.sync(pool="other")
    synced.edit(lambda text: re.sub("mem_[0-9a-z]+", f"mem_{'0' * 26}", text))
    synced.state = synced.state.with_name("another state")
    with pytest.raises(Conflict, match="not in pool default"):
        await synced.sync()
    assert len(synced.files()) == len(before)


async def test_without_its_state_a_folder_is_taken_as_it_is(synced: Synced) -> None:
    await synced.remember("The gate is blue.")
    await synced.sync()
    synced.state = synced.state.with_name("another state")
    report = await synced.sync()
    assert (report.files, report.needs_attention) == ([], False)


async def test_two_syncs_at_once_are_refused_and_a_file_saved_meanwhile_is_left(
    synced: Synced, monkeypatch: pytest.MonkeyPatch
) -> None:
    await synced.remember("The gate is blue.")
    await synced.sync()
    url = str(synced.client.base_url).rstrip("/")
    with SyncState(synced.state, synced.folder, url, "default").locked(), pytest.raises(Conflict, match="running"):
        await synced.sync()
    synced.edit(lambda text: text.replace("blue", "red"))
    real = sync_run.send

    def saved_meanwhile(*given: Any) -> Any:
        done = real(*given)
        synced.edit(lambda text: text + "- Typed meanwhile.\n")
        return done

    with monkeypatch.context() as patched:
        patched.setattr(sync_run, "send", saved_meanwhile)
        report = await synced.sync()
    assert (report.files, "saved during" in report.problems[0].reason) == ([], True)
    report = await synced.sync()
    assert (report.conflicts, report.problems, len(report.written)) == ([], [], 1)
    assert (await synced.live()).keys() == {"The gate is red.", "Typed meanwhile."}


async def test_the_state_has_no_words(synced: Synced) -> None:
    await synced.remember("The gate is blue.")
    await synced.sync()
    states = [path.read_text() for path in synced.state.rglob("*.json")]
    assert len(states) == 1
    assert "gate" not in states[0]


async def test_the_verb_reports_and_exits_with_1_if_a_person_is_needed(synced: Synced) -> None:
    there = {"ESKER_URL": str(synced.client.base_url).rstrip("/"), "ESKER_STATE_DIR": str(synced.state)}
    await synced.remember("The gate is blue.")
    await synced.remember("Of all.", project=None)
    done = await asyncio.to_thread(esker, "sync", str(synced.folder), "--json", **there)
    assert (done.returncode, len(json.loads(done.stdout)["taken"])) == (0, 2)
    (synced.folder / NOTES).unlink()
    done = await asyncio.to_thread(esker, "sync", str(synced.folder), **there)
    assert (done.returncode, "--delete" in done.stdout) == (1, True)
    done = await asyncio.to_thread(esker, "sync", str(synced.folder), "--project", "shop", "--delete", **there)
    assert (done.returncode, "Forget: 1 memory" in done.stdout) == (0, True)
    assert (await synced.live()).keys() == {"Of all."}
    await synced.remember("The gate is blue.")
    await synced.client.post("/v1/projects/rename", json={"project": "shop", "name": "store"})
    await synced.remember("Newest, and of all.", project=None)
    done = await asyncio.to_thread(esker, "sync", str(synced.folder), "--project", "Shop", "--json", **there)
    assert (done.returncode, json.loads(done.stdout)["files"]) == (0, ["store/notes.md"])
    wrong = await asyncio.to_thread(esker, "sync", str(synced.folder), "--delete", "--restore", **there)
    assert wrong.returncode == 2


async def test_a_deleted_line_takes_no_memory_with_it_that_has_a_line(synced: Synced) -> None:
    """Forgetting a memory also forgets those that say the same, but a person who deletes one of two lines keeps the
    other."""
    await synced.remember("Deploys are on Mondays.", priority="high")
    await synced.remember("deploys are on mondays.")
    await synced.remember("Use pnpm.")
    await synced.sync()
    synced.edit(lambda text: text.replace(line_of(text, "deploys"), ""))
    for check in (True, False):
        report = await synced.sync(check=check)
        assert (report.forgotten, len(report.not_forgotten)) == ([], 1)
        assert "line is still there" in report.problems[0].reason
    assert len(await synced.live()) == 3
    assert len((await synced.sync(delete=True)).forgotten) == 1
    assert (await synced.live()).keys() == {"Use pnpm."}


@pytest.mark.parametrize("words", ["Deploys are on Mondays", "Deploys are on Monday"])
async def test_a_line_that_lost_its_comment_keeps_its_words(synced: Synced, words: str) -> None:
    deploys, _ = await synced.remember("Deploys are on Mondays."), await synced.remember("Use pnpm.")
    await synced.sync()
    synced.edit(lambda text: text.replace(f"Deploys are on Mondays. <!-- {deploys} -->", f"{words}."))
    for delete in (True, False):
        report = await synced.sync(delete=delete)
        assert f"{words}." in await synced.live()
        assert report.forgotten == []
        assert synced.read().count(words) == 1


async def test_a_new_file_goes_where_nothing_is(synced: Synced, tmp_path: Path) -> None:
    """It replaces no file that is not text, no folder, and no file with its name in another case, and follows no
    link."""
    outside = tmp_path / "outside"
    outside.mkdir()
    for project in ("bytes", "folder", "case", "dangling"):
        (synced.folder / project).mkdir(parents=True)
    (synced.folder / "bytes/notes.md").write_bytes(b"caf\xe9")
    (synced.folder / "folder/notes.md").mkdir()
    (synced.folder / "case/NOTES.md").write_text("Mine.")
    (synced.folder / "dangling/notes.md").symlink_to(outside / "notes.md")
    (synced.folder / "link").symlink_to(outside)
    (synced.folder / "file").write_text("Mine.")
    projects = ("bytes", "folder", "case", "dangling", "link", "file")
    for project in projects:
        await synced.remember(f"Of {project}.", project=project)
    before = synced.files()
    report = await synced.sync()
    places = {f"{name}-2/notes.md" if name in ("link", "file") else f"{name}/notes-2.md" for name in projects}
    assert ({*report.files}, list(outside.iterdir())) == (places, [])
    assert {path: data for path, data in synced.files().items() if path in before} == before
    assert (await synced.sync()).files == []


def test_large_files_without_memories_are_not_parsed(tmp_path: Path) -> None:
    (tmp_path / "mine.md").write_text("- A.\n- B.\n")
    (tmp_path / "copied.md").write_text(f"- A. <!-- mem_{'0' * 26} -->\n- B.\n")
    blocks = {name: len(document.blocks) for name, document in sync_files.read_folder(tmp_path).documents.items()}
    assert blocks == {"mine.md": 1, "copied.md": 3}
