"""The page of `esker eval`: one HTML file with charts, for people; it needs no other file."""

import re
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from pathlib import Path

from esker.server import VERSION
from esker.server.core.counts import counted
from esker.server.core.pool.evaluation import DEPTHS, FULL, PoolEvaluation, QuestionOutcome
from esker.server.core.pool.known_answers import QuestionKind
from esker.server.evaluation.bar_chart import BarChart, draw
from esker.server.evaluation.charts import ages_chart, recall_chart, scores_chart, times_chart
from esker.server.evaluation.figures import HEADINGS, Subject
from esker.server.evaluation.verdicts import PoolVerdict, VerdictStatus, headline, is_empty, of_subject, to_do

_MOST_SHOWN = 15
_MOST_SLOWEST = 5
_STATUS: Mapping[VerdictStatus, str] = {
    "ok": "✓ good",
    "warning": "! look at this",
    "wrong": "✗ wrong",
    "unknown": "? not measured",
}
_KINDS: Mapping[QuestionKind, str] = {
    "identifier": "around an identifier (a file, a version, a code)",
    "name": "around a name",
    "date": "two words and a date",
    "rare": "rare words",
}
_ABOUT: Mapping[Subject, str] = {
    "answers": "The questions were made from texts of this pool, two or three of their own words each, so the right"
    " text is known. They measure whether memory can be found at all. A question in other words is harder to answer.",
    "vectors": "An embedding model turns each text into a vector, and texts with a similar meaning have vectors near"
    " each other. Without its vector a text is found by keywords alone.",
    "rows": "An observer reads messages and writes their important facts as rows, one fact each. These figures say how"
    " much has been read, and which rows may be useless.",
    "packs": "A pack is the text that an agent gets when a session begins. These packs are the ones that new sessions"
    " of the largest projects would get now.",
}
_WORDS: Mapping[str, str] = {
    "row": "One fact that memory keeps: an observation, a reflection, or a note that an agent or a person wrote.",
    "live": "Neither superseded by a newer row nor expired: shown by recall and packs.",
    "passage": "A few consecutive messages, verbatim and searchable, for facts that no row has kept.",
    "reflection": "A row that condenses other rows.",
    "recall": "The search that agents use: by words and by meaning together.",
    "score": "How sure recall is of a hit, from 0 to 1.",
    "pack": "The memory that a session gets at its beginning.",
}
_STYLE = (Path(__file__).parent / "page.css").read_text(encoding="utf-8")
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"
_COMMAND = re.compile(r"`([^`]+)`|(?<![\w-])(--[a-z-]+)")
# Control characters, and those that change the direction of the text after them.
_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
_WHY_MISSED = (
    "If one of the two ways has a rank, recall put other texts first. If neither has one, many texts contain the same"
    " words, which is not a fault if you could not tell them apart either. `esker recall QUESTION --explain` shows the"
    " texts that came instead."
)


def page(evaluation: PoolEvaluation, verdicts: Sequence[PoolVerdict]) -> str:
    """Return the page. Every text of the pool in it is escaped; it runs nothing and loads nothing."""
    title = f"The memory of pool {evaluation.pool}"
    parts = [
        f"<h1>{_text(title)}</h1>",
        f'<p class="sub">{_text(_about_run(evaluation))}</p>',
        f'<p class="box">{_text(_in_words(evaluation, verdicts))}</p>',
        "<h2>What to do next</h2>",
        _to_do(verdicts),
        *([] if is_empty(evaluation) else _sections(evaluation, verdicts)),
    ]
    head = (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{_text(title)}</title>\n<style>\n{_STYLE}</style></head>\n<body>\n"
    )
    return head + "\n".join(parts) + "\n</body></html>\n"


def _sections(evaluation: PoolEvaluation, verdicts: Sequence[PoolVerdict]) -> list[str]:
    words = "".join(f"<dt>{_text(word)}</dt><dd>{_text(meaning)}</dd>" for word, meaning in _WORDS.items())
    return [
        *_section(verdicts, "answers", *_answers(evaluation)),
        *_section(verdicts, "vectors"),
        *_section(verdicts, "rows", _figure(ages_chart(evaluation))),
        *_section(verdicts, "packs"),
        "<h2>How long does it take?</h2>",
        _figure(times_chart(evaluation)),
        _slowest(evaluation.asked),
        "<h2>Words on this page</h2>",
        f"<dl>{words}</dl>",
    ]


def _section(verdicts: Sequence[PoolVerdict], subject: Subject, *more: str) -> list[str]:
    figures = of_subject(verdicts, subject)
    shown = _figures(figures) if figures else "<p>None yet.</p>"
    return [f"<h2>{HEADINGS[subject]}</h2>", f'<p class="about">{_text(_ABOUT[subject])}</p>', shown, *more]


# Text --------------------------------------------------------------------------------------------------------------


def _text(text: str) -> str:
    return escape(_CONTROLS.sub("", text))


def _prose(text: str) -> str:
    """Return our own words, with commands and options as code."""
    return _COMMAND.sub(lambda match: f"<code>{match[1] or match[2]}</code>", _text(text))


def _of_pool(text: str) -> str:
    """Return a text of the pool, isolated so that its writing direction does not affect the page."""
    return f"<bdi>{_text(text)}</bdi>"


def _about_run(evaluation: PoolEvaluation) -> str:
    return (
        f"esker eval, version {VERSION}, {evaluation.moment:%d %B %Y, %H:%M} UTC, seed {evaluation.seed}."
        " Nothing was written to the pool."
    )


def _in_words(evaluation: PoolEvaluation, verdicts: Sequence[PoolVerdict]) -> str:
    if is_empty(evaluation):
        return "This pool is empty: it has neither messages nor rows."
    store = evaluation.store
    words = [
        headline(verdicts),
        f"The pool has {counted(store.rows.live, 'live row')} and {counted(store.messages.messages, 'message')}.",
    ]
    if full := evaluation.ranks_by_way().get(FULL):
        right = round(full.recall[max(DEPTHS)] * full.asked)
        words.append(
            f"Of {counted(full.asked, 'question')} made from its own words, {right:,} had their answer among the first"
            f" {max(DEPTHS)} hits, {round(full.recall[1] * full.asked):,} as the first hit."
        )
    wrong = sum(one.score is not None for one in evaluation.made_up)
    words.append(f"Of {counted(len(evaluation.made_up), 'question')} without an answer, {wrong:,} got one.")
    return " ".join(words)


# Figures -----------------------------------------------------------------------------------------------------------


def _to_do(verdicts: Sequence[PoolVerdict]) -> str:
    items = (
        f'<li><b>{_text(one.figure)}</b>, {_text(one.shown)} <span class="{one.status}">({_STATUS[one.status]})</span>:'
        f" {_prose(one.advice or '')}</li>"
        for one in to_do(verdicts)
    )
    shown = "".join(items)
    return f"<ol>{shown}</ol>" if shown else "<p>Nothing: every figure is good.</p>"


def _figures(verdicts: Sequence[PoolVerdict]) -> str:
    rows = (
        f'<tr><td><b>{_text(one.figure)}</b><br><span class="{one.status}">{_STATUS[one.status]}</span></td>'
        f"<td>{_text(one.shown)}</td>"
        f'<td>{_prose(one.meaning)} <span class="good">Good: {_prose(one.good)}.</span>'
        + (f'<br><span class="{one.status}">→ {_prose(one.advice)}</span>' if one.advice else "")
        + "</td></tr>"
        for one in verdicts
    )
    head = "<tr><th>Figure</th><th>Value</th><th>Meaning</th></tr>"
    return f'<table class="figures">{head}{"".join(rows)}</table>'


def _figure(chart: BarChart) -> str:
    if not chart.series:
        return "<p>There is nothing to draw.</p>"
    return f"<figure>{draw(chart)}<figcaption>{_text(chart.caption)}</figcaption></figure>"


# Questions ---------------------------------------------------------------------------------------------------------


def _answers(evaluation: PoolEvaluation) -> list[str]:
    return [
        _figure(recall_chart(evaluation)),
        _by_kind(evaluation.asked),
        "<h3>How sure are the answers?</h3>",
        _figure(scores_chart(evaluation)),
        "<h3>Texts that were not found</h3>",
        _not_found(evaluation.asked),
        "<h3>Answers that should not exist</h3>",
        _made_up_section(evaluation),
    ]


def _table(columns: Sequence[str], rows: Iterable[Sequence[str]], texts: int, empty: str) -> str:
    """Return a table whose first `texts` columns hold texts, and the others numbers; `empty` if it has no row."""
    classes = [*[""] * texts, *[' class="number"'] * (len(columns) - texts)]
    lines = [
        "".join(
            f'<td data-of="{escape(column)}"{of}>{_of_pool(cell)}</td>'
            for column, of, cell in zip(columns, classes, row, strict=True)
        )
        for row in rows
    ]
    if not lines:
        return f"<p>{_text(empty)}</p>"
    head = "".join(f"<th{of}>{_text(column)}</th>" for column, of in zip(columns, classes, strict=True))
    wide = ' class="texts"' if texts > 1 else ""
    return f"<table{wide}>{''.join(f'<tr>{line}</tr>' for line in (head, *lines))}</table>"


def _by_kind(asked: Sequence[QuestionOutcome]) -> str:
    rows: list[tuple[str, str, str]] = []
    for kind, words in _KINDS.items():
        of_kind = [one for one in asked if one.question.way == kind]
        if of_kind:
            right = sum(one.full is not None for one in of_kind)
            rows.append((words, f"{len(of_kind):,}", f"{right:,} ({right / len(of_kind):.0%})"))
    columns = ("Questions", "Asked", f"Found in the first {max(DEPTHS)}")
    return _table(columns, rows, 1, "No question was asked.")


def _slowest(asked: Sequence[QuestionOutcome]) -> str:
    slowest = sorted(asked, key=lambda one: -one.milliseconds)[:_MOST_SLOWEST]
    rows = ((one.question.query, f"{one.milliseconds:,.0f} ms") for one in slowest)
    return _table(("The slowest questions", "Time"), rows, 1, "No question was asked.")


def _not_found(asked: Sequence[QuestionOutcome]) -> str:
    missed = [one for one in asked if one.full is None]
    rows = (
        (one.question.query, one.question.text, _rank(one.keyword), _rank(one.meaning.exact))
        for one in missed[:_MOST_SHOWN]
    )
    columns = ("Question", "The right text", "By words alone", "By meaning alone")
    shown = _table(columns, rows, 2, "Every answer was found." if asked else "No question was asked.")
    why = f"<p>{_prose(_WHY_MISSED)}</p>" if missed else ""
    more = len(missed) - _MOST_SHOWN
    return why + shown + (f"<p>{_prose(f'… and {more:,} more; --json has all, with ids.')}</p>" if more > 0 else "")


def _rank(rank: int | None) -> str:
    return "not found" if rank is None else f"rank {rank}"


def _made_up_section(evaluation: PoolEvaluation) -> str:
    wrong = [(one.query, one.answer or "", f"{one.score:.2f}") for one in evaluation.made_up if one.score is not None]
    return _table(("Question", "The first hit", "Its score"), wrong[:_MOST_SHOWN], 2, "None.")
