"""The report as tables for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.table import Table

from services.contracts.evaluation import EvaluationReport, Interval, Measured


def tables(report: EvaluationReport) -> Iterator[Table]:
    """The tables that the report has something for."""
    yield _verdicts(report)
    if any(row.precision_at for row in report.verdicts):
        yield _precision(report.verdicts)
    if report.groups:
        yield _groups(report)
    if report.feedback:
        yield _feedback(report)
    if any(pools.coverage for pools in report.replay):
        yield _replay(report)


def title(row: Measured) -> str:
    if row.threshold is None:
        return row.name
    text = f"{row.name} at {row.threshold:.2f}"
    return text if row.selected is None else f"{text} † {row.selected}"


def _verdicts(report: EvaluationReport) -> Table:
    selected = ""
    if report.validation_programs:
        selected = f" † threshold selected on {report.validation_programs} validation programs."
    table = Table(
        title=f"Verdicts of {report.evaluator}: {report.programs} programs, {report.valid} valid, "
        f"{report.problems} problems",
        caption=f"Intervals: 95%, {report.resamples} resamples of problems, seed {report.seed}.{selected}",
    )
    table.add_column("verdict of")
    for name in ("accuracy", "95%", "gain, 95%", "F1", "macro F1", "MCC", "AUROC", "TPR", "FPR"):
        table.add_column(name, justify="right", no_wrap=True)
    for row in report.verdicts:
        table.add_row(
            title(row),
            _number(row.accuracy),
            _interval(row.accuracy_interval),
            _interval(row.accuracy_gain_interval, sign=True),
            _number(row.f1),
            _number(row.macro_f1),
            _number(row.mcc),
            _number(row.auroc),
            _number(row.recall),
            _number(row.false_positive_rate),
        )
    return table


def _precision(rows: Sequence[Measured]) -> Table:
    table = Table(title="Precision where so many candidates are valid")
    table.add_column("verdict of")
    for each in rows[0].precision_at:
        table.add_column(f"{each.prevalence:g}", justify="right")
    for row in rows:
        table.add_row(title(row), *(_number(each.precision) for each in row.precision_at))
    return table


def _groups(report: EvaluationReport) -> Table:
    table = Table(title="Accuracy by prover and by benchmark")
    for name in ("by", "name"):
        table.add_column(name)
    ways = list(report.groups[0].accuracy)
    for name in ("programs", "valid", *ways):
        table.add_column(name, justify="right")
    for row in report.groups:
        share = f"{row.valid / row.programs:.1%}"
        table.add_row(row.by, row.name, str(row.programs), share, *(_number(row.accuracy[way]) for way in ways))
    return table


def _feedback(report: EvaluationReport) -> Table:
    table = Table(title="Feedback quality", caption=_about_traces(report))
    table.add_column("programs")
    for name in ("n", "block F1", "anchored F1", "token F1", "error agreement", "blocks"):
        table.add_column(name, justify="right")
    for row in report.feedback:
        scores = (row.block_f1, row.anchored_block_f1, row.token_f1, row.error_agreement)
        blocks = "-" if row.blocks is None else f"{row.blocks:.2f}×"
        table.add_row(row.subset, str(row.programs), *map(_number, scores), blocks)
    return table


def _about_traces(report: EvaluationReport) -> str | None:
    parts = []
    if (source := report.source) is not None:
        parts.append(f"Source copied: {source.full} whole, {source.prefix} a prefix, {source.other} otherwise.")
    if (found := report.acceptance) is not None:
        parts.append(
            f"Annotated invalid programs: {found.predicted_error} with a predicted error, "
            f"{found.rejected_otherwise} rejected otherwise, {found.accepted} accepted."
        )
    return " ".join(parts) or None


def _replay(report: EvaluationReport) -> Table:
    table = Table(title="Pools with a valid proof found, by Lean checks in each")
    for name in ("benchmark", "pools", "checks", "calls", "random", "gate", "cascade"):
        table.add_column(name, justify="left" if name == "benchmark" else "right")
    for pools in report.replay:
        for number, row in enumerate(pools.coverage):
            head = (pools.benchmark, f"{pools.pools_with_valid}/{pools.pools}") if number == 0 else ("", "")
            shares = (f"{share:.1%}" for share in (row.calls, row.random, row.gate, row.cascade))
            table.add_row(*head, str(row.budget), *shares, end_section=number == len(pools.coverage) - 1)
    return table


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def _interval(interval: Interval | None, *, sign: bool = False) -> str:
    if interval is None:
        return "-"
    low, high = interval
    return f"{low:+.3f} to {high:+.3f}" if sign else f"{low:.3f}–{high:.3f}"
