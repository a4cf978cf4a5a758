"""The few kinds of panels that the dashboards are made of, and their layout on Grafana's grid of 24 columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

_COLUMNS = 24
_SOURCE = {"type": "prometheus", "uid": "${datasource}"}
_LINK_TAG = "lean-reward"


@dataclass(frozen=True)
class Panel:
    """One panel: its queries as (PromQL, legend) pairs, and how it is drawn. `limits`: where green turns amber, red."""

    title: str
    queries: Sequence[tuple[str, str]]
    unit: str = "short"
    kind: str = "timeseries"
    width: int = 8
    height: int = 7
    about: str = ""
    limits: tuple[float, float] | None = None
    rising: bool = True  # more is worse
    stacked: bool = False
    top: float | None = None

    def json(self, number: int, x: int, y: int) -> dict[str, Any]:
        custom: dict[str, Any] = {"fillOpacity": 25 if self.stacked else 8, "showPoints": "never", "lineWidth": 1}
        if self.stacked:
            custom["stacking"] = {"mode": "normal", "group": "A"}
        defaults: dict[str, Any] = {"unit": self.unit, "min": 0, "thresholds": self._thresholds()}
        if self.kind == "timeseries":
            defaults["custom"] = custom
        else:
            defaults["color"] = {"mode": "thresholds"}
        if self.top is not None:
            defaults["max"] = self.top
        return {
            "id": number,
            "title": self.title,
            "description": self.about,
            "type": self.kind,
            "datasource": _SOURCE,
            "gridPos": {"x": x, "y": y, "w": self.width, "h": self.height},
            "targets": [
                {
                    "refId": chr(ord("A") + index),
                    "datasource": _SOURCE,
                    "expr": expression,
                    "legendFormat": legend or "__auto",
                    "instant": self.kind in ("stat", "bargauge"),
                    "range": self.kind not in ("stat", "bargauge"),
                    "format": "heatmap" if self.kind == "heatmap" else "time_series",
                }
                for index, (expression, legend) in enumerate(self.queries)
            ],
            "fieldConfig": {"defaults": defaults, "overrides": []},
            "options": _OPTIONS[self.kind],
        }

    def _thresholds(self) -> dict[str, Any]:
        good, bad = ("green", "red") if self.rising else ("red", "green")
        steps: list[dict[str, Any]] = [{"color": good if self.limits else "blue", "value": None}]
        if self.limits:
            steps += [{"color": "orange", "value": self.limits[0]}, {"color": bad, "value": self.limits[1]}]
        return {"mode": "absolute", "steps": steps}


_OPTIONS: dict[str, dict[str, Any]] = {
    "timeseries": {
        "legend": {"displayMode": "list", "placement": "bottom", "showLegend": True},
        "tooltip": {"mode": "multi", "sort": "desc"},
    },
    "stat": {
        "reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": False},
        "colorMode": "background",
        "graphMode": "none",
        "textMode": "value_and_name",
    },
    "bargauge": {
        "reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": False},
        "orientation": "horizontal",
        "displayMode": "gradient",
        "showUnfilled": True,
    },
    "heatmap": {"calculate": False, "yAxis": {"unit": "percentunit"}, "color": {"mode": "scheme", "scheme": "Blues"}},
}


@dataclass(frozen=True)
class Row:
    """A headed row of panels, which wraps when it is full."""

    title: str
    panels: Sequence[Panel] = field(default_factory=list)


def dashboard(uid: str, title: str, about: str, rows: Sequence[Row]) -> dict[str, Any]:
    """The JSON that Grafana provisions. The same input gives the same JSON."""
    panels: list[dict[str, Any]] = []
    y = 0
    for row in rows:
        panels.append(
            {
                "id": len(panels) + 1,
                "type": "row",
                "title": row.title,
                "collapsed": False,
                "panels": [],
                "gridPos": {"x": 0, "y": y, "w": _COLUMNS, "h": 1},
            }
        )
        y += 1
        x = tallest = 0
        for panel in row.panels:
            if x + panel.width > _COLUMNS:
                x, y, tallest = 0, y + tallest, 0
            panels.append(panel.json(len(panels) + 1, x, y))
            x, tallest = x + panel.width, max(tallest, panel.height)
        y += tallest
    return {
        "uid": uid,
        "title": title,
        "description": about,
        "tags": [_LINK_TAG],
        "schemaVersion": 39,
        "version": 1,
        "editable": False,
        "graphTooltip": 1,
        "refresh": "10s",
        "time": {"from": "now-1h", "to": "now"},
        "timezone": "browser",
        "templating": {
            "list": [{"name": "datasource", "label": "Prometheus", "type": "datasource", "query": "prometheus"}]
        },
        "links": [
            {"type": "dashboards", "title": "lean-reward", "tags": [_LINK_TAG], "asDropdown": True, "keepTime": True}
        ],
        "annotations": {"list": []},
        "panels": panels,
    }
