"""The files of a service that starts Esker with its user's login: a unit of systemd, or an agent of launchd."""

import plistlib
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from esker.server.core.errors import Misconfigured

NAME = "esker"
MARK = "Written by `esker service install`; `esker service uninstall` removes it."
_KEPT = (
    "PATH", "HOME", "LANG", "LC_ALL", "TZ", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "ANTHROPIC_API_KEY",
    "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy", "SSL_CERT_FILE", "SSL_CERT_DIR",
    "OMP_NUM_THREADS", "HF_HOME", "HF_TOKEN", "HF_HUB_OFFLINE",
)  # fmt: skip
"""The variables that a server reads, besides those of Esker."""
# Characters that mean something between quotes in a file of variables.
_SPECIAL = re.compile(r'["\\$`]')
_UNSAFE = {*"\"'\\$"}
"""Characters that systemd refuses in the name of a program, or interprets."""
_LINE_ENDS = re.compile(r"[\x00-\x1f\x7f]")
# Bytes that are not UTF-8, which Python holds as surrogates, and characters that XML forbids.
_NO_TEXT = re.compile(r"[\ud800-\udfff\ufffe\uffff]")


def kept_environment(environ: Mapping[str, str], data_dir: Path, state_dir: Path) -> dict[str, str]:
    """Return the variables with which the server runs as it would here, with its directories written out.

    Raises Misconfigured for a value that such a file cannot hold.
    """
    kept = {name: value for name, value in environ.items() if name.startswith("ESKER_") or name in _KEPT}
    kept |= {"ESKER_DATA_DIR": str(data_dir), "ESKER_STATE_DIR": str(state_dir)}
    for name, value in kept.items():
        if _LINE_ENDS.search(value):
            raise Misconfigured(
                f"{name} contains a line break or another control character.",
                hint=f"Put the value into a file, and name the file in {name}_FILE, or unset it.",
            )
    return dict(sorted(kept.items()))


def environment_file(environment: Mapping[str, str]) -> str:
    """Return variables as systemd reads them from a file. Raises Misconfigured for a value that is not text."""
    _check_text(environment)
    lines = [f"# {MARK}"]
    for name, value in environment.items():
        escaped = _SPECIAL.sub(r"\\\g<0>", value)
        lines.append(f'{name}="{escaped}"')
    return "".join(f"{line}\n" for line in lines)


def _check_text(environment: Mapping[str, str]) -> None:
    for name, value in environment.items():
        if _NO_TEXT.search(value):
            raise Misconfigured(f"{name} is not UTF-8, so no service can have it.", hint="Change or unset it.")


def unit(command: Sequence[str], environment: Path) -> str:
    """Return the unit of systemd that runs a command with the variables of a file. Raises Misconfigured."""
    return f"""# {MARK}
[Unit]
Description=Esker, the memory that your agents share
StartLimitIntervalSec=0

[Service]
Type=exec
ExecStart={" ".join(map(_argument, command))}
EnvironmentFile={_path(environment)}
WorkingDirectory=/
Restart=always
RestartSec=5s
# Draining takes some ten seconds, and Postgres then writes a checkpoint. The server stops it, not systemd.
TimeoutStopSec=90s
KillMode=mixed
NoNewPrivileges=yes
UMask=0077

[Install]
WantedBy=default.target
"""


def _argument(text: str) -> str:
    """Return an argument as a unit writes it. Raises Misconfigured for one that no unit can hold."""
    return f'"{_path(Path(text)) if text.startswith("/") else text}"'


def _path(path: Path) -> str:
    if _LINE_ENDS.search(str(path)) or _NO_TEXT.search(str(path)) or _UNSAFE & {*str(path)}:
        raise Misconfigured(
            f"systemd cannot use {str(path)!r}: its name has a quote, a backslash, a dollar or a control character, or"
            " is not UTF-8.",
            hint="Install Esker, and keep its settings, in a directory without one.",
        )
    return str(path).replace("%", "%%")


def property_list(command: Sequence[str], environment: Mapping[str, str], log: Path) -> str:
    """Return the agent of launchd that runs a command, as a property list; its output goes into `log`.

    Raises Misconfigured for a value that is not text.
    """
    _check_text({**environment, "The path of the log": str(log)})
    agent = {
        "Label": NAME,
        "ProgramArguments": list(command),
        "EnvironmentVariables": dict(environment),
        "WorkingDirectory": "/",
        "RunAtLoad": True,
        "KeepAlive": True,
        "ExitTimeOut": 90,
        "Umask": 0o077,
        "StandardOutPath": str(log),
        "StandardErrorPath": str(log),
    }
    text = plistlib.dumps(agent).decode()
    return text.replace("<plist ", f"<!-- {MARK} -->\n<plist ", 1)
