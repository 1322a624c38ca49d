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
MIN_REFLECTION_TOKENS = 1_000
"""The fewest tokens of rows that are reflected without a request: fewer are not worth a call of a model."""
DEFAULT_EFFECTIVE_CONTEXT = 200_000


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
    """Return at how many tokens of live observations a session is reflected: its own number, else its budget."""
    return max(MIN_REFLECTION_TOKENS, reflect_at_tokens or budgets(effective_context).observation_tokens)
