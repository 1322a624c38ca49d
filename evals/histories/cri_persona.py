"""CRI persona: one person's messages over months, and their profile in the end.

The folder has `conversations.jsonl` (a message per line), `ground_truth.json` and `metadata.json`. docs/evals.md has
the rules by which its ground truth becomes gold.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, date, datetime
from itertools import groupby
from pathlib import Path

from esker.server.core.json_input import JsonObject
from evals.histories.cases import Persona, Sitting, messages
from evals.histories.evidence import Evidence
from evals.input import expected, json_of
from evals.observation.cases import CaseMessage
from evals.retrieval.dataset import json_lines
from evals.scoring.gold import Atom, FactChange, Gold
from evals.scoring.text import holds, normalised

# A comma before a capital letter is part of a place name.
_PARTS = re.compile(r", (?=[a-z])(?![^(]*\))")
_WORD = re.compile(r"[a-z]{4,}")
_A_FEW_WORDS = 5


def read_persona(path: Path) -> Persona:
    """Read the folder of a persona. Raises InvalidInput."""
    with expected("CRI persona", path, "Name the folder that has ground_truth.json."):
        about, truth = json_of(path / "metadata.json"), json_of(path / "ground_truth.json")
        sittings = tuple(_sittings(path / "conversations.jsonl"))
        evidence = Evidence(messages(sittings))
        changes = tuple(_changes(truth, evidence, sittings))
        gold = Gold(keep=tuple(_profile(truth, evidence)), replaced=changes, noise=tuple(_noise(truth, evidence)))
        signals = tuple(evidence.made(each["text"], (), ()) for each in truth["signal_examples"])
        asked = tuple(_question_atoms(truth, evidence))
        name, description = about["dataset_id"], about["description"]
    return Persona(
        case=name, language="en", about=description, sittings=sittings, gold=gold, signals=signals, asked=asked
    )


def _sittings(path: Path) -> Iterator[Sitting]:
    lines = [line for _, line in json_lines(path)]
    for name, its in groupby(lines, key=lambda line: line["session_id"]):
        yield Sitting(id=name, messages=tuple(_case_message(line) for line in its))


def _case_message(line: JsonObject) -> CaseMessage:
    at = datetime.fromisoformat(line["timestamp"]).replace(tzinfo=UTC)
    return CaseMessage(id=_name(line["message_id"]), role=line["role"], at=at, content=line["content"])


def _name(message: int) -> str:
    return f"m{message}"


def _profile(truth: JsonObject, evidence: Evidence) -> Iterator[Atom]:
    """Yield each part of the final profile, except the changed ones, which are in `replaced`."""
    new = [normalised(change["new_value"]) for change in truth["changes"]]
    for dimension in truth["final_profile"].values():
        value = dimension["value"]
        parts = _PARTS.split(value) if isinstance(value, str) else [str(part) for part in value]
        for part in parts:
            if not any(each in normalised(part) for each in new):
                yield evidence.atom(f"{dimension['query_topic']}: {part}", part)


def _changes(truth: JsonObject, evidence: Evidence, sittings: Sequence[Sitting]) -> Iterator[FactChange]:
    """Yield one change per fact: its value before each change, and after the last one."""
    days = {message.id: message.at.date() for message in messages(tuple(sittings))}
    texts = {message.id: message.text for message in messages(tuple(sittings))}
    since = {fact["value"]: fact["valid_from"] for fact in truth["temporal_facts"]}
    for fact in dict.fromkeys(change["fact"] for change in truth["changes"]):
        its = [change for change in truth["changes"] if change["fact"] == fact]
        topic, value = its[-1]["query_topic"], its[-1]["new_value"]
        rows = [_name(message) for message in its[-1]["key_messages"]]
        new = evidence.atom(f"{topic}: {value}", value, rows=rows)
        if (began := since.get(value)) and date.fromisoformat(began) in {days[row] for row in rows}:
            new = new.model_copy(update={"dated": date.fromisoformat(began)})
        key = [_name(message) for change in its for message in change["key_messages"]]
        key_texts = {row: texts[row] for row in key}
        old = tuple(
            _old(f"{topic}: {was}", was, new, key_texts, evidence) for was in (change["old_value"] for change in its)
        )
        if there := tuple(atom for atom in old if atom):
            yield FactChange(old=there, new=new)


def _old(fact: str, value: str, new: Atom, key_texts: Mapping[str, str], evidence: Evidence) -> Atom | None:
    """Return the old value; None if no name, number or word of a key message distinguishes it from the new one."""
    if names := [words for words in evidence.exact(value) if not holds(new.fact, words, "en")]:
        return evidence.made(fact, names, ())
    for word in _WORD.findall(value):
        if rows := [
            row for row, text in key_texts.items() if holds(text, word, "en") and not holds(new.fact, word, "en")
        ]:
            return evidence.made(fact, (word,), rows)
    return None


def _noise(truth: JsonObject, evidence: Evidence) -> Iterator[Atom]:
    """Yield unimportant utterances. A few words occur in many rows, so short ones must match verbatim."""
    for each in truth["noise_examples"]:
        text = each["text"]
        yield evidence.made(text, (text,) if len(text.split()) < _A_FEW_WORDS else (), ())


def _question_atoms(truth: JsonObject, evidence: Evidence) -> Iterator[Atom]:
    for pair in truth["query_relevance_pairs"]:
        for fact in pair["expected_relevant_facts"]:
            yield evidence.atom(fact, fact, ask=pair["query"])
