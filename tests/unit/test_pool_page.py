"""The verdicts on a pool, and the page that shows them."""

import re
from dataclasses import replace
from datetime import UTC, datetime
from html.parser import HTMLParser
from xml.etree import ElementTree

import pytest

from esker.server.core.pool.evaluation import (
    ByMeaning,
    FreshPack,
    IndexProbe,
    MadeUpQuestion,
    MessageCounts,
    Missing,
    PackFault,
    PackWorth,
    PoolEvaluation,
    PoolRowCounts,
    QuestionOutcome,
    Repeated,
    StoreCounts,
    VectorTable,
)
from esker.server.core.pool.known_answers import KnownAnswer
from esker.server.core.pool.row_worth import Worthless
from esker.server.evaluation.bar_chart import BarChart, draw
from esker.server.evaluation.figures import HEADINGS
from esker.server.evaluation.page import page
from esker.server.evaluation.verdicts import VerdictStatus, headline, verdicts

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
    store = StoreCounts(
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
        "default", moment, 0, 90, asked, [MadeUpQuestion(text, 0.6, text), MadeUpQuestion("xyzzy", None)], store, packs
    )


class Tags(HTMLParser):
    """The tags and the texts of a page, as a browser reads them."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.words.append(data)


def read(text: str) -> Tags:
    """Return the tags and texts of a page."""
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


def test_a_text_cannot_change_the_writing_direction_of_the_page() -> None:
    turned = "\u202eevil\u2066 \x07 ספינת הדייג"
    text = page(found(turned), verdicts(found(turned)))
    assert not re.search("[\u202a-\u202e\u2066-\u2069\x07]", text)
    assert text.count("<bdi>evil  ספינת הדייג</bdi>") >= 4


def test_the_page_shows_missed_texts_and_false_answers() -> None:
    evaluation = found()
    missed = [replace(one, question=replace(one.question, text="A heron moored here.")) for one in evaluation.asked]
    wrongly = [
        MadeUpQuestion("Who repaired the xyzzy?", 0.6, "A walrus repaired the pier."),
        MadeUpQuestion("xyzzy", None),
    ]
    words = read(page(replace(evaluation, asked=missed, made_up=wrongly), [])).words
    assert words.count("A heron moored here.") == sum(one.full is None for one in missed)
    assert words.count("A walrus repaired the pier.") == 1


def test_the_page_explains_each_figure_and_lists_advice_by_urgency() -> None:
    said = verdicts(found())
    words = "".join(read(page(found(), said)).words).replace("`", "")
    for one in said:
        assert f"{one.meaning.replace('`', '')} Good: {one.good.replace('`', '')}." in words
        # Beside the figure, and in the list of next steps.
        assert one.advice is None or words.count(one.advice.replace("`", "")) >= 2, one.figure
    _, _, first = words.partition("What to do next")
    wrong = [first.index(one.figure) for one in said if one.status == "wrong"]
    others = [first.index(one.figure) for one in said if one.status == "warning"]
    assert max(wrong) < min(others)


def test_a_search_by_meaning_is_not_judged_while_texts_wait_for_their_vectors() -> None:
    def status(missing: Missing, ranks: tuple[int | None, ...]) -> tuple[VerdictStatus, str | None]:
        evaluation = found(ranks=ranks)
        said = verdicts(replace(evaluation, store=replace(evaluation.store, missing=missing)))
        [one] = [verdict for verdict in said if verdict.figure == "by meaning alone"]
        return one.status, one.advice

    queued, none_missing = Missing(9, 9, 9, 0), Missing(9, 0, 0, 0)
    judged, advice = status(queued, (None,) * 15)
    assert judged == "unknown"
    assert "9 of 9 texts have no vector yet" in (advice or "")
    assert status(none_missing, (None,) * 15) == ("ok", None), "agents get full recall, which is judged for itself"
    assert status(queued, (1,) * 15) == ("ok", None)


def test_a_page_without_advice_says_that_every_figure_is_good() -> None:
    good = [one for one in verdicts(found()) if one.status == "ok"]
    assert "Nothing: every figure is good." in "".join(read(page(found(), good)).words)


def test_each_picture_has_its_caption_as_its_label() -> None:
    seen = read(page(found(), verdicts(found())))
    pictures = [attributes for tag, attributes in seen.tags if tag == "svg"]
    assert all(picture["role"] == "img" and picture["aria-label"] in seen.words for picture in pictures)


def test_every_colour_is_defined_for_light_and_dark() -> None:
    text = page(found(), verdicts(found()))
    light, _, dark = text[: text.index("* {")].partition("prefers-color-scheme: dark")
    named = set(re.findall(r"var\((--[a-z]+)", text))
    assert named == set(re.findall(r"(--[a-z]+):", light)) == set(re.findall(r"(--[a-z]+):", dark))


def test_every_picture_is_well_formed_with_an_id_of_its_own() -> None:
    text = page(found(), verdicts(found()))
    drawn = re.findall(r"<svg.*?</svg>", text, re.DOTALL)
    pictures = [ElementTree.fromstring(each) for each in drawn]  # noqa: S314 - we wrote them
    assert len(pictures) == 4
    assert len({picture.get("id") for picture in pictures}) == 4
    assert len(re.findall("<figcaption>.{20,}</figcaption>", text)) == 4


def test_the_page_states_its_figures_in_words() -> None:
    words = " ".join("".join(read(page(found(), verdicts(found()))).words).split())
    assert (
        "Of 15 questions made from its own words, 10 had their answer among the first 10 hits, 5 as the first hit."
        in words
    )
    assert "Of 2 questions without an answer, 1 got one." in words
    for figure in ("full recall", "coverage", "orphaned rows", "pack of trout salmon"):
        assert figure in words


def test_the_same_evaluation_makes_the_same_page() -> None:
    assert page(found(), verdicts(found())) == page(found(), verdicts(found()))


def test_a_page_without_data_says_that_there_is_nothing_to_draw() -> None:
    nothing = found(ranks=())
    nothing = replace(nothing, made_up=[], packs=[], store=replace(nothing.store, by_age={}))
    assert page(nothing, verdicts(nothing)).count("There is nothing to draw.") == 4


def test_many_missing_vectors_are_the_first_advice_on_poor_answers() -> None:
    evaluation = found()
    few = replace(evaluation, store=replace(evaluation.store, missing=Missing(100, 2, 2, 0)))
    many = replace(evaluation, store=replace(evaluation.store, missing=Missing(100, 40, 40, 0)))
    for figure in ("full recall", "false answers"):
        [of_few] = [one.advice or "" for one in verdicts(few) if one.figure == figure]
        [of_many] = [one.advice or "" for one in verdicts(many) if one.figure == figure]
        assert "40 of 100 texts have no vector yet" in of_many
        assert "vector" not in of_few


def test_an_empty_pool_gets_one_verdict_and_no_sections() -> None:
    nothing = found(ranks=())
    bare = StoreCounts(
        MessageCounts(0, 0, 0, 0), PoolRowCounts(0, 0, 0, 0, 0, 0), {}, [], [], None, [], Repeated(0, [], 0)
    )
    empty = replace(nothing, made_up=[], packs=[], store=bare)
    said = verdicts(empty)
    assert headline(said) == "1 figure not measured."
    [only] = [one.advice or "" for one in said if one.advice]
    assert "esker ingest" in only
    words = "".join(read(page(empty, said)).words)
    assert "This pool is empty" in words
    assert not any(heading in words for heading in HEADINGS.values())
    assert not any("0%" in one.shown and one.figure != "false answers" for one in said)


def test_verdicts_separate_faults_from_warnings() -> None:
    said = {verdict.figure: verdict.status for verdict in verdicts(found())}
    assert {figure for figure, status in said.items() if status == "wrong"} == {
        "index of memory vectors",
        "coverage",
        "pack of trout salmon",
    }
    assert {figure for figure, status in said.items() if status == "ok"} == {"by words alone", "superseded rows"}
    # Two of nine texts have no vector yet.
    assert {figure for figure, status in said.items() if status == "unknown"} == {
        "by meaning alone",
        "by meaning, with the index",
    }
    for verdict in verdicts(found()):
        assert (verdict.advice is None) == (verdict.status == "ok"), verdict


@pytest.mark.parametrize(
    ("wasted", "status", "shown"),
    [
        ({}, "ok", "100% of 1,000 tokens of rows"),
        ({"order": 200}, "ok", "80% of 1,000 tokens of rows; 1 order (20%)"),
        ({"no subject": 150, "repeat": 60}, "warning",
         "79% of 1,000 tokens of rows; 1 row without a subject (15%); 1 repeat (6%)"),
    ],
)  # fmt: skip
def test_a_pack_that_wastes_over_a_fifth_of_its_tokens_is_a_warning(
    wasted: dict[Worthless, int], status: VerdictStatus, shown: str
) -> None:
    worth = PackWorth(1_000, {f"mem_{reason}": reason for reason in wasted}, wasted)
    pack = FreshPack("north", 9, {}, 1_200, 15_000, 0, worth)
    [_, verdict] = [one for one in verdicts(replace(found(), packs=[pack])) if one.about == "packs"]
    assert (verdict.figure, verdict.status, verdict.shown) == ("worth of the pack of north", status, shown)


@pytest.mark.parametrize(
    ("faults", "status", "said"),
    [
        ((), "ok", None),
        (("repeat",), "warning", "a row that repeats an earlier row"),
        (("gone",), "wrong", "a row that is gone"),
        (("expired", "repeat"), "wrong", "a row that has expired; a row that repeats an earlier row"),
        (("superseded", "superseded"), "wrong", "a row that is superseded"),
        (("elsewhere",), "wrong", "a row that belongs to another project"),
    ],
)
def test_a_repeat_in_a_pack_is_a_warning_and_any_other_fault_is_wrong(
    faults: tuple[PackFault, ...], status: str, said: str | None
) -> None:
    pack = FreshPack("north", 4, {f"mem_{n}": fault for n, fault in enumerate(faults)}, 90, 15_000, 0)
    [verdict] = [one for one in verdicts(replace(found(), packs=[pack])) if one.about == "packs"]
    assert verdict.status == status
    assert verdict.advice == (said and f"It contains {said}. --json has the ids.")


def test_rows_that_were_not_compared_are_reported() -> None:
    evaluation = found()
    crowded = replace(evaluation, store=replace(evaluation.store, repeated=Repeated(9, [], 1_200)))
    for some, told in ((evaluation, False), (crowded, True)):
        [verdict] = [one for one in verdicts(some) if one.figure == "repeated rows"]
        assert verdict.shown.endswith("; 1,200 not compared with all") == told
        assert ("There may be more" in verdict.meaning) == told


# Charts ------------------------------------------------------------------------------------------------------------


def bars(chart: BarChart) -> list[tuple[str, float, float, float]]:
    """Return class, x, y and height of each bar, then of each mark of the legend."""
    root = ElementTree.fromstring(draw(chart))  # noqa: S314 - we wrote it
    drawn = [each.attrib for each in root.iter() if each.tag.endswith("rect")]
    return [(each["class"], float(each["x"]), float(each["y"]), float(each["height"])) for each in drawn]


def test_bars_are_as_high_as_their_values_and_stand_on_one_line() -> None:
    drawn = bars(BarChart("n", "rows", ["a", "b", "c"], {"s": [10, 20, 0]}, "caption", top=40))
    assert [of for of, *_ in drawn] == ["one", "one"]
    (_, _, low, half), (_, _, high, whole) = drawn
    assert whole == pytest.approx(2 * half, abs=0.2)
    assert low + half == pytest.approx(high + whole, abs=0.2)


def test_stacked_bars_stand_on_each_other() -> None:
    [(_, x, low, _), (_, above, high, height)] = bars(
        BarChart("n", "rows", ["a"], {"s": [3], "t": [5]}, "caption", stacked=True)
    )[:2]
    assert x == above
    assert high + height == pytest.approx(low, abs=0.2)
    assert high >= 0, "the axis reaches the sum"


@pytest.mark.parametrize("highest", [0.4, 1, 3, 7, 9, 10, 11, 26, 99, 101, 4_999, 1_234_567])
def test_every_bar_fits_under_at_most_six_lines_of_whole_numbers(highest: float) -> None:
    text = draw(BarChart("n", "ms", ["a"], {"s": [highest]}, "caption"))
    marks = [int(mark.replace(",", "")) for mark in re.findall(r'text-anchor="end">([^<]*)<', text)]
    assert 2 <= len(marks) <= 6
    assert marks == sorted(set(marks))
    assert marks[0] == 0
    assert marks[-1] >= highest
