"""Names of projects: one repository has one name, however its owner, its name or its Windows directory is written."""

import re

_WINDOWS = re.compile(r"[A-Za-z]:[\\/]|\\\\")


def project_name(name: str) -> str:
    """Return the name under which a project is stored: in lower case, in a Windows directory with slashes."""
    return (name.replace("\\", "/") if _WINDOWS.match(name) else name).lower()
