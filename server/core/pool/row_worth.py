"""Whether a row of a pack is worth its tokens: it names a subject, and it is not an order of the moment.

The rules are cautious: they miss rows of no use rather than name a useful one.
"""

from typing import Literal

from esker.server.core.facts.same_fact import fingerprint
from esker.server.core.records import Kind
from esker.server.core.text import labels
from esker.server.core.words.lists import Cue, words

Worthless = Literal["no subject", "order", "repeat"]
"""Why a row is not worth its tokens: it does not say what it is about, it asked for work that is over, or an earlier
row of the pack says the same."""

_POINTS_BACK = tuple(Cue(*words(f"observer.{name}")) for name in ("continuation", "pointing"))
_REQUEST = Cue(*words("observer.request"))
# "User asked that every commit is signed" states a rule.
_LASTS = Cue(*words("observer.preference"), *words("observer.constraint"))


def worthless(content: str, kind: Kind) -> Worthless | None:
    """Return why a row is not worth its tokens, judged by itself; None if nothing speaks against it.

    A row of the kind `manual` is written on purpose, so it is never taken for an order.
    """
    if kind != "manual" and _is_order(content):
        return "order"
    return None if _has_subject(content) else "no subject"


def _is_order(content: str) -> bool:
    if content.startswith(labels.ASKED):
        return not _LASTS.search(content)
    return content.startswith((labels.SAID, labels.REPORTED)) and bool(_REQUEST.match(labels.own_statement(content)))


def _has_subject(content: str) -> bool:
    statement, _, answered = content.split(labels.PURPOSE)[0].partition(labels.IN_ANSWER)
    if fingerprint(answered).subject:
        return True
    about = fingerprint(statement)
    points_back = any(pattern.match(labels.without_label(statement)) for pattern in _POINTS_BACK)
    # A number alone ("make it 45") names no subject.
    named = {term for term in about.particular if not term.isdecimal()}
    return bool(named if points_back else about.subject)
