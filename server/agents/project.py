"""The project of a directory: the same for every subfolder, worktree and machine."""

import os
import re
from collections.abc import Iterable, Sequence
from configparser import ConfigParser, Error
from pathlib import Path, PurePosixPath, PureWindowsPath

from esker.server.agents.regular_file import opened_plain
from esker.server.core.config.exclusion_patterns import ExclusionPattern, parse_pattern, parts_of
from esker.server.core.config.home import is_model_folder
from esker.server.core.project_names import project_name

_REMOTE = re.compile(r'remote "(.+)"')


def project_of(cwd: str) -> str | None:
    """Return the project of a directory: owner/name of its git remote, else the name of its git root, else its own
    name, or None.

    The name is in lower case. Links are followed, and a worktree has the project of its repository. The project of a
    directory that is not on this machine is its last part.
    """
    if root := _root(cwd):
        return _name_of(root)
    return project_name((PureWindowsPath(cwd) if "\\" in cwd else PurePosixPath(cwd)).name) or None


def repository_of(cwd: str) -> str | None:
    """Return the project of the git repository that a directory of this machine belongs to, or None."""
    root = _root(cwd)
    return _name_of(root) if root else None


def _name_of(root: Path) -> str | None:
    common = _git_folder(root / ".git")
    # A bare repository is the named folder itself; otherwise the named folder contains `.git`.
    home = common.parent if common.name == ".git" else common
    return _remote(common / "config") or project_name(home.name.removesuffix(".git")) or None


def is_excluded(cwd: str | None, project: str | None, exclude: Iterable[str]) -> bool:
    """Return whether a directory or a project is excluded.

    `server/core/config/exclusion_patterns.py` defines patterns. Links are followed in the directory, and in the pattern
    up to its first wildcard. Esker's own calls of a CLI are excluded, too. Raises InvalidInput for a pattern that can
    match nothing.
    """
    if is_model_folder(cwd):
        return True
    paths = [parts_of(path) for path in dict.fromkeys((cwd, _resolved(cwd)))] if cwd else []
    # The root directory has no project, but `*` matches it, too.
    key = project_name(project or "").split("/") if project or cwd else None
    return any(_matches(parse_pattern(pattern), paths, key) for pattern in exclude if pattern.strip())


def _matches(pattern: ExclusionPattern, paths: Sequence[Sequence[str]], key: Sequence[str] | None) -> bool:
    if not pattern.is_directory:
        return key is not None and pattern.matches(key)
    heads = [parts_of(head) for head in dict.fromkeys((pattern.head, _resolved(pattern.head)))]
    return any(pattern.matches(parts, head) for parts in paths for head in heads)


def _resolved(path: str) -> str:
    """Return the resolved path, or the path itself if it cannot be resolved."""
    try:
        return os.path.realpath(path) if os.path.isabs(path) else path
    except (OSError, ValueError):
        return path


def _root(cwd: str) -> Path | None:
    if not Path(cwd).is_absolute():
        return None
    directory = Path(_resolved(cwd))
    return next((each for each in (directory, *directory.parents) if _is_repository(each)), None)


def _is_repository(directory: Path) -> bool:
    try:
        return (directory / ".git").exists()
    except OSError:  # it may be another machine's, or may not be read
        return False


def _git_folder(git: Path) -> Path:
    """Return the folder of the repository; in a worktree `.git` is a file that points to it."""
    if git.is_dir():
        return git
    own = _referenced_path(git, "gitdir:")
    return (_referenced_path(own / "commondir") or own) if own else git


def _referenced_path(file: Path, label: str = "") -> Path | None:
    """Return the path that a file of git names, relative to the file's folder, or None."""
    try:
        text = _read(file).decode("utf-8").strip()
    except (OSError, UnicodeDecodeError):
        return None
    named = text.removeprefix(label).strip()
    return Path(os.path.normpath(file.parent / named)) if named and text.startswith(label) else None


def _read(file: Path) -> bytes:
    with opened_plain(file) as opened:
        return opened.read()


def _remote(config: Path) -> str | None:
    """Return the path of the remote `origin`, or of the only remote: owner/name, or longer.

    Credentials in the address are left out.
    """
    parser = ConfigParser(strict=False, interpolation=None, allow_no_value=True)
    try:
        text = _read(config).decode("utf-8-sig", "replace")
        # The parser takes an indented line for a continuation of the one before it.
        parser.read_string("\n".join(line.strip() for line in text.splitlines()))
        remotes = [section for section in parser.sections() if _REMOTE.fullmatch(section)]
        section = 'remote "origin"' if 'remote "origin"' in remotes or len(remotes) != 1 else remotes[0]
        url = parser.get(section, "url", fallback=None) or ""
    except (Error, OSError):
        return None
    return repository_path(re.sub(r"\s[#;].*", "", url).strip().strip('"'))


def repository_path(url: str) -> str | None:
    """Return the path of a repository: all of it on a host, the last two parts on this machine."""
    scheme, colon, rest = url.partition(":")
    if "://" in url:
        path = "/" + rest.removeprefix("//").partition("/")[2]
    else:
        path = rest if colon and "/" not in scheme else url
    on_host = colon and "/" not in scheme and not url.startswith("file:")
    parts = [part for part in re.sub(r"[?#].*", "", path).split("/") if part]
    name = "/".join(parts if on_host else parts[-2:]).removesuffix(".git")
    return project_name(name) or None
