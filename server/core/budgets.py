"""The budgets of a session, all shares of one number: its effective context."""

from dataclasses import dataclass

MAX_TRANSCRIPT_TOKENS = 35_000
"""The most transcript tokens that one observer call sees."""
MAX_OBSERVATION_TOKENS = 8_000
"""The most tokens that one observer call may write."""
PREVIOUS_OBSERVATION_TOKENS = 4_000
"""The most tokens of a session's own latest observations that the observer is shown."""
KNOWN_MEMORY_TOKENS = 4_000
"""The most tokens of memories from the agent's pack and recalls that the observer is shown, in addition."""
RELATED_MEMORY_TOKENS = 2_000
"""The most tokens of related memories of the project that the observer is shown, in addition."""
SMALL_CONTEXT_TOKENS = 64_000
"""Tokens of the smallest model context into which a full observer request fits."""
GUESSED_CONTEXT_TOKENS = 16_000
"""Assumed tokens of a context that was too small for a request, if the server does not say its size."""
MIN_REFLECTION_TOKENS = 1_000
"""The fewest tokens of rows that are reflected without a request: fewer are not worth a model call."""
DEFAULT_EFFECTIVE_CONTEXT = 200_000
# Most tokens of a small model's instructions and schema, and of the lines around the texts that it is shown.
_SMALL_INSTRUCTIONS = 1_000
# The share of a context that is filled; the rest is a margin, since token counts are estimates.
_USED = 0.85


@dataclass(frozen=True, slots=True)
class ObserverBudget:
    """The most tokens of each part of one observer call."""

    transcript: int = MAX_TRANSCRIPT_TOKENS
    previous: int = PREVIOUS_OBSERVATION_TOKENS
    known: int = KNOWN_MEMORY_TOKENS
    related: int = RELATED_MEMORY_TOKENS
    answer: int = 2 * MAX_OBSERVATION_TOKENS
    """JSON costs more than the facts in it."""


LARGE_OBSERVER = ObserverBudget()
_SMALL_OBSERVER = ObserverBudget(transcript=7_000, previous=1_000, known=0, related=1_000, answer=3_000)


def small_observer(context: int | None) -> ObserverBudget:
    """Return the budget of a small model, from the tokens of its context if they are known."""
    full = _SMALL_OBSERVER
    most = full.transcript + full.previous + full.related + full.answer
    room = most if context is None else max(0, int(context * _USED) - _SMALL_INSTRUCTIONS)
    part = min(1.0, room / most)
    return ObserverBudget(
        transcript=max(200, int(full.transcript * part)),
        previous=int(full.previous * part),
        known=0,
        related=int(full.related * part),
        answer=max(300, int(full.answer * part)),
    )


def small_reflection(context: int | None) -> int:
    """Return the most tokens of rows that a small model is given to condense: a fifth of its context."""
    return max(500, min(4_000, (context or 20_000) // 5))


@dataclass(frozen=True, slots=True)
class Budgets:
    """Tokens for each part of a session's context."""

    message_tokens: int
    """The raw tail that a client should keep at most."""
    observation_tokens: int
    """Live observations at which a session is reflected; also the most that a pack shows of the session itself."""
    global_pack_tokens: int
    """The most that a pack shows of the rest of the pool."""


def budgets(effective_context: int) -> Budgets:
    """Return the budgets for a context of `effective_context` tokens."""
    return Budgets(
        message_tokens=effective_context * 600 // 1000,
        observation_tokens=effective_context * 325 // 1000,
        global_pack_tokens=effective_context * 75 // 1000,
    )


def reflect_trigger(effective_context: int, reflect_at_tokens: int | None) -> int:
    """Return at how many tokens of live observations a session is reflected: its own setting, else its budget."""
    return max(MIN_REFLECTION_TOKENS, reflect_at_tokens or budgets(effective_context).observation_tokens)


REFLECTION_TOKENS = budgets(DEFAULT_EFFECTIVE_CONTEXT).observation_tokens
"""Tokens of rows that are condensed at a time, whatever the session's context; a larger row is condensed alone."""
