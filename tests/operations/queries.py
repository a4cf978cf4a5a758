"""Every PromQL query that the repository ships: panels of the dashboards and rules of Prometheus."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[2]
RULES = ROOT / "docker" / "prometheus" / "rules"
DASHBOARDS = ROOT / "docker" / "grafana" / "dashboards"
_COMPARISON = re.compile(r"^(.+?)\s*(<|>)\s*([\d.]+)$", re.DOTALL)


@dataclass(frozen=True)
class Query:
    """A query, and where it stands."""

    place: str
    expression: str


def rules(name: str) -> list[dict[str, Any]]:
    """The rules of a file of `docker/prometheus/rules`."""
    groups = yaml.safe_load((RULES / name).read_text(encoding="utf-8"))["groups"]
    return [rule for group in groups for rule in group["rules"]]


def panel_queries() -> list[Query]:
    """The queries of all panels, Grafana's interval as it would be at a scrape interval of one second."""
    found = []
    for path in sorted(DASHBOARDS.glob("*.json")):
        for panel in json.loads(path.read_text(encoding="utf-8"))["panels"]:
            for target in panel.get("targets", []):
                expression = target["expr"].replace("$__rate_interval", "30s")
                found.append(Query(f"{path.stem}: {panel['title']}", expression))
    return found


def recording_queries() -> list[Query]:
    return [Query(rule["record"], rule["expr"]) for rule in rules("recording.yml")]


def alert_queries() -> list[Query]:
    """What each alert compares with its limit: an alert's own expression has series only while it fires."""
    found = []
    for rule in rules("alerts.yml"):
        comparison = _COMPARISON.match(rule["expr"])
        assert comparison, f"{rule['alert']} does not compare a figure with a number"
        found.append(Query(rule["alert"], comparison.group(1)))
    return found
