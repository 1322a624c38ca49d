"""`esker setup` as a command: what it lists, tries and writes."""

import json
from pathlib import Path

from tests.support.processes import esker
from tests.support.scripted_clients import ScriptedClient, said_by


def test_a_choice_is_tried_and_written_and_the_next_command_reads_it(tmp_path: Path) -> None:
    client = ScriptedClient(tmp_path, "codex")
    client.prints(said_by("codex", '{"fact": "x"}'))
    environ = client.environ | {"XDG_CONFIG_HOME": str(tmp_path / "config"), "ESKER_DATA_DIR": str(tmp_path / "d")}
    listed = json.loads(esker("setup", "--json", **environ).stdout)
    assert {"nothing", "rules", "cli:codex"} <= {choice["name"] for choice in listed["choices"]}
    assert client.calls == []
    done = esker("setup", "--use", "cli:codex", **environ)
    assert done.returncode == 0, done.stderr
    assert "the call read 100 tokens and wrote 20" in done.stdout
    file = tmp_path / "config/esker/settings.toml"
    assert str(file) in done.stdout
    assert file.read_text() == 'observer = "cli:codex"\nreflector = "cli:codex"\n'
    assert "The observer is set to cli:codex" in esker("doctor", "--quick", **environ).stdout
    client.prints('{"type": "turn.failed", "error": {"message": "401 Unauthorized"}}', code=1)
    failed = esker("setup", "--use", "cli:codex", "--model", "gpt-5.5", **environ)
    assert (failed.returncode, "not logged in" in failed.stdout) == (1, True)
    assert "gpt-5.5" not in file.read_text()
    rules = esker("setup", "--use", "rules", "--json", **environ)
    assert (json.loads(rules.stdout)["written"], rules.stderr) == (str(file), "")
    assert file.read_text() == 'observer = "extractive"\nreflector = "extractive"\n'
