"""A new database is small: a first start downloads and writes little."""

from tests.support.made import first_database

MB = 1024 * 1024


def test_a_new_database_takes_less_than_46_megabytes() -> None:
    files = [path for path in (first_database() / "postgres").rglob("*") if path.is_file()]
    assert sum(path.stat().st_blocks * 512 for path in files) < 46 * MB
