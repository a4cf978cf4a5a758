"""Reports and plans as tables and bars for a person at a terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table

from reward_gateway.studies.compare import TOLERANCE, WHY, Compared, Mechanism
from reward_gateway.studies.plan import Demand, Gpus, Point
from reward_gateway.studies.replay import Options
from reward_gateway.studies.report import Report

_BAR = 40


def print_report(console: Console, mix: Mapping[str, Any], options: Options, report: Report) -> None:
    """A replay."""
    console.print(
        f"{mix['name']}: {mix['candidates']:,} candidates in {mix['batches']:,} batches, {mix['labelled']:,} with "
        f"Lean's full verdict, {mix['cancelled']:,} cancelled in the recording"
    )
    console.print(
        f"{options.workers:,} workers, checks limited to {options.timeout_s:g} s and {options.overhead_s:.3g} s of "
        f"overhead each, scheduled by `{options.policy.value}`"
    )
    table = Table(show_header=False, box=None)
    for name, value in (
        ("decided by Lean", _share(report.lean_share)),
        ("by the evaluator", _share(report.evaluator_share)),
        ("by the precheck", _share(report.precheck_share)),
        ("by nobody", _share(report.unknown_share)),
        ("agreement with Lean's full verdicts", f"{_share(report.agreement)} of {report.labelled:,}"),
        ("false positives, false negatives", f"{report.false_positives:,}, {report.false_negatives:,}"),
        ("wrong rewards", f"{_share(report.wrong_share)} of these"),
        ("evaluator alone: accuracy", _share(report.evaluator_accuracy)),
        (
            "evaluator alone: true, false positive rate",
            f"{_share(report.evaluator_true_positive)}, {_share(report.evaluator_false_positive)}",
        ),
        ("checks that ran into their limit", f"{report.timeouts:,} ({_share(report.timeout_share)} of those asked)"),
        ("rewards withheld for it", f"{report.withheld:,}, {report.withheld_valid:,} of them known to be valid"),
        ("batch scored after", f"{report.scoring_s:.1f} s on average, {report.scoring_longest_s:.1f} s at most"),
        ("training step (eq. 9)", f"{report.step_s:.0f} s"),
        ("Lean workers a step", f"{report.lean_busy_h:.2f} h working, {report.lean_pool_h:.2f} h reserved"),
        ("GPUs a step", f"{report.step_gpu_h:.2f} h, {report.evaluator_gpu_h:.2f} h of them the evaluator's"),
    ):
        table.add_row(name, value)
    console.print(table)


def print_comparison(console: Console, found: Mapping[Mechanism, Sequence[Compared]]) -> None:
    """The paper and the replay side by side, a column for each mechanism."""
    table = Table(title="learning-lean-feedback and its replay on a synthetic cohort")
    table.add_column("relation")
    table.add_column("where")
    table.add_column("paper", justify="right")
    for mechanism in found:
        table.add_column(f"{mechanism.value} pool", justify="right")
        table.add_column("off by", justify="right")
    first = next(iter(found.values()))
    for row, relation in enumerate(compared.relation for compared in first):
        cells = [relation.text, relation.where, _number(relation.value)]
        for rows in found.values():
            one = rows[row]
            cells += [_number(one.replayed), f"{one.deviation:+.1%}{'' if one.holds else ' does not hold'}"]
        table.add_row(*cells)
    console.print(table)
    for mechanism, rows in found.items():
        failed = [one.relation.text for one in rows if not one.holds]
        verdict = f"these do not hold: {'; '.join(failed)}" if failed else "all relations hold"
        console.print(f"{mechanism.value} pool, within {TOLERANCE:.0%}: {verdict}.")
    if not all(one.holds for rows in found.values() for one in rows):
        console.print(WHY)


def print_plan(console: Console, demand: Demand, gpus: Gpus | None, point: Point) -> None:
    """The fleet that reaches the goal."""
    console.print(
        f"{demand.trainers} trainers, {demand.batch:,} candidates every {demand.every_s:g} s each, rewards after "
        f"{demand.deadline_s:g} s, checks limited to {demand.timeout_s:g} s and {demand.overhead_s:.3g} s of overhead "
        f"each, scheduled by `{demand.policy.value}`"
    )
    table = Table(show_header=False, box=None)
    rows = [
        ("Lean workers (cores)", f"{point.workers:,}, busy {_share(point.busy)} of the time"),
        ("Lean share", f"{_share(point.lean_share)} ± {_share(1.96 * point.lean_share_error)}, by how batches differ"),
        (
            "agreement with Lean's full verdicts",
            f"{_share(point.agreement)}, {_share(point.wrong_share)} wrong rewards",
        ),
        ("no verdict", f"{_share(point.unknown_share)} of all candidates"),
        ("cost", f"{point.cost_hour:,.2f} an hour, of the workers and of the GPUs at worst"),
    ]
    if gpus is not None:
        rows.insert(
            1,
            (
                "GPUs of the evaluator",
                f"{gpus.fleet} at worst, {gpus.load:.1f} on average; {gpus.batch} a batch for {gpus.ready_s:.0f} s",
            ),
        )
    for name, value in rows:
        table.add_row(name, value)
    console.print(table)


def print_curve(
    console: Console, title: str, points: Sequence[tuple[str, float | None]], highest: float | None = None
) -> None:
    """A bar for each point; the longest is `highest`, or the largest value."""
    known = [value for _, value in points if value is not None]
    top = highest or max(known, default=0.0) or 1.0
    table = Table(title=title, show_header=False, box=None, title_justify="left")
    for name, value in points:
        length = 0 if value is None else round(_BAR * min(value / top, 1.0))
        table.add_row(name, _share(value), "█" * length)
    console.print(table)


def _share(value: float | None) -> str:
    return "not known" if value is None else f"{value:.1%}"


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 10 else f"{value:.3f}"
