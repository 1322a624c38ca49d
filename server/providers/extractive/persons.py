"""Reads a chat of people: the statements of each about their own life are facts about that person."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from esker.server.core.conversation.blocks import spoken
from esker.server.core.conversation.records import StoredMessage
from esker.server.core.dates.mentioned import loose_span
from esker.server.core.facts.records import Fact
from esker.server.core.records import Category, Priority
from esker.server.core.text import labels
from esker.server.providers.extractive import cues
from esker.server.providers.extractive.answers import only_agrees
from esker.server.providers.extractive.sentences import clip
from esker.server.providers.extractive.speakers import without_speaker
from esker.server.providers.extractive.statements import statements
from esker.server.providers.extractive.weighing import content_units, leans, weight

# Maximum characters of sentences that are joined, and of a text that is quoted.
_LONGEST_JOINED, _LONGEST_QUOTED = 240, 160
# Minimum words, names and figures of an answer with its question, of a statement about the speaker, and of any other.
_FEWEST_ANSWERING, _FEWEST_OWN, _FEWEST = 1, 2, 3
# Maximum characters of a sentence that can be mere courtesy: a longer one tells something besides.
_LONGEST_COURTESY = 90
# Maximum characters of a question at the end of a statement.
_LONGEST_TAG = 24
# A name with which a person is addressed: "Karl, …".
_VOCATIVE = re.compile(r"^[^\W\d_]{2,20}, ")


def chat_facts(messages: Sequence[StoredMessage], people: Mapping[int, str]) -> list[Fact]:
    """Return the statements of a chat as facts; `people` are the speakers by the numbers of their messages."""
    facts: list[Fact] = []
    asked: tuple[StoredMessage, str] | None = None
    latest: dict[str, str] = {}
    for message in messages:
        speaker = people.get(message.seq)
        if speaker is None:
            continue
        said = [_without_tag(each.text) for each in statements(without_speaker(spoken(message.content), speaker))]
        answers = asked if asked and people.get(asked[0].seq) != speaker else None
        told = _told(said, is_asked=answers is not None)
        facts += _message_facts(message, speaker, told, answers, latest.get(speaker))
        if told:
            latest[speaker] = told[-1][0]
        question = next((each for each in reversed(said) if cues.QUESTION.search(each)), None)
        asked = (message, question) if question else None
    return facts


def _message_facts(
    message: StoredMessage,
    speaker: str,
    told: Sequence[tuple[str, bool]],
    asked: tuple[StoredMessage, str] | None,
    earlier: str | None,
) -> Iterator[Fact]:
    """Yield the facts of a message; one that needs the question gets it, or what the question itself points to."""
    has_image = any(block.get("type") == "image" for block in message.content)
    for place, (text, answers) in enumerate(told):
        fact = _fact(message, speaker, text, with_image=has_image and place == 0)
        if asked and answers:
            points = earlier is not None and bool(cues.POINTS.search(asked[1])) and content_units(asked[1]) < _FEWEST
            how, words = (labels.ABOUT, earlier or "") if points else (labels.IN_ANSWER, asked[1])
            quoted = f"{how}“{clip(words, _LONGEST_QUOTED)}”)"
            fact = replace(fact, content=fact.content + quoted, source_seqs=(asked[0].seq, message.seq))
        yield fact


def _told(said: Sequence[str], *, is_asked: bool) -> list[tuple[str, bool]]:
    """Return the statements of a message, each with whether it needs the question before the message.

    A statement that leans on the one before it is joined to it.
    """
    told: list[tuple[str, bool]] = []
    follows = False
    for text in said:
        if _is_courtesy(text) and not (is_asked and not told and _answers(text)):
            # A sentence behind a question or a compliment of the same message is about that one.
            is_asked = is_asked and not cues.asks(text)
            follows = False
            continue
        needs = bool(leans(text) or cues.POINTS.search(text) or not cues.SELF.search(text))
        if follows and leans(text) and len(told[-1][0]) + len(text) < _LONGEST_JOINED:
            told[-1] = (f"{told[-1][0]} {text}", told[-1][1])
        elif _tells(text, is_answer=is_asked and not told):
            told.append((text, is_asked and needs and not told))
            follows = True
    return told


def _answers(text: str) -> bool:
    """Whether a reply says more than yes or no ("Yes, in June.")."""
    return (
        only_agrees(text)
        and not _exclaims(text)
        and content_units(cues.INTERJECTION.sub("", text)) >= _FEWEST_ANSWERING
    )


def _is_courtesy(text: str) -> bool:
    """Whether a sentence asks, greets, thanks, praises, pities or advises."""
    if cues.asks(text) or only_agrees(text) or cues.FILLER.search(text):
        return True
    bare = cues.INTERJECTION.sub("", text) or text
    forms = (text, bare, _VOCATIVE.sub("", bare))
    return _exclaims(text) or (len(text) <= _LONGEST_COURTESY and any(map(cues.COURTESY.search, forms)))


def _exclaims(text: str) -> bool:
    """Whether a sentence is an exclamation of a word or two ("Huge!")."""
    return text.endswith(("!", "！")) and content_units(text) < _FEWEST_OWN and not cues.SELF.search(text)


def _without_tag(text: str) -> str:
    """Return a statement about the past without the question at its end ("…, can you believe it?")."""
    told, comma, tag = text.rpartition(", ")
    is_told = comma and len(tag) <= _LONGEST_TAG and cues.SELF.search(told) and cues.PAST.search(told)
    return f"{told}." if is_told and tag.endswith("?") and not cues.asks(told) else text


def _tells(text: str, *, is_answer: bool) -> bool:
    if is_answer:
        return content_units(text) >= _FEWEST_ANSWERING
    return content_units(text) >= (_FEWEST_OWN if cues.SELF.search(text) else _FEWEST)


def _fact(message: StoredMessage, speaker: str, text: str, *, with_image: bool) -> Fact:
    category = _category(text)
    return Fact(
        content=f"{_label(speaker, category)}{labels.WITH_IMAGE if with_image else ''}: {text}",
        priority=_priority(text),
        category=category,
        trust="user" if message.role == "user" else "assistant",
        source_seqs=(message.seq,),
        said_at=message.sent_at,
    )


def _label(speaker: str, category: Category) -> str:
    return labels.PREFERENCE if speaker == labels.USER and category == "preference" else f"{speaker} said"


def _category(text: str) -> Category:
    if cues.PREFERENCE.search(text):
        return "preference"
    if cues.DECISION.search(text):
        return "decision"
    return "next_step" if cues.NEXT_STEP.search(text) else "fact"


def _priority(text: str) -> Priority:
    """Return medium for what a person says of themselves or with details, low for the rest."""
    return "medium" if cues.SELF.search(text) or weight(text) >= 1 else "low"


def with_loose_time(fact: Fact, timezone: str) -> Fact:
    """Return a fact with the year or weekday that it names, in the past or to come by its verbs."""
    said = labels.own_statement(fact.content.partition(": ")[2])
    if fact.refers_from or cues.HABIT.search(said):
        return fact
    span = loose_span(said, fact.said_at, timezone, is_past=bool(cues.PAST.search(said)))
    return replace(fact, refers_from=span.start, refers_to=span.end) if span else fact
