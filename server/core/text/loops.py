"""Detects a language model's output that repeats itself without end.

Three kinds of repetition are detected:

- a loop: the same stretch over and over, back to back, however long it is;
- a count: a loop of words in which nothing but a counter changes ("Step 1: done. Step 2: done. …");
- a shuffle: a few lines or sentences again and again, in any order.

Each must be long and make up much of the text, so that a refrain, a horizontal rule or a table does not count.

The thresholds come from 46 million characters of other people's texts: 10,940 of 200 characters or more from
transcripts and chats (assistants, people, tool results), 3,315 files of code, documentation, licences and data.
Loops of three rounds and more cover over a fifth of two of them only, and these two are real: the end of a path
25,497 times (96 %) and a line of a hook 708 times (85 %). Counts of ten rounds and more cover 18 % at most.
Lines and sentences that come eight times and more cover a third at most, but for the hook's.

A compression ratio with a share of repeated lines is shorter and decides worse. On 46 repetitive texts and 55 ordinary
ones, of which these rules misjudge none, its best thresholds (zlib 9.5 or 30 % repeated lines) miss 2 counts and reject
5 ordinary texts, among them tool summaries that differ in a name and a number (ratio 11); thresholds that reject none
miss 36. On 6,776 texts from transcripts and chats, 7.0 million characters, it rejects 15 and these rules none.
"""

import operator
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

_LOOP_TIMES = 3
_LOOP_CHARS = 200
_LOOP_SHARE = 0.4
# Minimum characters of a loop without letters: a shorter one can be a horizontal rule or an empty table.
_RULE_CHARS = 400

_COUNT_TIMES = 30
_COUNT_CHARS = 400
_COUNT_SHARE = 0.6

_SHUFFLE_TIMES = 8
_SHUFFLE_CHARS = 400
_SHUFFLE_SHARE = 0.7
# Minimum characters of a sentence that counts; shorter ones, such as brackets and "Yes.", recur in any text.
_SENTENCE_CHARS = 12

# Every `_STEP` characters, a window of `_WINDOW` characters is searched for again, to find the period of a repetition.
_WINDOW = 16
_STEP = 8
# Maximum periods that are tried: a repetition inside the repeated block has a period of its own.
_PERIODS = 12

_ROWS_ALIKE = 2
_SHOWN_CHARS = 60

_NUMBER = re.compile(r"\d{1,18}")
_SENTENCE_END = re.compile(r"\n|[.!?](?=\s)|[。！？]")
_LONG_MATCH = re.compile(rb"(?<!\x01)\x01{8,}")


@dataclass(frozen=True, slots=True)
class _Run:
    """A stretch that repeats itself every `period` characters, its first round included."""

    start: int
    end: int
    period: int

    @property
    def length(self) -> int:
        return self.end - self.start

    @property
    def times(self) -> int:
        return self.length // self.period

    def unit(self, text: str) -> str:
        return text[self.start : self.start + self.period]


def degeneration(text: str) -> str | None:
    """Return which part of a text repeats and how often, or None if the text is not degenerate.

    Takes time in proportion to the text: about a second for a megabyte.
    """
    return _loop(text) or _count(text) or _shuffle(text)


def degenerate_rows(texts: Sequence[str]) -> str | None:
    """Return why the rows of one answer are degenerate, or None.

    More than two rows with the same words (except for case and space) are degenerate, and so is a row that repeats
    itself.
    """
    wordings = Counter(" ".join(text.casefold().split()) for text in texts)
    wording, times = max(wordings.items(), key=lambda item: item[1], default=("", 0))
    if times > _ROWS_ALIKE:
        return f"{times} rows say {_shown(wording)}"
    return next(filter(None, map(degeneration, texts)), None)


def _loop(text: str) -> str | None:
    runs = [run for run in _runs(text, _LOOP_CHARS, _LOOP_TIMES) if _is_loop(run, text)]
    if (share := _share(runs, text)) < _LOOP_SHARE:
        return None
    longest = max(runs, key=lambda run: (run.length, run.times))
    return f"{_shown(longest.unit(text))} repeats {longest.times:,} times in a row; loops are {share:.0%} of the text"


def _is_loop(run: _Run, text: str) -> bool:
    unit = run.unit(text)
    return _has_letter(unit) or (run.length >= _RULE_CHARS and not unit.isspace())


def _count(text: str) -> str | None:
    masked = _NUMBER.sub("0", text)
    if len(text) < _COUNT_CHARS or "0" not in masked:
        return None
    runs = [run for run in _runs(masked, _COUNT_CHARS, _COUNT_TIMES) if _says_words(run.unit(masked))]
    if not runs or (share := _share(runs, masked)) < _COUNT_SHARE:
        return None
    longest = max(runs, key=lambda run: (run.length, run.times))
    if not _only_counts(longest, masked, text):
        return None
    unit = _shown(longest.unit(masked))
    return f"{unit} repeats {longest.times:,} times with nothing new but a number; this is {share:.0%} of the text"


def _says_words(unit: str) -> bool:
    """Whether a unit contains words besides its number; a path or a table cell with a number is data."""
    return "0" in unit and sum(map(_has_letter, unit.split())) > 1


def _only_counts(run: _Run, masked: str, text: str) -> bool:
    """Whether each number of the unit stays the same or changes by equal steps from round to round."""
    first = masked.count("0", 0, run.start)
    numbers = [int(number) for number in _NUMBER.findall(text)][first : first + masked.count("0", run.start, run.end)]
    each = run.unit(masked).count("0")
    moves = list(map(operator.sub, numbers[each:], numbers))
    return all(len(set(moves[place::each])) <= 1 for place in range(each))


def _shuffle(text: str) -> str | None:
    if len(text) < _SHUFFLE_CHARS:
        return None
    sentences = Counter(part.strip() for part in _SENTENCE_END.split(text))
    often = {
        sentence: times
        for sentence, times in sentences.items()
        if times >= _SHUFFLE_TIMES and len(sentence) >= _SENTENCE_CHARS and _has_letter(sentence)
    }
    share = sum(len(sentence) * times for sentence, times in often.items()) / len(text)
    if share < _SHUFFLE_SHARE:
        return None
    most, times = max(often.items(), key=lambda item: item[1])
    return f"{len(often)} sentences are {share:.0%} of the text; {_shown(most)} occurs {times:,} times"


def _runs(text: str, chars: int, times: int) -> Iterator[_Run]:
    """Yield the stretches of at least `chars` characters that consist of at least `times` rounds."""
    for period in _periods(text, len(text) // times):
        same = bytes(map(operator.eq, text[period:], text))
        for match in _LONG_MATCH.finditer(same):
            run = _Run(match.start(), match.end() + period, period)
            if run.length >= chars and run.times >= times:
                yield run


def _periods(text: str, longest: int) -> list[int]:
    """Return the most frequent distances, up to `longest`, at which windows of the text recur."""
    waiting: dict[str, int] = {}
    distances: Counter[int] = Counter()
    for place in range(len(text) - _WINDOW + 1):
        window = text[place : place + _WINDOW]
        if (before := waiting.pop(window, None)) is not None and place - before <= longest:
            distances[place - before] += 1
        if place % _STEP == 0:
            waiting[window] = place
    return [period for period, _ in distances.most_common(_PERIODS)]


def _share(runs: Sequence[_Run], text: str) -> float:
    """Return the share of the text that the runs cover."""
    covered = bytearray(len(text))
    for run in runs:
        covered[run.start : run.end] = b"\x01" * run.length
    return covered.count(1) / max(1, len(text))


def _has_letter(text: str) -> bool:
    return any(map(str.isalpha, text))


def _shown(unit: str) -> str:
    """Return the repeating part as an error message shows it: its first words, and its lines if there are several."""
    words = " ".join(unit[: 4 * _SHOWN_CHARS].split())
    short = words if len(words) <= _SHOWN_CHARS else f"{words[: _SHOWN_CHARS - 1]}…"
    lines = len(unit.strip().splitlines())
    return f'"{short}"' if lines < 2 else f'a block of {lines:,} lines that begins with "{short}"'
