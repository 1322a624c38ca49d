"""The list of exclusions in the state directory, which holds whatever the environment of a hook contains."""

import os
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from pathlib import Path

from esker.server.core.config.exclusion_patterns import parse_pattern
from esker.server.core.config.owner_file import make_folder, write_owner_only
from esker.server.core.errors import InvalidInput, Misconfigured

_FILE = "exclude"
_COMMENT = "#"
_HEAD = (
    "# Projects and directories of which Esker reads, sends and shows nothing: one pattern a line, as in"
    " ESKER_EXCLUDE.\n"
)
_PATTERNS = (
    "A pattern is a directory (/work/secret, ~/private), which covers what is below it, or a project (owner/name,"
    " owner/*); docs/configuration.md says more."
)


class ExclusionList:
    """The patterns in the file `exclude` of a state directory, one a line; a person may edit it."""

    def __init__(self, state_dir: Path) -> None:
        self.path = state_dir / _FILE

    def patterns(self) -> tuple[str, ...]:
        """Return the patterns; none if there is no file. Raises Misconfigured if it cannot be read or is not valid."""
        patterns = tuple(line.strip() for line in self._lines() if _is_pattern(line))
        check_patterns(patterns, str(self.path))
        return patterns

    def add(self, patterns: Iterable[str]) -> list[str]:
        """Add patterns; return those that are new. Raises Misconfigured for one that is not valid, OSError.

        `~` is written out, since a hook may have another HOME than this command.
        """
        patterns = [os.path.expanduser(each.strip()) for each in patterns]
        with self._locked():
            known = self.patterns()
            new = [pattern for pattern in dict.fromkeys(patterns) if pattern not in known]
            check_patterns(new, "The pattern")
            if new:
                write_owner_only(self.path, "".join([*(self._lines() or [_HEAD]), *(f"{each}\n" for each in new)]))
        return new

    def remove(self, patterns: Iterable[str]) -> list[str]:
        """Remove patterns; return those that the list had. Raises Misconfigured, OSError."""
        with self._locked():
            known = self.patterns()
            asked = [form for each in patterns for form in (each.strip(), os.path.expanduser(each.strip()))]
            found = [pattern for pattern in dict.fromkeys(asked) if pattern in known]
            if found:
                write_owner_only(self.path, "".join(line for line in self._lines() if line.strip() not in found))
        return found

    def _lines(self) -> list[str]:
        try:
            if self.path.exists() and not self.path.is_file():
                raise OSError("it is not a file")
            text = self.path.read_text(encoding="utf-8-sig")
            # `splitlines` would also cut at characters that may be in a name.
            return [f"{line}\n" for line in text.removesuffix("\n").split("\n")] if text else []
        except (FileNotFoundError, NotADirectoryError) as error:
            if self.path.is_symlink():
                raise Misconfigured(f"{self.path} leads to no file.", hint="Repair or delete the link.") from error
            return []
        except (OSError, UnicodeDecodeError) as error:
            # Without the list nothing may be sent: it may exclude anything.
            raise Misconfigured(f"{self.path} cannot be read: {error}.", hint="Repair or delete it.") from None

    @contextmanager
    def _locked(self) -> Generator[None]:
        """Keep other processes from changing the list while the block runs. Raises OSError."""
        import fcntl  # noqa: PLC0415 - the Python client, which only reads the list, also runs on Windows

        make_folder(self.path.parent)
        lock = os.open(self.path.with_name(f"{_FILE}.lock"), os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
        finally:
            os.close(lock)


def check_patterns(patterns: Iterable[str], place: str) -> None:
    """Check patterns of exclusions, which `place` contains. Raises Misconfigured for one that is not valid."""
    for pattern in patterns:
        try:
            parse_pattern(pattern)
        except InvalidInput as error:
            raise Misconfigured(f"{place}: {error}", hint=_PATTERNS) from None


def _is_pattern(line: str) -> bool:
    return bool(line.strip()) and not line.lstrip().startswith(_COMMENT)
