"""The report of `esker eval`: one page of HTML that needs nothing else, with pictures, for people."""

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from pathlib import Path
from xml.etree import ElementTree

from esker.server import VERSION
from esker.server.cli.evaluation_charts import ages_chart, recall_chart, scores_chart, times_chart
from esker.server.cli.evaluation_verdicts import (
    HEADINGS,
    PoolVerdict,
    Subject,
    VerdictStatus,
    headline,
    is_empty,
    of_subject,
    to_do,
)
from esker.server.cli.pool_file import replaced
from esker.server.core.counts import counted
from esker.server.core.errors import InvalidInput
from esker.server.core.pool.evaluation import DEPTHS, FULL, PoolEvaluation, QuestionOutcome
from esker.server.core.pool.known_answers import QuestionKind

_MOST_SHOWN = 15
_SAYS: Mapping[VerdictStatus, str] = {
    "ok": "✓ good",
    "warning": "! look at this",
    "wrong": "✗ wrong",
    "unknown": "? not measured",
}
_WAYS: Mapping[QuestionKind, str] = {
    "identifier": "around an identifier (a file, a version, a code)",
    "name": "around a name",
    "date": "two words and a date",
    "rare": "rare words",
}
_ABOUT: Mapping[Subject, str] = {
    "answers": "The questions were made from texts of this pool, two or three of their own words each, so the text"
    " that should come back is known. They say whether memory can be found at all. Whoever asks in words of their own"
    " is harder to answer.",
    "vectors": "An embedding model turns each text into a vector, and texts that mean the like have vectors that are"
    " near each other. Without its vector a text is found by its words alone.",
    "rows": "An observer reads messages and writes what matters in them as rows, one fact each. These figures say how"
    " much has been read, and what of it may be in the way.",
    "packs": "A pack is the text that an agent is given when a session begins. These are what new sessions of the"
    " largest projects would be given now.",
}
_WORDS: Mapping[str, str] = {
    "row": "One fact that memory keeps: an observation, a reflection, or a note that somebody wrote.",
    "live": "Neither replaced by something newer (superseded) nor past its time (expired): what recall and packs show.",
    "passage": "A few messages in a row, word for word, searchable for what no row has kept.",
    "reflection": "A row that condenses others.",
    "recall": "The search that agents use: by words and by meaning together.",
    "score": "How sure recall is of a hit, from 0 to 1.",
    "pack": "What a session is shown of memory at its beginning.",
}
_STYLE = """
:root { color-scheme: light dark; --text: #1c2430; --subtle: #4a5565; --line: #d5dae1; --ground: #fff; --box: #f4f6f8;
        --ok: #14632f; --warning: #8a4b00; --wrong: #a3142a; --one: #0072b2; --two: #d55e00; --three: #007f5f;
        --four: #8a4f7d; }
@media (prefers-color-scheme: dark) {
  :root { --text: #e6e9ee; --subtle: #a9b3c0; --line: #3a424d; --ground: #14181d; --box: #1f252c; --ok: #6fcf8f;
          --warning: #f0b060; --wrong: #ff8a94; --one: #56b4e9; --two: #f08c3c; --three: #35c296; --four: #d29bc4; }
}
* { box-sizing: border-box; }
body { font: 16px/1.5 system-ui, sans-serif; color: var(--text); background: var(--ground); max-width: 62rem;
       margin: 2rem auto; padding: 0 1rem; overflow-wrap: anywhere; }
h1 { font-size: 1.7rem; margin-bottom: 0.2rem; } h2 { font-size: 1.3rem; margin: 3rem 0 0.5rem; }
h3 { font-size: 1.05rem; margin: 2rem 0 0.3rem; }
p.sub, p.about, figcaption, dd, .good { color: var(--subtle); } p.sub { margin-top: 0; }
.box { background: var(--box); border-radius: 0.5rem; padding: 0.8rem 1rem; }
li { margin: 0.5rem 0; }
code { font: 0.9em ui-monospace, monospace; background: var(--box); padding: 0.1em 0.3em; border-radius: 0.2em;
       white-space: nowrap; }
table { border-collapse: collapse; width: 100%; font-size: 0.92rem; }
th, td { text-align: left; vertical-align: top; padding: 0.45rem 0.9rem 0.45rem 0;
         border-bottom: 1px solid var(--line); }
table.figures th:first-child { width: 13rem; } table.figures th:nth-child(2) { width: 15rem; }
table.texts { table-layout: fixed; } th.number { width: 10rem; } table.texts th:first-child { width: 26%; }
.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
.ok { color: var(--ok); } .warning { color: var(--warning); } .wrong { color: var(--wrong); font-weight: 600; }
.unknown { color: var(--subtle); }
figure { margin: 1rem 0; overflow-x: auto; } figcaption { font-size: 0.92rem; }
svg { width: 100%; height: auto; min-width: 42rem; max-width: 56rem; }
dt { font-weight: 600; } dd { margin: 0 0 0.5rem; }
@media (max-width: 42rem) {
  tr { display: block; border-bottom: 1px solid var(--line); padding: 0.5rem 0; }
  th { display: none; } td { display: block; border: 0; padding: 0.1rem 0; }
  td.number { text-align: left; white-space: normal; }
  td[data-of]::before { content: attr(data-of) ": "; color: var(--subtle); }
}
""".strip()
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"
_COMMAND = re.compile(r"`([^`]+)`|(?<![\w-])(--[a-z-]+)")
# What no page may hold, and what turns the direction of writing beyond its own text.
_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def check_report(path: Path) -> None:
    """Raise InvalidInput where no page can be written, so that nobody waits for one in vain."""
    target = Path(os.path.realpath(path))
    if target.is_dir():
        raise InvalidInput(f"{path} is a folder.", hint="Name a file to write, such as memory.html.")
    if target.exists() and not target.is_file():
        raise InvalidInput(f"{path} is there, and is no regular file.", hint="Name a file, such as memory.html.")
    if not target.parent.is_dir():
        raise InvalidInput(f"{path}: there is no folder {target.parent}.", hint="Make it, or name another file.")
    if not os.access(target.parent, os.W_OK | os.X_OK):
        raise InvalidInput(f"{path}: nothing may be written to {target.parent}.", hint="Name a file elsewhere.")


def write_report(path: Path, found: PoolEvaluation, said: Sequence[PoolVerdict]) -> None:
    """Write the page to a file; one that is there is replaced. Raises InvalidInput where that cannot be."""
    try:
        with replaced(path) as file:
            file.write(page(found, said).encode(errors="replace"))
    except OSError as error:
        raise InvalidInput(f"{path}: {error.strerror or type(error).__name__}.") from error


def page(found: PoolEvaluation, said: Sequence[PoolVerdict]) -> str:
    """Return the page. Every text of the pool in it is escaped, and nothing on it runs or is loaded."""
    title = f"The memory of pool {found.pool}"
    parts = [
        f"<h1>{_text(title)}</h1>",
        f'<p class="sub">{_text(_when(found))}</p>',
        f'<p class="box">{_text(_in_words(found, said))}</p>',
        "<h2>What to do next</h2>",
        _to_do(said),
        *([] if is_empty(found) else _sections(found, said)),
    ]
    head = (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{_text(title)}</title>\n<style>\n{_STYLE}\n</style></head>\n<body>\n"
    )
    return head + "\n".join(parts) + "\n</body></html>\n"


def _sections(found: PoolEvaluation, said: Sequence[PoolVerdict]) -> list[str]:
    return [
        *_section(said, "answers", *_answers(found)),
        *_section(said, "vectors"),
        *_section(said, "rows", _figure(*ages_chart(found))),
        *_section(said, "packs"),
        "<h2>How long does it take?</h2>",
        _figure(*times_chart(found)),
        _slowest(found.asked),
        "<h2>Words on this page</h2>",
        f"<dl>{''.join(f'<dt>{_text(word)}</dt><dd>{_text(meaning)}</dd>' for word, meaning in _WORDS.items())}</dl>",
    ]


# Words -------------------------------------------------------------------------------------------------------------


def _text(text: str) -> str:
    return escape(_CONTROLS.sub("", text))


def _prose(text: str) -> str:
    """Return our own words, with commands and options set apart."""
    return _COMMAND.sub(lambda match: f"<code>{match[1] or match[2]}</code>", _text(text))


def _of_pool(text: str) -> str:
    """Return a text of the pool, whose direction of writing stays its own."""
    return f"<bdi>{_text(text)}</bdi>"


def _when(found: PoolEvaluation) -> str:
    return (
        f"esker eval, version {VERSION}, {found.moment:%d %B %Y, %H:%M} UTC, seed {found.seed}."
        " Nothing was written to the pool."
    )


def _in_words(found: PoolEvaluation, said: Sequence[PoolVerdict]) -> str:
    if is_empty(found):
        return "This pool is empty: there are neither messages nor rows in it, and so there is little to say."
    rows = found.store.rows
    words = [
        headline(said),
        f"The pool has {counted(rows.live, 'live row')} and {counted(found.store.messages.messages, 'message')}.",
    ]
    if full := found.ranks_by_way().get(FULL):
        right = round(full.recall[max(DEPTHS)] * full.asked)
        words.append(
            f"Of {counted(full.asked, 'question')} made of its own words, {right:,} had their answer among the first"
            f" {max(DEPTHS)} hits, {round(full.recall[1] * full.asked):,} as the very first."
        )
    wrongly = sum(one.score is not None for one in found.made_up)
    words.append(f"Of {counted(len(found.made_up), 'question')} that nothing answers, {wrongly:,} got an answer.")
    return " ".join(words)


# Figures -----------------------------------------------------------------------------------------------------------


def _to_do(said: Sequence[PoolVerdict]) -> str:
    if not (urgent := to_do(said)):
        return "<p>Nothing: every figure is good.</p>"
    return f"<ol>{''.join(map(_to_do_about, urgent))}</ol>"


def _to_do_about(one: PoolVerdict) -> str:
    return (
        f'<li><b>{_text(one.figure)}</b>, {_text(one.shown)} <span class="{one.status}">({_SAYS[one.status]})</span>:'
        f" {_prose(one.advice or '')}</li>"
    )


def _section(said: Sequence[PoolVerdict], subject: Subject, *more: str) -> list[str]:
    figures = of_subject(said, subject)
    shown = _figures(figures) if figures else "<p>There are none yet.</p>"
    return [f"<h2>{HEADINGS[subject]}</h2>", f'<p class="about">{_text(_ABOUT[subject])}</p>', shown, *more]


def _figures(said: Sequence[PoolVerdict]) -> str:
    rows = (
        f'<tr><td><b>{_text(one.figure)}</b><br><span class="{one.status}">{_SAYS[one.status]}</span></td>'
        f"<td>{_text(one.shown)}</td>"
        f'<td>{_prose(one.meaning)} <span class="good">Good would be: {_prose(one.good)}.</span>'
        + (f'<br><span class="{one.status}">→ {_prose(one.advice)}</span>' if one.advice else "")
        + "</td></tr>"
        for one in said
    )
    head = "<tr><th>Figure</th><th>Value</th><th>What it means</th></tr>"
    return f'<table class="figures">{head}{"".join(rows)}</table>'


def _figure(chart: ElementTree.Element | None, caption: str) -> str:
    if chart is None:
        return "<p>There is nothing to draw.</p>"
    chart.set("aria-label", caption)
    drawn = ElementTree.tostring(chart, encoding="unicode", short_empty_elements=True)
    return f"<figure>{drawn}<figcaption>{_text(caption)}</figcaption></figure>"


# Questions ---------------------------------------------------------------------------------------------------------


def _answers(found: PoolEvaluation) -> list[str]:
    return [
        _figure(*recall_chart(found)),
        _ways(found.asked),
        "<h3>How sure are the answers?</h3>",
        _figure(*scores_chart(found)),
        "<h3>What was not found</h3>",
        _not_found(found.asked),
        "<h3>What was answered and should not have been</h3>",
        _made_up(found),
    ]


def _table(columns: Sequence[str], rows: Iterable[Sequence[str]], texts: int, empty: str) -> str:
    """Return a table whose first columns are so many `texts` of the pool, and whose others are short."""
    lines = [
        "<tr>"
        + "".join(
            f'<td data-of="{escape(column)}"{_class(place, texts)}>{_of_pool(cell)}</td>'
            for place, (column, cell) in enumerate(zip(columns, row, strict=True))
        )
        + "</tr>"
        for row in rows
    ]
    if not lines:
        return f"<p>{_text(empty)}</p>"
    head = "".join(f"<th{_class(place, texts)}>{_text(column)}</th>" for place, column in enumerate(columns))
    return f"<table{_TEXTS if texts > 1 else ''}><tr>{head}</tr>{''.join(lines)}</table>"


_TEXTS = ' class="texts"'


def _class(place: int, texts: int) -> str:
    return "" if place < texts else ' class="number"'


def _ways(asked: Sequence[QuestionOutcome]) -> str:
    rows: list[tuple[str, str, str]] = []
    for way, words in _WAYS.items():
        of_way = [one for one in asked if one.question.way == way]
        if of_way:
            right = sum(one.full is not None for one in of_way)
            rows.append((words, f"{len(of_way):,}", f"{right:,} ({right / len(of_way):.0%})"))
    columns = ("Questions", "Asked", f"Found in the first {max(DEPTHS)}")
    return _table(columns, rows, 1, "No question was asked.")


def _slowest(asked: Sequence[QuestionOutcome]) -> str:
    slowest = sorted(asked, key=lambda one: -one.milliseconds)[: _MOST_SHOWN // 3]
    rows = ((one.question.query, f"{one.milliseconds:,.0f} ms") for one in slowest)
    return _table(("The slowest questions", "Time"), rows, 1, "No question was asked.")


def _not_found(asked: Sequence[QuestionOutcome]) -> str:
    missed = [one for one in asked if one.full is None]
    rows = (
        (one.question.query, one.question.text, _rank(one.keyword), _rank(one.meaning.exact))
        for one in missed[:_MOST_SHOWN]
    )
    columns = ("Question", "The text that should have come", "By words alone", "By meaning alone")
    shown = _table(columns, rows, 2, "Every answer was found." if asked else "No question was asked.")
    if missed:
        shown = f"<p>{_prose(_WHY_MISSED)}</p>{shown}"
    more = len(missed) - _MOST_SHOWN
    return shown + (f"<p>{_prose(f'… and {more:,} more; --json has them all, with ids.')}</p>" if more > 0 else "")


_WHY_MISSED = (
    "Where one of the two ways has a place, recall put other texts first. Where neither has, many texts hold the same"
    " words: no fault, if you could not tell either. `esker recall QUESTION --explain` shows what came instead."
)


def _rank(rank: int | None) -> str:
    return "not found" if rank is None else f"place {rank}"


def _made_up(found: PoolEvaluation) -> str:
    wrongly = [(one.query, one.answer or "", f"{one.score:.2f}") for one in found.made_up if one.score is not None]
    columns = ("Question", "The first hit", "Its score")
    return _table(columns, wrongly[:_MOST_SHOWN], 2, "Nothing was.")
