"""Which embedder a setting names: a model in this process, or an endpoint that speaks OpenAI's embeddings API."""

from server.core.errors import Misconfigured
from server.core.settings import Settings
from server.providers.local_embedder import LocalEmbedder
from server.providers.remote_embedder import RemoteEmbedder
from server.providers.roles import Embedder


def embedder_of(settings: Settings) -> Embedder | None:
    """Return the embedder that is configured, or None for `none`. Raises Misconfigured."""
    return make_embedder(settings, settings.embedder)


def make_embedder(settings: Settings, setting: str) -> Embedder | None:
    """Return the embedder that `setting` names, configured or not. Raises Misconfigured."""
    # The key is for the endpoint that is configured, whichever of its models is meant, and for no other.
    secret = settings.embedder_api_key if _endpoint(setting) == _endpoint(settings.embedder) else None
    return _made(setting, settings.embed_threads, secret.get_secret_value() if secret else None)


def _endpoint(setting: str) -> str:
    return setting.rpartition("#")[0]


def _made(setting: str, threads: int, api_key: str | None) -> Embedder | None:
    kind, _, rest = setting.partition(":")
    if setting == "none":
        return None
    if kind == "sentence-transformers" and rest:
        return LocalEmbedder(rest, threads, setting)
    if kind == "openai" and "#" in rest:
        base_url, _, model = rest.rpartition("#")
        return RemoteEmbedder(base_url, model, api_key, setting)
    raise Misconfigured(
        f"ESKER_EMBEDDER names no embedder ({kind}: …).",
        hint="Use sentence-transformers:<path, name or 'bundled'>, openai:<base url>#<model>, or none.",
    )
