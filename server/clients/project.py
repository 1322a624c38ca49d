"""The project that a directory belongs to: the same from any part of it, any worktree and any machine."""

import os
import re
from collections.abc import Iterable, Iterator
from configparser import ConfigParser, Error
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath, PureWindowsPath

_REMOTE = re.compile(r'remote "(.+)"')


def project_of(cwd: str) -> str | None:
    """Return the project of a directory: its git remote's owner/name, else its git root's name, else its own name,
    or None.

    Links are followed, and a worktree is of the repository that it belongs to. A directory that is not on this machine
    is named after its last part.
    """
    if Path(cwd).is_absolute() and (root := _root(Path(_real(cwd)))):
        common = _common(root / ".git")
        # The folder of a bare repository has the name; that of a usual one stands in it.
        home = common.parent if common.name == ".git" else common
        return _remote(common / "config") or home.name.removesuffix(".git") or None
    return (PureWindowsPath(cwd) if "\\" in cwd else PurePosixPath(cwd)).name or None


def is_excluded(cwd: str | None, project: str | None, exclude: Iterable[str]) -> bool:
    """Tell whether a directory or a project is to be left alone.

    A pattern names a project (`owner/name`, `owner/*`) or a directory (`~/private`, which covers what is below it); `*`
    stands for anything.
    """
    names = [name for name in (project, *_with_parents(cwd)) if name]
    return any(_fits(name, pattern) for pattern in exclude if pattern.strip() for name in names)


def _fits(name: str, pattern: str) -> bool:
    expanded = os.path.expanduser(pattern).rstrip("/") or "/"
    if fnmatchcase(name, expanded):
        return True
    # A directory that is named by way of a link is the one that the link leads to.
    return os.path.isabs(expanded) and "*" not in expanded and fnmatchcase(name, _real(expanded))


def _with_parents(cwd: str | None) -> Iterator[str]:
    if cwd:
        for path in dict.fromkeys((cwd, _real(cwd))):
            yield path.rstrip("/")
            yield from map(str, PurePosixPath(path).parents)


def _real(path: str) -> str:
    """Return where a path leads, or the path itself where that cannot be looked up."""
    try:
        return os.path.realpath(path)
    except OSError:
        return path


def _root(directory: Path) -> Path | None:
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
        text = file.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError):
        return None
    named = text.removeprefix(label).strip()
    return Path(os.path.normpath(file.parent / named)) if named and text.startswith(label) else None


def _remote(config: Path) -> str | None:
    """Return the path on its host of the remote `origin`, or of the only one there is: owner/name, or longer.

    Nothing that tells who fetches comes along, such as a password.
    """
    parser = ConfigParser(strict=False, interpolation=None, allow_no_value=True)
    try:
        text = config.read_bytes().decode("utf-8-sig", "replace")
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
