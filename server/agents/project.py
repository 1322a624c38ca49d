"""The project that a directory belongs to: the same from any part of it, any worktree and any machine."""

import os
import re
from collections.abc import Iterable, Sequence
from configparser import ConfigParser, Error
from pathlib import Path, PurePosixPath, PureWindowsPath

from esker.server.agents.regular_file import opened_plain
from esker.server.core.config.exclusion_patterns import ExclusionPattern, parts_of, understood

_REMOTE = re.compile(r'remote "(.+)"')


def project_of(cwd: str) -> str | None:
    """Return the project of a directory: its git remote's owner/name, else its git root's name, else its own name,
    or None.

    Links are followed, and a worktree is of the repository that it belongs to. A directory that is not on this machine
    is named after its last part.
    """
    if root := _root(cwd):
        return _name_of(root)
    return (PureWindowsPath(cwd) if "\\" in cwd else PurePosixPath(cwd)).name or None


def repository_of(cwd: str) -> str | None:
    """Return the project of the git repository that a directory of this machine belongs to, or None."""
    root = _root(cwd)
    return _name_of(root) if root else None


def _name_of(root: Path) -> str | None:
    common = _common(root / ".git")
    # The folder of a bare repository has the name; that of a usual one stands in it.
    home = common.parent if common.name == ".git" else common
    return _remote(common / "config") or home.name.removesuffix(".git") or None


def is_excluded(cwd: str | None, project: str | None, exclude: Iterable[str]) -> bool:
    """Tell whether a directory or a project is to be left alone.

    `server/core/config/exclusion_patterns.py` defines patterns. Links are followed in the directory, and in the pattern
    up to its first wildcard. Raises InvalidInput for a pattern that can match nothing.
    """
    paths = [parts_of(path) for path in dict.fromkeys((cwd, _real(cwd)))] if cwd else []
    # The root of a machine is of no project, and `*` means it all the same.
    key = (project or "").split("/") if project or cwd else None
    return any(_names(understood(pattern), paths, key) for pattern in exclude if pattern.strip())


def _names(pattern: ExclusionPattern, paths: Sequence[Sequence[str]], key: Sequence[str] | None) -> bool:
    if not pattern.is_directory:
        return key is not None and pattern.fits(key)
    heads = [parts_of(head) for head in dict.fromkeys((pattern.head, _real(pattern.head)))]
    return any(pattern.fits(parts, head) for parts in paths for head in heads)


def _real(path: str) -> str:
    """Return where a path leads, or the path itself where that cannot be looked up."""
    try:
        return os.path.realpath(path) if os.path.isabs(path) else path
    except (OSError, ValueError):
        return path


def _root(cwd: str) -> Path | None:
    if not Path(cwd).is_absolute():
        return None
    directory = Path(_real(cwd))
    return next((each for each in (directory, *directory.parents) if _is_repository(each)), None)


def _is_repository(directory: Path) -> bool:
    try:
        return (directory / ".git").exists()
    except OSError:  # it may be another machine's, or not ours to look into
        return False


def _common(git: Path) -> Path:
    """Return the folder that holds the repository itself; in a worktree `.git` is a file that leads there."""
    if git.is_dir():
        return git
    own = _pointed(git, "gitdir:")
    return (_pointed(own / "commondir") or own) if own else git


def _pointed(file: Path, label: str = "") -> Path | None:
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
    """Return the path on its host of the remote `origin`, or of the only one there is: owner/name, or longer.

    Nothing that tells who fetches comes along, such as a password.
    """
    parser = ConfigParser(strict=False, interpolation=None, allow_no_value=True)
    try:
        text = _read(config).decode("utf-8-sig", "replace")
        # What is indented would be more of the line before it.
        parser.read_string("\n".join(line.strip() for line in text.splitlines()))
        remotes = [section for section in parser.sections() if _REMOTE.fullmatch(section)]
        section = 'remote "origin"' if 'remote "origin"' in remotes or len(remotes) != 1 else remotes[0]
        url = parser.get(section, "url", fallback=None) or ""
    except (Error, OSError):
        return None
    return _place(re.sub(r"\s[#;].*", "", url).strip().strip('"'))


def _place(url: str) -> str | None:
    """Return where a repository lies: its whole path on a host, the last two parts of a path on this machine."""
    scheme, colon, rest = url.partition(":")
    if "://" in url:
        path = "/" + rest.removeprefix("//").partition("/")[2]
    else:
        path = rest if colon and "/" not in scheme else url
    on_host = colon and "/" not in scheme and not url.startswith("file:")
    parts = [part for part in re.sub(r"[?#].*", "", path).split("/") if part]
    name = "/".join(parts if on_host else parts[-2:]).removesuffix(".git")
    return name or None
