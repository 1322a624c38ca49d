"""Settings of a client: the server's address, its key and excluded projects.

They are read from the environment, and exclusions and kept keys from the state directory, too. Hooks start in every
turn of an agent and read these settings, so this module uses the standard library alone. The server's own settings are
in `server/core/config/settings.py`. `docs/configuration.md` lists both, and a test compares.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path

from esker.server.core.config.exclusion_list import ExclusionList, check_patterns
from esker.server.core.config.home import expanded
from esker.server.core.config.kept_keys import KeptKeys
from esker.server.core.errors import Misconfigured

PREFIX = "ESKER_"
INSIDE_HOOK = "IN_ESKER_HOOK"
"""Environment variable set for every child of a hook, and for a CLI used as a model: hooks do nothing under it."""
_CHOICES = {"hook_recall": ("explicit", "always", "off"), "hook_elsewhere": ("on", "off")}
_LONGEST_WAIT = 60.0


@dataclass(frozen=True)
class ClientSettings:
    """How the command line and the hooks find the server and handle transcripts."""

    url: str = "http://127.0.0.1:8377"
    """The address of the server."""
    key: str | None = None
    """The key that is sent to the server."""
    state_dir: Path = Path("~/.local/state/esker")
    """The directory with the positions up to which transcripts were read, and with messages that are not sent yet."""
    exclude: tuple[str, ...] = ()
    """Projects or directories, separated by commas, with wildcards: nothing in them is read, sent or shown."""
    hook_recall: str = "explicit"
    """Prompts that trigger a recall: those with an `explicit` reference to earlier work, `always`, or `off`."""

    hook_seconds: float = 1.0
    """The most seconds that a hook keeps an agent waiting. After a timeout, hooks do not wait for that server for half
    a minute."""
    hook_elsewhere: str = "off"
    """Whether a session whose project has no memories is told which other projects have some: `on` or `off`."""

    @classmethod
    def from_environment(cls, environ: Mapping[str, str]) -> "ClientSettings":
        """Read the settings from `environ`; exclusions are also in the state directory, and the key may be there.

        Raises Misconfigured for a value that is not valid.
        """
        given = {each.name: environ[name] for each in fields(cls) if environ.get(name := variable(each.name))}
        for name, values in _CHOICES.items():
            if name in given and given[name] not in values:
                raise Misconfigured(f"{variable(name)} must be one of {', '.join(values)}, not {given[name]!r}.")
        folder = state_dir(environ)
        url = given.get("url", cls.url)
        return cls(
            url=url,
            # Files with Windows line ends leave a carriage return.
            key=given.get("key", "").strip() or KeptKeys(folder).key(url),
            state_dir=folder,
            exclude=excluded(environ),
            hook_recall=given.get("hook_recall", cls.hook_recall),
            hook_seconds=_seconds(given.get("hook_seconds", f"{cls.hook_seconds}")),
            hook_elsewhere=given.get("hook_elsewhere", cls.hook_elsewhere),
        )


def excluded(environ: Mapping[str, str]) -> tuple[str, ...]:
    """Return the patterns of excluded projects and directories, also those in the state directory.

    Raises Misconfigured for a pattern that is not valid.
    """
    return (*_exclusions(environ.get(variable("exclude"), "")), *ExclusionList(state_dir(environ)).patterns())


def _seconds(text: str) -> float:
    """Return a number of seconds. Raises Misconfigured unless it is positive and at most a minute."""
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0.0 < seconds <= _LONGEST_WAIT:
        raise Misconfigured(
            f"{variable('hook_seconds')} must be a number above 0 and at most {_LONGEST_WAIT:.0f}, not {text!r}."
        )
    return seconds


def _exclusions(listed: str) -> tuple[str, ...]:
    """Return the patterns of a list. Raises Misconfigured for one that is not valid."""
    patterns = tuple(part.strip() for part in listed.split(",") if part.strip())
    check_patterns(patterns, variable("exclude"))
    return patterns


def state_dir(environ: Mapping[str, str]) -> Path:
    """Return the state directory of a client. Raises Misconfigured if it is in an unknown home directory."""
    usual = environ.get("XDG_STATE_HOME") or "~/.local/state"
    return expanded(Path(environ.get(variable("state_dir")) or f"{usual}/esker"))


def variable(name: str) -> str:
    """Return the environment variable of a setting."""
    return PREFIX + name.upper()


CLIENT_SETTINGS = frozenset(each.name for each in fields(ClientSettings))
