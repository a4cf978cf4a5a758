"""`docs/metrics.md` as data."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
_ROW = re.compile(r"^\| `(lean_reward_\w+)` \| (\w+) \|(.*?)\| (.+) \|$")
_LABEL = re.compile(r"`(\w+)`(?: as `(\w+)`)?")
_VALUES = re.compile(r"^\| `(\w+)` \| (.+) \|$")


@dataclass(frozen=True)
class Documented:
    """One metric of the page. `labels` maps a label's name to the name of its list of values."""

    name: str
    kind: str
    labels: dict[str, str]
    meaning: str


def documented() -> dict[str, Documented]:
    """Every metric of the page by its name, without the suffix of its kind."""
    found = {}
    for line in _page().splitlines():
        if row := _ROW.match(line):
            name, kind, labels, meaning = row.groups()
            pairs = {label or values: values for values, label in _LABEL.findall(labels)}
            assert name not in found, f"{name} stands twice in docs/metrics.md"
            found[name] = Documented(name, kind, pairs, meaning)
    return found


def label_values() -> dict[str, set[str] | None]:
    """The values of each list under "Labels"; None where the page refers to another one instead."""
    found: dict[str, set[str] | None] = {}
    for line in _page().partition("## Labels")[2].splitlines():
        if row := _VALUES.match(line):
            name, text = row.groups()
            closed = text.startswith("`")
            words = re.findall(r"`(\w+)`", re.sub(r"\([^)]*\)", "", text))
            found[name] = set(words) if closed else None
    return found


def _page() -> str:
    return (ROOT / "docs" / "metrics.md").read_text(encoding="utf-8")
