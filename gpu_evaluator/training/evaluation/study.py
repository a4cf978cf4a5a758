"""Everything that is measured of an evaluator, from programs with both verdicts to the report."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from gpu_evaluator.training.evaluation import confusion
from gpu_evaluator.training.evaluation.bootstrap import RESAMPLES, SEED, ClusterBootstrap, interval
from gpu_evaluator.training.evaluation.confusion import Counts, Flags, Numbers
from gpu_evaluator.training.evaluation.feedback_quality import compare_traces
from gpu_evaluator.training.evaluation.programs import Judged
from gpu_evaluator.training.evaluation.ranking import Ranking
from gpu_evaluator.training.evaluation.replay import Replay, make_pools, rank, replay
from gpu_evaluator.training.evaluation.ways import Columns, Way, ways
from services.contracts.evaluation import (
    Coverage,
    EvaluationReport,
    GroupAccuracy,
    Measured,
    PrecisionAt,
    ReplayedPools,
    Throughput,
)
from services.contracts.evaluator import Confusion

ALL = "all"
BUDGETS = (1, 2, 4, 8, 16, 32)


@dataclass(frozen=True, slots=True)
class Options:
    """How to measure. `prevalences`: fractions of valid candidates at which to give the precision."""

    resamples: int = RESAMPLES
    seed: int = SEED
    prevalences: tuple[float, ...] = ()
    budgets: tuple[int, ...] = BUDGETS


@dataclass(frozen=True, slots=True)
class Study:
    """The report, and the curves behind it. `roc`: by name, (false-positive rates, true-positive rates)."""

    report: EvaluationReport
    roc: dict[str, tuple[Numbers, Numbers]]


def measure(
    judged: Sequence[Judged],
    validation: Sequence[Judged],
    options: Options,
    *,
    evaluator: str,
    toolchain: str | None,
    left_out: Mapping[str, int],
    throughput: Throughput | None = None,
    against: tuple[str, Sequence[bool]] | None = None,
) -> Study:
    """Measure `judged`, with thresholds that `validation` selects. Raises `ValueError` where nothing is judged.

    `against`: another evaluator's name and whether it accepts each program; it is measured on the same resamples.
    """
    if not judged:
        raise ValueError("no labelled program has a prediction")
    test = Columns.of(judged)
    found = ways(test, Columns.of(validation) if validation else None)
    if against is not None:
        found.append(Way(against[0], np.array(against[1], dtype=bool)))
    rankings = {way.name: Ranking(test.valid, way.scores) for way in found if way.scores is not None}
    problems = [(j.label.benchmark, j.label.problem) for j in judged]
    traces = compare_traces(judged)
    report = EvaluationReport(
        evaluator=evaluator,
        toolchain=toolchain,
        programs=len(judged),
        valid=int(test.valid.sum()),
        problems=len(set(problems)),
        validation_programs=len(validation),
        left_out=dict(left_out),
        resamples=options.resamples,
        seed=options.seed,
        verdicts=_verdicts(
            found, rankings, test.valid, ClusterBootstrap(problems, options.resamples, options.seed), options
        ),
        groups=tuple(_groups(judged, found, test.valid)),
        feedback=traces.quality,
        source=traces.source,
        acceptance=traces.acceptance,
        replay=tuple(_replays(judged, test, options.budgets)),
        throughput=throughput,
    )
    both = test.valid.any() and not test.valid.all()
    return Study(report, {name: ranking.curve() for name, ranking in rankings.items()} if both else {})


@dataclass(frozen=True, slots=True)
class _Resampled:
    """(resamples, ways) each, NaN where undefined."""

    accuracy: Numbers
    mcc: Numbers
    auroc: dict[str, Numbers]


def _resample(
    found: Sequence[Way], rankings: Mapping[str, Ranking], valid: Flags, draw: ClusterBootstrap
) -> _Resampled:
    """All statistics of all ways on the same resamples, in one pass."""
    cells = draw.sums(np.concatenate([confusion.cells(valid, way.predicted) for way in found], axis=1))

    def statistics(weights: Numbers) -> Numbers:
        counts = Counts(*np.moveaxis((weights @ cells).reshape(len(weights), len(found), 4), -1, 0))
        ranked = [ranking.auroc(weights, draw.cluster)[:, None] for ranking in rankings.values()]
        return np.concatenate([confusion.accuracy(counts), confusion.mcc(counts), *ranked], axis=1)

    values = draw.run(statistics)
    auroc = dict(zip(rankings, values[:, 2 * len(found) :].T, strict=True))
    return _Resampled(values[:, : len(found)], values[:, len(found) : 2 * len(found)], auroc)


def _verdicts(
    found: Sequence[Way], rankings: Mapping[str, Ranking], valid: Flags, draw: ClusterBootstrap, options: Options
) -> tuple[Measured, ...]:
    resampled = _resample(found, rankings, valid, draw)
    rows = []
    first = float(confusion.accuracy(confusion.count(valid, found[0].predicted)))
    for column, way in enumerate(found):
        counts = confusion.count(valid, way.predicted)
        ranking = rankings[way.name] if way.scores is not None else None
        recall, false_positive_rate = confusion.recall(counts), confusion.false_positive_rate(counts)
        accuracy = resampled.accuracy[:, column]
        rows.append(
            Measured(
                name=way.name,
                threshold=way.threshold,
                selected=way.selected,
                confusion=Confusion(**{name: int(value) for name, value in counts._asdict().items()}),
                accuracy=float(confusion.accuracy(counts)),
                accuracy_interval=interval(accuracy),
                accuracy_gain=float(confusion.accuracy(counts)) - first if column else None,
                accuracy_gain_interval=interval(accuracy - resampled.accuracy[:, 0]) if column else None,
                f1=float(confusion.f1(counts)),
                macro_f1=float(confusion.macro_f1(counts)),
                mcc=float(confusion.mcc(counts)),
                mcc_interval=interval(resampled.mcc[:, column]),
                auroc=None if ranking is None else _known(ranking.auroc()),
                auroc_interval=None if ranking is None else interval(resampled.auroc[way.name]),
                recall=_known(recall),
                false_positive_rate=_known(false_positive_rate),
                precision_at=tuple(
                    PrecisionAt(prevalence=p, precision=_known(confusion.precision_at(p, recall, false_positive_rate)))
                    for p in options.prevalences
                ),
            )
        )
    return tuple(rows)


def _groups(judged: Sequence[Judged], found: Sequence[Way], valid: Flags) -> list[GroupAccuracy]:
    """Accuracy by prover and by benchmark, where there are several."""
    rows: list[GroupAccuracy] = []
    sides: tuple[tuple[str, Callable[[Judged], str]], ...] = (
        ("prover", lambda j: j.label.prover),
        ("benchmark", lambda j: j.label.benchmark),
    )
    for by, name_of in sides:
        names = np.array([name_of(j) for j in judged])
        distinct = sorted(set(names.tolist()))
        for name in distinct if len(distinct) > 1 else ():
            here = names == name
            accuracy = {
                _title(way): float(confusion.accuracy(confusion.count(valid[here], way.predicted[here])))
                for way in found
            }
            rows.append(
                GroupAccuracy.model_validate(
                    {
                        "by": by,
                        "name": name,
                        "programs": int(here.sum()),
                        "valid": int(valid[here].sum()),
                        "accuracy": accuracy,
                    }
                )
            )
    return rows


def _replays(judged: Sequence[Judged], test: Columns, budgets: Sequence[int]) -> list[ReplayedPools]:
    """The replay on each benchmark, and on all of them where there are several. It needs the gate's scores."""
    if test.gate is None or not budgets:
        return []
    benchmarks = np.array([j.label.benchmark for j in judged])
    names = sorted(set(benchmarks.tolist()))
    found = [_replay_on(name, benchmarks == name, judged, test, budgets) for name in names]
    if len(names) > 1:
        found.append(_replay_on(ALL, np.ones(len(judged), dtype=bool), judged, test, budgets))
    return found


def _replay_on(
    name: str, here: Flags, judged: Sequence[Judged], test: Columns, budgets: Sequence[int]
) -> ReplayedPools:
    labels = [j.label for j, chosen in zip(judged, here, strict=True) if chosen]
    pools = make_pools([(label.benchmark, label.prover, label.problem) for label in labels])
    gate = test.gate[here] if test.gate is not None else np.zeros(len(labels))
    valid, longest, largest = test.valid[here], max(budgets), max(len(pool) for pool in pools)

    def under(ranking: Numbers) -> Replay:
        return replay(valid, ranking, pools, longest)

    random, by_gate, by_cascade = (
        under(np.zeros(len(labels))),
        under(rank(gate)),
        under(rank(gate, test.accepted[here])),
    )
    return ReplayedPools(
        benchmark=name,
        pools=random.pools,
        pools_with_valid=random.pools_with_valid,
        mean_size=len(labels) / len(pools),
        coverage=tuple(
            Coverage(
                budget=budget,
                calls=float(random.calls[budget - 1]),
                random=float(random.coverage[budget - 1]),
                gate=float(by_gate.coverage[budget - 1]),
                cascade=float(by_cascade.coverage[budget - 1]),
            )
            for before, budget in zip((0, *budgets), budgets, strict=False)
            if random.pools_with_valid and before < largest  # more checks than candidates say nothing new
        ),
    )


def _title(way: Way) -> str:
    return way.name if way.selected is None else f"{way.name} at {way.threshold:.2f}"


def _known(value: Numbers) -> float | None:
    """Null for NaN."""
    return None if np.isnan(value) else float(value)
