"""Opening files and reading their lines: nothing hangs, nothing fills the memory."""

import os
import socket
import tracemalloc
from collections.abc import Generator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from backports import zstd

from esker.server.agents.compressed import opened
from esker.server.agents.folders import SkippedFiles
from esker.server.agents.lines import SkippedLines, json_document, json_lines
from esker.server.agents.readers import READERS, client_of, sessions, transcripts_in
from esker.server.agents.regular_file import opened_plain
from tests.support.transcripts import shown, written

SAID = {"type": "user", "uuid": "u", "sessionId": "s", "message": {"role": "user", "content": "Hi."}}
MIB = 1024 * 1024
_NOBODY = 65_534


def read(path: Path, longest: int) -> tuple[list[object], SkippedLines]:
    """Return the numbered objects of a file, and the skipped lines."""
    left_out = SkippedLines()
    return [(number, line["a"]) for number, line in json_lines(path, left_out, opened, longest)], left_out


@pytest.mark.parametrize("ending", ["x.jsonl", "x.jsonl.zst"])
def test_a_line_that_is_too_long_is_counted_and_the_others_are_read(tmp_path: Path, ending: str) -> None:
    fits = b'{"a": "%s"}' % (b"x" * 90)  # 100 bytes with the end of the line
    long, cut = b'{"a": "' + b"y" * 300_000 + b'"}', b'{"a": "' + b"z" * 200
    raw = b"\n".join([b'{"a": 1}', fits, fits[:-1] + b" }", long, b'{"a": 2}', cut])
    path = tmp_path / ending
    path.write_bytes(zstd.compress(raw) if ending.endswith(".zst") else raw)
    found, left_out = read(path, 100)
    assert found == [(1, 1), (2, "x" * 90), (5, 2)]
    assert left_out.skipped == {"line longer than 100 bytes": 3}
    assert left_out.broken == []


def test_a_file_that_unpacks_to_gigabytes_is_read_in_little_memory(tmp_path: Path) -> None:
    packer = zstd.ZstdCompressor()
    bomb = b"".join(packer.compress(b"\0" * MIB) for _ in range(200))
    packed = packer.compress(b"\n" + b'{"a": 7}\n') + packer.flush()
    path = tmp_path / "x.jsonl.zst"
    path.write_bytes(bomb + packed)
    assert path.stat().st_size < MIB
    tracemalloc.start()
    found, left_out = read(path, MIB)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (found, left_out.skipped) == ([(2, 7)], {"line longer than 1 MiB": 1})
    assert peak < 16 * MIB


def test_all_broken_lines_are_counted_and_the_first_listed(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(b"{\n" * 5_000)
    _, left_out = read(path, MIB)
    assert (left_out.skipped["broken line"], left_out.broken) == (5_000, [*range(1, 1_001)])


def test_a_document_that_is_too_large_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_bytes(b'{"a": 1}' + b" " * 200)
    assert json_document(path, SkippedLines(), largest=208) == {"a": 1}
    with pytest.raises(OSError, match="larger than 207 bytes"):
        json_document(path, SkippedLines(), largest=207)


# Paths that are not files --------------------------------------------------------------------------------------------


def what_is_no_file(folder: Path) -> dict[str, str]:
    """Create every kind of path that is not a file, named like transcripts; return the kind of each."""
    folder.mkdir(parents=True, exist_ok=True)
    os.mkfifo(folder / "pipe.jsonl")
    with socket.socket(socket.AF_UNIX) as listening:
        before = Path.cwd()
        os.chdir(folder)  # the path of a socket must be short
        listening.bind("socket.jsonl")
        os.chdir(before)
    (folder / "gone.jsonl").symlink_to(folder / "nowhere")
    (folder / "round.jsonl").symlink_to(folder / "round.jsonl")
    (folder / "device.jsonl").symlink_to("/dev/zero")
    (folder / "folder.jsonl").mkdir()
    (folder / "circle").symlink_to(folder)
    return {
        "pipe.jsonl": "a pipe",
        "socket.jsonl": "a socket",
        "gone.jsonl": "a broken link",
        "round.jsonl": "a broken link",
        "device.jsonl": "a device",
    }


def test_paths_that_are_not_files_are_listed_and_files_beside_them_found(tmp_path: Path) -> None:
    what = what_is_no_file(tmp_path / "t")
    written(tmp_path / "t" / "folder.jsonl" / "a.jsonl", SAID)
    written(tmp_path / "t" / "z.jsonl", SAID)
    (tmp_path / "t" / "linked.jsonl").symlink_to(tmp_path / "t" / "z.jsonl")
    skipped = SkippedFiles()
    found = [str(path.relative_to(tmp_path / "t")) for path in transcripts_in(tmp_path / "t", skipped)]
    assert found == ["linked.jsonl", "z.jsonl", "folder.jsonl/a.jsonl"]
    assert {Path(path).name: reason for path, reason in skipped.no_files.items()} == what
    assert skipped.unreadable == {}


def test_session_paths_that_are_not_files_are_listed(tmp_path: Path) -> None:
    what = what_is_no_file(tmp_path / ".claude" / "projects" / "-work")
    written(tmp_path / ".claude" / "projects" / "-work" / "z.jsonl", SAID)
    skipped = SkippedFiles()
    found = sessions({}, tmp_path, skipped)
    assert {client: [path.name for path in paths] for client, paths in found.items()} == {"claude-code": ["z.jsonl"]}
    assert {Path(path).name: reason for path, reason in skipped.no_files.items()} == what


@pytest.mark.parametrize("name", ["pipe.jsonl", "socket.jsonl", "device.jsonl"])
def test_opening_a_path_that_is_not_a_file_never_blocks(tmp_path: Path, name: str) -> None:
    what_is_no_file(tmp_path)
    for open_it in (opened_plain, opened, client_of):
        with pytest.raises(OSError, match="it is a"):
            open_it(tmp_path / name)
    for reader in READERS.values():
        with pytest.raises(OSError, match="it is a"):
            reader(tmp_path / name, opened)


@pytest.fixture
def shut() -> Generator[Path]:
    """A folder, without the right to read everything: tests run by root change their user meanwhile."""
    with TemporaryDirectory() as name:
        folder, everything = Path(name), os.geteuid() == 0
        if everything:
            os.chown(folder, _NOBODY, _NOBODY)
            os.seteuid(_NOBODY)
        try:
            yield folder
        finally:
            if everything:
                os.seteuid(0)
            (folder / "shut").chmod(0o700)


def test_unreadable_paths_are_listed_and_the_others_found(shut: Path) -> None:
    written(shut / "shut" / "a.jsonl", SAID)
    written(shut / "half" / "a.jsonl", SAID)
    written(shut / "z.jsonl", SAID)
    (shut / "shut").chmod(0)
    (shut / "half").chmod(0o400)  # its files can be listed, but not read
    skipped = SkippedFiles()
    try:
        assert [path.name for path in transcripts_in(shut, skipped)] == ["z.jsonl"]
    finally:
        (shut / "half").chmod(0o700)
    assert {Path(path).name: reason for path, reason in skipped.unreadable.items()} == dict.fromkeys(
        ("shut", "a.jsonl"), "Permission denied"
    )


def test_a_linked_transcript_is_read(tmp_path: Path) -> None:
    written(tmp_path / "z.jsonl", SAID)
    (tmp_path / "linked.jsonl").symlink_to(tmp_path / "z.jsonl")
    [transcript] = READERS["claude-code"](tmp_path / "linked.jsonl", opened).transcripts
    assert shown(transcript) == ["user: Hi."]
