"""The Helm chart, checked by Helm itself and by the schemas of Kubernetes; `make deployment` installs both."""

import json
import shutil
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from esker.server import VERSION
from esker.server.core.config.settings import Settings
from esker.server.rest.metrics import BACKLOG
from tests.support.processes import ROOT

CHART = ROOT / "deploy" / "helm"
KUBERNETES = ("1.27", "1.37")
"""The oldest and the newest version of Kubernetes whose schemas are tried."""

DIGEST = f"sha256:{'0' * 64}"
EVERYTHING: dict[str, Any] = {
    "image": {"digest": DIGEST},
    "imagePullSecrets": [{"name": "registry"}],
    "database": {"directUrl": "postgresql://esker_app@postgres:5432/esker"},
    "secret": {"llmApiKey": "llm-api-key", "embedderApiKey": "embedder-api-key"},
    "settings": {"ESKER_DAILY_CAP_USD": "5"},
    "allowedHosts": ["memory.example"],
    "server": {"autoscaling": {"enabled": True}, "nodeSelector": {"disk": "fast"}},
    "worker": {"autoscaling": {"enabled": True}, "tolerations": [{"key": "spot", "operator": "Exists"}]},
    "backup": {"enabled": True, "volumeClaim": "backups", "keep": 3},
    "networkPolicy": {"from": [{"namespaceSelector": {"matchLabels": {"team": "agents"}}}]},
    "serviceAccount": {"annotations": {"team": "agents"}},
    "podAnnotations": {"team": "agents"},
}
VALUES = {"defaults": {}, "everything": EVERYTHING}


def rendered(values: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the objects of a release. Skips the test where Helm is not installed."""
    helm = pytest.importorskip("helm_python", reason="`make deployment` installs helm-python-sdk")
    texts: dict[str, str] = helm.Chart.load(CHART).render(values, name="r", namespace="n")
    documents = (part for name, text in texts.items() if name.endswith(".yaml") for part in yaml.safe_load_all(text))
    return [document for document in documents if document]


def kind(objects: list[dict[str, Any]], name: str) -> list[dict[str, Any]]:
    """Return the objects of a kind."""
    return [each for each in objects if each["kind"] == name]


def pods(objects: list[dict[str, Any]]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the pod of each deployment, job and scheduled job, with its name."""
    for each in objects:
        if each["kind"] in ("Deployment", "Job", "CronJob"):
            spec = each["spec"]["jobTemplate"]["spec"] if each["kind"] == "CronJob" else each["spec"]
            yield each["metadata"]["name"], spec["template"]["spec"]


def test_the_version_of_the_chart_is_that_of_esker() -> None:
    assert yaml.safe_load((CHART / "Chart.yaml").read_text())["appVersion"] == VERSION


def test_the_values_name_settings_and_metrics_that_exist() -> None:
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    for name in values["settings"]:
        assert name.removeprefix("ESKER_").lower() in Settings.model_fields
    for part in ("server", "worker"):
        assert values[part]["autoscaling"]["metric"].removeprefix("esker_") in BACKLOG


@pytest.mark.parametrize("values", VALUES.values(), ids=VALUES)
def test_helm_finds_no_fault(values: dict[str, Any]) -> None:
    helm = pytest.importorskip("helm_python", reason="`make deployment` installs helm-python-sdk")
    report = helm.lint(CHART, values, strict=True)
    assert report["errors"] == []
    assert [message for message in report["messages"] if message["severity"] > 1] == []


@pytest.mark.parametrize("version", KUBERNETES)
@pytest.mark.parametrize("values", VALUES.values(), ids=VALUES)
def test_kubernetes_accepts_every_object(values: dict[str, Any], version: str) -> None:
    kubernetes = pytest.importorskip("kubernetes_validate", reason="`make deployment` installs kubernetes-validate")
    objects = rendered(values)
    assert len(objects) >= 8
    for each in objects:
        kubernetes.validate(each, version, strict=True)


@pytest.mark.parametrize("values", VALUES.values(), ids=VALUES)
def test_pods_are_bounded_and_have_no_rights(values: dict[str, Any]) -> None:
    found = dict(pods(rendered(values)))
    assert set(found) == {"r-server", "r-worker", "r-migrate"} | ({"r-backup"} if values else set())
    for pod in found.values():
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert pod["automountServiceAccountToken"] is False
        [container] = pod["containers"]
        assert set(container["resources"]["limits"]) == {"cpu", "memory"}
        security = container["securityContext"]
        assert (security["readOnlyRootFilesystem"], security["allowPrivilegeEscalation"]) == (True, False)
        assert security["capabilities"] == {"drop": ["ALL"]}


@pytest.mark.parametrize("values", VALUES.values(), ids=VALUES)
def test_settings_of_pods_are_valid_and_secrets_are_files(values: dict[str, Any]) -> None:
    for _, pod in pods(rendered(values)):
        [container] = pod["containers"]
        given = {each["name"]: each["value"] for each in container["env"]}
        for name in given:
            assert name.removeprefix("ESKER_").removesuffix("_FILE").lower() in Settings.model_fields
        files = {name: path for name, path in given.items() if name.endswith("_FILE")}
        [secrets] = [volume["secret"]["items"] for volume in pod["volumes"] if volume["name"] == "secrets"]
        assert {f"/run/secrets/esker/{item['path']}" for item in secrets} == set(files.values())
        assert Settings.from_environment({name: value for name, value in given.items() if name not in files})


def test_the_probes_ask_the_ports_that_are_listened_on() -> None:
    found = dict(pods(rendered({})))
    for name, port in (("r-server", 8377), ("r-worker", 8378)):
        [container] = found[name]["containers"]
        [named] = container["ports"]
        assert named["containerPort"] == port
        assert container["livenessProbe"]["httpGet"]["port"] == named["name"]
    [worker] = found["r-worker"]["containers"]
    assert {"name": "ESKER_WORKER_PORT", "value": "8378"} in worker["env"]


def test_stopping_leaves_time_to_drain_and_deployments_are_never_empty() -> None:
    objects = rendered({})
    for deployment in kind(objects, "Deployment"):
        spec = deployment["spec"]
        assert spec["template"]["spec"]["terminationGracePeriodSeconds"] > 15
        assert spec["strategy"]["rollingUpdate"]["maxUnavailable"] == 0
    assert len(kind(objects, "PodDisruptionBudget")) == 2


def test_the_number_of_pods_follows_the_backlog() -> None:
    objects = rendered(EVERYTHING)
    metrics = {
        each["spec"]["scaleTargetRef"]["name"]: each["spec"]["metrics"][0]["external"]["metric"]["name"]
        for each in kind(objects, "HorizontalPodAutoscaler")
    }
    assert metrics == {"r-server": "esker_jobs_waiting", "r-worker": "esker_embeddings_waiting"}
    assert all("replicas" not in each["spec"] for each in kind(objects, "Deployment"))


def test_a_digest_pins_the_image_and_a_wrong_one_is_refused() -> None:
    assert all(pod["containers"][0]["image"] == f"esker@{DIGEST}" for _, pod in pods(rendered(EVERYTHING)))
    helm = pytest.importorskip("helm_python")
    with pytest.raises(helm.HelmError):
        helm.Chart.load(CHART).validate_schema({"image": {"digest": "latest"}})


def test_backups_are_written_by_the_owner_onto_a_volume_that_must_be_named() -> None:
    pod = dict(pods(rendered(EVERYTHING)))["r-backup"]
    [container] = pod["containers"]
    assert container["args"] == ["esker", "backup", "/backups", "--keep", "3"]
    assert {"name": "backups", "mountPath": "/backups"} in container["volumeMounts"]
    assert {"name": "backups", "persistentVolumeClaim": {"claimName": "backups"}} in pod["volumes"]
    assert {"name": "ESKER_DATABASE_URL", "value": "postgresql://esker@postgres:5432/esker"} in container["env"]
    helm = pytest.importorskip("helm_python")
    with pytest.raises(helm.HelmError):
        helm.Chart.load(CHART).validate_schema({"backup": {"enabled": True}})


def test_the_programs_themselves_agree() -> None:
    """`helm` and `kubeconform`, where they are installed."""
    helm, kubeconform = shutil.which("helm"), shutil.which("kubeconform")
    if not helm or not kubeconform:
        pytest.skip("helm and kubeconform are not installed")
    for values in VALUES.values():
        given = json.dumps(values)
        subprocess.run([helm, "lint", "--strict", CHART, "-f", "-"], input=given, text=True, check=True)
        command = [helm, "template", "r", CHART, "-f", "-"]
        release = subprocess.run(command, input=given, text=True, check=True, stdout=subprocess.PIPE)
        subprocess.run([kubeconform, "-strict", "-summary"], input=release.stdout, text=True, check=True)
