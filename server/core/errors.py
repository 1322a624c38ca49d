"""Every error that a user can meet, in one tree.

    EskerError
    ├── InvalidInput        the request is wrong; nothing was changed
    │   └── TooLarge        the request is over a stated limit
    ├── NotFound            no such thing in this pool
    ├── Unauthorized        no key, or a key that is not valid
    ├── Forbidden           a valid key that may not do this
    ├── Conflict            the thing is in a state that does not allow this
    │   ├── LeaseLost       another worker took over; what was done here does not count
    │   ├── RowsChanged     what was reflected meanwhile became something else
    │   └── SpendCapReached the pool's models may cost no more today
    │       └── PriceUnknown nobody can say what they cost
    ├── Unavailable         a part that we need is down; try again
    │   ├── EmbedderDown    the embedder cannot answer
    │   └── RerankerDown    the reranker cannot answer
    │       └── RerankerLate   it did not answer in time
    ├── ModelFailed         the language model did not give a usable answer
    │   ├── RequestRefused  its API refuses the request itself
    │   ├── UnusableAnswer  it answered, but not what was asked for, or it refused
    │   ├── ModelTooSlow    it did not answer in time
    │   └── ModelDown       it cannot be reached, has no time, or does not know us
    ├── TextRefused         the embedder refuses one text; the others are fine
    └── Misconfigured       a setting or the machine has to be changed first

The message of an error is one or two sentences: what happened and why. `hint` says what to do next; a job keeps the
kind and the message of its error, so what can happen in a job has its hint in its class.
HTTP statuses are mapped in one place, `server/rest/problems.py`.
"""


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
    """There is no such thing in this pool."""


class Unauthorized(EskerError):
    """A valid key is required."""

    hint = "Send 'Authorization: Bearer <key>'. `esker key create NAME` makes a key."


class Forbidden(EskerError):
    """This is not allowed."""


class Conflict(EskerError):
    """The present state does not allow this."""


class LeaseLost(Conflict):
    """The lease on this job was lost; nothing was written."""


class RowsChanged(Conflict):
    """A row was changed while something was made of it; nothing was written."""

    hint = "Try again."


class SpendCapReached(Conflict):
    """The models of this pool may cost no more today."""

    hint = "It goes on by itself at midnight UTC; `esker pool set NAME --daily-cap USD` raises the cap."


class PriceUnknown(SpendCapReached):
    """There is a cap on what models cost in a day, but what one costs is not known."""

    hint = (
        "Set ESKER_LLM_PRICES, for example to MODEL=0.10/0.50 (dollars for a million tokens in and out; 0/0 for a model"
        " that costs nothing), and start the server again; or take the cap away."
    )


class Unavailable(EskerError):
    """A part that Esker needs cannot be reached; try again."""


class EmbedderDown(Unavailable):
    """The embedder cannot answer."""


class RerankerDown(Unavailable):
    """The reranker cannot answer."""


class RerankerLate(RerankerDown):
    """The reranker did not answer in time."""


class ModelFailed(EskerError):
    """The language model did not give a usable answer."""

    hint = (
        "Nothing is lost, and it is tried again by itself. A model that does not keep to JSON may do better with"
        " another ESKER_LLM_STRUCTURED (output_config, tool, prompt)."
    )


class RequestRefused(ModelFailed):
    """The language model's API refused the request."""

    hint = (
        "If the server does not know output_config, or refuses a forced tool, set ESKER_LLM_STRUCTURED to another of"
        " output_config, tool and prompt."
    )


class UnusableAnswer(ModelFailed):
    """The language model answered, but nothing that can be used."""


class ModelTooSlow(ModelFailed):
    """The language model did not answer in time."""

    hint = (
        "Nothing is lost, and it is tried again by itself. Raise ESKER_LLM_TIMEOUT_SECONDS, or lower"
        " ESKER_JOB_CONCURRENCY so that fewer calls share the model."
    )


class ModelDown(ModelFailed):
    """The language model cannot be reached, has no time, or does not know us."""

    hint = (
        "Nothing is lost, and it is tried again by itself. Check ESKER_LLM_BASE_URL, ESKER_LLM_API_KEY and the names of"
        " the models (ESKER_OBSERVER_MODEL, ESKER_REFLECTOR_MODEL), and start the server again."
    )


class TextRefused(EskerError):
    """The embedder refused this text."""


class Misconfigured(EskerError):
    """A setting has to be changed first."""


def named(kind: str | None) -> type[EskerError]:
    """Return the kind of error of that name; one that there is no more counts as the root."""
    found = globals().get(kind or "")
    return found if isinstance(found, type) and issubclass(found, EskerError) else EskerError
