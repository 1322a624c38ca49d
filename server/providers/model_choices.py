"""Find the possible writers of memories: rules, agent CLIs on PATH, local servers that answer, and keys."""

import asyncio
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import httpx2
from pydantic import BaseModel

from esker.server.core.config.settings import Settings
from esker.server.core.errors import ModelFailed, RequestRefused
from esker.server.core.json_input import as_object
from esker.server.core.records import TokenUse
from esker.server.providers.agent_clients import AGENT_CLIENTS
from esker.server.providers.answers import read_answer
from esker.server.providers.bounded_answers import bounded
from esker.server.providers.language_model import ModelReply
from esker.server.providers.language_models import model_of

LOCAL_SERVERS: Mapping[str, str] = {
    "Ollama": "http://127.0.0.1:11434",
    "LM Studio": "http://127.0.0.1:1234",
    "llama.cpp": "http://127.0.0.1:8080",
    "vLLM": "http://127.0.0.1:8000",
}
"""The servers of language models that are looked for, at their usual addresses."""
CHOSEN = (
    *("observer", "reflector", "llm_protocol", "llm_base_url", "llm_api_key", "llm_model", "observer_model"),
    *("reflector_model", "llm_structured"),
)
"""The settings that a choice decides; those that it does not set are removed."""
_LOOK_SECONDS = 1.0
_TRIED = "User decided to keep the harbour's logbook in Redis."


@dataclass(frozen=True, slots=True)
class ModelChoice:
    """Something that could write memories: its name, what it is, what it costs, its settings, and its models."""

    name: str
    what: str
    cost: str
    settings: Mapping[str, str]
    models: Sequence[str] = field(default_factory=tuple[str, ...])

    @property
    def is_model(self) -> bool:
        """Whether a model would be called."""
        return self.settings["observer"] not in ("off", "extractive")


@dataclass(frozen=True, slots=True)
class Trial:
    """A call that was tried: the settings that worked, or the problem, and the tokens that it used."""

    settings: Mapping[str, str]
    problem: str | None
    used: TokenUse


class _Tried(BaseModel):
    fact: str


@dataclass(slots=True)
class _Tokens:
    used: TokenUse = field(default_factory=TokenUse)

    async def reserve(self, model: str, most: TokenUse) -> str:
        """Allow the call."""
        return ""

    async def settle(self, call: str, model: str, used: TokenUse | None) -> None:
        """Keep its token use."""
        self.used = used or TokenUse()


async def model_choices(settings: Settings, environ: Mapping[str, str]) -> list[ModelChoice]:
    """Return the available models, the simplest first. Asks servers at the usual local addresses, but calls no
    model."""
    found = [
        ModelChoice("nothing", "Transcripts are stored, nothing is observed.", "nothing", _both("off")),
        ModelChoice("rules", "Rules find rulings, outcomes and failures.", "nothing", _both("extractive")),
    ]
    limits = f"{settings.cli_daily_calls:,} calls and {settings.cli_daily_tokens:,} tokens"
    for name in AGENT_CLIENTS:
        if program := shutil.which(name, path=environ.get("PATH")):
            cost = (
                f"your subscription, or the API key in the server's environment if one is set; at most {limits} a day"
            )
            found.append(
                ModelChoice(
                    f"cli:{name}", f"The CLI {program}, if you are logged in to it.", cost, _both(f"cli:{name}")
                )
            )
    listed = await asyncio.gather(*(_models_at(url) for url in LOCAL_SERVERS.values()))
    for (name, url), models in zip(LOCAL_SERVERS.items(), listed, strict=True):
        if models:
            what = f"{name} at {url}: {', '.join(models[:4])}{', …' if len(models) > 4 else ''}."
            chosen = _both("model") | {"llm_protocol": "chat", "llm_base_url": url}
            found.append(ModelChoice(f"server:{url}", what, "nothing but this machine's time", chosen, models))
    return [*found, *_keys(settings, environ)]


def _keys(settings: Settings, environ: Mapping[str, str]) -> list[ModelChoice]:
    found: list[ModelChoice] = []
    if environ.get("ANTHROPIC_API_KEY"):
        prices = [
            f"{model} ${price.input:g} in and ${price.output:g} out"
            for role in ("observer", "reflector")
            if (model := Settings().model_of(role)) and (price := settings.price(model))
        ]
        cost = f"for a million tokens: {'; '.join(prices)}"
        found.append(
            ModelChoice("anthropic", "Anthropic's API, with the key in ANTHROPIC_API_KEY.", cost, _both("model"))
        )
    if environ.get("OPENAI_API_KEY"):
        chosen = _both("model") | {"llm_protocol": "chat"}
        found.append(
            ModelChoice("openai", "OpenAI's API, with the key in OPENAI_API_KEY.", "its list of prices", chosen)
        )
    return found


def _both(choice: str) -> dict[str, str]:
    return {"observer": choice, "reflector": choice}


async def _models_at(url: str) -> tuple[str, ...]:
    """Return the models of a local server, none if no such server answers."""
    try:
        async with (
            asyncio.timeout(_LOOK_SECONDS),
            bounded(httpx2.AsyncClient(timeout=None, trust_env=False)) as client,
        ):
            answer = await client.get(f"{url}/v1/models")
            listed: Any = answer.json() if answer.status_code == 200 else None
    except (httpx2.HTTPError, ValueError, RecursionError, TimeoutError):
        return ()
    entries = as_object(listed).get("data")
    if not isinstance(entries, list):
        return ()
    names = [as_object(each).get("id") for each in cast("list[object]", entries)]
    return tuple(name for name in names if isinstance(name, str))


async def try_choice(choice: ModelChoice, chosen: Mapping[str, str], environ: Mapping[str, str]) -> Trial:
    """Make one call of the observer with the settings of a choice; a server is asked for JSON in the way it can.

    Raises Misconfigured.
    """
    if not choice.is_model:
        return Trial(chosen, None, TokenUse())
    trial = Trial(chosen, "it was not tried", TokenUse())
    ways = ("schema", "json", "prompt") if chosen.get("llm_protocol") == "chat" else ("",)
    for way in ways:
        given = {**chosen, **({"llm_structured": way} if way else {})}
        trial, refused = await _tried(given, environ)
        if not refused:
            break
    return trial


async def _tried(chosen: Mapping[str, str], environ: Mapping[str, str]) -> tuple[Trial, bool]:
    kept = {name: value for name, value in environ.items() if name.removeprefix("ESKER_").lower() not in CHOSEN}
    settings = Settings.from_environment(
        {name: value for name, value in kept.items() if name not in ("HOME", "XDG_CONFIG_HOME")}, **chosen
    )
    model = model_of(settings, "observer")
    tokens = _Tokens()

    def read(reply: ModelReply) -> str:
        return read_answer(reply.text, _Tried).fact

    try:
        system = "Repeat the fact that the user states, word for word, as a JSON object with the field `fact`."
        said = [{"type": "text", "text": _TRIED}]
        await model.ask(system, said, _Tried, read, max_tokens=1_000, meter=tokens)
    except ModelFailed as error:
        return Trial(chosen, str(error), tokens.used), isinstance(error, RequestRefused)
    finally:
        await model.close()
    return Trial(chosen, None, tokens.used), False
