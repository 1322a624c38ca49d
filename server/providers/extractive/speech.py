"""Sorts what a person says into facts: rules, decisions, corrections, wishes, reports and plain statements."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from esker.server.core.conversation.blocks import Block, spoken
from esker.server.core.conversation.records import StoredMessage
from esker.server.core.facts.records import Fact
from esker.server.core.records import Category, Priority, Trust
from esker.server.core.text import labels
from esker.server.core.words.lists import Cue
from esker.server.providers.extractive import cues
from esker.server.providers.extractive.answers import MARK, Answer, last_offered, only_agrees, read_answer
from esker.server.providers.extractive.authorship import authorship
from esker.server.providers.extractive.sentences import clip, is_prose, is_word, width
from esker.server.providers.extractive.speakers import without_speaker
from esker.server.providers.extractive.statements import BRACKETED, Statement, statements
from esker.server.providers.extractive.superseding import changes_value, gives_lone_value, sets_amount, states_value
from esker.server.providers.extractive.weighing import content_units, fixes, leans, names, stands_alone, weight

# Maximum sentences that are read: a longer message is mostly pasted text, and the user's own words are at its ends.
_MOST_SENTENCES = 24
_LONGEST_ANSWER = 240
_LONGEST_CONTEXT = 160
_SELF_CONTAINED = 45
# Below this many characters, a statement behind a question is a reply to it.
_SHORT = 40
# Minimum and maximum lines that together are one ruling ("added #3f7a3f", "tools -> core/tools"), and the maximum
# characters of one of them. More lines are a listing that the person did not write.
_FEWEST_VALUES, _MOST_VALUES, _LONGEST_VALUE, _LONGEST_MAPPING = 3, 20, 70, 200
_VALUE_LINE = re.compile(r"^\s*(?:(?:[-*•]|\d{1,2}[.)])\s+)?\S.{0,198}[^.!?。！？:：\s]$")
_NUMBER = re.compile(r"^\s*\d{1,2}[.)]\s+")
_MAPS = re.compile(r"->|→|=>|=")
# Words in quotation marks, also those of which only one end is in the sentence. A shorter quotation is a name.
_QUOTATION = re.compile(
    r"(?<!\w)\"(?:[^\s\"]+\s+){2,60}[^\s\"]+(?:\"(?!\w)|$)|“[^“”]{12,}(?:”|$)|«[^«»]{12,}(?:»|$)"
    r"|„[^„“”]{12,}(?:[“”]|$)|「[^「」]{6,}(?:」|$)"
    r"|^[^“„”]{12,}”|^[^«»]{12,}»|^[^「」]{6,}」"
)
# A word of four or more letters that does not begin with a capital, and marks that a heading does not have.
_SMALL_WORD = re.compile(r"(?<![\w'’])[^\W\d_A-ZÀ-ÖØ-ÞА-Я][^\W\d_]{3,}")
_NO_TITLE = re.compile(r"[\d=:：#→!?.。！？]|->")
# A file that a client attaches to the message, and a command at its beginning.
_MENTION = re.compile(
    r"(?<!\S)@[\w./~-]+|^/[a-z][\w:-]*(?=\s)|^(?i:claude|codex|copilot|gemini|chatgpt|cursor)\b[,:]?\s+(?!code\b|cli\b)"
)
_COMMAND = re.compile(r"^/[a-z][\w:-]*\s")
# An error in a program's line; a level of a log is none ("[error]").
_ERROR = re.compile(r"[a-z](?:Error|Exception)\b|(?<!\[)\b(?i:error|exception|panic|failed|undefined|cannot)\b")
# Minimum weight of an order that fixes something, and of a plain statement.
_FIXES, _TELLS = 2, 1
# Minimum words, names and figures of a report or plain statement: of one that begins with the thing that it is about
# ("our tests"), of any other, and of one whose subject nothing names.
_FEWEST_WORDS, _FEWEST_BARE, _FEWEST_LEANING = 2, 3, 4
# Maximum requirements that are kept of a specification.
_MOST_REQUIREMENTS = 12
# Minimum lines of a further block of text that is an attached document.
_FEWEST_ATTACHED = 3


@dataclass(frozen=True, slots=True)
class CueRule:
    """Utterances that match `cue` become facts of this category and priority, introduced by `label`."""

    cue: Cue
    label: str
    category: Category
    priority: Priority


_CORRECTS = CueRule(cues.CORRECTION, labels.CORRECTION, "decision", "high")
# The first rule that fits an utterance wins; a request is not a report, but it can be an assertion.
_ASSERTIONS = (
    _CORRECTS,
    CueRule(cues.PREFERENCE, labels.PREFERENCE, "preference", "high"),
    CueRule(cues.DECISION, labels.DECISION, "decision", "high"),
)
_REPORTS = (
    CueRule(cues.OUTCOME, labels.CONFIRMED, "outcome", "medium"),
    CueRule(cues.NEXT_STEP, labels.PLANS, "next_step", "medium"),
    CueRule(cues.ISSUE, labels.REPORTED, "issue", "medium"),
    CueRule(cues.WISH, labels.WANTS, "preference", "medium"),
    CueRule(cues.FACT, labels.SAID, "fact", "medium"),
)
_ORDER = CueRule(cues.REQUEST, labels.DECISION, "decision", "medium")
_VALUES = CueRule(cues.REQUEST, labels.DECISION, "decision", "high")
_TOLD = CueRule(cues.THIRD_PARTY, labels.SAID, "fact", "low")
_PLAIN = CueRule(cues.FACT, labels.SAID, "fact", "low")


@dataclass(frozen=True, slots=True)
class Quotation:
    """Words that a row quotes, and the number of their message."""

    text: str
    seq: int


@dataclass(frozen=True, slots=True)
class Speech:
    """A message's utterances in the person's own words; `asked` is the user's question that `before` answers.

    `own` are the person's own lines, from which the utterances are read; `specified` is a document of theirs.
    """

    message: StoredMessage
    before: StoredMessage | None
    speaker: str | None
    utterances: tuple[str, ...]
    own: tuple[str, ...]
    quoted: tuple[str, ...]
    specified: str
    answer: Answer
    asked: Quotation | None

    @property
    def offered(self) -> tuple[Quotation, ...]:
        """The proposal or last sentence that the message answers, behind the question that it depends on."""
        said = last_offered(self.before) if self.before else None
        if self.before is None or said is None:
            return ()
        answered = Quotation(said, self.before.seq)
        return (self.asked, answered) if self.asked and leans(said) else (answered,)

    @property
    def shows_image(self) -> bool:
        """Whether the message contains an image, which its words are about."""
        return any(block.get("type") == "image" for block in self.message.content)

    @property
    def refutes(self) -> str | None:
        """The words that say that the last work did not help, at the beginning, or has to go; None without them."""
        first = next(iter(self.utterances), "")
        if cues.STILL_FAILS.search(first) and not cues.asks(first):
            return first
        return next((said for said in self.utterances if cues.TAKES_BACK.search(said)), None)

    @property
    def discards(self) -> str | None:
        """The words that say that all work before was thrown away, or None."""
        return next((said for said in self.utterances if cues.DISCARDS.search(said)), None)

    @property
    def errors(self) -> list[str]:
        """The errors in the lines that the person pasted."""
        lines = map(str.strip, spoken(self.message.content).splitlines())
        return [line for line in lines if _ERROR.search(line) and line not in self.own]

    @property
    def takes_back(self) -> bool:
        """Whether the message takes back what the user decided before."""
        return any(cues.TAKES_BACK.search(said) for said in self.utterances)

    @property
    def rest(self) -> tuple[str, ...]:
        """The utterances that are not part of an answer."""
        return self.utterances[self.answer.utterances :]


def read_speech(
    message: StoredMessage, before: StoredMessage | None, speaker: str | None = None, asked: Quotation | None = None
) -> Speech:
    """Return the own words of a message.

    `before` is the assistant's message that it answers, `asked` the user's question that led to that message.
    """
    written = authorship(_typed(message.content), spoken(before.content) if before else "")
    said = tuple(_utterances(without_speaker(written.own, speaker)))
    own = tuple(map(str.strip, written.own.splitlines()))
    answer = read_answer(message, before, said)
    return Speech(message, before, speaker, said, own, written.quoted, written.specified, answer, asked)


def _typed(content: Sequence[Block]) -> str:
    """Return the text of a message without the documents that are attached to it as further blocks of text."""
    first, *others = [text for block in content if (text := spoken([block]))] or [""]
    return "\n".join([first, *(text for text in others if len(text.splitlines()) < _FEWEST_ATTACHED)])


def _utterances(own: str) -> list[str]:
    """Return the sentences of a text; one that depends on the sentence before is joined to it."""
    ruling, rest = _value_lines(own)
    said = [
        (said.text, _depends(said))
        for said in _without_requested_items(statements(rest))
        if (said.is_item or is_prose(said.text) or is_word(said.text) or _is_short_answer(said.text))
        and not cues.FILLER.search(said.text)
    ]
    if len(said) > _MOST_SENTENCES:
        said = said[: _MOST_SENTENCES // 2] + said[-_MOST_SENTENCES // 2 :]
    joined: list[str] = []
    for sentence, depends in said:
        if joined and depends and len(joined[-1]) + len(sentence) < _LONGEST_ANSWER:
            joined[-1] += " " + sentence
        else:
            joined.append(sentence)
    return [*_whole_corrections(joined), *ruling]


def _without_requested_items(said: Sequence[Statement]) -> Iterator[Statement]:
    """Yield statements without the items of a request that fix nothing ("suggest how we can: - split it")."""
    is_request = False
    for each in said:
        if not each.is_item:
            is_request = cues.asks(each.text) or bool(
                cues.MOMENTARY.search(each.text) or cues.TO_AGENT.search(each.text)
            )
            yield each
        elif not (is_request or cues.TO_AGENT.search(each.topic)) or weight(each.text) >= _FIXES:
            yield each


def _depends(said: Statement) -> bool:
    """Whether a sentence is in brackets, goes on with the one before it, or fixes a value of what that is about."""
    if BRACKETED.match(said.text):
        return True
    if not said.before or cues.asks(said.before) or cues.asks(said.text):
        return False
    is_order = cues.is_order(said.before) or cues.MOMENTARY.search(said.text)
    return bool(cues.CONTINUATION.search(said.text)) or (not is_order and _fixes_value(said.text))


def _is_short_answer(text: str) -> bool:
    """Whether a text that is not a sentence answers: it gives a value, or names an item of a list by its mark."""
    return _fixes_value(text) or bool(MARK.fullmatch(text))


def _fixes_value(text: str) -> bool:
    return len(text) < _SHORT and gives_lone_value(text)


def _value_lines(own: str) -> tuple[list[str], str]:
    """Return the ruling that consecutive lines with values make together, and the text without them."""
    rulings: list[str] = []
    rest: list[str] = []
    run: list[str] = []
    for line in (*own.splitlines(), ""):
        longest = _LONGEST_MAPPING if _MAPS.search(line) else _LONGEST_VALUE
        if len(line) <= longest and _VALUE_LINE.match(line) and _has_value(line):
            run.append(line.strip())
            continue
        if _FEWEST_VALUES <= len(run) <= _MOST_VALUES:
            rulings.append("; ".join(run))
        elif len(run) < _FEWEST_VALUES:
            rest += run
        run = []
        rest.append(line)
    return rulings, "\n".join(rest)


def _has_value(line: str) -> bool:
    """Whether a line gives something a value: it has an arrow, a number or a name, and no verb of work."""
    if _MAPS.search(line):
        return True
    line = _NUMBER.sub("", line)
    gives = any(character.isdigit() for character in line) or bool(names(line))
    return gives and not cues.asks(line) and not cues.REQUEST.search(line)


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
    if not cues.CORRECTION.search(before) or cues.DECLINES.search(before) or cues.asks(before):
        return False
    unfinished = width(before) < _SELF_CONTAINED or bool(cues.POINTING.search(utterance))
    return unfinished and not cues.asks(utterance) and len(utterance) < _LONGEST_ANSWER


def speech_facts(speech: Speech, known: Sequence[str]) -> list[Fact]:
    """Return the facts in a person's words; `known` are the contents of earlier rows, whose values an order can set."""
    return [*speech.answer.facts, *_stated(speech, known), *_specified(speech)]


def _specified(speech: Speech) -> Iterator[Fact]:
    """Yield the most telling requirements of a document that the person wrote, with low priority."""
    required = [said.text for said in statements(speech.specified) if _requires(said.text)]
    for text in sorted(required, key=weight, reverse=True)[:_MOST_REQUIREMENTS]:
        message = speech.message
        content = f"{labels.WANTS}: {text}"
        yield Fact(content, "low", "preference", _trust(message), (message.seq,), message.sent_at)


def _requires(text: str) -> bool:
    """Whether a sentence of a specification rules or limits something and can be understood alone."""
    rules = any(cue.search(text) for cue in (cues.PREFERENCE, cues.DECISION, cues.WISH, cues.CONSTRAINT))
    return rules and weight(text) >= _FIXES and stands_alone(text) and not cues.asks(text)


def _stated(speech: Speech, known: Sequence[str]) -> Iterator[Fact]:
    earlier = ""
    for place, utterance in enumerate(speech.rest):
        offered = " ".join(each.text for each in speech.offered) if place == 0 else ""
        values = [*known, offered] if offered else known
        rule = _rule(utterance) or _change_rule(utterance, values)
        if rule and (fact := _fact(speech, utterance, rule, earlier, is_first=place == 0)):
            yield fact
        earlier = utterance


def _change_rule(utterance: str, known: Sequence[str]) -> CueRule | None:
    """Return the rule of an utterance that gives something of earlier rows another value; else None."""
    if cues.asks(utterance) or not changes_value(utterance, known):
        return None
    return _ORDER if cues.is_order(utterance) else _PLAIN


def request(speech: Speech) -> str | None:
    """Return the request of a message, verbatim: all that is neither an assertion nor an answer."""
    asked = [said for said in speech.rest if not only_agrees(said) and (cues.asks(said) or not _rule(said))]
    return clip(" ".join(asked), _LONGEST_ANSWER) if asked else None


def _rule(utterance: str) -> CueRule | None:
    """Return the rule of an utterance; None for a question, an order of the moment, a command and small talk."""
    if cues.asks(_MENTION.sub(" ", utterance).strip()) or only_agrees(utterance) or cues.MUSING.search(utterance):
        return None
    if _COMMAND.match(utterance) and not cues.PREFERENCE.search(utterance):
        return None
    utterance = cues.DECLINES.sub("", _MENTION.sub(" ", utterance).strip())
    if cues.LEAVES_ALONE.search(utterance) and not names(utterance):
        return None
    if cues.CORRECTION.search(utterance):
        return _CORRECTS
    if cues.THIRD_PARTY.search(utterance):
        return _TOLD if weight(utterance) >= _TELLS else None
    if utterance.count(";") >= _FEWEST_VALUES - 1 and all(map(_has_value, utterance.split(";"))):
        return None if _is_title(utterance) else _VALUES
    said = cues.NEWS.sub("", utterance) or utterance
    asserted = _first(_ASSERTIONS, utterance) or _first(_ASSERTIONS, cues.INTERJECTION.sub("", said))
    order = cues.order(said)
    is_bare_order = cues.MOMENTARY.search(order) and weight(utterance) < _FIXES
    if asserted and not (asserted.label == labels.DECISION and is_bare_order):
        return asserted
    if cues.MOMENTARY.search(order):
        return None
    if cues.REQUEST.search(order):
        lasts = (weight(utterance) >= _FIXES and fixes(utterance)) or sets_amount(utterance)
        return _ORDER if lasts and not cues.TEMPORARY.search(utterance) else None
    return _report_rule(utterance) or _report_rule(said)


def _report_rule(utterance: str) -> CueRule | None:
    """Return the rule of a report or plain statement; None for an opinion and for what the agent has to do."""
    gives_value = states_value(utterance)
    if content_units(utterance) < (_FEWEST_WORDS if cues.OWNED.search(utterance) or gives_value else _FEWEST_BARE):
        return None
    reported = _first(_REPORTS, utterance)
    if reported and reported.label == labels.WANTS and cues.TO_AGENT.search(utterance):
        return None
    opines = cues.TENTATIVE.search(utterance) or (cues.GUESS.search(utterance) and not names(utterance))
    if opines and (reported is None or reported.label == labels.SAID):
        return None
    tells = gives_value or weight(utterance) >= _TELLS
    is_plain = tells and not cues.TEMPORARY.search(utterance) and not _is_title(utterance)
    return reported or (_PLAIN if is_plain else None)


def _is_title(utterance: str) -> bool:
    """Whether an utterance is a heading: its words begin with capitals, so it has no predicate ("TICKET SYSTEM")."""
    return not _SMALL_WORD.search(utterance) and not _NO_TITLE.search(utterance)


def _first(rules: Sequence[CueRule], utterance: str) -> CueRule | None:
    """Return the first rule that matches; a denied, planned or conditional outcome and a mere possibility do not."""
    own = _QUOTATION.sub(" “” ", utterance)
    for rule in rules:
        match = rule.cue.search(own)
        imagined = match and rule.label == labels.DECISION and cues.WOULD.search(own[: match.start()])
        if match and not imagined and not _is_other(rule, own[: match.end()]):
            return rule
    return None


def _is_other(rule: CueRule, before: str) -> bool:
    """Whether the words up to a cue make it something else: an outcome that is denied or planned, a mere possibility,
    or a report of how something fails ("it fails often, never alone")."""
    if rule.category == "outcome":
        return cues.is_not_done(before)
    if rule.category == "issue":
        return bool(cues.HYPOTHETICAL.search(before))
    return rule.category == "preference" and rule.priority == "high" and bool(cues.ISSUE.search(before))


def _fact(speech: Speech, utterance: str, rule: CueRule, earlier: str, *, is_first: bool) -> Fact | None:
    """Return the fact of an utterance, with the words that name its subject; None if nothing names it."""
    message = speech.message
    label = f"{speech.speaker} said" if speech.speaker else rule.label
    fact = Fact(
        content=f"{label}: {utterance}",
        priority=_priority(rule, utterance, speech.speaker),
        category=rule.category,
        trust=_trust(message),
        source_seqs=(message.seq,),
        said_at=message.sent_at,
    )
    if stands_alone(utterance) and not (rule is _CORRECTS and is_first) and not _is_reply(utterance, earlier, is_first):
        return fact
    return _in_context(speech, fact, rule, earlier, is_first=is_first)


def _is_reply(utterance: str, earlier: str, is_first: bool) -> bool:
    """Whether an utterance is so short that the question or proposal before it says what it is about."""
    names_subject = cues.SELF.search(utterance) or cues.OWNED.search(utterance)
    return len(utterance) < _SHORT and not names_subject and (is_first or cues.asks(earlier))


def _priority(rule: CueRule, utterance: str, speaker: str | None) -> Priority:
    """Return the priority of an utterance.

    A rule for this one time is not high, nor is a statement of one of several people; a mere opinion is low.
    """
    if rule.priority == "high":
        return "medium" if speaker or cues.ONCE.search(utterance) else "high"
    return "low" if rule.label == labels.SAID and cues.GUESS.search(utterance) else rule.priority


def _in_context(speech: Speech, fact: Fact, rule: CueRule, earlier: str, *, is_first: bool) -> Fact | None:
    """Return a fact that depends on other words, together with them; None or a low fact if they are missing."""
    said = fact.content.partition(": ")[2]
    seq = speech.message.seq
    if is_first and speech.quoted:
        how, quoted = labels.ABOUT, (Quotation(speech.quoted[-1], seq),)
    elif is_first and speech.offered and not speech.shows_image:
        how, quoted = labels.IN_ANSWER, speech.offered
    else:
        how, quoted = labels.ABOUT, (Quotation(earlier, seq),) if leans(said) or cues.asks(earlier) else ()
    if quoted and stands_alone(" ".join(each.text for each in quoted)):
        words = " ".join(f"“{clip(each.text, _LONGEST_CONTEXT // len(quoted))}”" for each in quoted)
        priority = "medium" if fact.priority == "high" and weight(said) < 1 else fact.priority
        cited = tuple(sorted({*fact.source_seqs, *(each.seq for each in quoted)}))
        return replace(fact, content=f"{fact.content}{how}{words})", priority=priority, source_seqs=cited)
    if stands_alone(said):
        return fact
    if content_units(said) < (_FEWEST_WORDS if rule.priority == "high" else _FEWEST_LEANING):
        return None
    return replace(fact, priority="low")


def _trust(message: StoredMessage) -> Trust:
    """Return the trust of a message's own words; its tool results do not lower it."""
    return "user" if message.role == "user" else "assistant"
