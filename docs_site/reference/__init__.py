"""The reference: pages that are made from the code at every build, so that they cannot differ from it."""

from collections.abc import Callable, Mapping

from docs_site.reference.commands import commands_page
from docs_site.reference.errors import errors_page
from docs_site.reference.metrics import metrics_page
from docs_site.reference.routes import documents_page, routes_page
from docs_site.reference.settings import settings_page
from docs_site.reference.tools import tools_page

PAGES: Mapping[str, Callable[[], str]] = {
    "reference/settings.md": settings_page,
    "reference/commands.md": commands_page,
    "reference/routes.md": routes_page,
    "reference/documents.md": documents_page,
    "reference/tools.md": tools_page,
    "reference/metrics.md": metrics_page,
    "reference/errors.md": errors_page,
}
"""The pages by their path in the site."""
