"""`docker-compose.yml`: services are bounded, no secret is in the environment, and passwords have any characters."""

import base64
import hashlib
import hmac
import re
import shutil
import subprocess
from collections.abc import Generator
from pathlib import Path
from typing import Any

import psycopg
import pytest
import yaml
from psycopg.conninfo import conninfo_to_dict

from esker.server.core.config.settings import Settings
from esker.server.db.embedded import DATABASE, OWNER, Cluster
from esker.server.db.programs import BINARIES
from tests.support.processes import ROOT, environment

TEXT = (ROOT / "docker-compose.yml").read_text(encoding="utf-8")
PASSWORD = "p@ss:/?#&= 'w\\rd%2F\"$é`;--"
_VARIABLE = re.compile(r"(?<!\$)\$\{(\w+)(?::-([^}]*))?\}")
ESKER = ("migrate", "backup", "server", "worker")


def composed(**environ: str) -> dict[str, Any]:
    """Return the file as `docker compose` reads it with these variables."""

    def filled(value: Any) -> Any:
        match value:
            case str():
                given = _VARIABLE.sub(lambda found: environ.get(found[1], "") or found[2] or "", value)
                return given.replace("$$", "$")
            case list():
                return [filled(each) for each in value]
            case dict():
                return {key: filled(each) for key, each in value.items()}
            case _:
                return value

    return filled(yaml.safe_load(TEXT))


SERVICES: dict[str, dict[str, Any]] = composed()["services"]


@pytest.mark.parametrize("name", SERVICES)
def test_a_service_is_bounded_and_can_gain_no_rights(name: str) -> None:
    service = SERVICES[name]
    limits = service["deploy"]["resources"]["limits"]
    assert all(limits[kind] for kind in ("cpus", "memory", "pids"))
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert int(service["stop_grace_period"].removesuffix("s")) > 10, "docker's own grace period is too short to drain"
    assert ":latest" not in service["image"]


@pytest.mark.parametrize("name", ["postgres", "server", "worker"])
def test_a_service_that_stays_is_checked_and_restarted(name: str) -> None:
    assert SERVICES[name]["healthcheck"]["test"]
    assert SERVICES[name]["restart"] == "unless-stopped"


def test_the_health_of_the_worker_is_that_it_moves() -> None:
    worker = SERVICES["worker"]
    assert f":{worker['environment']['ESKER_WORKER_PORT']}/livez" in worker["healthcheck"]["test"][-1]


def test_services_start_in_order_and_data_is_kept() -> None:
    assert SERVICES["migrate"]["depends_on"] == {"postgres": {"condition": "service_healthy"}}
    for name in ("server", "worker"):
        assert SERVICES[name]["depends_on"] == {"migrate": {"condition": "service_completed_successfully"}}
    assert SERVICES["postgres"]["volumes"]
    assert SERVICES["postgres"]["shm_size"]


@pytest.mark.parametrize("name", ESKER)
def test_settings_exist_and_none_is_a_secret(name: str) -> None:
    for variable in SERVICES[name]["environment"]:
        assert variable.removeprefix("ESKER_").removesuffix("_FILE").lower() in Settings.model_fields
    secret = re.compile(r"PASSWORD|API_KEY")
    assert all(variable.endswith("_FILE") for variable in SERVICES[name]["environment"] if secret.search(variable))


@pytest.mark.parametrize("variable", ["ESKER_DAILY_CAP_USD", "ESKER_LLM_MODEL", "ESKER_LLM_BASE_URL", "ESKER_EMBEDDER"])
@pytest.mark.parametrize("name", ["server", "worker"])
def test_caps_models_and_embedders_are_passed_through(name: str, variable: str) -> None:
    assert composed(**{variable: "7"})["services"][name]["environment"][variable] == "7"


def test_only_migrations_and_backups_have_the_password_of_the_owner() -> None:
    having = {name for name, service in SERVICES.items() if "owner_password" in service["secrets"]}
    assert having == {"postgres", "migrate", "backup"}


def test_a_backup_is_made_on_request_alone() -> None:
    assert (SERVICES["backup"]["profiles"], SERVICES["backup"]["restart"]) == (["backup"], "no")
    assert composed(ESKER_BACKUPS="/safe")["services"]["backup"]["volumes"] == ["/safe:/backups"]


def test_a_second_server_gets_another_port_of_the_host() -> None:
    assert SERVICES["server"]["ports"] == ["127.0.0.1:8377:8377"]
    assert composed(ESKER_HOST_PORT="8377-8380")["services"]["server"]["ports"] == ["127.0.0.1:8377-8380:8377"]


def test_the_password_of_the_address_is_read_from_the_file(tmp_path: Path) -> None:
    file = tmp_path / "app_password"
    file.write_text(f"{PASSWORD}\n", encoding="utf-8")
    given = SERVICES["server"]["environment"] | {"ESKER_DATABASE_PASSWORD_FILE": str(file)}
    settings = Settings.from_environment({name: value for name, value in given.items() if "API_KEY" not in name})
    assert settings.direct_database
    parts = conninfo_to_dict(settings.direct_database)
    assert (parts["user"], parts["password"], parts["host"]) == ("esker_app", PASSWORD, "postgres")


@pytest.fixture
def role(cluster: Cluster) -> Generator[str]:
    """The name of a role that does not exist, and is removed at the end."""
    yield "esker_of_compose"
    with psycopg.connect(cluster.url(OWNER), autocommit=True) as connection:
        connection.execute("DROP ROLE IF EXISTS esker_of_compose")


def test_the_role_of_the_server_gets_a_password_of_any_characters(cluster: Cluster, role: str, tmp_path: Path) -> None:
    (tmp_path / "app_password").write_text(f"{PASSWORD}\n", encoding="utf-8")
    script = composed()["configs"]["app_role"]["content"]
    script = script.replace("/run/secrets", str(tmp_path)).replace("esker_app", role)
    given = {"POSTGRES_USER": OWNER, "POSTGRES_DB": DATABASE, "PGHOST": str(cluster.sockets)}
    given |= {"PATH": f"{BINARIES}:/usr/bin:/bin", "LC_ALL": "C.UTF-8"}
    subprocess.run(["sh", "-c", script], env=given, check=True, stdout=subprocess.DEVNULL)
    with psycopg.connect(cluster.url(OWNER)) as connection:
        row = connection.execute(
            "SELECT rolpassword FROM pg_authid WHERE rolname = %s AND rolcanlogin", [role]
        ).fetchone()
    assert row
    assert _is_password(PASSWORD, row[0])


def _is_password(password: str, verifier: str) -> bool:
    """Return whether a SCRAM verifier of Postgres is of this password."""
    _, rounds, salt, stored = re.split(r"[$:]", verifier)[:4]
    salted = hashlib.pbkdf2_hmac("sha256", password.encode(), base64.b64decode(salt), int(rounds))
    client_key = hmac.digest(salted, b"Client Key", "sha256")
    return hashlib.sha256(client_key).digest() == base64.b64decode(stored)


def test_another_program_reads_the_file() -> None:
    compose_spec = pytest.importorskip("compose_spec", reason="`make deployment` installs compose-spec")
    document = composed()
    for service in document["services"].values():
        service.pop("<<", None)
    read = compose_spec.PyCompose.from_yaml(yaml.safe_dump(document))
    for check in (read.validate, read.validate_secrets, read.validate_configs, read.validate_volumes):
        check()
    assert set(read.service_names()) == set(SERVICES)


def test_docker_agrees_with_the_file() -> None:
    docker = shutil.which("docker")
    if not docker or subprocess.run([docker, "compose", "version"], capture_output=True, check=False).returncode:
        pytest.skip("docker compose is not here")
    command = [docker, "compose", "-f", str(ROOT / "docker-compose.yml"), "config", "--quiet"]
    assert subprocess.run(command, env=environment(), check=False).returncode == 0
