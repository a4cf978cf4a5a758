"""Dockerfiles and compose.yaml against the code. No image is built: there is no container engine in CI."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import tomllib
import yaml
from compose_spec import PyCompose
from lean_interact.utils import DEFAULT_REPL_GIT_URL, DEFAULT_REPL_VERSION

from services.runtime.settings import load_settings
from tests.operations.dockerfiles import DOCKERFILES, ROOT, copied, environment, instructions

COMPOSE = ROOT / "docker" / "compose.yaml"
OURS = {"gateway", "lean-worker", "lean-worker-native", "evaluator", "evaluator-gpu"}
every_dockerfile = pytest.mark.parametrize("path", DOCKERFILES, ids=lambda path: path.parent.name)


def tool(name: str) -> str:
    """A program of this Python environment."""
    return str(Path(sys.executable).parent / name)


def last_stage(path: Path, name: str) -> list[str]:
    stage = instructions(path)[-1].stage
    return [i.text for i in instructions(path) if i.name == name and i.stage == stage]


def settings_of(variables: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> Any:
    """The platform's settings as a process with these variables would read them."""
    for name in [name for name in os.environ if name.startswith("LEAN_REWARD_")]:
        monkeypatch.delenv(name)
    for name, value in variables.items():
        if name.startswith("LEAN_REWARD_"):
            monkeypatch.setenv(name, value)
    return load_settings()


def services() -> dict[str, Any]:
    """The services of compose.yaml with its variables at their defaults."""
    text = re.sub(r"\$\{\w+:-([^}]*)\}", r"\1", COMPOSE.read_text(encoding="utf-8"))
    found: dict[str, Any] = yaml.safe_load(text)["services"]
    return found


def test_hadolint_has_nothing_to_say() -> None:
    result = subprocess.run(
        [tool("hadolint"), *map(str, DOCKERFILES)], capture_output=True, text=True, timeout=60, check=False
    )
    assert (result.returncode, result.stdout) == (0, "")


@every_dockerfile
def test_what_is_copied_is_there_and_not_ignored(path: Path) -> None:
    wanted = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    assert copied(path)
    for source in copied(path):
        assert (ROOT / source).exists(), source
        assert source in wanted, f"{source} is not in the build context"


@every_dockerfile
def test_every_package_is_copied(path: Path) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    packages = {pattern.rstrip("*") for pattern in project["tool"]["setuptools"]["packages"]["find"]["include"]}
    assert packages <= set(copied(path))


@every_dockerfile
def test_the_extra_that_is_installed_exists(path: Path) -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    (extra,) = {found for i in instructions(path) for found in re.findall(r'"\.\[([\w-]+)\]"', i.text)}
    assert extra in extras


@every_dockerfile
def test_the_entry_point_is_a_command_of_ours(path: Path) -> None:
    program, command = json.loads(last_stage(path, "ENTRYPOINT")[0])
    assert Path(program).name == "lean-reward"
    result = subprocess.run([tool("lean-reward"), command, "--help"], capture_output=True, timeout=60, check=False)
    assert result.returncode == 0


@every_dockerfile
def test_variables_are_settings_with_values_that_they_take(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings_of(environment(path), monkeypatch)


@every_dockerfile
def test_the_exposed_port_is_the_one_listened_on_and_asked_for_health(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = settings_of(environment(path), monkeypatch)
    section = {"gateway": settings.gateway, "evaluator": settings.evaluator, "lean-worker": settings.worker}
    server = section[json.loads(last_stage(path, "ENTRYPOINT")[0])[1]]
    assert server.host == "0.0.0.0"
    assert last_stage(path, "EXPOSE") == [str(server.port)]
    assert f"http://127.0.0.1:{server.port}/healthz" in last_stage(path, "HEALTHCHECK")[0]


@every_dockerfile
def test_it_runs_as_a_user_without_rights_from_pinned_bases(path: Path) -> None:
    assert last_stage(path, "USER") == ["10001:10001"]
    defaults = dict(i.text.split("=", 1) for i in instructions(path) if i.name == "ARG" and "=" in i.text)
    stages = {i.text.rpartition(" AS ")[2] for i in instructions(path) if i.name == "FROM" and " AS " in i.text}
    for base in (i.text.partition(" ")[0] for i in instructions(path) if i.name == "FROM"):
        named = re.sub(r"\$\{(\w+)\}", lambda match: defaults[match[1]], base)
        assert named in stages or re.search(r":v?\d|:bookworm-\d", named), named


def test_the_native_worker_has_the_repl_that_lean_interact_is_made_for() -> None:
    arguments = [i.text for i in instructions(ROOT / "docker/lean-worker/Dockerfile") if i.name == "ARG"]
    assert f"REPL_VERSION={DEFAULT_REPL_VERSION}" in arguments
    assert f"REPL_REPOSITORY={DEFAULT_REPL_GIT_URL}" in arguments


def test_the_project_of_the_native_worker_is_completed_by_the_build() -> None:
    lakefile = (ROOT / "docker/lean-worker/project/lakefile.toml").read_text()
    assert tomllib.loads(lakefile)["require"][0]["rev"] == "@LEAN_VERSION@"
    assert "s/@LEAN_VERSION@/" in (ROOT / "docker/lean-worker/Dockerfile").read_text()


def test_a_strict_parser_accepts_the_compose_file() -> None:
    text = re.sub(r"\$\{\w+:-([^}]*)\}", r"\1", COMPOSE.read_text(encoding="utf-8"))
    merged = yaml.safe_dump({k: v for k, v in yaml.safe_load(text).items() if not k.startswith("x-")})
    compose = PyCompose.from_yaml(merged)  # refuses unknown keys and wrong types
    compose.validate()  # every network and volume that is used is declared
    assert set(compose.service_names()) == OURS | {"redis", "prometheus", "grafana"}


@pytest.mark.parametrize("name", sorted(OURS))
def test_a_service_is_built_from_its_dockerfile_with_settings_that_it_takes(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = services()[name]
    dockerfile = ROOT / service["build"]["dockerfile"]
    assert dockerfile in DOCKERFILES
    assert (COMPOSE.parent / service["build"]["context"]).resolve() == ROOT
    settings_of({**environment(dockerfile), **service.get("environment", {})}, monkeypatch)
    known = {i.text.partition("=")[0] for i in instructions(dockerfile) if i.name == "ARG"}
    assert set(service["build"].get("args", {})) <= known


def test_services_are_hardened() -> None:
    for name, service in services().items():
        assert service["read_only"] is True, name
        assert service["cap_drop"] == ["ALL"], name
        assert "no-new-privileges:true" in service["security_opt"], name
        assert all(port.startswith("127.0.0.1:") for port in service.get("ports", [])), name


def test_a_stopped_service_has_time_to_drain(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in OURS:
        service = services()[name]
        dockerfile = ROOT / service["build"]["dockerfile"]
        settings = settings_of({**environment(dockerfile), **service.get("environment", {})}, monkeypatch)
        section = {"gateway": settings.gateway, "evaluator": settings.evaluator}.get(name.removesuffix("-gpu"))
        drain = (section or settings.worker).drain_s
        assert float(service["stop_grace_period"].rstrip("s")) >= drain + 10, name


def test_hosts_and_ports_between_services_are_right(monkeypatch: pytest.MonkeyPatch) -> None:
    found = services()
    ports = {
        name: next(i.text for i in instructions(ROOT / found[name]["build"]["dockerfile"]) if i.name == "EXPOSE")
        for name in OURS
    }
    assert (
        found["gateway"]["environment"]["LEAN_REWARD_GATEWAY_EVALUATOR_URLS"]
        == f"http://evaluator:{ports['evaluator']}"
    )
    assert found["gateway"]["ports"] == [f"127.0.0.1:{ports['gateway']}:{ports['gateway']}"]
    scrape = yaml.safe_load((ROOT / "docker/prometheus/prometheus.yml").read_text())["scrape_configs"]
    targets = {(name, str(sd["port"])) for job in scrape for sd in job["dns_sd_configs"] for name in sd["names"]}
    assert targets == set(ports.items())
    for name in OURS:
        assert set(found["prometheus"]["networks"]) & set(found[name]["networks"]), f"Prometheus does not reach {name}"
    datasource = yaml.safe_load((ROOT / "docker/grafana/provisioning/datasources/prometheus.yaml").read_text())
    assert datasource["datasources"][0]["url"] == "http://prometheus:9090"


def test_workers_and_evaluators_reach_nothing_that_they_do_not_need() -> None:
    found = services()
    document = yaml.safe_load(COMPOSE.read_text(encoding="utf-8"))
    internal = {name for name, network in document["networks"].items() if network and network.get("internal")}
    for name in OURS - {"gateway"}:
        assert set(found[name]["networks"]) <= internal, f"{name} reaches the world"
    assert "queue" not in found["evaluator"]["networks"] + found["evaluator-gpu"]["networks"]


def test_what_is_mounted_is_there() -> None:
    for name, service in services().items():
        for volume in service.get("volumes", []):
            source = volume.split(":")[0]
            if source.startswith(".") and source != "./models":  # the operator's own
                assert (COMPOSE.parent / source).exists(), f"{name}: {source}"


def test_scripts_are_executable_and_parse() -> None:
    script = ROOT / "docker/redis/start.sh"
    assert os.access(script, os.X_OK)
    assert subprocess.run(["sh", "-n", str(script)], check=False).returncode == 0
