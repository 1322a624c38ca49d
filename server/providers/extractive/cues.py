"""Patterns that classify a sentence: a rule, a decision, a correction, a fact, an outcome.

The words are in `server/core/words`; this module adds what is the same in every language.
"""

import re

from esker.server.core.words.lists import cue, words


def _observer(name: str, *in_any_language: str) -> re.Pattern[str]:
    """Return the pattern of a list of cues, and of entries that belong to no language."""
    return cue(*in_any_language, *words(f"observer.{name}"))


QUESTION = _observer("question", r"[?？]\s*[\"')]?$")
CORRECTION = _observer("correction")
PREFERENCE = _observer("preference")
DECISION = _observer("decision")
REQUEST = _observer("request")
ISSUE = _observer("issue")
CAUSE = _observer("cause")
OUTCOME = _observer("outcome")
NEXT_STEP = _observer("next_step")
FACT = _observer("fact")
# A sentence that ends with a colon only introduces a list or a block of code.
FILLER = _observer("filler", "[:：]$")
# A sentence that depends on the one before it.
CONTINUATION = _observer("continuation")
# A sentence that refers to something without naming it.
POINTING = _observer("pointing")
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
OPEN = _observer("open_question")
# An agreement even when more text follows; after any other agreement, that text is the reply.
PLAIN_YES = _observer("plain_yes")

# Words before an outcome that deny, plan or condition it. Negations of Chinese and Japanese are also parts of other
# words, so `not_done` lists the forms of these languages that count here.
_NO_DENIAL = cue(*words("observer.no_denial"))
_NOT_DONE = cue(
    *words("observer.not_done"),
    *words("negations", "en", "de", "fr", "es"),
    r"n['’]t\b",
)


def is_not_done(before: str) -> bool:
    """Whether the words up to an outcome deny, plan or condition it."""
    return bool(_NOT_DONE.search(_NO_DENIAL.sub(" ", before)))


def asks(sentence: str) -> bool:
    """Whether a sentence asks instead of asserting."""
    return bool(QUESTION.search(sentence))
