"""Reads a reply together with what it replies to: an agreement with a proposal, or an answer with its question."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from esker.server.core.conversation.blocks import spoken
from esker.server.core.conversation.records import StoredMessage
from esker.server.core.facts.records import Fact
from esker.server.core.records import Category
from esker.server.core.text import labels
from esker.server.core.text.terms import telling_words
from esker.server.core.words.lists import keyed
from esker.server.providers.extractive import cues
from esker.server.providers.extractive.closing import proposals
from esker.server.providers.extractive.sentences import clip, is_prose, split_sentences, width, word_count
from esker.server.providers.extractive.statements import statements
from esker.server.providers.extractive.weighing import content_words, leans, names, stands_alone, weight

# Characters: a longer agreement ("yes, and …") makes a statement of its own.
LONGEST_AGREEMENT = 24
_LONGEST_ANSWER = 240
_LONGEST_ITEM, _LONGEST_LIST = 160, 240
_WORD = re.compile(r"[^\W\d_]+")
# The beginning of an item with a number or letter: "Option B: …", "2) …".
_MARKED_ITEM = re.compile(r"^(?:[^\W\d_]+ )?(\d{1,2}|[A-Za-z])(?:[.:)：]| [—–-]) ")
MARK = re.compile(r"\d{1,2}|[A-Za-z]")
"""The number or letter of an item, which can be a whole reply."""
# Maximum words of a reply before such a mark ("go with B").
_MOST_BEFORE_MARK = 2
# Begins a command or the mention of a file, which is not an answer.
_COMMANDS = ("/", "@")
# A proposal of fewer characters depends on the sentence before it ("Shall I do that?").
_SELF_CONTAINED = 45
_MOST_PROPOSALS = 3
# Minimum weight of a proposal that is kept.
_TELLING = 2
# Maximum words of a reply that can be a choice in other words than the question's.
_SHORT_CHOICE = 4
# Minimum content words of what limits an agreement.
_SAYS_SOMETHING = 3


@dataclass(frozen=True, slots=True)
class Answer:
    """The facts of a reply, and how many of its utterances they contain."""

    facts: tuple[Fact, ...] = ()
    utterances: int = 0


def read_answer(message: StoredMessage, before: StoredMessage | None, said: Sequence[str]) -> Answer:
    """Return the answer in a message whose utterances are `said`; `before` is the assistant's message before it."""
    if before is None or not said:
        return Answer()
    if item := _pointed_at(said[0], before):
        return Answer((_picked(message, before, said[0], item),), 1)
    offered = _offered(before)
    question = _last_question(offered)
    proposal = _last_proposal(offered)
    choice = question is not None and bool(cues.CHOICE.search(question))
    if proposal and not choice and _agrees(said[0]):
        if question and only_agrees(said[0]) and len(said) > 1 and _qualifies(said[1]):
            return Answer((_answered(message, before, question, f"{said[0]} {said[1]}", choice=False),), 2)
        agreed = [each for each in proposals(before)[:_MOST_PROPOSALS] if stands_alone(each)]
        agreed = agreed or ([proposal] if weight(proposal) >= _TELLING else [])
        facts = [_agreement(message, before, said[0], each) for each in agreed]
        return Answer(tuple(facts), int(width(said[0]) <= _SELF_CONTAINED or only_agrees(said[0])))
    if question and _is_answer(said[0], question, choice=choice):
        rest = f" {said[1]}" if len(said) > 1 and width(said[0]) < _SELF_CONTAINED and not cues.asks(said[1]) else ""
        fact = _answered(message, before, question, said[0] + rest, choice=choice)
        tells = _tells(said[0] + rest) or (choice and stands_alone(question) and not cues.NO_ANSWER.search(said[0]))
        return Answer((fact,) if tells else (), 2 if rest else 1)
    return Answer()


def _pointed_at(reply: str, before: StoredMessage) -> str | None:
    """Return the item of a list that a short reply names by its place ("the second one", "option B"), or None."""
    if width(reply) > LONGEST_AGREEMENT or cues.asks(reply):
        return None
    said = statements(spoken(before.content))
    items = [each.text for each in said if each.is_item]
    mark = _mark(reply, before)
    marked = [each.text for each in said if (found := _MARKED_ITEM.match(each.text)) and found[1].casefold() == mark]
    if marked:
        return marked[0]
    ordinals = keyed("numbers.ordinals")
    places = [int(ordinals[word]) for word in _WORD.findall(reply.casefold()) if word in ordinals]
    places += [int(mark)] if mark.isdigit() else []
    return items[places[0] - 1] if len(places) == 1 and 0 < places[0] <= len(items) > 1 else None


def _mark(reply: str, before: StoredMessage) -> str:
    """Return the number or letter with which a reply chooses: alone, behind a word of the question or of a decision."""
    *words, last = reply.casefold().rstrip(" .!").split() or [""]
    known = not words or cues.DECISION.search(reply) or words[-1] in _WORD.findall(spoken(before.content).casefold())
    return last if len(words) <= _MOST_BEFORE_MARK and MARK.fullmatch(last) and known else ""


def _picked(message: StoredMessage, before: StoredMessage, reply: str, item: str) -> Fact:
    content = f"{labels.DECISION}: {reply}{labels.IN_ANSWER}“{clip(item, _LONGEST_ITEM)}”)"
    return _replied(message, before, content, item, "decision")


def _offered(before: StoredMessage) -> list[str]:
    """Return the sentences of a message that are prose, without tables, headings and closing courtesies.

    The items of a list are one sentence.
    """
    offered: list[str] = []
    for is_item, said in groupby(statements(spoken(before.content)), key=lambda each: each.is_item):
        texts = [each.text for each in said if is_prose(each.text) and not cues.PARTING.search(each.text)]
        offered += [clip("; ".join(texts), _LONGEST_LIST)] if is_item and texts else texts
    return offered


def only_agrees(utterance: str) -> bool:
    """Whether an utterance agrees and says nothing else."""
    return width(utterance) <= LONGEST_AGREEMENT and bool(cues.AGREEMENT.search(utterance))


def last_offered(before: StoredMessage) -> str | None:
    """Return the last proposal of a message, else its last sentence."""
    offered = _offered(before)
    return (_last_proposal(offered) or offered[-1]) if offered else None


def _agreement(message: StoredMessage, before: StoredMessage, reply: str, proposal: str) -> Fact:
    content = f"{labels.AGREED} (“{clip(reply, 120)}”) to: {proposal}"
    return _replied(message, before, content, proposal, "decision")


def _answered(message: StoredMessage, before: StoredMessage, question: str, reply: str, *, choice: bool) -> Fact:
    content = f"{labels.ASKED_BY_AGENT}{question}{labels.ANSWERED}{reply}"
    return _replied(message, before, content, f"{question} {reply}", "decision" if choice else "fact")


def _replied(message: StoredMessage, before: StoredMessage, content: str, about: str, category: Category) -> Fact:
    """Return the fact in a message and the message that it replies to; `about` are the words that name its subject."""
    return Fact(
        content=content,
        priority="medium" if stands_alone(about) else "low",
        category=category,
        trust="user" if message.role == "user" else "assistant",
        source_seqs=(before.seq, message.seq),
        said_at=message.sent_at,
    )


def _tells(reply: str) -> bool:
    """Whether a reply answers and, besides a plain no, says something that is understood alone."""
    bare = cues.NO.sub("", reply).lstrip(" ,.!—–-，、。！،")
    if cues.NO_ANSWER.search(reply):
        return False
    return bool(names(bare)) or (content_words(bare) >= 2 and not leans(bare)) or not bare


def _qualifies(utterance: str) -> bool:
    """Whether an utterance behind an agreement only limits it ("Yes. Not a hotel, a cabin.")."""
    asserts = cues.CORRECTION.search(utterance) or cues.PREFERENCE.search(utterance) or cues.DECISION.search(utterance)
    works = cues.asks(utterance) or cues.REQUEST.search(utterance) or cues.MOMENTARY.search(utterance)
    return not (asserts or works) and content_words(utterance) >= _SAYS_SOMETHING


def _last_proposal(offered: Sequence[str]) -> str | None:
    places = [place for place, sentence in enumerate(offered) if cues.PROPOSAL.search(sentence)]
    return _with_sentence_before(offered, places[-1]) if places else None


def _last_question(offered: Sequence[str]) -> str | None:
    return _with_sentence_before(offered, len(offered) - 1) if offered and cues.asks(offered[-1]) else None


def _with_sentence_before(offered: Sequence[str], place: int) -> str:
    """Return the sentence at a place; a short one, which depends on the sentence before it, together with that one."""
    leans = width(offered[place]) < _SELF_CONTAINED and place > 0
    return f"{offered[place - 1]} {offered[place]}" if leans else offered[place]


def _agrees(first: str) -> bool:
    """Whether a reply begins with a plain yes, or is a word such as "ok" and little more."""
    return only_agrees(first) or bool(cues.PLAIN_YES.search(first) and not cues.asks(first))


def _is_answer(first: str, question: str, *, choice: bool) -> bool:
    """Whether the first sentence answers a question and is not a request or rule of its own."""
    last = split_sentences(question)[-1]
    if (
        first.startswith(_COMMANDS)
        or len(first) > _LONGEST_ANSWER
        or cues.asks(first)
        or cues.OPEN_QUESTION.search(last)
    ):
        return False
    if cues.YES_OR_NO.search(last) and not choice:
        return bool(cues.NO.search(first))
    asserts = cues.CORRECTION.search(first) or cues.PREFERENCE.search(first) or cues.DECISION.search(first)
    if asserts or cues.is_order(first):
        return False
    return _chooses(first, question) if choice else not only_agrees(first)


def _chooses(reply: str, question: str) -> bool:
    """Whether a reply takes one of the things that a question offers: it is short, points at it or names it."""
    shared = {word.terms for word in telling_words(reply)} & {word.terms for word in telling_words(question)}
    return word_count(reply) <= _SHORT_CHOICE or bool(cues.POINTING.search(reply) or shared)
