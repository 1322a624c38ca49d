"""Make the language models that the settings name."""

from dataclasses import replace

from esker.server.core.config.settings import ModelRole, Settings
from esker.server.core.errors import Misconfigured
from esker.server.providers.breaker import Breakers
from esker.server.providers.chat_api import ChatWire, probe_chat
from esker.server.providers.cli_model import PREFIX_OF_MODELS, cli_wire
from esker.server.providers.context_size import ContextSize, ServerContextSize
from esker.server.providers.endpoints import Endpoint
from esker.server.providers.language_model import LanguageModel
from esker.server.providers.messages_api import MessagesWire, probe_messages


def model_at(model: str, endpoint: Endpoint, breakers: Breakers | None = None) -> LanguageModel:
    """Return a model of a server, which shares the breaker of its provider with others."""
    wire = ChatWire(model, endpoint) if endpoint.protocol == "chat" else MessagesWire(model, endpoint)
    breaker = breakers.of(endpoint.described) if breakers else None
    return LanguageModel(model, wire, endpoint.timeout, ServerContextSize(model, endpoint), breaker)


async def probe(endpoint: Endpoint) -> str | None:
    """Return why a server of language models cannot be used, or None; no model is called."""
    return await (probe_chat(endpoint) if endpoint.protocol == "chat" else probe_messages(endpoint))


def model_of(
    settings: Settings, role: ModelRole, timeout: float | None = None, breakers: Breakers | None = None
) -> LanguageModel:
    """Return the model of a role, which shares the breaker of its provider with others. Raises Misconfigured."""
    choice = "model" if role == "paraphraser" else settings.choice_of(role)
    if choice.startswith(PREFIX_OF_MODELS):
        own = settings.observer_model if role == "observer" else settings.reflector_model
        wire = cli_wire(choice.removeprefix(PREFIX_OF_MODELS), role, own, settings.cli_concurrency)
        context = ContextSize(settings.llm_size, settings.llm_context_tokens)
        breaker = breakers.of(choice) if breakers else None
        return LanguageModel(choice, wire, settings.llm_timeout_seconds, context, breaker)
    if not settings.has_model:
        raise Misconfigured(
            "A model is configured to observe, reflect or paraphrase, but none can be reached.",
            hint="Set ESKER_LLM_API_KEY (or ANTHROPIC_API_KEY) or ESKER_LLM_BASE_URL.",
        )
    if (name := settings.model_of(role)) is None:
        raise Misconfigured(
            f"No model is named for the {role}, and ESKER_LLM_PROTOCOL=chat has no usual one.",
            hint="Set ESKER_LLM_MODEL to the name of a model of the server.",
        )
    if settings.llm_structured == "json" and settings.llm_protocol != "chat":
        raise Misconfigured(
            "ESKER_LLM_STRUCTURED=json needs ESKER_LLM_PROTOCOL=chat.",
            hint="The Messages API has schema, tool and prompt.",
        )
    if settings.daily_cap_usd is not None and settings.price(name) is None:
        raise Misconfigured(
            f"ESKER_DAILY_CAP_USD is set, but the price of {name} is not known.",
            hint=f"Set ESKER_LLM_PRICES, for example {name}=0.10/0.50 (dollars for a million tokens in and out).",
        )
    endpoint = Endpoint.of(settings)
    return model_at(name, replace(endpoint, timeout=timeout) if timeout else endpoint, breakers)
