"""Names of the files of a synchronised folder, which every operating system takes and no two projects share."""

import hashlib
import re
import unicodedata

from esker.server.core.records import Kind

_UNSAFE = re.compile(r"[^a-z0-9_-]+")
_DEVICE = re.compile(r"con|prn|aux|nul|com\d|lpt\d")
_ALL_PROJECTS = "all-projects"
_LONGEST = 50
_FILES: dict[Kind, str] = {
    "manual": "pinned.md",
    "note": "notes.md",
    "reflection": "reflections.md",
    "observation": "observations.md",
}


def path_of(project: str | None, kind: Kind) -> str:
    """Return the path of the file of a kind and a project, below the folder, with a slash."""
    return f"{_folder(project)}/{_FILES[kind]}"


def _folder(project: str | None) -> str:
    if project is None:
        return _ALL_PROJECTS
    plain = unicodedata.normalize("NFKD", project.lower())
    safe = _UNSAFE.sub("-", plain).strip("-")[:_LONGEST]
    if safe == project and not _DEVICE.fullmatch(safe) and safe != _ALL_PROJECTS:
        return safe
    return f"{safe or 'project'}-{hashlib.sha256(project.encode('utf-8', 'surrogatepass')).hexdigest()[:12]}"
