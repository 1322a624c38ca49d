"""The log of the embedded Postgres stays short, while the server has it open."""

import os
from pathlib import Path

import pytest

from esker.server.db import postmaster
from esker.server.db.postmaster import former_log, rotate_log


def test_a_long_log_begins_anew_and_its_writer_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postmaster, "_LONGEST_LOG_BYTES", 10)
    log = tmp_path / "log"
    with log.open("ab", buffering=0) as server:
        server.write(b"short\n")
        rotate_log(tmp_path)
        assert log.read_bytes() == b"short\n"
        server.write(b"and long\n")
        rotate_log(tmp_path)
        server.write(b"new\n")
    assert log.read_bytes() == b"new\n"
    assert former_log(log).read_bytes() == b"short\nand long\n"
    assert former_log(log).stat().st_mode & 0o077 == 0


def test_a_log_that_cannot_be_copied_is_shortened_all_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postmaster, "_LONGEST_LOG_BYTES", 10)
    log = tmp_path / "log"
    log.write_bytes(b"x" * 20)
    os.mkdir(former_log(log))
    rotate_log(tmp_path)
    assert log.read_bytes() == b""


def test_a_missing_log_is_left_alone(tmp_path: Path) -> None:
    rotate_log(tmp_path)
    assert list(tmp_path.iterdir()) == []
