"""A home that agent CLIs are set up in, without a process for each command."""

import os
import shlex
import shutil
import stat
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from esker.server.agents.install.applying import apply
from esker.server.agents.install.client import InstallTarget
from esker.server.agents.install.clients import CLIENTS
from esker.server.agents.install.edits import Edit, edits_to_install, edits_to_uninstall
from esker.server.agents.install.originals import Originals

PROGRAM = "/opt/esker/bin/esker"
URL = "http://127.0.0.1:8377"
# The files of each client, relative to the home.
FILES = {
    "claude-code": (".claude.json", ".claude/settings.json"),
    "codex": (".codex/config.toml", ".codex/hooks.json"),
    "gemini-cli": (".gemini/settings.json",),
    "opencode": (".config/opencode/opencode.json", ".config/opencode/plugins/esker.ts"),
    "pi": (".pi/agent/mcp.json", ".pi/agent/extensions/esker.ts"),
    "copilot": (".copilot/mcp-config.json", ".copilot/hooks/esker.json"),
    "cursor": (".cursor/mcp.json", ".cursor/hooks.json"),
}


@dataclass
class Home:
    """A home, and how clients are set up in it."""

    root: Path
    environ: dict[str, str] = field(default_factory=dict[str, str])
    program: str = PROGRAM
    url: str = URL
    with_key: bool = False
    scope: str = "user"

    @property
    def originals(self) -> Originals:
        """The stored originals of changed files."""
        return Originals(self.root / ".local/state/esker/installed")

    def target(self) -> InstallTarget:
        """The target of an installation."""
        cwd = self.root / "project"
        state = self.root / ".local/state/esker"
        return InstallTarget(self.root, cwd, self.environ, self.program, self.url, state, self.with_key, self.scope)

    @property
    def options(self) -> list[str]:
        """The options that an installed hook has."""
        return ["--url", self.url.rstrip("/"), "--state-dir", str(self.root / ".local/state/esker")]

    def command(self, client: str, event: str) -> str:
        """Return the command of an installed hook."""
        return shlex.join([self.program, "hook", *self.options, client, event])

    def install(self, *clients: str) -> list[Edit]:
        """Install, and return what changed."""
        return self._apply(edits_to_install([CLIENTS[name] for name in clients], self.target(), self.originals))

    def uninstall(self, *clients: str) -> list[Edit]:
        """Uninstall, and return what changed."""
        return self._apply(edits_to_uninstall([CLIENTS[name] for name in clients], self.target(), self.originals))

    def _apply(self, edits: Sequence[Edit]) -> list[Edit]:
        apply(edits, self.originals, shared=self.scope == "project")
        return [edit for edit in edits if edit.changes]

    def write(self, name: str, data: str | bytes) -> Path:
        """Write a file that belongs to another program."""
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data if isinstance(data, bytes) else data.encode())
        return path

    def read(self, name: str) -> str:
        """Return a file's text, with its line ends."""
        return (self.root / name).read_bytes().decode()

    def everything(self) -> dict[str, Any]:
        """Return all that is in the home but our own state: links, modes, times and bytes."""
        found: dict[str, Any] = {}
        for path in sorted(self.root.rglob("*")):
            name = path.relative_to(self.root).as_posix()
            about = path.lstat()
            if name.startswith(".local"):
                continue
            if path.is_symlink():
                found[name] = os.readlink(path)
            elif path.is_dir():
                found[name] = "folder"
            else:
                found[name] = (stat.S_IMODE(about.st_mode), about.st_mtime_ns, about.st_ino, path.read_bytes())
        return found

    def contents(self) -> dict[str, Any]:
        """Return the same without what a rewritten file cannot keep: its time and its inode."""
        return {
            name: (what[0], what[3]) if isinstance(what, tuple) else what for name, what in self.everything().items()
        }

    def forget_state(self) -> None:
        """Delete the stored originals."""
        shutil.rmtree(self.root / ".local", ignore_errors=True)
