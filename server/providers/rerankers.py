"""Make the reranker that a setting names: a model in this process, or an endpoint."""

from esker.server.core.config.settings import Settings
from esker.server.core.errors import Misconfigured
from esker.server.providers.local_reranker import LocalReranker
from esker.server.providers.remote_reranker import RemoteReranker
from esker.server.providers.roles import Reranker


def make_reranker(settings: Settings) -> Reranker | None:
    """Return the configured reranker, or None for `none`. Raises Misconfigured."""
    kind, _, rest = settings.reranker.partition(":")
    if settings.reranker == "none":
        return None
    if kind == "sentence-transformers" and rest:
        return LocalReranker(rest, settings.embed_threads)
    if kind == "http" and "#" in rest:
        base_url, _, model = rest.rpartition("#")
        key = settings.reranker_api_key
        return RemoteReranker(base_url, model, key.get_secret_value() if key else None)
    raise Misconfigured(
        f"ESKER_RERANKER does not name a reranker ({kind}: …).",
        hint="Use sentence-transformers:<path or name>, http:<base url>#<model>, or none.",
    )
