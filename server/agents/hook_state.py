"""The state that hooks keep between two events: silent servers, packs that are owed, and notices that were given.

Each fact is a small owner-only file with the time at which it was noted. A file that cannot be written or read counts
as missing, so that the worst case is one more wait or one more notice.
"""

import hashlib
from contextlib import suppress
from datetime import datetime, timedelta
from pathlib import Path

from esker.server.agents.private_folder import make_private

_FOLDER = "hooks"
_SILENCE = timedelta(seconds=30)
_NOTICES = timedelta(days=1)
# Sessions that end before their first prompt leave their mark behind.
_LONGEST_DEBT = timedelta(days=30)


class HookState:
    """The state of the hooks of one state directory at one time."""

    def __init__(self, state_dir: Path, now: datetime) -> None:
        self._folder = state_dir / _FOLDER
        self._now = now

    def note_silence(self, url: str) -> None:
        """Note that the server at `url` gave no answer in time."""
        self._note("silent", url)

    def is_silent(self, url: str) -> bool:
        """Return whether the server at `url` gave no answer a short time ago."""
        return self._is_noted(_SILENCE, "silent", url)

    def forget_silence(self, url: str) -> None:
        """Note that the server at `url` answers."""
        self._forget("silent", url)

    def owe_pack(self, client: str, session: str) -> None:
        """Note that the next prompt of a session is to bring its pack."""
        self._delete_old_debts()
        self._note("owed", client, session)

    def owes_pack(self, client: str, session: str) -> bool:
        """Return whether the next prompt of a session is to bring its pack."""
        return self._is_noted(_LONGEST_DEBT, "owed", client, session)

    def settle_pack(self, client: str, session: str) -> None:
        """Note that a prompt brought the pack."""
        self._forget("owed", client, session)

    def may_tell(self, notice: str, client: str, url: str) -> bool:
        """Return whether a notice was not given to a client's user within a day, and note that it is given now."""
        told = self._is_noted(_NOTICES, "told", notice, client, url)
        if not told:
            self._note("told", notice, client, url)
        return not told

    def _note(self, *names: str) -> None:
        path = self._path(*names)
        with suppress(OSError):
            make_private(self._folder.parent, self._folder)
            path.write_text(self._now.isoformat(), encoding="ascii")

    def _is_noted(self, within: timedelta, *names: str) -> bool:
        noted = _noted(self._path(*names))
        # A clock that was set back must not make a note last for ever.
        return noted is not None and abs(self._now - noted) < within

    def _forget(self, *names: str) -> None:
        with suppress(OSError):
            self._path(*names).unlink(missing_ok=True)

    def _delete_old_debts(self) -> None:
        with suppress(OSError):
            for path in self._folder.glob("owed-*"):
                noted = _noted(path)
                if noted is None or abs(self._now - noted) >= _LONGEST_DEBT:
                    path.unlink(missing_ok=True)

    def _path(self, kind: str, *names: str) -> Path:
        hashed = hashlib.sha256("\0".join(names).encode("utf-8", "replace")).hexdigest()[:24]
        return self._folder / f"{kind}-{hashed}"


def _noted(path: Path) -> datetime | None:
    try:
        noted = datetime.fromisoformat(path.read_text(encoding="ascii"))
    except (OSError, ValueError):
        return None
    return noted if noted.tzinfo else None
