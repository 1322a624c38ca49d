"""`esker eval` as a command, and the page that it writes."""

import asyncio
import json
import re
import sys
from dataclasses import replace
from datetime import UTC, datetime
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import psycopg
import pytest

from server.cli.evaluation_report import page, write_report
from server.core.errors import InvalidInput
from server.core.known_answers import KnownAnswer
from server.core.pool_evaluation import (
    Asked,
    ByMeaning,
    FreshPack,
    IndexProbe,
    MadeUp,
    Messages,
    Missing,
    PoolEvaluation,
    Repeated,
    RowCounts,
    Store,
    VectorTable,
)
from server.core.pool_verdicts import verdicts
from server.core.records import Principal
from server.usecases.parts import Parts
from server.usecases.remember import Note, remember
from tests.support.processes import esker

HOSTILE = "</svg><script>alert(1)</script><img src=x onerror=alert(2)> & \"quotes\" 'too' \x1b[31m"


def found(text: str = "trout salmon", ranks: tuple[int | None, ...] = (1, 3, None) * 5) -> PoolEvaluation:
    """Return an evaluation whose every text is `text`."""
    asked = [
        Asked(KnownAnswer(text, "rare", text, "memory", text), rank, rank, ByMeaning(True, rank, True, rank), 0.9, 12.0 + n)
        for n, rank in enumerate(ranks)
    ]
    store = Store(
        Messages(10, 8, 1, 1),
        RowCounts(12, 9, 3, 1, 1, 4),
        {"note": {0: 5, 4: 4}, "observation": {2: 1}},
        [text],
        [VectorTable("s", text, "active", 9, 1, 1), VectorTable("t", None, None, 3, 0, 0)],
        Missing(9, 2, 1, 1),
        [IndexProbe("memory", 20, 0.5)],
        Repeated(9, [text]),
    )
    packs = [FreshPack(text, 4, {text: "is superseded"}, 90, 15_000, 1)]
    moment = datetime(2026, 5, 3, tzinfo=UTC)
    return PoolEvaluation("default", moment, 0, 90, asked, [MadeUp(text, 0.6, text), MadeUp("xyzzy", None)], store, packs)


class Tags(HTMLParser):
    """What a browser would see of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.words.append(data)


def read(text: str) -> Tags:
    """Read a page."""
    tags = Tags()
    tags.feed(text)
    return tags


def test_the_page_runs_nothing_loads_nothing_and_escapes_every_text() -> None:
    evaluation = found(HOSTILE)
    text = page(evaluation, verdicts(evaluation))
    seen = read(text)
    assert not {"script", "img", "link", "iframe", "object", "image", "use"} & {tag for tag, _ in seen.tags}
    for _, attributes in seen.tags:
        assert not any(name.startswith("on") or name in ("href", "src", "xlink:href") for name in attributes)
    assert not re.search(r"@import|url\(", text)
    assert "".join(seen.words).count("<script>alert(1)</script>") >= 4
    assert text.replace("http://www.w3.org/2000/svg", "").count("://") == 0


def test_every_picture_is_sound_and_their_ids_differ() -> None:
    text = page(found(), verdicts(found()))
    drawn = re.findall(r"<svg.*?</svg>", text, re.DOTALL)
    pictures = [ElementTree.fromstring(each) for each in drawn]  # noqa: S314 - we wrote them
    assert len(pictures) == 4
    assert len({picture.get("id") for picture in pictures}) == 4
    assert len(re.findall("<figcaption>.{20,}</figcaption>", text)) == 4


def test_the_page_says_the_figures_in_words() -> None:
    words = " ".join("".join(read(page(found(), verdicts(found()))).words).split())
    assert (
        "Of 15 questions made of its own words, 10 had their answer among the first 10 hits, 5 as the very first."
        in words
    )
    assert "Of 2 questions that nothing answers, 1 got an answer." in words
    for figure in ("full recall", "coverage", "orphaned rows", "pack of trout salmon"):
        assert figure in words


def test_the_same_evaluation_makes_the_same_page_but_for_its_numbers() -> None:
    assert page(found(), verdicts(found())) == page(found(), verdicts(found()))


def test_a_page_of_nothing_says_so() -> None:
    nothing = found(ranks=())
    nothing = replace(nothing, made_up=[], packs=[], store=replace(nothing.store, by_age={}))
    assert page(nothing, verdicts(nothing)).count("There is nothing to draw.") == 4


def test_a_page_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="No such file"):
        write_report(tmp_path / "no" / "report.html", found(), [])


def test_verdicts_tell_what_is_wrong_from_what_is_to_be_looked_at() -> None:
    said = {verdict.figure: verdict.status for verdict in verdicts(found())}
    assert {figure for figure, status in said.items() if status == "wrong"} == {
        "index of memory vectors",
        "coverage",
        "pack of trout salmon",
    }
    assert {figure for figure, status in said.items() if status == "ok"} == {
        "by words alone",
        "by meaning alone",
        "by meaning, with the index",
        "superseded rows",
    }
    for verdict in verdicts(found()):
        assert (verdict.advice is None) == (verdict.status == "ok"), verdict


# As a command ------------------------------------------------------------------------------------------------------


async def evaluated(database_url: str, *arguments: str) -> Any:
    """Run `esker eval` and return what became of it."""
    return await asyncio.to_thread(esker, "eval", *arguments, ESKER_DATABASE_URL=database_url)


async def test_a_table_for_people_json_for_machines_and_a_page(
    parts: Parts, who: Principal, database_url: str, tmp_path: Path
) -> None:
    notes = [
        Note(f"Berth {n} of the {fish} wharf was dredged by Ottilie.") for n, fish in enumerate(("eel", "pike", "cod"))
    ]
    await remember(parts, who, notes)
    done = await evaluated(database_url, "--queries", "6", "--report", str(tmp_path / "report.html"))
    assert done.returncode == 0, done.stderr
    assert "Pool default" in done.stdout
    assert "full recall" in done.stdout
    assert "3 questions" in done.stdout
    assert "What to do" in done.stdout
    assert "<svg" in (tmp_path / "report.html").read_text()
    as_json = await evaluated(database_url, "--queries", "6", "--json")
    assert as_json.stderr == ""
    document = json.loads(as_json.stdout)
    assert document["recall"]["full recall"]["recall"]["10"] == 1.0
    assert {verdict["figure"] for verdict in document["verdicts"]} >= {"full recall", "coverage", "pack of no project"}
    assert document["packs"][0]["precision"] == 1.0
    again = json.loads((await evaluated(database_url, "--queries", "6", "--json")).stdout)
    assert again["recall"] == document["recall"]
    assert again["made_up"] == document["made_up"]


async def test_what_is_wrong_is_the_exit_code(parts: Parts, who: Principal, database_url: str, owner_url: str) -> None:
    await remember(parts, who, [Note(f"Berth {n} of the eel wharf was dredged by Ottilie.") for n in range(4)])
    with psycopg.connect(owner_url, autocommit=True) as connection:
        connection.execute("DELETE FROM postings")
    assert (await evaluated(database_url, "--json")).returncode == 1


async def test_a_pool_that_is_not_there_is_told(parts: Parts, database_url: str) -> None:
    done = await evaluated(database_url, "--pool", "nobody")
    assert done.returncode == 1
    assert "There is no pool 'nobody'" in done.stderr


def test_drawing_leaves_the_import_of_modules_alone() -> None:
    assert not [finder for finder in sys.meta_path if type(finder).__module__.startswith("pygal")]
