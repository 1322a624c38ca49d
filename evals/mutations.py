"""Mutations: reflections with a planted fault, to test which score notices it.

The gold of a case, written fact by fact, is a faultless reflection. Each mutation plants one fault in it, and the table
of `python -m evals mutations` shows in how many cases each score fell.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from itertools import combinations

from esker.server.core.records import Trust
from evals.reflection.cases import ReflectionCase
from evals.scoring.dates import names_day
from evals.scoring.gold import Atom
from evals.scoring.matching import KeptRow
from evals.scoring.text import share

Mutation = Callable[[ReflectionCase, list[KeptRow]], list[KeptRow] | None]
"""Returns rows with one fault; None if the fault cannot be made in the case."""

# Words independent of the scorers' cue words: a fault planted with the cues that detect it proves nothing.
_DENIED = {
    "en": (r"\b(is|are|was|were|has|have|will|must|may|can|should)\b(?! (?:not|never))", r"\1 not"),
    "de": (r"\b(ist|sind|wird|werden|hat|haben|war|bleibt|kommt|gilt|gelten|liegt|heißt)\b", r"\1 nicht"),
    "es": (r"\b(es|son|está|están|usa|va|vale|queda|tiene|fue|se)\b", r"no \1"),
    "zh": ("(是|用|要|在|由|选|改|按|做|保留)", r"不\1"),
    "ja": ("(?:する|である|となる|とする|使う|ある|いる)。", "のではない。"),
}
_DENIAL = {
    "en": re.compile(r"\b(?:not|never|no) ", re.IGNORECASE),
    "de": re.compile(r"\b(?:nicht|nie) |\b[kK](?=ein)"),
    "es": re.compile(r"\b(?:no|nunca) ", re.IGNORECASE),
    "zh": re.compile("不(?!同|过|超|少|错)|没有?"),
    "ja": re.compile("ない(?=。)"),
}
_RESERVED = {
    "en": r"is put off|are put off|put off|postponed|is planned|planned|will be|waits?|until|later|only|for now"
    r"|not before|still has to|is wanted|at most|may|might|open question|whether",
    "de": "verschoben|frühestens|vorerst|nur|noch offen|höchstens|erst|geplant",
    "es": "aplazad[ao]s?|aplazó|queda pendiente|pendiente|hasta|solo|como máximo",
    "zh": "推迟|暂时|等|以后再改|以后再定|计划|再说|先不|尚未|还没有|最早",
    "ja": "延期|後回し|見送り|当面|予定|先送り|まで|だけ|検討する|かどうか",
}
_IS_DONE = {
    "en": "has been completed",
    "de": "wurde abgeschlossen",
    "es": "ya está terminado",
    "zh": "已经完成",
    "ja": "完了しました",
}
_CHATTER = {
    "en": "By the way, all of this was talked about in a friendly conversation with many more words than needed.",
    "de": "Übrigens wurde all dies in einem freundlichen Gespräch mit viel mehr Worten als nötig besprochen.",
    "es": "Por cierto, todo esto se habló en una conversación amable con muchas más palabras de las necesarias.",
    "zh": "顺便说一下，这一切都是在一次友好的谈话中用了远超必要的话语讨论的。",
    "ja": "ちなみに、これらはすべて必要以上に多くの言葉を使った和やかな会話の中で話されたことである。",
}


def faultless(case: ReflectionCase) -> list[KeptRow]:
    """Return the gold of a case as a reflection."""
    return [_row(case, f"g{number}", atom) for number, atom in enumerate(case.gold.lasting(), start=1)]


def _row(case: ReflectionCase, name: str, atom: Atom) -> KeptRow:
    rows = {row.id: row for row in case.rows}
    last = rows[atom.rows[-1]]
    text = f"{atom.fact} ({atom.dated})" if atom.dated else atom.fact
    return KeptRow(name, text, atom.rows, atom.by or last.by, last.at)


def _places(case: ReflectionCase, atoms: Sequence[Atom]) -> list[int]:
    """Return the positions of these atoms in a faultless reflection."""
    return [place for place, atom in enumerate(case.gold.lasting()) if any(atom is each for each in atoms)]


def _with(rows: Sequence[KeptRow], place: int, text: str) -> list[KeptRow]:
    return [replace(row, text=text) if at == place else row for at, row in enumerate(rows)]


def _fact_dropped(case: ReflectionCase, rows: list[KeptRow]) -> list[KeptRow] | None:
    return rows[1:] if len(rows) > 1 else None


def _exact_changed(
    case: ReflectionCase, rows: list[KeptRow], pattern: str, other: Callable[[str], str]
) -> list[KeptRow] | None:
    for place, atom in enumerate(case.gold.lasting()):
        for words in atom.exact:
            if (
                re.search(pattern, words)
                and (changed := rows[place].text.replace(words, other(words))) != rows[place].text
            ):
                return _with(rows, place, changed)
    return None


def _number_changed(case: ReflectionCase, rows: list[KeptRow]) -> list[KeptRow] | None:
    return _exact_changed(
        case, rows, r"[0-9]", lambda words: re.sub(r"[0-9]", lambda d: str((int(d[0]) + 3) % 10), words)
    )


def _identifier_changed(case: ReflectionCase, rows: list[KeptRow]) -> list[KeptRow] | None:
    return _exact_changed(
        case, rows, r"^(?=.*[a-z])[\w./:@-]*[-_./:][\w./:@-]*$", lambda words: re.sub(r"[a-z](?=[^a-z]*$)", "x7", words)
    )


def _turned_around(case: ReflectionCase, rows: list[KeptRow], atoms: Sequence[Atom]) -> list[KeptRow] | None:
    stated, denied = _DENIED[case.language]
    for place in _places(case, atoms):
        turned = re.sub(stated, denied, rows[place].text, count=1)
        if turned != rows[place].text:
            return _with(rows, place, turned)
    return None


def _negation_flipped(case: ReflectionCase, rows: list[KeptRow]) -> list[KeptRow] | None:
    return _turned_around(case, rows, case.gold.keep)


def _denial_dropped(case: ReflectionCase, rows: list[KeptRow]) -> list[KeptRow] | None:
    for place in _places(case, [*case.gold.keep, *case.gold.asserted]):
        said = rows[place].text
        if len(_DENIAL[case.language].findall(said)) == 1:
            return _with(rows, place, _DENIAL[case.language].sub("", said))
    return None


def _values_swapped(case: ReflectionCase, rows: list[KeptRow]) -> list[KeptRow] | None:
    numbers = [
        (place, words)
        for place, atom in enumerate(case.gold.lasting())
        for words in atom.exact
        if re.fullmatch(r"[0-9][0-9.,]*[0-9]", words) and rows[place].text.count(words) == 1
    ]
    for (one, first), (other, second) in combinations(numbers, 2):
        if one != other and first != second and first not in rows[other].text and second not in rows[one].text:
            swapped = _with(rows, one, rows[one].text.replace(first, second))
            return _with(swapped, other, rows[other].text.replace(second, first))
    return None


def _ruling_undone(case: ReflectionCase, rows: list[KeptRow]) -> list[KeptRow] | None:
    return _turned_around(case, rows, case.gold.asserted)


def _deferral_done(case: ReflectionCase, rows: list[KeptRow]) -> list[KeptRow] | None:
    for place, atom in zip(_places(case, case.gold.open), case.gold.open, strict=True):
        said = re.sub(_RESERVED[case.language], "", atom.fact).rstrip(".。")
        return _with(rows, place, f"{said}: {_IS_DONE[case.language]}.")
    return None


def _old_brought_back(case: ReflectionCase, rows: list[KeptRow]) -> list[KeptRow] | None:
    for change in case.gold.replaced:
        return [*rows, _row(case, "old", change.old[-1])]
    return None


def _old_for_new(case: ReflectionCase, rows: list[KeptRow]) -> list[KeptRow] | None:
    for change in case.gold.replaced:
        [place] = _places(case, [change.new])
        return [*rows[:place], _row(case, "old", change.old[-1]), *rows[place + 1 :]]
    return None


def _noise_kept(case: ReflectionCase, rows: list[KeptRow]) -> list[KeptRow] | None:
    for atom in case.gold.noise:
        return [*rows, _row(case, "noise", atom)]
    return None


def _idea_told_as_fact(case: ReflectionCase, rows: list[KeptRow]) -> list[KeptRow] | None:
    for atom in case.gold.unsettled:
        return [*rows, _row(case, "unsettled", atom)]
    return None


def _row_twice(case: ReflectionCase, rows: list[KeptRow]) -> list[KeptRow] | None:
    return [*rows, replace(rows[0], id="again")]


def _name_made_up(case: ReflectionCase, rows: list[KeptRow]) -> list[KeptRow] | None:
    return _with(rows, 0, f"{rows[0].text} (Zebulon Quagmire, srv-zq-77)")


def _never_said(case: ReflectionCase, rows: list[KeptRow]) -> list[KeptRow] | None:
    return _with(rows, 0, f"{rows[0].text} {case.gold.never[0]}.") if case.gold.never else None


def _quotation_made_up(case: ReflectionCase, rows: list[KeptRow]) -> list[KeptRow] | None:
    return _with(rows, 0, f'{rows[0].text} "Whatever works, I never said this."')


def _another_speaker(case: ReflectionCase, rows: list[KeptRow]) -> list[KeptRow] | None:
    speakers = {row.id: row.by for row in case.rows}
    for place, atom in enumerate(case.gold.lasting()):
        if atom.by and len({speakers[row] for row in atom.rows}) == 1:
            other: Trust = "assistant" if atom.by == "user" else "user"
            return [replace(row, by=other) if at == place else row for at, row in enumerate(rows)]
    return None


def _date_moved(case: ReflectionCase, rows: list[KeptRow]) -> list[KeptRow] | None:
    for place, atom in enumerate(case.gold.lasting()):
        at = rows[place].at
        if atom.dated and at and not names_day(atom.fact, atom.dated):
            moved = replace(rows[place], text=atom.fact, at=at + timedelta(days=37))
            return [*rows[:place], moved, *rows[place + 1 :]]
    return None


def _sources_gone(case: ReflectionCase, rows: list[KeptRow]) -> list[KeptRow] | None:
    return [replace(rows[0], sources=()), *rows[1:]]


def _sources_of_another(case: ReflectionCase, rows: list[KeptRow]) -> list[KeptRow] | None:
    others = [row for row in case.rows if row.id not in rows[0].sources]
    farthest = min(others, key=lambda row: share(rows[0].text, row.text, case.language), default=None)
    return [replace(rows[0], sources=(farthest.id,)), *rows[1:]] if farthest else None


def _padded(case: ReflectionCase, rows: list[KeptRow]) -> list[KeptRow] | None:
    return [replace(row, text=f"{row.text} {_CHATTER[case.language]}") for row in rows]


MUTATIONS: Mapping[str, Mutation] = {
    "a fact is dropped": _fact_dropped,
    "a number is changed": _number_changed,
    "an identifier is changed": _identifier_changed,
    "a negation is flipped": _negation_flipped,
    "a denial is dropped": _denial_dropped,
    "two values are swapped": _values_swapped,
    "a ruling is undone": _ruling_undone,
    "a deferral reads as done": _deferral_done,
    "the old value is added": _old_brought_back,
    "the old value replaces the new": _old_for_new,
    "noise is kept": _noise_kept,
    "an idea is stated as a fact": _idea_told_as_fact,
    "a row is repeated": _row_twice,
    "a name is invented": _name_made_up,
    "a forbidden statement is added": _never_said,
    "a quotation is invented": _quotation_made_up,
    "the speaker is changed": _another_speaker,
    "a date is moved": _date_moved,
    "sources are missing": _sources_gone,
    "sources are wrong": _sources_of_another,
    "rows are padded": _padded,
}
CAUGHT_BY: Mapping[str, str] = {
    "a fact is dropped": "retention",
    "a number is changed": "retention",
    "an identifier is changed": "retention",
    "a negation is flipped": "retention",
    "a denial is dropped": "retention",
    "two values are swapped": "retention",
    "a ruling is undone": "ruling stands",
    "a deferral reads as done": "still open",
    "the old value is added": "supersession",
    "the old value replaces the new": "supersession",
    "noise is kept": "noise gone",
    "an idea is stated as a fact": "not taken for fact",
    "a row is repeated": "said once",
    "a name is invented": "grounded",
    "a forbidden statement is added": "never said",
    "a quotation is invented": "grounded",
    "the speaker is changed": "attribution",
    "a date is moved": "dates",
    "sources are missing": "sources",
    "sources are wrong": "sources",
    "rows are padded": "facts/1k",
}
"""The score that must notice each fault."""
