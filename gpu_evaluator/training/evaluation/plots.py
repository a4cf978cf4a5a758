"""ROC and budget curves as one PNG or SVG. Needs the extra `studies`."""

from __future__ import annotations

from pathlib import Path

from matplotlib.figure import Figure

from gpu_evaluator.training.evaluation.study import Study


def plot(study: Study, path: Path) -> None:
    """Draw what the study has curves for; the suffix says the format. Raises `OSError`."""
    pools = [part for part in study.report.replay if part.coverage]
    figure = Figure(figsize=(5.0 * (1 + len(pools)), 4.2), layout="constrained")
    roc, *others = figure.subplots(1, 1 + len(pools), squeeze=False)[0]
    for name, (false_positive, true_positive) in study.roc.items():
        roc.plot(false_positive, true_positive, label=name)
    for row in study.report.verdicts:
        if row.recall is not None and row.false_positive_rate is not None:
            label = row.name if row.threshold is None else f"{row.name} at {row.threshold:.2f}"
            roc.plot([row.false_positive_rate], [row.recall], "o", label=label)
    roc.plot([0, 1], [0, 1], ":", color="gray")
    roc.set(xlabel="false-positive rate", ylabel="true-positive rate", title=study.report.evaluator)
    for axes, part in zip(others, pools, strict=True):
        budgets = [row.budget for row in part.coverage]
        for name in ("cascade", "gate", "random"):
            axes.plot(budgets, [getattr(row, name) for row in part.coverage], "o-", label=name)
        axes.set_xscale("log", base=2)
        axes.set(xlabel="Lean checks in each pool", ylabel="pools with a proof found", title=part.benchmark)
    for axes in (roc, *others):
        if axes.get_legend_handles_labels()[0]:  # no curve without both classes
            axes.legend()
        axes.grid(alpha=0.3)
    figure.savefig(path)
