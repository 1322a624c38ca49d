"""Installing: existing entries stay, a second run changes nothing, and uninstalling restores every file."""

import json
import os
import re
import socket
import stat
import tomllib
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import tomlkit
from hypothesis import HealthCheck, given, reject, settings
from hypothesis import strategies as st

from esker.server.agents.install import disk
from esker.server.agents.install.applying import apply
from esker.server.agents.install.clients import CLIENTS
from esker.server.agents.install.edits import edits_to_install
from esker.server.agents.install.toml_file import TomlFile
from esker.server.agents.json_text import parse, value_of
from esker.server.core.errors import Conflict, InvalidInput, Unavailable
from tests.agents.test_json_text import comments, documents
from tests.support.homes import FILES, PROGRAM, Home

ALL = tuple(CLIENTS)

# A user's files, with details that parsing and rewriting them would lose.
THEIRS = {
    ".claude.json": '{"numStartups":5,"mcpServers":{"other":{"type":"stdio","command":"x"}},"z":"ü"}',
    ".claude/settings.json": """{
    // the model
    "model": "opus",
    "hooks": {
        "Stop": [
            { "hooks": [{ "type": "command", "command": "say done" }] } // theirs
        ],
        "PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", "command": "lint"}]}],
    },
    "permissions": {"allow": ["Bash(ls:*)"]}, /* last */
}""",
    ".codex/config.toml": """# mine
model = "gpt-5"   # the good one

[mcp_servers.other]
command = "x"
args = ["a",
  "b"]

[profiles.fast]
model = 'mini'
""",
    ".codex/hooks.json": '{\r\n\t"hooks": {\r\n\t\t"Stop": []\r\n\t}\r\n}\r\n',
    ".gemini/settings.json": '\ufeff{\n  "ui": {"theme": "x"},\n  "mcpServers": {}\n}',
    ".config/opencode/opencode.json": '{ "$schema": "https://o/config.json", "mcp": {"o": {"type": "local"}} }\n',
    ".pi/agent/mcp.json": "{}\n",
    ".copilot/mcp-config.json": '{"mcpServers": {"a": {"type": "local", "command": "x", "tools": []}}}\n',
    ".cursor/mcp.json": '{\n  "mcpServers": {\n    "b": {"url": "http://b"},\n    "a": {"url": "http://a"}\n  }\n}\n',
    ".cursor/hooks.json": '{"version": 1, "hooks": {"stop": [{"command": "./mine.sh"}]}}',
}

ESKER = (
    '[mcp_servers.esker]\nurl = "http://127.0.0.1:8377/mcp?hooks=yes"\nstartup_timeout_sec = 3\ntool_timeout_sec = 10\n'
)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """An empty home."""
    return Home(tmp_path)


@pytest.fixture
def lived_in(home: Home) -> Home:
    """A home with other entries, comments, CRLF, a byte order mark, and a link into a dotfiles folder."""
    for name, text in THEIRS.items():
        home.write(name, text)
    home.write("dotfiles/claude.json", THEIRS[".claude/settings.json"])
    (home.root / ".claude/settings.json").unlink()
    (home.root / ".claude/settings.json").symlink_to("../dotfiles/claude.json")
    os.chmod(home.root / ".codex/config.toml", 0o640)
    return home


def says(home: Home, name: str) -> Any:
    """Return the value of a configuration."""
    text = home.read(name).removeprefix("\ufeff")
    return tomllib.loads(text) if name.endswith(".toml") else value_of(parse(text))


def contained(part: Any, whole: Any) -> bool:
    """Return whether everything in one value is in another, lists in their order."""
    if isinstance(part, dict):
        return isinstance(whole, dict) and all(key in whole and contained(part[key], whole[key]) for key in part)
    if isinstance(part, list):
        left = iter(whole)
        return all(any(contained(item, other) for other in left) for item in part)
    return part == whole


@pytest.mark.parametrize("client", ALL)
def test_an_empty_home_is_set_up_and_becomes_empty_again(home: Home, client: str) -> None:
    before = home.contents()
    edits = home.install(client)
    assert sorted(edit.path.relative_to(home.root).as_posix() for edit in edits) == sorted(FILES[client])
    assert all(stat.S_IMODE((home.root / name).stat().st_mode) == 0o600 for name in FILES[client])
    home.uninstall(client)
    assert home.contents() == before
    assert list(home.originals.all()) == []


@pytest.mark.parametrize("client", ALL)
def test_existing_entries_stay(lived_in: Home, client: str) -> None:
    before = {name: says(lived_in, name) for name in FILES[client] if name in THEIRS}
    others = {name: what for name, what in lived_in.everything().items() if name not in FILES[client]}
    others.pop("dotfiles/claude.json")
    lived_in.install(client)
    for name, was in before.items():
        assert contained(was, says(lived_in, name)), name
        text = lived_in.read(name)
        assert all(each in text for each in comments(THEIRS[name])), name
        assert text.startswith("\ufeff") == THEIRS[name].startswith("\ufeff")
        assert ("\r\n" in text) == ("\r\n" in THEIRS[name])
        assert text.endswith("\n") == THEIRS[name].endswith("\n")
    now = lived_in.everything()
    assert {name: now[name] for name in others} == others
    if client == "codex":
        assert lived_in.read(".codex/config.toml").replace(f"{ESKER}\n", "") == THEIRS[".codex/config.toml"]


def test_uninstalling_restores_every_file_to_the_byte(lived_in: Home) -> None:
    before = lived_in.contents()
    lived_in.install(*ALL)
    link = lived_in.root / ".claude/settings.json"
    assert link.is_symlink()
    assert f"{PROGRAM} hook" in (lived_in.root / "dotfiles/claude.json").read_text()
    assert stat.S_IMODE((lived_in.root / ".codex/config.toml").stat().st_mode) == 0o640
    lived_in.uninstall(*ALL)
    assert lived_in.contents() == before


def test_a_second_installation_changes_nothing(lived_in: Home) -> None:
    lived_in.install(*ALL)
    before = lived_in.everything()
    assert lived_in.install(*ALL) == []
    assert lived_in.everything() == before
    lived_in.uninstall(*ALL)
    assert lived_in.uninstall(*ALL) == []


def test_installing_one_client_at_a_time_gives_the_same_files(lived_in: Home) -> None:
    before = lived_in.contents()
    for client in ALL:
        lived_in.install(client)
    for client in ALL:
        lived_in.uninstall(client)
    assert lived_in.contents() == before


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_uninstalling_restores_any_configuration_to_the_byte(
    tmp_path_factory: pytest.TempPathFactory, data: Any
) -> None:
    home = Home(tmp_path_factory.mktemp("home"))
    other = st.dictionaries(st.sampled_from(["mcpServers", "theme", "z"]), st.just({}) | st.just({"a": {"b": [1]}}))
    hooks = st.fixed_dictionaries(
        {"hooks": st.dictionaries(st.sampled_from(["SessionStart", "Mine"]), st.just([{"hooks": [{"command": "x"}]}]))}
    )
    text, value = data.draw(documents(other | hooks))
    path = home.write(".gemini/settings.json", text)
    home.install("gemini-cli")
    installed = says(home, ".gemini/settings.json")
    assert contained(value, installed)
    assert "esker" in installed["mcpServers"]
    assert home.install("gemini-cli") == []
    # A file edited meanwhile keeps the edit and loses only Esker's entries.
    if data.draw(st.booleans()):
        path.write_text(path.read_text() + "\n// edited")
        home.uninstall("gemini-cli")
        assert says(home, ".gemini/settings.json") == value
        assert comments(path.read_text()) == [*comments(text), "// edited"]
    else:
        home.uninstall("gemini-cli")
        assert path.read_bytes() == text.encode()


@pytest.mark.parametrize("client", ALL)
def test_a_file_edited_meanwhile_keeps_the_edit_and_loses_only_our_entries(lived_in: Home, client: str) -> None:
    lived_in.install(client)
    named = [name for name in FILES[client] if name in THEIRS]
    for name in named:
        comment = "# edited\n" if name.endswith(".toml") else "\n// edited\n"
        lived_in.write(name, lived_in.read(name) + comment)
    lived_in.uninstall(client)
    for name in named:
        left = lived_in.read(name)
        assert "edited" in left
        assert "esker" not in left
        was = THEIRS[name].removeprefix("\ufeff")
        assert says(lived_in, name) == (tomllib.loads(was) if name.endswith(".toml") else value_of(parse(was)))


def test_a_client_may_rewrite_its_file_after_the_installation(home: Home) -> None:
    home.install("claude-code")
    written = json.loads(home.read(".claude.json"))
    home.write(".claude.json", json.dumps({"numStartups": 1, **written}, indent=2))
    home.uninstall("claude-code")
    assert home.read(".claude.json") == '{\n  "numStartups": 1\n}'


@pytest.mark.parametrize("client", ALL)
def test_an_older_installation_is_replaced_in_place(lived_in: Home, client: str) -> None:
    before = lived_in.contents()
    older = Home(lived_in.root, program="/old place/bin/esker", url="http://old:1")
    older.install(client)
    lived_in.install(client)
    for name in FILES[client]:
        text = lived_in.read(name)
        assert "/old place" not in text
        assert "http://old" not in text
    reinstalled = lived_in.contents()
    lived_in.uninstall(client)
    assert lived_in.contents() == before
    lived_in.install(client)
    assert lived_in.contents() == reinstalled  # nothing is duplicated, and everything is in its place


def test_existing_hooks_are_not_duplicated(home: Home) -> None:
    ours = {"type": "command", "command": "'/a b/esker' hook claude-code Stop", "async": True}
    theirs = {"type": "command", "command": "other"}
    gone = {"type": "command", "command": "esker hook claude-code PostToolUse"}
    hooks = {"Stop": [{"hooks": [ours, theirs]}, {"hooks": [ours]}], "PostToolUse": [{"hooks": [gone]}]}
    home.write(".claude/settings.json", json.dumps({"hooks": hooks}, indent=2))
    home.install("claude-code")
    now = says(home, ".claude/settings.json")["hooks"]
    mine = {"type": "command", "command": home.command("claude-code", "Stop"), "async": True}
    assert now["Stop"] == [{"hooks": [mine, theirs]}]
    assert "PostToolUse" not in now
    home.forget_state()
    home.uninstall("claude-code")
    assert says(home, ".claude/settings.json") == {"hooks": {"Stop": [{"hooks": [theirs]}]}}


def test_hooks_of_programs_with_similar_names_stay(home: Home) -> None:
    commands = [
        "echo esker hook",
        "notesker hook claude-code Stop",
        "esker hook claude-code Stop && date",
        "esker hook codex Stop",
    ]
    hooks = {"Stop": [{"hooks": [{"type": "command", "command": command} for command in commands]}]}
    home.write(".claude/settings.json", json.dumps({"hooks": hooks}))
    home.install("claude-code")
    assert says(home, ".claude/settings.json")["hooks"]["Stop"][0] == hooks["Stop"][0]
    home.forget_state()
    home.uninstall("claude-code")
    assert says(home, ".claude/settings.json") == {"hooks": hooks}


def test_uninstalling_works_without_stored_originals(lived_in: Home) -> None:
    before = {name: says(lived_in, name) for name in THEIRS}
    lived_in.install(*ALL)
    lived_in.forget_state()
    lived_in.uninstall(*ALL)
    now = {name: says(lived_in, name) for name in THEIRS}
    now[".gemini/settings.json"].setdefault(
        "mcpServers", {}
    )  # the lost original cannot say whether an empty one existed
    now[".codex/hooks.json"].setdefault("hooks", {}).setdefault("Stop", [])
    assert now == before
    assert not (lived_in.root / ".pi/agent/extensions/esker.ts").exists()


@pytest.mark.parametrize("client", ALL)
def test_entries_made_by_hand_stay_until_the_uninstallation(home: Home, client: str) -> None:
    home.install(client)
    home.forget_state()
    assert home.install(client) == []
    assert list(home.originals.all()) == []
    home.uninstall(client)
    assert not any("esker" in home.read(name) for name in FILES[client] if (home.root / name).exists())


def test_damaged_originals_count_as_missing(home: Home) -> None:
    home.install("pi")
    for file in (home.root / ".local/state/esker/installed").iterdir():
        file.write_bytes(b"{damaged")
    home.uninstall("pi")
    assert says(home, ".pi/agent/mcp.json") == {}
    assert not (home.root / ".pi/agent/extensions/esker.ts").exists()


def test_stored_originals_are_owner_only(lived_in: Home) -> None:
    lived_in.install(*ALL)
    folder = lived_in.root / ".local/state/esker/installed"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert {stat.S_IMODE(file.stat().st_mode) for file in folder.iterdir()} == {0o600}


# Edited plugins ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("client", ["opencode", "pi"])
def test_an_edited_plugin_is_copied_and_never_lost(home: Home, client: str) -> None:
    name = FILES[client][1]
    home.install(client)
    ours = home.read(name)
    home.write(name, edited := ours + "// mine\n")
    home.uninstall(client)
    assert home.read(f"{name}.edited") == edited
    assert {path.name for path in (home.root / name).parent.iterdir()} == {"esker.ts.edited"}
    # Installing a newer plugin loses no edit either, and keeps the earlier copy.
    home.install(client)
    home.write(name, again := ours + "// other\n")
    home.program = "/new/esker"
    home.install(client)
    assert "/new/esker" in home.read(name)
    assert home.install(client) == []
    home.uninstall(client)
    assert not (home.root / name).exists()
    assert [home.read(f"{name}.edited{more}") for more in ("", "-2")] == [edited, again]


@pytest.mark.parametrize("client", ["opencode", "pi"])
def test_only_an_edited_plugin_of_unknown_origin_is_copied(home: Home, client: str) -> None:
    name = FILES[client][1]
    home.install(client)
    home.forget_state()
    ours = home.read(name)
    home.uninstall(client)
    assert not (home.root / name).parent.exists() or list((home.root / name).parent.iterdir()) == []
    home.write(name, ours + "// mine\n")
    home.uninstall(client)
    assert home.read(f"{name}.edited") == ours + "// mine\n"
    # A file from before the installation is stored as its original.
    home.write(name, ours + "// before\n")
    home.install(client)
    assert not (home.root / f"{name}.edited-2").exists()
    home.uninstall(client)
    assert home.read(name) == ours + "// before\n"


def test_a_copy_is_removed_if_the_other_edits_fail(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    home.install("pi")
    home.write(".pi/agent/extensions/esker.ts", home.read(".pi/agent/extensions/esker.ts") + "// mine\n")
    before = home.contents()

    def refuse(path: Path, folders: tuple[Path, ...]) -> None:
        if path.name == "mcp.json":
            raise OSError(5, "Input/output error", str(path))
        delete(path, folders)

    delete = disk.delete
    monkeypatch.setattr(disk, "delete", refuse)
    with pytest.raises(Unavailable, match="Input/output error"):
        home.uninstall("pi")
    assert home.contents() == before


# Refusals ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("client", "name", "text", "complaint"),
    [
        ("claude-code", ".claude/settings.json", '{\n  "a": 1\n  "b": 2\n}', "line 3, column 3"),
        ("claude-code", ".claude/settings.json", '{"hooks": []}', "hooks is not an object"),
        ("claude-code", ".claude/settings.json", '{"hooks": {"Stop": {}}}', "hooks.Stop is not a list"),
        ("claude-code", ".claude.json", '{"mcpServers": "none"}', "mcpServers is not an object"),
        ("claude-code", ".claude.json", "[]", "the document is not an object"),
        ("codex", ".codex/config.toml", 'model = "x"\nmodel = \n', "line 2, column 9"),
        ("codex", ".codex/config.toml", "mcp_servers = 1\n", "mcp_servers is not a table"),
        ("codex", ".codex/hooks.json", b'{"a": "\xff"}', "byte 7 is not UTF-8"),
        ("cursor", ".cursor/hooks.json", "{", "line 1, column 2"),
        ("pi", ".pi/agent/extensions/esker.ts", "export default 1", "it is not Esker's"),
    ],
)
def test_a_file_that_cannot_be_edited_is_refused_and_nothing_is_written(
    lived_in: Home, client: str, name: str, text: str | bytes, complaint: str
) -> None:
    lived_in.write(name, text)
    before = lived_in.everything()
    with pytest.raises(InvalidInput) as caught:
        lived_in.install(*ALL)
    assert complaint in str(caught.value)
    assert str(lived_in.root / name) in str(caught.value)
    assert lived_in.everything() == before
    assert list(lived_in.originals.all()) == []


def test_a_folder_in_place_of_a_file_is_refused(home: Home) -> None:
    (home.root / ".gemini/settings.json").mkdir(parents=True)
    with pytest.raises(InvalidInput, match=r"settings\.json cannot be read"):
        home.install(*ALL)


def test_a_file_that_changes_after_the_diff_is_not_written(lived_in: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    before = lived_in.contents()
    read = disk.read
    asked: list[Path] = []

    def changing(path: Path) -> bytes | None:
        asked.append(path)
        return b"{}" if asked.count(path) == 2 and path.name == "hooks.json" else read(path)

    monkeypatch.setattr(disk, "read", changing)
    with pytest.raises(Conflict, match=r"hooks\.json has changed meanwhile"):
        lived_in.install(*ALL)
    assert lived_in.contents() == before
    assert list(lived_in.originals.all()) == []


@pytest.mark.parametrize("name", [".pi/agent/mcp.json", ".codex/config.toml", ".pi/agent/extensions/esker.ts"])
@pytest.mark.parametrize("kind", ["pipe", "socket", "link to itself"])
def test_a_pipe_or_socket_neither_blocks_nor_is_replaced(
    home: Home, monkeypatch: pytest.MonkeyPatch, name: str, kind: str
) -> None:
    path = home.write(name, "")
    path.unlink()
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "socket":
        monkeypatch.chdir(path.parent)  # the address of a socket must be short
        with closing(socket.socket(socket.AF_UNIX)) as there:
            there.bind(path.name)
    else:
        path.symlink_to(path.name)
    before = path.lstat()
    with pytest.raises(InvalidInput, match=r"cannot be read: (it is not a regular file|Too many levels)"):
        home.install("codex", "pi")
    assert path.lstat() == before
    assert list(home.originals.all()) == []


def test_a_device_is_not_read() -> None:
    with pytest.raises(OSError, match="it is not a regular file"):
        disk.read(Path("/dev/null"))  # only read: as root, a write would replace the device


def test_a_read_only_file_is_not_written(home: Home) -> None:
    home.write(".cursor/mcp.json", "{}").chmod(0o444)
    before = home.contents()
    with pytest.raises(Unavailable, match=r"mcp\.json cannot be written: Permission denied"):
        home.install("pi", "cursor")
    assert home.contents() == before


def test_a_read_only_folder_is_reported_with_the_files_path(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = os.open

    def refuse(path: Path, *more: int) -> int:
        if ".mcp.json" in str(path):
            raise PermissionError(13, "Permission denied", str(path))
        return opened(path, *more)

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(Unavailable, match=r"/mcp\.json cannot be written: Permission denied"):
        home.install("cursor")


def test_a_file_that_changes_during_the_writing_rolls_the_others_back(
    lived_in: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = lived_in.contents()
    write = disk.write

    def writing(path: Path, data: bytes, mode: int) -> tuple[Path, ...]:
        if path.name == "config.toml":
            lived_in.write(".cursor/mcp.json", '{"new": 1}')
        return write(path, data, mode)

    monkeypatch.setattr(disk, "write", writing)
    with pytest.raises(Conflict, match=r"mcp\.json has changed meanwhile"):
        lived_in.install(*ALL)
    assert lived_in.read(".cursor/mcp.json") == '{"new": 1}'
    assert {**lived_in.contents(), ".cursor/mcp.json": before[".cursor/mcp.json"]} == before
    assert list(lived_in.originals.all()) == []


def test_a_rollback_leaves_files_alone_that_changed_after_the_writing(
    lived_in: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = disk.write

    def writing(path: Path, data: bytes, mode: int) -> tuple[Path, ...]:
        if path.name == "esker.ts":
            lived_in.write(".pi/agent/mcp.json", '{"new": 1}')
            raise OSError(28, "No space left on device", str(path))
        return write(path, data, mode)

    monkeypatch.setattr(disk, "write", writing)
    with pytest.raises(Unavailable, match="No space left"):
        lived_in.install("pi")
    assert lived_in.read(".pi/agent/mcp.json") == '{"new": 1}'


def test_a_folder_that_appears_meanwhile_is_reported(lived_in: Home) -> None:
    edits = edits_to_install([CLIENTS["pi"]], lived_in.target(), lived_in.originals)
    (lived_in.root / ".pi/agent/extensions/esker.ts").mkdir(parents=True)
    with pytest.raises(Unavailable, match=r"esker\.ts cannot be written: Is a directory"):
        apply(edits, lived_in.originals)
    assert lived_in.read(".pi/agent/mcp.json") == THEIRS[".pi/agent/mcp.json"]


@pytest.mark.parametrize("depth", [1000, 100_000])
def test_a_document_nested_too_deeply_is_refused(home: Home, depth: int) -> None:
    for client, name, text in (
        ("codex", ".codex/config.toml", "a = " + "[" * depth + "]" * depth),
        ("cursor", ".cursor/mcp.json", '{"a":' + "[" * depth + "]" * depth + "}"),
    ):
        home.write(name, text)
        with pytest.raises(InvalidInput, match="nested"):
            home.install(client)
        assert home.read(name) == text


def test_a_number_with_too_many_digits_is_refused_in_plain_words(home: Home) -> None:
    home.write(".codex/config.toml", "a = " + "9" * 5000)
    with pytest.raises(InvalidInput, match="a number has too many digits"):
        home.install("codex")


@pytest.mark.parametrize("again", [False, True])
def test_when_one_file_cannot_be_written_none_is(lived_in: Home, monkeypatch: pytest.MonkeyPatch, again: bool) -> None:
    if again:
        Home(lived_in.root, url="http://old:1").install(*ALL)
    before = lived_in.contents()
    known = list(lived_in.originals.all())
    replaced = os.replace

    def full(source: Path, target: Path) -> None:
        if target.name == "hooks.json" and ".cursor" in str(target):
            raise OSError(28, "No space left on device", str(target))
        replaced(source, target)

    monkeypatch.setattr(os, "replace", full)
    lived_in.program = "/new/esker"
    with pytest.raises(Unavailable, match="No space left on device"):
        lived_in.install(*ALL)
    assert lived_in.contents() == before
    assert list(lived_in.originals.all()) == known


def test_an_edit_with_an_unexpected_result_is_not_written(lived_in: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tomlkit, "dumps", lambda _: 'model = "other"\n')
    before = lived_in.everything()
    with pytest.raises(InvalidInput, match=r"cannot be edited safely; write mcp_servers\.esker by hand"):
        lived_in.install("codex")
    assert lived_in.everything() == before


# Locations -----------------------------------------------------------------------------------------------------------


def test_client_folders_follow_their_environment_variables(home: Home) -> None:
    home.environ = {
        name: str(home.root / name.lower()) for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "XDG_CONFIG_HOME")
    }
    edits = home.install("claude-code", "codex", "opencode")
    assert [edit.path.relative_to(home.root).as_posix() for edit in edits] == [
        "claude_config_dir/.claude.json",
        "claude_config_dir/settings.json",
        "codex_home/config.toml",
        "codex_home/hooks.json",
        "xdg_config_home/opencode/opencode.json",
        "xdg_config_home/opencode/plugins/esker.ts",
    ]
    home.uninstall("claude-code", "codex", "opencode")
    assert home.contents() == {}


def test_a_commented_configuration_of_opencode_is_the_one_that_is_edited(home: Home) -> None:
    path = home.write(".config/opencode/opencode.jsonc", "{\n  // mine\n}\n")
    home.install("opencode")
    assert '"esker"' in path.read_text()
    assert not path.with_suffix(".json").exists()


def test_the_project_scope_writes_shared_files_into_the_project(home: Home) -> None:
    home.scope = "project"
    (home.root / "project").mkdir()
    before = home.contents()
    umask = os.umask(0o027)
    home.install("claude-code")
    os.umask(umask)
    assert "esker" in says(home, "project/.mcp.json")["mcpServers"]
    assert "SessionStart" in says(home, "project/.claude/settings.json")["hooks"]
    assert stat.S_IMODE((home.root / "project/.mcp.json").stat().st_mode) == 0o640
    assert not (home.root / ".claude.json").exists()
    home.scope = "user"
    assert home.uninstall("claude-code") == []
    home.scope = "project"
    home.uninstall("claude-code")
    assert home.contents() == before


def test_a_broken_link_gets_its_target_and_stays_a_link(home: Home) -> None:
    (home.root / ".cursor").mkdir()
    (home.root / ".cursor/mcp.json").symlink_to("../dotfiles/cursor.json")
    before = home.contents()
    home.install("cursor")
    assert "esker" in says(home, "dotfiles/cursor.json")["mcpServers"]
    home.uninstall("cursor")
    assert home.contents() == before


def test_an_empty_file_becomes_empty_again(home: Home) -> None:
    for name in (".gemini/settings.json", ".codex/config.toml"):
        home.write(name, "")
    before = home.contents()
    home.install("gemini-cli", "codex")
    home.uninstall("gemini-cli", "codex")
    assert home.contents() == before


# Duplicate keys and shared files -------------------------------------------------------------------------------------


def test_of_duplicate_keys_the_last_counts_and_all_of_ours_are_removed(home: Home) -> None:
    text = '{"mcpServers": {"esker": {"url": "1"}, "a": {}, "esker": {"url": "2"}}, "x": 1}'
    home.write(".pi/agent/mcp.json", text)
    home.install("pi")
    assert says(home, ".pi/agent/mcp.json")["mcpServers"]["esker"]["url"] == "http://127.0.0.1:8377/mcp?hooks=yes"
    home.forget_state()
    home.uninstall("pi")
    assert says(home, ".pi/agent/mcp.json") == {"mcpServers": {"a": {}}, "x": 1}


def test_removing_a_member_never_activates_an_earlier_duplicate(home: Home) -> None:
    home.write(".pi/agent/mcp.json", '{"mcpServers": {"old": {}}, "mcpServers": {}}')
    home.install("pi")
    home.forget_state()
    home.uninstall("pi")
    assert says(home, ".pi/agent/mcp.json") == {"mcpServers": {}}


def shared_file(home: Home) -> None:
    """Link the server files of two clients to one file."""
    home.write("dotfiles/mcp.json", '{"mcpServers": {"a": {"url": "http://a"}}}')
    for name in (".cursor/mcp.json", ".pi/agent/mcp.json"):
        (home.root / name).parent.mkdir(parents=True)
        (home.root / name).symlink_to(home.root / "dotfiles/mcp.json")


def test_a_file_shared_by_two_clients_gets_both_entries_and_is_restored(home: Home) -> None:
    shared_file(home)
    (home.root / ".codex").mkdir()
    (home.root / ".codex/hooks.json").symlink_to(home.root / "dotfiles/mcp.json")
    before = home.contents()
    home.install("pi", "codex")
    said = says(home, "dotfiles/mcp.json")
    assert list(said["mcpServers"]) == ["a", "esker"]
    assert "SessionStart" in said["hooks"]
    assert home.install("pi", "codex") == []
    home.uninstall("pi", "codex")
    assert home.contents() == before


@pytest.mark.parametrize("clients", [("pi", "cursor"), ("cursor", "pi")])
def test_a_shared_file_with_conflicting_entries_is_refused(home: Home, clients: tuple[str, str]) -> None:
    shared_file(home)
    before = home.contents()
    with pytest.raises(
        InvalidInput, match=rf"mcp\.json are the same file, but {clients[1]} needs a different entry in it"
    ):
        home.install(*clients)
    assert home.contents() == before
    home.install(clients[0])
    with pytest.raises(InvalidInput, match="are the same file"):
        home.install(*clients)


# TOML ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('model = "x"\n', f'model = "x"\n\n{ESKER}'),
        ("[mcp_servers]\n", f"[mcp_servers]\n\n{ESKER}"),
        (f'{ESKER}args = [\n["x"],\n]\n# b\n[b]\n', f"{ESKER}# b\n[b]\n"),
        (f"# a\n{ESKER}old = 1\n\n# The rest.\n[b]\nx = 1\n", f"# a\n{ESKER}\n# The rest.\n[b]\nx = 1\n"),
        ('[mcp_servers.esker]\ncommand = "esker"\n[mcp_servers.esker.env]\nA = "1"\n\n[b]\n', f"{ESKER}\n[b]\n"),
        ('[mcp_servers.a]\nurl = "1"\n[b]\nx = 1\n', f'[mcp_servers.a]\nurl = "1"\n\n{ESKER}[b]\nx = 1\n'),
        ("[a]\r\nx = 1 # y\r\n", "[a]\r\nx = 1 # y\r\n\r\n" + ESKER.replace("\n", "\r\n")),
    ],
)
def test_a_table_is_written_where_it_belongs(home: Home, text: str, expected: str) -> None:
    home.write(".codex/config.toml", text)
    home.install("codex")
    assert home.read(".codex/config.toml") == expected
    assert home.install("codex") == []
    home.uninstall("codex")
    assert home.read(".codex/config.toml") == text


@pytest.mark.parametrize(
    "text",
    [
        'mcp_servers = {a = {url = "1"}}\n',
        '[mcp_servers]\na = {url = "1"}\nesker = {url = "old"}\n',
        'mcp_servers.a.url = "1"\n[z]\nq = 1\n',
        '[mcp_servers.a]\nurl = "1"\n[mid]\nx = 1\n[mcp_servers.b]\nurl = "2"\n# end\n',
        'mcp_servers.esker.url = "old"\nmcp_servers.z.url = "1"\n[t]\n',
        "mcp_servers = {}\n",
        'mcp_servers = { esker = {url = "old"}, z = {x = -inf} } # c\n',
        '[mcp_servers]\n[mcp_servers.esker.env]\nA = "1"\n',
        '[mcp_servers . "esker"]\nurl = "old"\nargs = [\n["x"],\n]\n[[list]]\na = """\n[mcp_servers.esker]\n"""\n',
    ],
)
def test_a_table_is_edited_however_it_is_written(home: Home, text: str) -> None:
    path = home.write(".codex/config.toml", text)
    home.install("codex")
    was, now = tomllib.loads(text), says(home, ".codex/config.toml")
    assert now.pop("mcp_servers") == {**was["mcp_servers"], **tomllib.loads(ESKER)["mcp_servers"]}
    assert now == {name: value for name, value in was.items() if name != "mcp_servers"}
    assert home.install("codex") == []
    path.write_text(path.read_text() + "# edited\n")
    home.uninstall("codex")
    was["mcp_servers"].pop("esker", None)
    assert {"mcp_servers": {}, **says(home, ".codex/config.toml")} == was
    assert "# edited" in path.read_text()


# Lines of a configuration: all of TOML's syntax, and lines that look like Esker's table but are not.
STATEMENTS = """
a = nan | b = [-inf, +nan, 1e400] | c = 1979-05-27T07:32:00-08:00 | d = 07:32:00.5 | e = 1979-05-27 | 'q k'.x = 1_000
f.g . "h.i" = 0xff | # c\u2028[mcp_servers.esker] | # [mcp_servers.esker]
"" = 1 # t | \t  j   =    true | l = {x = 1, y = {z = [nan]}}
m = [⏎  [1, 2], # ]⏎["x"],⏎] | n = \"""⏎[mcp_servers.esker]⏎url = 1⏎\"" # ⏎\"""
o = '''⏎[mcp_servers.esker]⏎''' | p = "# [" | s = 'a\\'
"""
TABLES = """
[t1] | [ t2 . x ]⏎y=nan | ["t3"]⏎⏎⏎# c | [[list]]⏎x = 1⏎[[list]]⏎[list.sub]⏎y = inf | [t4.mcp_servers.esker]⏎url = "1"
  [t5]⏎  v = [⏎"["]
[mcp_servers] | [mcp_servers.a]⏎url = "1"⏎# c | ["mcp_servers"."b b"]⏎url="1"⏎
[mcp_servers.eskers]⏎args = [⏎["x"],⏎]⏎[mcp_servers.eskers.env]⏎A = "1"
"""
SERVERS = ["", "mcp_servers.a.url = '1'", 'mcp_servers = {a = {url = "1"}, b = { x = nan } } # c', "mcp_servers = {}"]


def lines_of(listed: str) -> st.SearchStrategy[list[str]]:
    """Return some statements of a list, in any order."""
    each = [part.replace("⏎", "\n").strip(" ") for line in listed.strip("\n").split("\n") for part in line.split(" | ")]
    return st.lists(st.sampled_from(each), unique=True, max_size=6)


@st.composite
def configurations(draw: st.DrawFn) -> str:
    """Return a configuration as users write it."""
    lines = [*draw(lines_of(STATEMENTS)), draw(st.sampled_from(SERVERS)), *draw(lines_of(TABLES))]
    text = "\n".join(lines) + draw(st.sampled_from(["", "\n", "\n\n"]))
    try:
        tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        reject()
    return text.replace("\n", draw(st.sampled_from(["\n", "\r\n"])))


def bare(text: str | None) -> str:
    """Return a text without blanks in the line of all servers, where they may change."""
    return re.sub("(?m)^mcp_servers = .*", lambda line: line[0].replace(" ", ""), text or "")


def plainly(value: Any) -> str:
    """Return a comparable form of a value, in which NaN equals itself."""
    return json.dumps(value, sort_keys=True, default=repr)


@settings(deadline=None, suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow])
@given(text=configurations())
def test_the_rest_of_a_toml_file_stays_to_the_byte(text: str) -> None:
    file = TomlFile(Path("config.toml"), {"url": "http://127.0.0.1:8377/mcp?hooks=yes"})
    was = tomllib.loads(text)
    written = file.put(text)
    now = tomllib.loads(written)
    assert now["mcp_servers"].pop("esker") == file.server
    assert plainly(now) == plainly({"mcp_servers": {}, **was})
    assert file.put(written) == written
    end = "\r\n" if "\r\n" in text else "\n"
    for edit in ("", f"# edited{end}"):
        # A last line without a line end has got one for the lines after it.
        either = (text + edit, text.removesuffix("\n") + end + edit)
        assert bare(file.remove(written + edit, text)) in map(bare, either)
    # The file gained one contiguous block of text.
    text, written = bare(text), bare(written)
    more = len(written) - len(text)
    assert any(written[:place] + written[place + more :] == text for place in range(len(text) + 1))
