"""Curves as PNG or SVG. Needs the extra `studies` (matplotlib)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path


class PlotError(Exception):
    """A plot cannot be written; the message says why."""


@dataclass(frozen=True, slots=True)
class Curve:
    """One panel: `lines` maps a label to its values over `x`; None leaves a gap."""

    title: str
    x_label: str
    y_label: str
    x: Sequence[float]
    lines: Mapping[str, Sequence[float | None]]


def check_plot(path: Path) -> None:
    """Whether a plot can be written under that name, before the work is done. Raises `PlotError`."""
    if path.suffix.lower() not in (".png", ".svg"):
        raise PlotError(f"{path}: the name of a plot ends in .png or .svg")
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise PlotError("a plot needs matplotlib: install lean-reward[studies]") from None


def write_plot(path: Path, curves: Sequence[Curve]) -> None:
    """Panels side by side; the name's ending, .png or .svg, says the format. Raises `PlotError`."""
    check_plot(path)
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5 * len(curves), 4), layout="constrained")
    for number, curve in enumerate(curves, start=1):
        axes = figure.add_subplot(1, len(curves), number)
        for label, values in curve.lines.items():
            axes.plot(
                curve.x, [float("nan") if v is None else v for v in values], marker="o", markersize=3, label=label
            )
        axes.set_title(curve.title)
        axes.set_xlabel(curve.x_label)
        axes.set_ylabel(curve.y_label)
        axes.set_ylim(bottom=0)
        axes.grid(alpha=0.3)
        if len(curve.lines) > 1:
            axes.legend()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, dpi=150, metadata={"Date": None} if path.suffix.lower() == ".svg" else None)
    except OSError as error:
        raise PlotError(f"cannot write {path}: {error}") from None
