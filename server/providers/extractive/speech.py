"""Sorts the sentences of users and assistants into facts."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from re import Pattern

from esker.server.core.conversation.blocks import spoken
from esker.server.core.conversation.records import Message
from esker.server.core.facts.records import Fact
from esker.server.core.records import Category, Priority, Trust
from esker.server.core.text import labels
from esker.server.providers.extractive import cues
from esker.server.providers.extractive.sentences import clip, opening, sentences

# Maximum sentences that are read: a longer message is mostly pasted text, and the user's own words are at its ends.
_MOST_SENTENCES = 12
_MOST_ASSISTANT_FACTS = 3
# A proposal of fewer characters depends on the sentence before it ("Shall I do that?").
_SELF_CONTAINED = 45
# An agreement of more characters contains a statement of its own.
_LONGEST_AGREEMENT = 24
_LONGEST_ANSWER = 240
_LONGEST_CONTEXT = 160
# An utterance of more characters usually names what it refers to.
_LONGEST_POINTING = 60


@dataclass(frozen=True, slots=True)
class CueRule:
    """Utterances that match `cue` become facts of this category and priority, introduced by `label`."""

    cue: Pattern[str]
    label: str
    category: Category
    priority: Priority


# The first rule that fits an utterance wins; a request is not a report, but it can be an assertion.
_ASSERTIONS = (
    CueRule(cues.CORRECTION, labels.CORRECTION, "decision", "high"),
    CueRule(cues.PREFERENCE, labels.PREFERENCE, "preference", "high"),
    CueRule(cues.DECISION, labels.DECISION, "decision", "high"),
)
_REPORTS = (
    CueRule(cues.OUTCOME, labels.CONFIRMED, "outcome", "medium"),
    CueRule(cues.NEXT_STEP, labels.PLANS, "next_step", "medium"),
    CueRule(cues.ISSUE, labels.REPORTED, "issue", "medium"),
    CueRule(cues.FACT, labels.SAID, "fact", "medium"),
)
_ASSISTANT_RULES = (
    CueRule(cues.CAUSE, labels.FOUND, "issue", "medium"),
    CueRule(cues.NEXT_STEP, labels.LEFT_OPEN, "next_step", "low"),
    CueRule(cues.OUTCOME, labels.OUTCOME, "outcome", "medium"),
)


def utterances(message: Message) -> list[str]:
    """Return the sentences of a message; a sentence that depends on the one before is joined to it."""
    said = [said for said in sentences(spoken(message.content)) if not cues.FILLER.search(said)]
    if len(said) > _MOST_SENTENCES:
        said = said[: _MOST_SENTENCES // 2] + said[-_MOST_SENTENCES // 2 :]
    joined: list[str] = []
    for sentence in said:
        leans = joined and cues.CONTINUATION.search(sentence) and not cues.asks(joined[-1] + sentence)
        if leans and len(joined[-1]) + len(sentence) < _LONGEST_ANSWER:
            joined[-1] += " " + sentence
        else:
            joined.append(sentence)
    return joined


def user_facts(message: Message, before: Message | None) -> list[Fact]:
    """Return the assertions of a user's message; `before` is the assistant's message that it answers."""
    said = utterances(message)
    answered = _answer(message, before, said)
    rest = _rest(said, answered)
    ruled = [(utterance, rule) for utterance in _whole_corrections(rest) if (rule := _user_rule(utterance))]
    facts = [_fact(message, utterance, rule) for utterance, rule in ruled]
    if ruled and before and not answered and ruled[0][0] == said[0] and _leans(*ruled[0]):
        facts[0] = _with_context(facts[0], before)
    return [answered, *facts] if answered else facts


def _whole_corrections(said: Sequence[str]) -> list[str]:
    """Join a short "no, that's wrong" with the next sentence, which says what is right."""
    joined: list[str] = []
    for utterance in said:
        if joined and _is_half_of_correction(joined[-1], utterance):
            joined[-1] += " " + utterance
        else:
            joined.append(utterance)
    return joined


def _is_half_of_correction(before: str, utterance: str) -> bool:
    """Whether an utterance belongs to the correction before it: the correction is short, or this refers to it."""
    rule = _user_rule(before)
    if rule is None or rule.label != labels.CORRECTION:
        return False
    unfinished = len(before) < _SELF_CONTAINED or bool(cues.POINTING.search(utterance))
    return unfinished and not cues.asks(utterance) and len(utterance) < _LONGEST_ANSWER


def _rest(said: list[str], answered: Fact | None) -> list[str]:
    """Return the utterances of a message besides its answer; a long agreement is more than an answer."""
    if answered is None or not said or said[0] not in answered.content:
        return said
    goes_on = answered.content.startswith(labels.AGREED) and len(said[0]) > _LONGEST_AGREEMENT
    return said if goes_on else said[1:]


def _leans(utterance: str, rule: CueRule) -> bool:
    """Whether the opening of a message cannot be understood without the message that it answers."""
    points = cues.CONTINUATION.search(utterance) or cues.POINTING.search(utterance)
    return rule.label == labels.CORRECTION or bool(points and len(utterance) < _LONGEST_POINTING)


def _with_context(fact: Fact, before: Message) -> Fact:
    """Append to a fact the assistant's words that it answers, and cite their message."""
    offered = sentences(spoken(before.content))
    if not offered:
        return fact
    about = clip(_last_proposal(offered) or offered[-1], _LONGEST_CONTEXT)
    content = f"{fact.content}{labels.IN_ANSWER}“{about}”)"
    return replace(fact, content=content, source_seqs=(before.seq, *fact.source_seqs))


def request(message: Message, before: Message | None) -> str | None:
    """Return the request of a user's message, verbatim: all that is neither an assertion nor an answer."""
    said = utterances(message)
    rest = _rest(said, _answer(message, before, said))
    asked = [
        utterance for utterance in _whole_corrections(rest) if not _user_rule(utterance) and not _only_agrees(utterance)
    ]
    return clip(" ".join(asked), _LONGEST_ANSWER) if asked else None


def _only_agrees(utterance: str) -> bool:
    return len(utterance) <= _LONGEST_AGREEMENT and bool(cues.AGREEMENT.search(utterance))


def assistant_facts(message: Message) -> list[Fact]:
    """Return the causes, outcomes and open ends in an assistant's message; headings are skipped."""
    said = (said for said in utterances(message) if not cues.asks(said) and not said.istitle())
    found = ((utterance, _first(_ASSISTANT_RULES, utterance)) for utterance in said)
    return [_fact(message, utterance, rule) for utterance, rule in found if rule][:_MOST_ASSISTANT_FACTS]


def cause_in(message: Message) -> str | None:
    """Return the sentence in which an assistant explains a failure."""
    said = sentences(spoken(message.content))
    return next((sentence for sentence in said if cues.CAUSE.search(sentence) and not cues.asks(sentence)), None)


def _user_rule(utterance: str) -> CueRule | None:
    if cues.asks(utterance):
        return None
    if rule := _first(_ASSERTIONS, utterance):
        return rule
    return None if cues.REQUEST.search(utterance) else _first(_REPORTS, utterance)


def _first(rules: Sequence[CueRule], utterance: str) -> CueRule | None:
    """Return the first rule that matches; a denied, planned or conditional outcome does not count."""
    for rule in rules:
        match = rule.cue.search(utterance)
        if match and not (rule.category == "outcome" and cues.is_not_done(utterance[: match.end()])):
            return rule
    return None


def _fact(message: Message, utterance: str, rule: CueRule) -> Fact:
    return Fact(
        content=f"{rule.label}: {utterance}",
        priority="medium" if rule.priority == "high" and cues.ONCE.search(utterance) else rule.priority,
        category=rule.category,
        trust=_trust(message),
        source_seqs=(message.seq,),
        said_at=message.sent_at,
    )


def _trust(message: Message) -> Trust:
    """Return the trust of a message's own words; its tool results do not lower it."""
    return "user" if message.role == "user" else "assistant"


def _answer(message: Message, before: Message | None, said: Sequence[str]) -> Fact | None:
    """Return a reply together with what it replies to: the last proposal for a yes, else the question before it."""
    if before is None:
        return None
    offered = sentences(spoken(before.content))
    first = opening(spoken(message.content))
    proposal, question = _last_proposal(offered), _last_question(offered)
    choice = question is not None and bool(cues.CHOICE.search(question))
    if proposal and not choice and _agrees(first):
        content, category = f"{labels.AGREED} (“{clip(first, 120)}”) to: {proposal}", "decision"
    elif question and _is_answer(first, question, choice=choice):
        rest = f" {said[0]}" if said and said[0] != first and len(first) < _SELF_CONTAINED else ""
        content, category = f"Asked “{question}”, user answered: {first}{rest}", "decision" if choice else "fact"
    else:
        return None
    return Fact(
        content=content,
        priority="medium",
        category=category,
        trust=_trust(message),
        source_seqs=(before.seq, message.seq),
        said_at=message.sent_at,
    )


def _last_proposal(offered: Sequence[str]) -> str | None:
    places = [place for place, sentence in enumerate(offered) if cues.PROPOSAL.search(sentence)]
    return _with_what_it_leans_on(offered, places[-1]) if places else None


def _last_question(offered: Sequence[str]) -> str | None:
    return _with_what_it_leans_on(offered, len(offered) - 1) if offered and cues.asks(offered[-1]) else None


def _with_what_it_leans_on(offered: Sequence[str], place: int) -> str:
    leans = len(offered[place]) < _SELF_CONTAINED and place > 0
    return f"{offered[place - 1]} {offered[place]}" if leans else offered[place]


def _agrees(first: str) -> bool:
    """Whether a reply begins with a plain yes, or is a word such as "ok" and little more."""
    return _only_agrees(first) or bool(cues.PLAIN_YES.search(first) and not cues.asks(first))


def _is_answer(first: str, question: str, *, choice: bool) -> bool:
    """Whether the first sentence answers a question and is not a request or rule of its own."""
    last = question.rpartition(". ")[2]
    if not first or len(first) > _LONGEST_ANSWER or cues.asks(first) or cues.OPEN.search(last):
        return False
    if cues.YES_OR_NO.search(last) and not choice:
        return bool(cues.NO.search(first))
    return not cues.REQUEST.search(first) and not _first(_ASSERTIONS, first) and (choice or not _only_agrees(first))
