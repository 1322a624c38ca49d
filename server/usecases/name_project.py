"""Name a project as its rows are stored, so that every request that names it means the same one."""

from esker.server.core.json_input import clean_text
from esker.server.core.project_names import project_name
from esker.server.core.redaction import redact


def stored_name(named: str | None) -> str | None:
    """Return the name of a project: masked, without white space around it, in one case; None for no name."""
    return project_name(as_named(named)) or None


def as_named(named: str | None) -> str:
    """Return the name as its client writes it, masked; "" for no name."""
    return redact(clean_text(named)).strip() if named else ""
