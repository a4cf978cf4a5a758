"""From what was read to the sections of a report. A section appears where there is something for it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from reward_gateway.reports.document import Cell, Document, Section, Table
from reward_gateway.reports.drift import Stretch, by_steps, by_time
from reward_gateway.reports.sources import Sources
from reward_gateway.reports.stages import RULES, betas, pass_rate, penalized, rule_counts, stage_names
from reward_gateway.studies.plots import Curve
from services.contracts.evaluation import EvaluationReport, Measured
from services.contracts.evaluator import Interval
from services.contracts.trajectories import TrajectoryScoreResponse

_INTERVAL = "95% interval"


def make_document(sources: Sources, title: str, stretches: int) -> Document:
    """The report. `stretches`: rows of a drift table at most."""
    sections = [
        *_evaluations(sources.evaluations),
        *_throughput(sources),
        *_drift(sources, stretches),
        *_groups(sources.trajectories),
    ]
    return Document(title, "Made by lean-reward report. A dash: not known.", sections)


def _evaluations(reports: Sequence[EvaluationReport]) -> Iterator[Section]:
    """Tables 3, 4 and 5 of learning-lean-feedback, and its budgeted replay."""
    if not reports:
        return
    rows: list[Sequence[Cell]] = []
    for report in reports:
        for row in report.verdicts:
            low, high = row.accuracy_interval or (None, None)
            scores = (row.f1, row.macro_f1, row.mcc, row.auroc, row.recall, row.false_positive_rate)
            rows.append((report.evaluator, _way(row), report.programs, row.accuracy, _span(low, high), *scores))
    headers = ("evaluator", "verdict of", "programs", "accuracy", _INTERVAL)
    note = (
        "Against Lean's verdicts; intervals by a bootstrap over problems. † threshold selected on validation programs."
    )
    scores_named = ("F1", "macro F1", "MCC", "AUROC", "recall", "false-positive rate")
    yield Section("Verdict prediction", note, Table((*headers, *scores_named), rows))
    for by in ("prover", "benchmark"):
        if any(group.by == by for report in reports for group in report.groups):
            yield _by(reports, by)
    if any(report.feedback for report in reports):
        yield _feedback(reports)
    for report in reports:
        if any(pools.coverage for pools in report.replay):
            yield _replay(report)


def _way(row: Measured) -> str:
    if row.threshold is None:
        return row.name
    return f"{row.name} at {row.threshold:.2f}" + (f" † {row.selected}" if row.selected else "")


def _by(reports: Sequence[EvaluationReport], by: str) -> Section:
    rows: list[Sequence[Cell]] = [
        (report.evaluator, group.name, group.programs, group.valid / group.programs, way, accuracy)
        for report in reports
        for group in report.groups
        if group.by == by
        for way, accuracy in group.accuracy.items()
    ]
    headers = ("evaluator", by, "programs", "valid", "verdict of", "accuracy")
    return Section(f"Accuracy by {by}", f"The accuracy on the programs of each {by}.", Table(headers, rows))


def _feedback(reports: Sequence[EvaluationReport]) -> Section:
    rows: list[Sequence[Cell]] = [
        (
            report.evaluator,
            row.subset,
            row.programs,
            row.block_f1,
            row.anchored_block_f1,
            row.token_f1,
            row.error_agreement,
            row.blocks,
        )
        for report in reports
        for row in report.feedback
    ]
    scores = ("block F1", "anchored block F1", "token F1", "error agreement", "blocks for one of Lean's")
    note = "Predicted traces against Lean's, each program of equal weight."
    return Section("Feedback quality", note, Table(("evaluator", "subset", "programs", *scores), rows))


def _replay(report: EvaluationReport) -> Section:
    rows: list[Sequence[Cell]] = [
        (pools.benchmark, pools.pools_with_valid, row.budget, row.calls, row.random, row.gate, row.cascade)
        for pools in report.replay
        for row in pools.coverage
    ]
    curves = [
        Curve(
            pools.benchmark,
            "Lean checks in each pool",
            "pools with a proof found",
            [row.budget for row in pools.coverage],
            {name: [getattr(row, name) for row in pools.coverage] for name in ("cascade", "gate", "random")},
        )
        for pools in report.replay
        if pools.coverage
    ]
    headers = ("benchmark", "pools with a valid proof", "checks in each", "of all calls", "random", "gate", "cascade")
    note = "The pools in which a valid proof is found when only so many candidates of each are checked."
    return Section(f"Ranking candidates for verification: {report.evaluator}", note, Table(headers, rows), curves)


def _throughput(sources: Sources) -> Iterator[Section]:
    """Table 6: programs a second of evaluators, and of the Lean workers behind recordings."""
    rows: list[Sequence[Cell]] = []
    for report in sources.evaluations:
        if (done := report.throughput) is not None:
            each = done.seconds / done.programs if done.programs else None
            rows.append((report.evaluator, "asked for all at once", done.programs, done.programs_per_s, each))
    for name, recorded in sources.recordings.items():
        rows += _lean_throughput(name, recorded)
    if rows:
        note = (
            "Of a recording, every check that a Lean worker ended, with a verdict, at its limit or in a crash: none "
            "that the verdict cache answered or a cutoff cancelled."
        )
        headers = ("source", "what", "programs", "a second", "seconds each")
        yield Section("Throughput", note, Table(headers, rows))


def _lean_throughput(name: str, rows: Sequence[Mapping[str, Any]]) -> Iterator[Sequence[Cell]]:
    """Each check counts once, in the batch that it ended in."""
    ended: dict[tuple[Any, ...], float] = {}
    open_s: dict[tuple[Any, ...], float] = {}
    for row in rows:
        if row["check_s"] is not None and not row["cached"]:
            batch = (row["received_at"], row["batch"])
            ended[(*batch, row["check"])] = row["check_s"]
            open_s[batch] = row["cutoff_s"]
    if not ended:
        return
    for what, seconds in (
        ("a Lean worker, while it checks", sum(ended.values())),
        ("batches that Lean checked, from receipt to cutoff", sum(open_s.values())),
    ):
        yield name, what, len(ended), len(ended) / seconds if seconds else None, seconds / len(ended)


def _drift(sources: Sources, stretches: int) -> Iterator[Section]:
    """Table 11."""
    for name, rows in sources.recordings.items():
        if any(row["predicted"] is not None for row in rows):
            note = (
                "Each batch is a step. The rates are on candidates with both verdicts by the cutoff: fast checks, "
                "which are no fair sample; the audited labels of lean-reward label export are."
            )
            yield _drifting(f"Drift by step: {name}", note, "steps", by_steps(rows, stretches))
    for name, labels in sources.labels.items():
        found, audited = by_time(labels, stretches)
        note = (
            "Audited programs alone, which are drawn uniformly before anything is checked."
            if audited
            else "No program was audited: these are the checks that ended in time, which are no fair sample."
        )
        yield _drifting(f"Drift over time: {name}", note, "programs, the oldest first", found)


def _drifting(title: str, note: str, step: str, found: Sequence[Stretch]) -> Section:
    rows: list[Sequence[Cell]] = [
        (
            part.name,
            part.candidates,
            part.lean_share,
            part.measured,
            *_rate(part.accuracy),
            *_rate(part.false_positive_rate),
        )
        for part in found
    ]
    headers = (step, "candidates", "Lean share", "measured", "accuracy", _INTERVAL, "false-positive rate", _INTERVAL)
    lines: dict[str, Sequence[float | None]] = {
        "accuracy": [_middle(part.accuracy) for part in found],
        "false-positive rate": [_middle(part.false_positive_rate) for part in found],
    }
    if any(part.lean_share is not None for part in found):
        lines["Lean share"] = [part.lean_share for part in found]
    curve = Curve(title.partition(":")[0], f"stretch ({step})", "share", list(range(1, len(found) + 1)), lines)
    return Section(title, note, Table(headers, rows), [curve] if len(found) > 1 else [])


def _groups(runs: Mapping[str, Sequence[TrajectoryScoreResponse]]) -> Iterator[Section]:
    """Groups, beta by stage and gamma by rule, and how they change from run to run (lean4agenticrl, Table 4)."""
    if not runs:
        return
    rows: list[Sequence[Cell]] = []
    for name, groups in runs.items():
        for group in groups:
            punished, steps = penalized(group.rollouts)
            rows.append(
                (
                    name,
                    group.group,
                    len(group.rollouts),
                    group.pass_rate,
                    "process" if group.process_band else "outcome",
                    betas(group.rollouts).accuracy,
                    steps,
                    punished / steps if steps else None,
                )
            )
    headers = ("run", "group", "rollouts", "pass rate", "rewards", "beta accuracy", "steps", "penalized")
    note = "Process rewards apply where the pass rate is 0 or at least 75%. Beta accuracy: stage visits with beta +1."
    yield Section("Groups", note, Table(headers, rows))
    if len(runs) > 1:
        yield _progress(runs)
    yield _stages(runs)
    yield _rules(runs)


def _progress(runs: Mapping[str, Sequence[TrajectoryScoreResponse]]) -> Section:
    rows: list[Sequence[Cell]] = []
    for name, groups in runs.items():
        rollouts = [rollout for group in groups for rollout in group.rollouts]
        punished, steps = penalized(rollouts)
        rows.append(
            (name, len(groups), pass_rate(groups), betas(rollouts).accuracy, punished / steps if steps else None)
        )
    numbers = [[value if isinstance(value, float) else None for value in column] for column in zip(*rows, strict=True)]
    lines = dict(zip(("pass rate", "beta accuracy", "penalized"), numbers[2:], strict=True))
    curve = Curve("Progress", "run", "share", list(range(1, len(rows) + 1)), lines)
    headers = ("run", "groups", "pass rate", "beta accuracy", "penalized")
    return Section("Progress by run", "Runs in the order in which they were given.", Table(headers, rows), [curve])


def _stages(runs: Mapping[str, Sequence[TrajectoryScoreResponse]]) -> Section:
    rows: list[Sequence[Cell]] = []
    for name, groups in runs.items():
        rollouts = [rollout for group in groups for rollout in group.rollouts]
        for stage in stage_names(groups):
            found = betas(rollouts, stage)
            rows.append((name, stage, found.visits, found.judged, found.accuracy))
    headers = ("run", "general stage", "visits", "with a beta", "beta accuracy")
    return Section("Beta accuracy by stage", "Over the visits that somebody judged.", Table(headers, rows))


def _rules(runs: Mapping[str, Sequence[TrajectoryScoreResponse]]) -> Section:
    rows: list[Sequence[Cell]] = []
    for name, groups in runs.items():
        rollouts = [rollout for group in groups for rollout in group.rollouts]
        steps = sum(step.gamma is not None for rollout in rollouts for step in rollout.steps)
        for count in rule_counts(rollouts):
            share = count.steps / steps if steps else None
            rows.append((name, f"{count.rule} {RULES[count.rule]}", count.steps, share, count.rollouts))
    headers = ("run", "rule", "steps", "of all steps", "rollouts")
    return Section("Gamma by rule", "A step counts for every rule that flags it.", Table(headers, rows))


def _rate(rate: Interval | None) -> tuple[Cell, Cell]:
    return (None, None) if rate is None else (rate.rate, _span(rate.low, rate.high))


def _middle(rate: Interval | None) -> float | None:
    return None if rate is None else rate.rate


def _span(low: float | None, high: float | None) -> str | None:
    return None if low is None or high is None else f"{low:.3f} to {high:.3f}"
