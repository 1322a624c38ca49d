"""Every error that a user can meet, in one tree.

    EskerError
    ├── InvalidInput        the request is wrong; nothing was changed
    │   └── TooLarge        the request is over a stated limit
    ├── NotFound            the id does not exist in this pool
    ├── Unauthorized        no key
    │   └── UnknownKey      a key that is not valid
    ├── TooManyRequests     the caller must wait
    ├── TooSlow             the body of a request did not arrive in time
    ├── Forbidden           a valid key without the right to do this
    ├── Conflict            the present state does not allow this
    │   ├── LeaseLost       another worker took over; the results of this one are discarded
    │   ├── RowsChanged     a row was changed while a reflection was made from it
    │   └── SpendCapReached the pool's daily cap for models is reached
    │       └── PriceUnknown a cap is set, but the price of a model is not known
    ├── JobStuck            a job made no progress, or did not end, for too long
    ├── Unavailable         a part that Esker needs is down; try again
    │   ├── EmbedderDown    the embedder cannot answer
    │   │   └── CallFailed      it did not answer one call; it may be down, or a text may be the reason
    │   └── RerankerDown    the reranker cannot answer
    │       └── RerankerLate   it did not answer in time
    ├── ModelFailed         the language model did not give a usable answer
    │   ├── RequestRefused  its API rejected the request
    │   ├── UnusableAnswer  it answered in the wrong form, or it refused
    │   ├── ModelTooSlow    it did not answer in time
    │   └── ModelDown       it cannot be reached, is overloaded, or rejected the key
    ├── TextRefused         the embedder refuses one text; the others are fine
    └── Misconfigured       a setting or the machine must be changed first

The message of an error is one or two sentences: what happened and why. `hint` says what to do next. A job keeps only
the kind and the message of its error, so errors that can happen in a job have their hint in the class.
HTTP statuses are mapped in one place, `server/rest/problems.py`.
"""

from typing import Literal


class EskerError(Exception):
    """Something went wrong in Esker."""

    hint: str | None = None

    def __init__(self, message: str | None = None, *, hint: str | None = None) -> None:
        super().__init__(message or (self.__doc__ or "").strip())
        if hint is not None:
            self.hint = hint


class InvalidInput(EskerError):
    """The request is not valid; nothing was changed."""


class TooLarge(InvalidInput):
    """The request is larger than the stated limit; nothing was changed."""


class NotFound(EskerError):
    """The id does not exist in this pool."""


class Unauthorized(EskerError):
    """A valid key is required."""

    hint = "Send 'Authorization: Bearer <key>'. `esker key create NAME` makes a key."


class UnknownKey(Unauthorized):
    """This key is unknown, revoked or expired."""


class TooManyRequests(EskerError):
    """More requests came than are allowed; nothing was changed."""

    def __init__(self, message: str, *, seconds: float, hint: str | None = None) -> None:
        """`seconds` from now a request is allowed again."""
        super().__init__(message, hint=hint)
        self.seconds = seconds


class TooSlow(EskerError):
    """The body of the request did not arrive in time; nothing was changed."""


class Forbidden(EskerError):
    """This is not allowed."""


class Conflict(EskerError):
    """The present state does not allow this."""


class LeaseLost(Conflict):
    """The lease on this job was lost; nothing was written."""


class RowsChanged(Conflict):
    """A row was changed while a new row was made from it; nothing was written."""

    hint = "Try again."


class SpendCapReached(Conflict):
    """The daily cap for this pool's models is reached."""

    hint = (
        "Work resumes at midnight UTC. `esker pool set NAME --daily-cap USD` raises a cap of money; an agent CLI gets"
        " more calls or tokens by the setting that the message names, and a restart."
    )


class PriceUnknown(SpendCapReached):
    """A daily cap for models is set, but the price of a model is not known."""

    hint = (
        "Set ESKER_LLM_PRICES, for example to MODEL=0.10/0.50 (dollars for a million tokens in and out; 0/0 for a model"
        " that costs nothing), and restart the server; or remove the cap."
    )


class JobStuck(EskerError):
    """A job made no progress for too long, or its worker died again and again."""

    hint = "It is retried automatically. `esker jobs show` shows its last error."


class Unavailable(EskerError):
    """A part that Esker needs cannot be reached; try again."""


class EmbedderDown(Unavailable):
    """The embedder cannot answer."""


class CallFailed(EmbedderDown):
    """The embedder did not answer this call."""


class RerankerDown(Unavailable):
    """The reranker cannot answer."""


class RerankerLate(RerankerDown):
    """The reranker did not answer in time."""


class ModelFailed(EskerError):
    """The language model did not give a usable answer."""

    hint = (
        "Nothing is lost; the call is retried automatically. A server whose model does not keep to JSON may do better"
        " with another ESKER_LLM_STRUCTURED (schema, json, tool, prompt)."
    )
    is_sent = True
    """Whether the request may have reached the model."""
    is_billed = True
    """Whether the call may be billed."""


class RequestRefused(ModelFailed):
    """The language model's API rejected the request."""

    hint = (
        "If the server does not support schemas or a forced tool, set ESKER_LLM_STRUCTURED to another of schema, json"
        " (with ESKER_LLM_PROTOCOL=chat), tool and prompt."
    )


class ContextExceeded(RequestRefused):
    """The request is longer than the language model's context."""

    hint = "Let the server give its model a longer context, or choose a model that has one."

    def __init__(self, message: str, *, context: int | None = None) -> None:
        super().__init__(message)
        self.context = context


class UnusableAnswer(ModelFailed):
    """The language model's answer cannot be used."""


class ModelTooSlow(ModelFailed):
    """The language model did not answer in time."""

    hint = (
        "Nothing is lost; the call is retried automatically. Raise ESKER_LLM_TIMEOUT_SECONDS, or lower"
        " ESKER_JOB_CONCURRENCY so that fewer calls share the model."
    )


class ModelDown(ModelFailed):
    """The language model cannot be reached, is overloaded, or rejected the key."""

    hint = (
        "Nothing is lost; the call is retried automatically. For a model with an address, check ESKER_LLM_BASE_URL,"
        " ESKER_LLM_API_KEY and ESKER_LLM_MODEL, and restart the server; an agent CLI is started again by itself."
    )

    def __init__(
        self,
        message: str | None = None,
        *,
        sent: bool = True,
        seconds: float | None = None,
        reason: Literal["busy", "key", "model"] = "busy",
    ) -> None:
        """`seconds`: how long not to ask again, if that is known.

        `reason`: the provider is busy or cannot be reached, refuses the key or the account, or does not have the model.
        """
        super().__init__(message)
        self.is_sent = sent
        self.seconds = seconds
        self.reason = reason


class TextRefused(EskerError):
    """The embedder refused this text."""


class Misconfigured(EskerError):
    """A setting must be changed first."""


def named(kind: str | None) -> type[EskerError]:
    """Return the error class of that name; EskerError for a name that no longer exists."""
    found = globals().get(kind or "")
    return found if isinstance(found, type) and issubclass(found, EskerError) else EskerError
