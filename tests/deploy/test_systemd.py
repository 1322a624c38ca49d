"""The units of systemd: systemd itself reads them, and each is bounded and confined."""

import configparser
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from esker.server.core.config.settings import Settings
from tests.support.processes import ROOT

UNITS = sorted((ROOT / "deploy" / "systemd").glob("*.service"))
SERVICES = [unit for unit in UNITS if unit.stem != "esker-migrate"]
PROGRAM = "/opt/esker/bin/esker"


class _Unit(configparser.ConfigParser):
    """A unit: names keep their case, and a name may be given several times."""

    def optionxform(self, optionstr: str) -> str:
        return optionstr


def section(unit: Path, name: str) -> dict[str, str]:
    """Return what a section of a unit sets last."""
    parser = _Unit(strict=False, interpolation=None)
    parser.read_string(unit.read_text(encoding="utf-8"))
    return dict(parser[name])


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.stem)
def test_systemd_accepts_the_unit(unit: Path, tmp_path: Path) -> None:
    analyze = shutil.which("systemd-analyze")
    if not analyze:
        pytest.skip("systemd is not installed")
    for each in UNITS:
        text = each.read_text(encoding="utf-8").replace(PROGRAM, sys.executable)
        (tmp_path / each.name).write_text(text, encoding="utf-8")
    # Units of the system that these come after need not be there.
    command = [analyze, "verify", "--man=no", "--recursive-errors=no", str(tmp_path / unit.name)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    complaints = [line for line in done.stderr.splitlines() if str(tmp_path) in line or unit.name in line]
    assert (done.returncode, complaints) == (0, []), done.stderr


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.stem)
def test_a_unit_has_no_rights_and_valid_settings(unit: Path) -> None:
    service = section(unit, "Service")
    assert service["ExecStart"].startswith(f"{PROGRAM} ")
    assert (service["CapabilityBoundingSet"], service["NoNewPrivileges"]) == ("", "yes")
    assert service["ProtectSystem"] == "strict"
    assert "DynamicUser" in service or service["User"] != "root"
    for line in unit.read_text().splitlines():
        for given in line.removeprefix("Environment=").split() if line.startswith("Environment=") else ():
            name = given.split("=")[0].removeprefix("ESKER_").removesuffix("_FILE").lower()
            assert name in {*Settings.model_fields, "state_dir", "home"}


@pytest.mark.parametrize("unit", SERVICES, ids=lambda unit: unit.stem)
def test_a_service_is_bounded_restarted_and_given_time_to_drain(unit: Path) -> None:
    service = section(unit, "Service")
    assert service["Restart"] == "always"
    assert section(unit, "Unit")["StartLimitIntervalSec"] == "0", "a long outage must not end the restarts"
    assert service["MemoryMax"]
    assert service["TasksMax"]
    assert int(service["TimeoutStopSec"].removesuffix("s")) > 10
