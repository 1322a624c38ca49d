"""`esker eval` as a command, and the page that it writes."""

import asyncio
import json
import os
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

from esker.server.cli.evaluation_report import check_report, page, write_report
from esker.server.cli.evaluation_verdicts import HEADINGS, headline, verdicts
from esker.server.cli.pool_file import replaced
from esker.server.core.errors import InvalidInput
from esker.server.core.pool.evaluation import (
    ByMeaning,
    FreshPack,
    IndexProbe,
    MadeUp,
    MessageCounts,
    Missing,
    PackFault,
    PoolEvaluation,
    PoolRowCounts,
    QuestionOutcome,
    Repeated,
    Store,
    VectorTable,
)
from esker.server.core.pool.known_answers import KnownAnswer
from esker.server.core.records import Principal
from esker.server.usecases.parts import Parts
from esker.server.usecases.remember import Note, remember
from tests.support.databases import contents
from tests.support.processes import esker

HOSTILE = "</svg><script>alert(1)</script><img src=x onerror=alert(2)> & \"quotes\" 'too' \x1b[31m"


def found(text: str = "trout salmon", ranks: tuple[int | None, ...] = (1, 3, None) * 5) -> PoolEvaluation:
    """Return an evaluation whose every text is `text`."""
    asked = [
        QuestionOutcome(
            KnownAnswer(text, "rare", text, "memory", text),
            rank,
            rank,
            ByMeaning(True, rank, True, rank),
            0.9,
            12.0 + n,
        )
        for n, rank in enumerate(ranks)
    ]
    store = Store(
        MessageCounts(10, 8, 1, 1),
        PoolRowCounts(12, 9, 3, 1, 1, 4),
        {"note": {0: 5, 4: 4}, "observation": {2: 1}},
        [text],
        [VectorTable("s", text, "active", 9, 1, 1), VectorTable("t", None, None, 3, 0, 0)],
        Missing(9, 2, 1, 1),
        [IndexProbe("memory", 20, 0.5)],
        Repeated(9, [text], 0),
    )
    packs = [FreshPack(text, 4, {text: "superseded"}, 90, 15_000, 1)]
    moment = datetime(2026, 5, 3, tzinfo=UTC)
    return PoolEvaluation(
        "default", moment, 0, 90, asked, [MadeUp(text, 0.6, text), MadeUp("xyzzy", None)], store, packs
    )


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


def test_a_text_turns_no_writing_but_its_own_and_hides_nothing() -> None:
    turned = "\u202eevil\u2066 \x07 ספינת הדייג"
    text = page(found(turned), verdicts(found(turned)))
    assert not re.search("[\u202a-\u202e\u2066-\u2069\x07]", text)
    assert text.count("<bdi>evil  ספינת הדייג</bdi>") >= 4


def test_the_page_shows_the_texts_that_were_missed_and_those_that_came_wrongly() -> None:
    evaluation = found()
    missed = [replace(one, question=replace(one.question, text="A heron moored here.")) for one in evaluation.asked]
    wrongly = [MadeUp("Who repaired the xyzzy?", 0.6, "A walrus repaired the pier."), MadeUp("xyzzy", None)]
    words = read(page(replace(evaluation, asked=missed, made_up=wrongly), [])).words
    assert words.count("A heron moored here.") == sum(one.full is None for one in missed)
    assert words.count("A walrus repaired the pier.") == 1


def test_the_page_says_of_each_figure_what_it_is_what_would_be_good_and_what_to_do() -> None:
    said = verdicts(found())
    words = "".join(read(page(found(), said)).words).replace("`", "")
    for one in said:
        assert f"{one.meaning.replace('`', '')} Good would be: {one.good.replace('`', '')}." in words
        # Beside the figure, and among what is to be done next.
        assert one.advice is None or words.count(one.advice.replace("`", "")) >= 2, one.figure
    _, _, first = words.partition("What to do next")
    wrong = [first.index(one.figure) for one in said if one.status == "wrong"]
    others = [first.index(one.figure) for one in said if one.status == "warning"]
    assert max(wrong) < min(others)


def test_where_nothing_is_to_be_done_the_page_says_so() -> None:
    good = [one for one in verdicts(found()) if one.status == "ok"]
    assert "Nothing: every figure is good." in "".join(read(page(found(), good)).words)


def test_no_picture_is_titled_with_what_drew_it_and_each_says_what_it_shows() -> None:
    seen = read(page(found(), verdicts(found())))
    assert not any("pygal" in word.casefold() for word in seen.words if "{" not in word)
    pictures = [attributes for tag, attributes in seen.tags if tag == "svg"]
    assert all(picture["role"] == "img" and picture["aria-label"] in seen.words for picture in pictures)


def test_colours_are_those_of_the_page_in_light_and_in_dark() -> None:
    text = page(found(), verdicts(found()))
    light, _, dark = text[: text.index("* {")].partition("prefers-color-scheme: dark")
    named = set(re.findall(r"var\((--[a-z]+)", text))
    assert named == set(re.findall(r"(--[a-z]+):", light)) == set(re.findall(r"(--[a-z]+):", dark))


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


def test_where_no_page_can_be_written_is_told_before_anything_else(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="is a folder"):
        check_report(tmp_path)
    with pytest.raises(InvalidInput, match="there is no folder"):
        check_report(tmp_path / "no" / "report.html")
    (tmp_path / "file").touch()
    with pytest.raises(InvalidInput, match="there is no folder"):
        check_report(tmp_path / "file" / "report.html")
    check_report(tmp_path / "report.html")
    check_report(tmp_path / "file")


def test_where_many_vectors_are_missing_that_is_the_first_thing_to_mend() -> None:
    evaluation = found()
    few = replace(evaluation, store=replace(evaluation.store, missing=Missing(100, 2, 2, 0)))
    many = replace(evaluation, store=replace(evaluation.store, missing=Missing(100, 40, 40, 0)))
    for figure in ("full recall", "false answers"):
        [of_few] = [one.advice or "" for one in verdicts(few) if one.figure == figure]
        [of_many] = [one.advice or "" for one in verdicts(many) if one.figure == figure]
        assert "40 of 100 texts have no vector yet" in of_many
        assert "vector" not in of_few


def test_of_an_empty_pool_only_that_is_said() -> None:
    nothing = found(ranks=())
    bare = Store(MessageCounts(0, 0, 0, 0), PoolRowCounts(0, 0, 0, 0, 0, 0), {}, [], [], None, [], Repeated(0, [], 0))
    empty = replace(nothing, made_up=[], packs=[], store=bare)
    said = verdicts(empty)
    assert headline(said) == "1 figure not measured."
    [only] = [one.advice or "" for one in said if one.advice]
    assert "esker ingest" in only
    words = "".join(read(page(empty, said)).words)
    assert "This pool is empty" in words
    assert not any(heading in words for heading in HEADINGS.values())
    assert not any("0%" in one.shown and one.figure != "false answers" for one in said)


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


@pytest.mark.parametrize(
    ("faults", "status", "said"),
    [
        ((), "ok", None),
        (("repeat",), "warning", "a row that says what a row before it says"),
        (("gone",), "wrong", "a row that is gone"),
        (("expired", "repeat"), "wrong", "a row that has expired; a row that says what a row before it says"),
        (("superseded", "superseded"), "wrong", "a row that is superseded"),
        (("elsewhere",), "wrong", "a row that belongs to another project"),
    ],
)
def test_a_pack_with_a_repeat_is_to_be_looked_at_and_one_with_another_fault_is_wrong(
    faults: tuple[PackFault, ...], status: str, said: str | None
) -> None:
    pack = FreshPack("north", 4, {f"mem_{n}": fault for n, fault in enumerate(faults)}, 90, 15_000, 0)
    [verdict] = [one for one in verdicts(replace(found(), packs=[pack])) if one.about == "packs"]
    assert verdict.status == status
    assert verdict.advice == (said and f"In it: {said}. Which rows those are is in --json.")


def test_that_not_all_rows_were_compared_is_told() -> None:
    evaluation = found()
    crowded = replace(evaluation, store=replace(evaluation.store, repeated=Repeated(9, [], 1_200)))
    for some, told in ((evaluation, False), (crowded, True)):
        [verdict] = [one for one in verdicts(some) if one.figure == "repeated rows"]
        assert verdict.shown.endswith("; 1,200 not compared with all") == told
        assert ("There may be more" in verdict.meaning) == told


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


async def test_the_command_writes_nothing_but_its_page(
    parts: Parts, who: Principal, database_url: str, owner_url: str, tmp_path: Path
) -> None:
    await remember(parts, who, [Note(f"Berth {n} of the eel wharf was dredged by Ottilie.") for n in range(4)])
    before = contents(owner_url)
    assert (await evaluated(database_url, "--report", str(tmp_path / "report.html"))).returncode == 0
    assert contents(owner_url) == before
    assert os.listdir(tmp_path) == ["report.html"]


async def test_a_page_that_cannot_be_written_is_told_before_the_pool_is_looked_at(
    parts: Parts, database_url: str, tmp_path: Path
) -> None:
    done = await evaluated(database_url, "--pool", "nobody", "--report", str(tmp_path))
    assert done.returncode == 1
    assert "is a folder" in done.stderr
    assert "nobody" not in done.stderr


async def test_so_many_days_that_no_calendar_has_them_are_wrong_usage(parts: Parts, database_url: str) -> None:
    done = await evaluated(database_url, "--stale-days", "999999999")
    assert done.returncode == 2
    assert "36500" in done.stderr


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


def test_a_report_or_an_export_never_takes_the_place_of_what_is_no_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InvalidInput, match="no regular file"):
        check_report(tmp_path / "pipe")
    with pytest.raises(OSError, match="no regular file"), replaced(tmp_path / "pipe"):
        pass
    assert (tmp_path / "pipe").is_fifo()
