"""The answers of OpenAI's two protocols, which name the same things alike except the tokens."""

from collections.abc import Iterable

from esker.server.agents.content import as_text
from esker.server.core.json_input import JsonObject, as_object
from esker.server.core.records import TokenUse
from esker.server.gateway.counts import count_of
from esker.server.gateway.records import ModelAnswer, Turn


def openai_answer(document: JsonObject, turns: Iterable[Turn], *, sent: str, written: str, whole: bool) -> ModelAnswer:
    """Return an answer; `sent` and `written` begin the names of its counts of tokens.

    The protocols count cached tokens as sent, too.
    """
    used = as_object(document.get("usage"))
    cached = count_of(as_object(used.get(f"{sent}_tokens_details")), "cached_tokens")
    counted = TokenUse(
        input_tokens=max(0, count_of(used, f"{sent}_tokens") - cached),
        output_tokens=count_of(used, f"{written}_tokens"),
        cache_read_tokens=cached,
    )
    return ModelAnswer(
        id=as_text(document.get("id")),
        model=as_text(document.get("model")),
        turns=list(turns),
        used=counted if used else None,
        whole=whole,
    )
