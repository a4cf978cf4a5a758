"""Rules, alerts and dashboards as files: promtool's own checks, the runbook, the generator, the metrics they name."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.operations.documented_metrics import documented
from tests.operations.queries import DASHBOARDS, ROOT, RULES, alert_queries, panel_queries, recording_queries, rules

PROMETHEUS = ROOT / "docker" / "prometheus"
SUFFIXES = {"counter": ("_total",), "gauge": ("",), "histogram": ("_bucket", "_sum", "_count")}
needs_promtool = pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool: apt-get install prometheus")


def promtool(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["promtool", *map(str, arguments)], capture_output=True, text=True, timeout=60, check=False)


@needs_promtool
def test_promtool_accepts_the_rules() -> None:
    result = promtool("check", "rules", *sorted(RULES.glob("*.yml")))
    assert result.returncode == 0, result.stdout + result.stderr


@needs_promtool
def test_promtool_accepts_the_scrape_configuration(tmp_path: Path) -> None:
    shutil.copytree(RULES, tmp_path / "rules")
    text = (PROMETHEUS / "prometheus.yml").read_text(encoding="utf-8")
    assert "/etc/prometheus/rules" in text
    (tmp_path / "prometheus.yml").write_text(text.replace("/etc/prometheus/rules", str(tmp_path / "rules")))
    result = promtool("check", "config", tmp_path / "prometheus.yml")
    assert result.returncode == 0, result.stdout + result.stderr


@needs_promtool
def test_alerts_fire_and_stay_silent_as_their_unit_tests_say() -> None:
    result = promtool("test", "rules", PROMETHEUS / "tests.yml")
    assert result.returncode == 0, result.stdout + result.stderr


def test_every_alert_has_a_unit_test_that_fires_it_and_one_that_does_not() -> None:
    tests = yaml.safe_load((PROMETHEUS / "tests.yml").read_text(encoding="utf-8"))["tests"]
    expected: dict[str, set[bool]] = {}
    for case in (case for test in tests for case in test["alert_rule_test"]):
        expected.setdefault(case["alertname"], set()).add(bool(case["exp_alerts"]))
    assert {rule["alert"] for rule in rules("alerts.yml")} == set(expected)
    assert all(kinds == {True, False} for kinds in expected.values())


def test_every_alert_names_its_paragraph_of_the_runbook_and_every_paragraph_an_alert() -> None:
    runbook = (ROOT / "docs" / "runbook.md").read_text(encoding="utf-8")
    anchors = {heading.lower().replace(" ", "-") for heading in re.findall(r"^## (.+)$", runbook, re.MULTILINE)}
    links = {rule["annotations"]["runbook_url"] for rule in rules("alerts.yml")}
    assert {link.removeprefix("docs/runbook.md#") for link in links} == anchors


def test_every_alert_has_a_known_severity_and_a_summary() -> None:
    for rule in rules("alerts.yml"):
        assert rule["labels"]["severity"] in ("critical", "warning", "info"), rule["alert"]
        assert rule["annotations"]["summary"], rule["alert"]


def test_every_query_names_metrics_and_recorded_figures_that_exist() -> None:
    series = {name + suffix for name, metric in documented().items() for suffix in SUFFIXES[metric.kind]}
    known = series | {rule["record"] for rule in rules("recording.yml")}
    for query in [*panel_queries(), *recording_queries(), *alert_queries()]:
        for name in re.findall(r"lean_reward[\w:]+", query.expression):
            assert name in known, f"{query.place}: there is no {name}"


def test_every_recorded_figure_is_used() -> None:
    used = " ".join(query.expression for query in [*panel_queries(), *alert_queries()])
    assert [rule["record"] for rule in rules("recording.yml") if rule["record"] not in used] == []


def test_dashboards_are_what_the_generator_writes(tmp_path: Path) -> None:
    folder = ROOT / "docker" / "grafana"
    shutil.copytree(folder, tmp_path / "grafana", ignore=shutil.ignore_patterns("*.json", "__pycache__"))
    (tmp_path / "grafana" / "dashboards").mkdir(exist_ok=True)
    subprocess.run([sys.executable, str(tmp_path / "grafana" / "generate.py")], check=True, timeout=60)
    written = {path.name: path.read_text() for path in (tmp_path / "grafana" / "dashboards").glob("*.json")}
    assert written == {path.name: path.read_text() for path in DASHBOARDS.glob("*.json")}


@pytest.mark.parametrize("path", sorted(DASHBOARDS.glob("*.json")), ids=lambda path: path.stem)
def test_panels_fit_the_grid_without_overlapping_and_have_their_own_ids(path: Path) -> None:
    panels = json.loads(path.read_text(encoding="utf-8"))["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    taken: set[tuple[int, int]] = set()
    for panel in panels:
        place = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert place["x"] + place["w"] <= 24
        assert not cells & taken, panel["title"]
        taken |= cells


def test_the_first_screen_of_the_overview_shows_health_and_bottleneck() -> None:
    panels = json.loads((DASHBOARDS / "overview.json").read_text(encoding="utf-8"))["panels"]
    first = {panel["title"] for panel in panels if panel["gridPos"]["y"] < 14}
    assert {"Warm Lean engines", "How full each part is", "How long the oldest check has waited"} <= first
