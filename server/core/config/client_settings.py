"""Settings of a client: the server's address, its key and excluded projects, read from the environment.

Hooks start in every turn of an agent and read these settings, so this module uses the standard library alone. The
server's own settings are in `server/core/config/settings.py`. `docs/configuration.md` lists both, and a test compares.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path

from esker.server.core.config.exclusion_patterns import parse_pattern
from esker.server.core.config.home import expanded
from esker.server.core.errors import InvalidInput, Misconfigured

PREFIX = "ESKER_"
RECALLS = ("explicit", "always", "off")
_PATTERNS = (
    "A pattern is a directory (/work/secret, ~/private), which covers what is below it, or a project (owner/name,"
    " owner/*); docs/configuration.md says more."
)


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

    @classmethod
    def from_environment(cls, environ: Mapping[str, str], url: str | None = None) -> "ClientSettings":
        """Read the settings from `environ`. Raises Misconfigured for a value that is not valid.

        `url` is the server's address if the environment does not contain one.
        """
        given = {each.name: environ[name] for each in fields(cls) if environ.get(name := variable(each.name))}
        recall = given.get("hook_recall", "explicit")
        if recall not in RECALLS:
            raise Misconfigured(f"{variable('hook_recall')} must be one of {', '.join(RECALLS)}, not {recall!r}.")
        return cls(
            url=given.get("url", url or cls.url),
            key=given.get("key"),
            state_dir=state_dir(environ),
            exclude=_exclusions(given.get("exclude", "")),
            hook_recall=recall,
        )


def _exclusions(listed: str) -> tuple[str, ...]:
    """Return the patterns of a list. Raises Misconfigured for one that is not valid."""
    patterns = tuple(part.strip() for part in listed.split(",") if part.strip())
    for pattern in patterns:
        try:
            parse_pattern(pattern)
        except InvalidInput as error:
            raise Misconfigured(f"{variable('exclude')}: {error}", hint=_PATTERNS) from None
    return patterns


def state_dir(environ: Mapping[str, str]) -> Path:
    """Return the state directory of a client. Raises Misconfigured if it is in an unknown home directory."""
    usual = environ.get("XDG_STATE_HOME") or "~/.local/state"
    return expanded(Path(environ.get(variable("state_dir")) or f"{usual}/esker"))


def variable(name: str) -> str:
    """Return the environment variable of a setting."""
    return PREFIX + name.upper()


CLIENT_SETTINGS = frozenset(each.name for each in fields(ClientSettings))
