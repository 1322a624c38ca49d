"""Patterns that classify a sentence: a rule, a decision, a correction, a fact, an outcome.

The words are in `server/core/words`; this module adds what is the same in every language.
"""

import re

from esker.server.core.words.lists import Cue, words


def _observer(name: str, *in_any_language: str) -> Cue:
    """Return the pattern of a list of cues, and of entries that belong to no language."""
    return Cue(*in_any_language, *words(f"observer.{name}"))


def _persons(name: str) -> Cue:
    """Return the pattern of a list for chats of people."""
    return Cue(*words(f"persons.{name}"))


QUESTION = _observer("question", r"[?？؟]\s*[\"')]?$")
CORRECTION = _observer("correction")
# Declines an offer at the beginning of a reply, and corrects nothing: "no, all good".
DECLINES = _observer("declines")
PREFERENCE = _observer("preference")
DECISION = _observer("decision")
REQUEST = _observer("request")
ISSUE = _observer("issue")
CAUSE = _observer("cause")
OUTCOME = _observer("outcome")
NEXT_STEP = _observer("next_step")
FACT = _observer("fact")
# A sentence that ends with a colon or a comma only introduces a list or a block of code.
FILLER = _observer("filler", "[:：,，、]$")
# A sentence that depends on the one before it.
CONTINUATION = _observer("continuation")
# A sentence that refers to something without naming it.
POINTING = _observer("pointing")
# A subject that means something only after what was said before: "the reason", "the fix".
GENERAL_SUBJECT = _observer("general_subject")
# Begins with something that belongs to the speaker or the project: "my editor", "the port".
OWNED = _observer("owned")
# The speaker as the subject, as a person writes and a program does not.
SELF = _observer("self")
# Introduces the words of another person or of a program: "the log says:", "I got this:".
PRESENTS = _observer("presents")
# Asks to work on a text that follows: "translate into German:", "summarise this:".
HANDLES = _observer("handles")
# Asks for an opinion on a plan or a text that follows: "review this plan".
REVIEWS = _observer("reviews")
# Reports what another person says or thinks.
THIRD_PARTY = _observer("third_party")
# A wish about the product or the work.
WISH = _observer("wish")
# Suggests something in the form of a question.
SUGGESTS = _observer("suggests")
# Greets, thanks, praises, pities, wishes or advises: it states nothing.
COURTESY = _persons("courtesy")
# Tells of a life: family, a body, a home, a past.
LIVED = _persons("lived")
# Offers help, or says that it is a program.
SERVES = _persons("serves")
# A pronoun for something that was named before.
POINTS = _persons("points")
# Verbs in the past tense.
PAST = _persons("past")
# Marks a habit: no single day is meant.
HABIT = _persons("habit")
# Says what the agent has to do.
TO_AGENT = _observer("to_agent")
# Takes back what was decided or done last.
TAKES_BACK = _observer("takes_back")
# Says that the speaker threw all the work away.
DISCARDS = _observer("discards")
# Exclamations at the beginning of a sentence, which are not part of it.
INTERJECTION = _observer("interjection")
# Announces news, at the beginning of a sentence, which looks like an order then: "btw the port is 80".
NEWS = _observer("news")
# Thinks aloud and settles nothing.
MUSING = _observer("musing")
# Imagines something that is not so.
WOULD = _observer("would")
# Puts something off to an event.
CONDITION = _observer("condition")
# An order that is over once it is carried out.
MOMENTARY = _observer("momentary")
# Says that the work before did not help.
STILL_FAILS = _observer("still_fails")
# Work that is temporary.
TEMPORARY = _observer("temporary")
# An order to leave something alone until the work goes on.
LEAVES_ALONE = _observer("leaves_alone")
# Where an order is carried out: "In app.py, …".
_PLACE = _observer("place")
_NAMED = re.compile(r"`|\w[._/\\(]\w")
# Begins with a noun that looks like an order: "commit messages are …".
_COMPOUND = _observer("compound", r"^(?-i:[A-Z]\w+-[A-ZÄÖÜ]\w)")
# Before a report: it might happen, and has not.
HYPOTHETICAL = _observer("hypothetical")
# Limits or fixes something: only, at most, each, until.
CONSTRAINT = _observer("constraint")
# Joins a cause and its effect.
EFFECT = _observer("effect")
# Guesses instead of reporting.
GUESS = _observer("guess")
# Avoids an answer.
NO_ANSWER = _observer("no_answer")
# The agent's announcements, offers, instructions and opinions of the request, which report nothing.
ANNOUNCEMENT = _observer("announcement")
OFFER = _observer("offer")
ADDRESS = _observer("address")
# Names the remedy of a fault that is reported.
REMEDY = _observer("remedy")
# Courtesies at the end of an answer, which no reply answers.
PARTING = _observer("parting")
# Words at the beginning of an answer that say nothing.
OPENING = _observer("opening")
# Headings, by what follows them.
HEADING_OPEN = _observer("heading_open")
HEADING_PROPOSED = _observer("heading_proposed")
HEADING_DONE = _observer("heading_done")
HEADING_FORMER = _observer("heading_former")
# Follows a comment or a note, whose demand is not the user's, or tells what it says the user confirmed.
OBEYS = _observer("obeys")
# Announces a discovery.
DISCOVERY = _observer("discovery")
HEADING_GENERAL = _observer("heading_general")
# A rule for this one time.
ONCE = _observer("once")
TENTATIVE = _observer("tentative")
# Passing states, temporary paths and bare UUIDs, which are not worth keeping.
PASSING = _observer(
    "passing",
    r"^\S*(?:/tmp/|/var/folders/|/private/tmp/|\\Temp\\)\S*$",
    r"^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}[.]?$",
)
AGREEMENT = _observer("agreement")
PROPOSAL = _observer("proposal", r"[?？]\s*$")
YES_OR_NO = _observer("yes_or_no")
CHOICE = _observer("choice")
NO = _observer("no")
# A question to which any reply is an answer.
OPEN_QUESTION = _observer("open_question")
# An agreement even when more text follows; after any other agreement, that text is the reply.
PLAIN_YES = _observer("plain_yes")

# Words before an outcome that deny, plan or condition it. Negations of Chinese and Japanese are also parts of other
# words, so `not_done` lists the forms of these languages that count here.
_NO_DENIAL = Cue(*words("observer.no_denial"))
_NOT_DONE = Cue(
    *words("observer.not_done"),
    *words("negations", "en", "de", "fr", "es"),
    r"n['’]t\b",
)


def is_not_done(before: str) -> bool:
    """Whether the words up to an outcome deny, plan or condition it."""
    return bool(_NOT_DONE.search(_NO_DENIAL.sub(" ", before)))


def order(utterance: str) -> str:
    """Return what can be an order of an utterance: without a named place before it ("In app.py, find …").

    A noun that looks like an order begins none.
    """
    if _COMPOUND.search(utterance):
        return ""
    place = _PLACE.match(utterance)
    return utterance[place.end() :] if place and _NAMED.search(place[0]) else utterance


def is_order(utterance: str) -> bool:
    """Whether an utterance asks for work."""
    asked = order(utterance)
    return bool(REQUEST.search(asked) or MOMENTARY.search(asked))


def asks(sentence: str) -> bool:
    """Whether a sentence asks instead of asserting."""
    return bool(QUESTION.search(sentence))
