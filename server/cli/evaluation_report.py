"""The report of `esker eval`: one page of HTML that needs nothing else, with pictures, for people."""

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from pathlib import Path
from xml.etree import ElementTree

from server import VERSION
from server.cli.evaluation_charts import ages_chart, recall_chart, scores_chart, times_chart
from server.cli.pool_file import replaced
from server.core.counts import counted
from server.core.errors import InvalidInput
from server.core.pool_evaluation import DEPTHS, Asked, PoolEvaluation
from server.core.pool_verdicts import Status, Verdict, headline

_MOST_SHOWN = 15
_SAYS: Mapping[Status, str] = {"ok": "good", "warning": "look at this", "wrong": "wrong", "unknown": "not measured"}
_WAYS = {"identifier": "an identifier", "name": "a name", "date": "words and a date", "rare": "rare words"}
_STYLE = """
:root { color-scheme: light; }
body { font: 16px/1.5 system-ui, sans-serif; color: #1c2430; background: #fff; max-width: 62rem; margin: 2rem auto;
       padding: 0 1rem; }
h1 { font-size: 1.7rem; margin-bottom: 0.2rem; } h2 { font-size: 1.2rem; margin-top: 2.5rem; }
p.sub { color: #4a5565; margin-top: 0; }
table { border-collapse: collapse; width: 100%; font-size: 0.92rem; }
th, td { text-align: left; vertical-align: top; padding: 0.4rem 0.7rem 0.4rem 0; border-bottom: 1px solid #d5dae1; }
td.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
td.query { overflow-wrap: anywhere; }
.ok { color: #14632f; } .warning { color: #8a4b00; } .wrong { color: #a3142a; font-weight: 600; }
.unknown { color: #4a5565; }
small { color: #4a5565; }
figure { margin: 1rem 0; } figcaption { color: #4a5565; font-size: 0.92rem; }
svg { width: 100%; height: auto; max-width: 56rem; }
""".strip()
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"


def write_report(path: Path, found: PoolEvaluation, said: Sequence[Verdict]) -> None:
    """Write the page to a file; one that is there is replaced. Raises InvalidInput where that cannot be."""
    try:
        with replaced(path) as file:
            file.write(page(found, said).encode())
    except OSError as error:
        raise InvalidInput(f"{error.filename or path}: {error.strerror or type(error).__name__}.") from error


def page(found: PoolEvaluation, said: Sequence[Verdict]) -> str:
    """Return the page. Every text of the pool in it is escaped, and nothing on it runs or is loaded."""
    title = f"The memory of pool {found.pool}"
    parts = [
        f"<h1>{escape(title)}</h1>",
        f'<p class="sub">{escape(_when(found))}</p>',
        f"<p>{escape(_in_words(found, said))}</p>",
        *_section("What was found", _verdicts(said)),
        *_section("Can it be found?", _figure(*recall_chart(found)), _ways(found.asked)),
        *_section("How sure are the answers?", _figure(*scores_chart(found))),
        *_section("What there is", _figure(*ages_chart(found))),
        *_section("How long does it take?", _figure(*times_chart(found)), _slowest(found.asked)),
        *_section("What was not found", _not_found(found.asked)),
        *_section("What was answered and should not have been", _made_up(found)),
    ]
    head = (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title>\n<style>\n{_STYLE}\n</style></head>\n<body>\n"
    )
    return head + "\n".join(parts) + "\n</body></html>\n"


def _section(heading: str, *blocks: str) -> list[str]:
    return [f"<h2>{escape(heading)}</h2>", *blocks]


def _when(found: PoolEvaluation) -> str:
    return f"Esker {VERSION}, {found.moment:%d %B %Y, %H:%M} UTC, seed {found.seed}. Nothing was written to the pool."


def _in_words(found: PoolEvaluation, said: Sequence[Verdict]) -> str:
    rows = found.store.rows
    words = [
        headline(said),
        f"The pool has {counted(rows.live, 'live row')} of {found.store.messages.messages:,} messages.",
    ]
    if full := found.ranks_by_way().get("full recall"):
        right = round(full.recall[max(DEPTHS)] * full.asked)
        words.append(
            f"Of {counted(full.asked, 'question')} made of its own words, {right:,} had their answer among the first"
            f" {max(DEPTHS)} hits, {round(full.recall[1] * full.asked):,} as the very first."
        )
    wrongly = sum(one.score is not None for one in found.made_up)
    words.append(f"Of {counted(len(found.made_up), 'question')} that nothing answers, {wrongly:,} got an answer.")
    return " ".join(words)


def _figure(chart: ElementTree.Element | None, caption: str) -> str:
    if chart is None:
        return "<p>There is nothing to draw.</p>"
    drawn = ElementTree.tostring(chart, encoding="unicode", short_empty_elements=True)
    return f"<figure>{drawn}<figcaption>{escape(caption)}</figcaption></figure>"


def _verdicts(said: Sequence[Verdict]) -> str:
    rows = (
        f'<tr><td><b>{escape(one.figure)}</b><br><span class="{one.status}">{_SAYS[one.status]}</span></td>'
        f"<td>{escape(one.shown)}</td><td>{escape(one.meaning)}"
        + (f'<br><span class="{one.status}">→ {escape(one.advice)}</span>' if one.advice else "")
        + "</td></tr>"
        for one in said
    )
    return f"<table><tr><th>Figure</th><th>Value</th><th>What it means</th></tr>{''.join(rows)}</table>"


def _table(columns: Sequence[str], rows: Iterable[Sequence[str]], empty: str) -> str:
    """Return a table whose first column is a question and whose others are short."""
    lines = [
        f'<tr><td class="query">{escape(query)}</td>'
        + "".join(f'<td class="number">{escape(c)}</td>' for c in more)
        + "</tr>"
        for query, *more in rows
    ]
    if not lines:
        return f"<p>{escape(empty)}</p>"
    head = "".join(f"<th>{escape(column)}</th>" for column in columns)
    return f"<table><tr>{head}</tr>{''.join(lines)}</table>"


def _ways(asked: Sequence[Asked]) -> str:
    rows: list[tuple[str, str, str]] = []
    for way, words in _WAYS.items():
        of_way = [one for one in asked if one.question.way == way]
        if of_way:
            right = sum(one.full is not None for one in of_way)
            rows.append((f"asked by {words}", f"{len(of_way):,}", f"{right / len(of_way):.0%}"))
    return _table(("Questions", "How many", "Found in the first 10"), rows, "No question was asked.")


def _slowest(asked: Sequence[Asked]) -> str:
    slowest = sorted(asked, key=lambda one: -one.milliseconds)[: _MOST_SHOWN // 3]
    rows = ((one.question.query, f"{one.milliseconds:,.0f} ms") for one in slowest)
    return _table(("The slowest questions", "Time"), rows, "No question was asked.")


def _not_found(asked: Sequence[Asked]) -> str:
    missed = [one for one in asked if one.full is None]
    rows = ((one.question.query, one.question.id, _rank(one.keyword), _rank(one.meaning.exact)) for one in missed)
    shown = _table(
        ("Question", "Its answer", "By keyword", "By meaning"), list(rows)[:_MOST_SHOWN], "Every answer was found."
    )
    more = len(missed) - _MOST_SHOWN
    return shown + (f"<p>… and {more:,} more; --json has them all.</p>" if more > 0 else "")


def _rank(rank: int | None) -> str:
    return "—" if rank is None else f"place {rank}"


def _made_up(found: PoolEvaluation) -> str:
    wrongly = [(one.query, f"{one.score:.2f}") for one in found.made_up if one.score is not None]
    return _table(("Question", "Score of the first hit"), wrongly[:_MOST_SHOWN], "Nothing was.")
