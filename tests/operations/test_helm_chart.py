"""The chart, rendered by Helm itself (its Go library) and held against Kubernetes' and the operators' own schemas."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml
from cloudcoil.models.keda.v1alpha1 import ScaledObject
from cloudcoil.models.prometheus_operator.v1 import PodMonitor, PrometheusRule, ServiceMonitor
from pydantic import BaseModel

from services.runtime.settings import load_settings
from tests.operations.dockerfiles import ROOT, environment, instructions
from tests.operations.queries import rules

helm = pytest.importorskip("helm_python", reason="Helm's library is built for Linux on x86-64")

CHART = ROOT / "helm" / "lean-reward"
OPERATORS: dict[str, type[BaseModel]] = {
    "ScaledObject": ScaledObject,
    "PodMonitor": PodMonitor,
    "ServiceMonitor": ServiceMonitor,
    "PrometheusRule": PrometheusRule,
}
EVERYTHING: dict[str, Any] = {
    "image": {"pullSecrets": ["pull"]},
    "settings": {"LOG_LEVEL": "info"},
    "gateway": {
        "keysSecret": "keys",
        "settings": {"GATEWAY_DEADLINE_S": "300"},
        "ingress": {"enabled": True, "host": "rewards.example", "tlsSecret": "tls", "className": "nginx"},
        "nodeSelector": {"pool": "cpu"},
        "tolerations": [{"key": "a", "operator": "Exists"}],
    },
    "workers": {
        "embedded": {"autoscaling": {"kind": "hpa"}, "runtimeClassName": "gvisor"},
        "native": {"enabled": True},
    },
    "evaluator": {
        "image": "evaluator-gpu",
        "engine": "vllm",
        "gpus": 2,
        "models": {"claim": "models", "gate": "/models/gate", "feedback": "/models/feedback"},
    },
    "judge": {"url": "http://judge:8000/v1", "keySecret": "judge", "model": "m", "peers": [{"podSelector": {}}]},
    "monitoring": {
        "enabled": True,
        "dashboards": True,
        "prometheusUrl": "http://prometheus:9090",
        "runbookUrl": "https://docs.example/runbook",
        "labels": {"release": "prometheus"},
        "peers": [{"namespaceSelector": {"matchLabels": {"name": "monitoring"}}}],
    },
    "networkPolicy": {"callers": [{"namespaceSelector": {"matchLabels": {"name": "trainers"}}}]},
}
EXTERNAL_REDIS: dict[str, Any] = {
    "redis": {"existingSecret": "queue", "peers": [{"ipBlock": {"cidr": "10.0.0.0/8"}}]},
    "gateway": {"autoscaling": {"enabled": False}},
    "evaluator": {"enabled": False},
    "networkPolicy": {"enabled": True},
}
CASES = {"defaults": {}, "everything": EVERYTHING, "external redis": EXTERNAL_REDIS}
every_case = pytest.mark.parametrize("values", CASES.values(), ids=CASES)

Manifest = dict[str, Any]


def render(values: dict[str, Any], release: str = "demo") -> list[Manifest]:
    with helm.Chart.load(CHART) as chart:
        files = chart.render(values=values, name=release, namespace="rewards")
    texts = [text for name, text in files.items() if not name.endswith(".txt")]
    return [manifest for text in texts for manifest in yaml.safe_load_all(text) if manifest]


def of(manifests: list[Manifest], kind: str, part: str = "") -> list[Manifest]:
    return [m for m in manifests if m["kind"] == kind and part in m["metadata"]["name"]]


def pods(manifests: list[Manifest]) -> Iterator[tuple[str, dict[str, Any]]]:
    for manifest in manifests:
        if manifest["kind"] in ("Deployment", "StatefulSet"):
            yield manifest["metadata"]["name"], manifest["spec"]["template"]["spec"]


def container(manifests: list[Manifest], part: str) -> dict[str, Any]:
    (found,) = (pod["containers"][0] for name, pod in pods(manifests) if part in name)
    return dict(found)


def variables(box: dict[str, Any]) -> dict[str, str]:
    return {entry["name"]: entry.get("value", "") for entry in box["env"]}


@every_case
def test_helm_finds_nothing_wrong(values: dict[str, Any]) -> None:
    report = helm.lint(CHART, values=values) if values else helm.lint(CHART)
    assert report["errors"] == []
    assert [message for message in report["messages"] if message["severity"] > 1] == []


@pytest.mark.parametrize("version", ["1.27", "1.30", "1.37"])
@every_case
def test_kubernetes_accepts_every_object(values: dict[str, Any], version: str) -> None:
    for manifest in render(values):
        if manifest["kind"] not in OPERATORS:
            kubernetes_validate.validate(manifest, version, strict=True)


def test_operators_accept_their_objects() -> None:
    seen = set()
    for manifest in render(EVERYTHING):
        if model := OPERATORS.get(manifest["kind"]):
            read = model.model_validate(manifest).model_dump(by_alias=True, exclude_unset=True, mode="json")
            assert read["spec"] == manifest["spec"], "a field is unknown to the operator"
            seen.add(manifest["kind"])
    assert seen == set(OPERATORS)


def test_the_packaged_chart_carries_what_its_links_point_to(tmp_path: Path) -> None:
    package = helm.package(CHART, destination=tmp_path)
    with helm.Chart.load(str(package)) as chart:
        text = chart.render(values=EVERYTHING, name="demo", namespace="rewards")[
            "lean-reward/templates/monitoring.yaml"
        ]
    assert "LeanRewardNoLean" in text
    assert "lean-reward-overview" in text


@every_case
def test_pods_are_hardened(values: dict[str, Any]) -> None:
    for name, pod in pods(render(values)):
        assert pod["automountServiceAccountToken"] is False, name
        assert pod["securityContext"]["runAsNonRoot"] is True, name
        assert pod["securityContext"]["seccompProfile"]["type"] == "RuntimeDefault", name
        for box in pod["containers"]:
            security = box["securityContext"]
            assert security["readOnlyRootFilesystem"] is True, name
            assert security["allowPrivilegeEscalation"] is False, name
            assert security["capabilities"] == {"drop": ["ALL"]}, name
            assert box["resources"]["limits"]["memory"], name
            assert "cpu" not in box["resources"]["limits"], f"{name}: throttled cores make timeouts"


@every_case
def test_variables_are_settings_with_values_that_they_take(
    values: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, pod in pods(render(values)):
        if "redis" in name:
            continue
        with monkeypatch.context() as context:
            context.delenv("LEAN_REWARD_CONFIG", raising=False)
            given = variables(pod["containers"][0])
            for variable, value in given.items():
                context.setenv(variable, value or "redis://from-a-secret")
            if "LEAN_REWARD_GATEWAY_KEYS" in given:
                context.setenv("LEAN_REWARD_GATEWAY_KEYS", "")
            load_settings()


def test_settings_for_one_service_win_over_those_for_all() -> None:
    values = {"settings": {"LOG_LEVEL": "info"}, "gateway": {"settings": {"LOG_LEVEL": "debug"}}}
    manifests = render(values)
    assert variables(container(manifests, "gateway"))["LEAN_REWARD_LOG_LEVEL"] == "debug"
    assert variables(container(manifests, "worker"))["LEAN_REWARD_LOG_LEVEL"] == "info"


@every_case
def test_images_ports_and_paths_are_those_of_the_dockerfiles(values: dict[str, Any]) -> None:
    for name, pod in pods(render(values)):
        if "redis" in name:
            continue
        (box,) = pod["containers"]
        image = box["image"].partition("/")[2].partition(":")[0]
        dockerfile = ROOT / "docker" / image / "Dockerfile"
        exposed = [i.text for i in instructions(dockerfile) if i.name == "EXPOSE"]
        assert [str(port["containerPort"]) for port in box["ports"]] == exposed
        for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
            assert box[probe]["httpGet"]["path"] in ("/healthz", "/readyz")
            assert box[probe]["httpGet"]["port"] == box["ports"][0]["name"]
        home = environment(dockerfile).get("LEAN_REWARD_LEAN_HOME")
        mounted = {mount["mountPath"] for mount in box["volumeMounts"]}
        assert home is None or f"{home}/snapshots" in mounted
        assert pod["securityContext"]["runAsUser"] == 10001


@every_case
def test_a_pod_that_ends_has_time_for_its_drain(values: dict[str, Any]) -> None:
    drains = {"gateway": "LEAN_REWARD_GATEWAY_DRAIN_S", "worker": "LEAN_REWARD_WORKER_DRAIN_S"}
    for name, pod in pods(render(values)):
        for part, variable in drains.items():
            if f"-{part}" in name:
                drain = float(variables(pod["containers"][0])[variable])
                stop = (
                    pod["containers"][0].get("lifecycle", {}).get("preStop", {}).get("exec", {}).get("command", [0, 0])
                )
                assert pod["terminationGracePeriodSeconds"] >= drain + float(stop[1]) + 10, name


@every_case
def test_every_selector_finds_the_pods_it_is_for(values: dict[str, Any]) -> None:
    manifests = render(values)
    labels = {
        m["metadata"]["name"]: m["spec"]["template"]["metadata"]["labels"]
        for m in manifests
        if "template" in m.get("spec", {})
    }

    def found(selector: dict[str, str]) -> set[str]:
        return {name for name, have in labels.items() if selector.items() <= have.items()}

    for manifest in manifests:
        name, spec = manifest["metadata"]["name"], manifest.get("spec", {})
        if manifest["kind"] == "Service":
            assert found(spec["selector"]) == {name}
        if manifest["kind"] in ("Deployment", "StatefulSet", "PodDisruptionBudget"):
            assert found(spec["selector"]["matchLabels"]) == {name}
        if manifest["kind"] == "NetworkPolicy":
            assert found(spec["podSelector"]["matchLabels"]) == {n for n in labels if n.startswith(name)}
        if manifest["kind"] in ("HorizontalPodAutoscaler", "ScaledObject"):
            assert spec["scaleTargetRef"]["name"] in labels


def test_network_policies_let_through_what_is_needed_and_nothing_else() -> None:
    policies = {
        m["metadata"]["name"].removeprefix("demo-lean-reward-"): m["spec"]
        for m in of(render(EVERYTHING), "NetworkPolicy")
    }

    def parts(rules: list[dict[str, Any]], direction: str) -> set[tuple[str, int]]:
        found = set()
        for rule in rules:
            for port in rule["ports"]:
                for peer in rule.get(direction, [{}]):
                    labels = peer.get("podSelector", {}).get("matchLabels", {})
                    found.add((labels.get("app.kubernetes.io/component", "other"), port["port"]))
        return found

    assert parts(policies["worker"]["egress"], "to") == {("other", 53), ("redis", 6379)}
    assert parts(policies["evaluator"]["egress"], "to") == set()
    assert parts(policies["redis"]["egress"], "to") == set()
    assert parts(policies["redis"]["ingress"], "from") == {("gateway", 6379), ("worker", 6379)}
    assert parts(policies["evaluator"]["ingress"], "from") == {("gateway", 8100), ("other", 8100)}
    assert parts(policies["gateway"]["egress"], "to") == {
        ("other", 53),
        ("redis", 6379),
        ("evaluator", 8100),
        ("other", 8000),
    }
    assert all(set(spec["policyTypes"]) == {"Ingress", "Egress"} for spec in policies.values())


def test_keda_asks_for_metrics_that_exist_and_its_namespace() -> None:
    (scaled,) = of(render(EVERYTHING), "ScaledObject")
    for trigger in scaled["spec"]["triggers"]:
        assert 'namespace="rewards"' in trigger["metadata"]["query"]
        assert re.search(r"lean_reward_(queue_oldest_age_seconds|slots)\{", trigger["metadata"]["query"])


def test_keda_without_a_prometheus_is_refused() -> None:
    with pytest.raises(helm.HelmRenderError, match=r"monitoring\.prometheusUrl"):
        render({"workers": {"native": {"enabled": True}}})


def test_the_operator_gets_the_same_rules_with_links_to_your_runbook() -> None:
    (rule,) = of(render(EVERYTHING), "PrometheusRule")
    rendered = [r for group in rule["spec"]["groups"] for r in group["rules"]]
    ours = json.loads(
        json.dumps([*rules("alerts.yml"), *rules("recording.yml")]).replace(
            "docs/runbook.md", "https://docs.example/runbook"
        )
    )
    assert rendered == ours


def test_scraped_jobs_have_the_names_that_rules_and_dashboards_choose_by() -> None:
    manifests = render(EVERYTHING)
    monitors = [*of(manifests, "ServiceMonitor"), *of(manifests, "PodMonitor")]
    endpoints = [(m["spec"].get("endpoints") or m["spec"]["podMetricsEndpoints"])[0] for m in monitors]
    names = {r["replacement"] for e in endpoints for r in e["relabelings"] if r["targetLabel"] == "job"}
    scrape = yaml.safe_load((ROOT / "docker/prometheus/prometheus.yml").read_text())["scrape_configs"]
    assert names == {job["job_name"] for job in scrape}


def test_dashboards_are_carried_whole() -> None:
    maps = of(render(EVERYTHING), "ConfigMap", "dashboard")
    carried = {name: json.loads(text) for m in maps for name, text in m["data"].items()}
    ours = {path.name: json.loads(path.read_text()) for path in (ROOT / "docker/grafana/dashboards").glob("*.json")}
    assert carried == ours


def test_redis_is_started_as_in_compose_and_its_url_carries_the_password() -> None:
    values = {"redis": {"passwords": {"gateway": "a/b@c", "worker": "w"}}}
    manifests = render(values)
    (secret,) = of(manifests, "Secret")
    assert secret["stringData"]["gateway-url"] == "redis://gateway:a%2Fb%40c@demo-lean-reward-redis:6379/0"
    assert secret["stringData"]["gateway-password"] == "a/b@c"
    (files,) = of(manifests, "ConfigMap")
    for name, text in files["data"].items():
        assert text.strip() == (ROOT / "docker" / "redis" / name).read_text().strip()


@pytest.mark.parametrize(
    ("values", "why"),
    [
        ({"gatway": {}}, "gatway"),
        ({"gateway": {"drainSeconds": -1}}, "drainSeconds"),
        ({"workers": {"embedded": {"engine": "lean"}}}, "engine"),
        ({"workers": {"embedded": {"autoscaling": {"kind": "magic"}}}}, "kind"),
        ({"settings": {"log_level": "x"}}, "log_level"),
        ({"evaluator": {"engine": "vllm"}}, "gate"),
        ({"gateway": {"ingress": {"enabled": True}}}, "host"),
    ],
)
def test_wrong_values_are_refused_by_name(values: dict[str, Any], why: str) -> None:
    with pytest.raises(helm.HelmError, match=why):
        render(values)


@pytest.mark.parametrize("release", ["lean-reward", "demo", "a-very-long-name-of-a-release-that-goes-on-and-on"])
def test_names_fit_whatever_the_release_is_called(release: str) -> None:
    for manifest in render(EVERYTHING, release):
        assert len(manifest["metadata"]["name"]) <= 63
        assert manifest["metadata"]["name"].startswith(release[:20])
