"""`lean-reward replay` and `lean-reward plan`."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import typer

from reward_gateway.scheduling.policies import SchedulingPolicy

if TYPE_CHECKING:
    from reward_gateway.studies.cohort import Cohort, Predictions
    from reward_gateway.studies.plan import Planner, Point
    from reward_gateway.studies.report import Report

app = typer.Typer()

_CUTOFFS = (5.0, 15.0, 30.0, 45.0, 60.0, 75.0, 90.0, 120.0, 180.0, 240.0, 360.0, 480.0, 600.0)
_DEADLINES = (0.125, 0.25, 0.375, 0.5, 0.625, 0.75, 0.875, 1.0)
_FLEETS = (0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 4.0)
_LEAST_S, _MOST, _MOST_COUNTED = 0.001, 1e9, 1_000_000
_TRUE_POSITIVE, _FALSE_POSITIVE, _EVALUATOR_S = 0.851, 0.116, 90.0
_SYNTHETIC = ("true_positive", "false_positive", "evaluator_seconds")
_PREDICTING = ("gpus", "evaluator_fixed", "evaluator_candidate", "gpu_price")
_PAPER = ("paper", "seed", "as_json")


class Evaluator(str, Enum):
    """Whose predictions fill in for Lean: those of the cohort, drawn ones of given rates, or none."""

    RECORDED = "recorded"
    SYNTHETIC = "synthetic"
    NONE = "none"


def _cutoff(text: str) -> float | str:
    if text in ("evaluator", "all"):
        return text
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not 0 < seconds <= _MOST:
        raise typer.BadParameter(f"{text!r} is neither seconds above 0, nor `evaluator`, nor `all`")
    return seconds


def _no_nan(value: float | None) -> float | None:
    if value is not None and math.isnan(value):
        raise typer.BadParameter("nan is no number")
    return value


def _number(default: float | None, text: str, *, least: float = 0.0, most: float = _MOST) -> Any:
    """An option that is a finite number."""
    return typer.Option(default, min=least, max=most, callback=_no_nan, help=text)


def _count(default: int | None, text: str, *, least: int = 1) -> Any:
    return typer.Option(default, min=least, max=_MOST_COUNTED, help=text)


@app.command("replay")
def replay_command(
    context: typer.Context,
    cohort: Path = typer.Argument(None, help="A recorded cohort, a file or a folder; default: a synthetic one."),
    paper: bool = typer.Option(False, "--paper", help="Print the numbers of learning-lean-feedback beside a replay's."),
    cutoff: str = typer.Option(
        None, metavar="SECONDS|evaluator|all", help="Default: when the evaluator is done; without one, all of Lean."
    ),
    workers: int = _count(None, "Lean workers; default: as recorded, 64 for the synthetic cohort."),
    timeout: float = _number(
        None, "Limit of a check, seconds; default: as recorded, 60 for the synthetic cohort.", least=_LEAST_S
    ),
    scheduling: SchedulingPolicy = typer.Option(SchedulingPolicy.FIFO, help="Which checks run first."),
    evaluator: Evaluator = typer.Option(None, help="Default: recorded where there is one, else none."),
    true_positive: float = _number(
        _TRUE_POSITIVE, "Of the synthetic evaluator: accepted of what Lean accepts.", most=1
    ),
    false_positive: float = _number(
        _FALSE_POSITIVE, "Of the synthetic evaluator: accepted of what Lean rejects.", most=1
    ),
    evaluator_seconds: float = _number(_EVALUATOR_S, "When the synthetic evaluator is done.", least=_LEAST_S),
    cores: float = _number(None, "Cores that the workers share; default: one each.", least=_LEAST_S),
    overhead: float = _number(None, "Seconds of a worker a check beside its own; default: as recorded."),
    shared: bool = typer.Option(False, help="One pool for all batches, which come as recorded; default: one each."),
    rest: float = _number(630.0, "The rest of a training step, seconds."),
    gpus: int = _count(8, "GPUs of a training step, which wait while its batch is scored.", least=0),
    seed: int = typer.Option(0, min=0, help="Of everything that is drawn at random."),
    plot: Path = typer.Option(None, help="Write Lean share and wrong rewards over the cutoff, .png or .svg."),
    as_json: bool = typer.Option(False, "--json", help="Print JSON and no table."),
) -> None:
    """Score recorded batches again with another cutoff, pool, limit, scheduling or evaluator.

    Exit status: 2 when the cohort or an option cannot be used.
    """
    from dataclasses import replace

    import numpy as np
    from rich.console import Console

    from reward_gateway.studies.evaluators import Rates, synthetic_predictions
    from reward_gateway.studies.plots import Curve, check_plot, write_plot
    from reward_gateway.studies.recorded import mix, timeout_s
    from reward_gateway.studies.replay import Options, replay
    from reward_gateway.studies.report import make_report
    from reward_gateway.studies.show import print_curve, print_report

    with _told("replay"):
        if plot is not None:
            check_plot(plot)
        if paper:
            _refuse(context, "--paper is about the synthetic cohort", [n for n in context.params if n not in _PAPER])
            _print_paper(seed, as_json)
            return
        if evaluator is not Evaluator.SYNTHETIC:
            _refuse(context, "only --evaluator synthetic has such rates and times", _SYNTHETIC)
        rng = np.random.default_rng(seed)
        known = _cohort(cohort, rng)
        head = mix(known)
        costs_s = _overhead_s("replay", known, overhead, is_recorded=cohort is not None)
        whole = known.without_gaps(rng)
        said = _predictions(
            known,
            evaluator,
            lambda: synthetic_predictions(whole, Rates(true_positive, false_positive), evaluator_seconds, rng),
        )
        ends = _cutoff(cutoff) if cutoff is not None else "all" if said is None else "evaluator"
        options = Options(
            workers=workers or max(1, int(known.engines.max())),
            timeout_s=timeout or timeout_s(known),
            cutoff_s=ends if isinstance(ends, float) else math.inf,
            at_evaluators_end=ends == "evaluator",
            policy=scheduling,
            overhead_s=costs_s,
            cores=cores,
        )
        arrival_s = whole.arrival_s if shared else None

        def report(chosen: Options) -> Report:
            came = replay(whole, chosen, said, arrival_s)
            return make_report(whole, chosen, said, came, rest_s=rest, gpus=gpus)

        found = report(options)
        last = max(found.scoring_longest_s, 1e-3)
        cutoffs = [c for c in _CUTOFFS if c < last] + [last]
        curve = [report(replace(options, cutoff_s=c, at_evaluators_end=False)) for c in cutoffs]
        if plot is not None:
            lines: dict[str, list[float | None]] = {
                "Lean share": [*(one.lean_share for one in curve)],
                "agreement, of those fully checked": [one.agreement for one in curve],
                "wrong rewards, of those fully checked": [one.wrong_share for one in curve],
            }
            write_plot(plot, [Curve(f"{found.workers} workers", "cutoff, s", "part", cutoffs, lines)])
        if as_json:
            points = [
                {"cutoff_s": c, "lean_share": r.lean_share, "agreement": r.agreement, "wrong_share": r.wrong_share}
                for c, r in zip(cutoffs, curve, strict=True)
            ]
            _print_json({"cohort": head, "overhead_s": costs_s, "report": found.as_json(), "curve": points})
            return
        console = _console(Console)
        print_report(console, head, options, found)
        print_curve(
            console,
            "Lean share by the cutoff",
            [(f"{c:.0f} s", r.lean_share) for c, r in zip(cutoffs, curve, strict=True)],
            1.0,
        )


@app.command("plan")
def plan_command(
    context: typer.Context,
    cohort: Path = typer.Option(None, help="A recorded cohort, a file or a folder; default: a synthetic one."),
    batch: int = _count(1024, "Candidates in a batch."),
    every: float = _number(720.0, "A trainer's step, seconds.", least=_LEAST_S),
    trainers: int = _count(1, "Trainers that share the pool."),
    deadline: float = _number(90.0, "The cutoff of a batch, seconds.", least=_LEAST_S),
    timeout: float = _number(
        None, "Limit of a check, seconds; default: as recorded, 60 for the synthetic cohort.", least=_LEAST_S
    ),
    lean_share: float = _number(None, "Part that Lean is to decide; 0.43 without any goal.", most=1),
    wrong_rewards: float = _number(
        None, "Most wrong or withheld rewards, as part of the candidates whose full Lean verdict is known.", most=1
    ),
    scheduling: SchedulingPolicy = typer.Option(SchedulingPolicy.FIFO, help="Which checks run first."),
    evaluator: Evaluator = typer.Option(None, help="Default: recorded where there is one, else none."),
    true_positive: float = _number(
        _TRUE_POSITIVE, "Of the synthetic evaluator: accepted of what Lean accepts.", most=1
    ),
    false_positive: float = _number(
        _FALSE_POSITIVE, "Of the synthetic evaluator: accepted of what Lean rejects.", most=1
    ),
    gpus: int = _count(0, "GPUs on one batch; 0: as many as the deadline needs.", least=0),
    evaluator_fixed: float = _number(None, "Seconds of a batch on any number of GPUs; default: 54.7."),
    evaluator_candidate: float = _number(None, "GPU seconds of a candidate; default: 0.276."),
    overhead: float = _number(None, "Seconds of a worker a check beside its own; default: as recorded."),
    core_price: float = _number(0.04, "Price of a Lean worker's core, an hour."),
    gpu_price: float = _number(2.5, "Price of a GPU, an hour."),
    seed: int = typer.Option(0, min=0, help="Of everything that is drawn at random."),
    plot: Path = typer.Option(None, help="Write the curves, .png or .svg."),
    as_json: bool = typer.Option(False, "--json", help="Print JSON and no table."),
) -> None:
    """How many Lean workers and GPUs a fleet of trainers needs.

    Exit status: 1 when no number of them reaches the goal; 2 when the cohort or an option cannot be used.
    """
    from dataclasses import replace

    import numpy as np
    from rich.console import Console

    from reward_gateway.studies import paper
    from reward_gateway.studies.evaluators import Rates
    from reward_gateway.studies.plan import Demand, Planner, Unreachable
    from reward_gateway.studies.plots import check_plot
    from reward_gateway.studies.recorded import mix, timeout_s
    from reward_gateway.studies.show import print_plan

    with _told("plan"):
        if plot is not None:
            check_plot(plot)
        if evaluator is not Evaluator.SYNTHETIC:
            _refuse(context, "only --evaluator synthetic has such rates", _SYNTHETIC)
        known = _cohort(cohort, np.random.default_rng(seed))
        cost = paper.CASCADE_COST
        if evaluator_fixed is not None:
            cost = replace(cost, fixed_s=evaluator_fixed)
        if evaluator_candidate is not None:
            cost = replace(cost, candidate_s=evaluator_candidate)
        said = _predictions(known, evaluator, lambda: None)
        demand = Demand(
            batch=batch,
            every_s=every,
            trainers=trainers,
            deadline_s=deadline,
            timeout_s=timeout or timeout_s(known),
            cost=cost,
            rates=Rates(true_positive, false_positive) if evaluator is Evaluator.SYNTHETIC else None,
            policy=scheduling,
            gpus=gpus,
            overhead_s=_overhead_s("plan", known, overhead, is_recorded=cohort is not None),
            core_price=core_price,
            gpu_price=gpu_price,
        )
        goal = 0.43 if lean_share is None and wrong_rewards is None else lean_share
        try:
            planner = Planner(replace(known, predictions=said), demand, seed)
            if not planner.predicts:
                _refuse(context, "no evaluator predicts here", _PREDICTING)
            point = planner.fewest(lean_share=goal, wrong_share=wrong_rewards)
        except Unreachable as unreachable:
            typer.echo(f"lean-reward plan: {unreachable}", err=True)
            raise typer.Exit(1) from None
        fleets = planner.over_workers(sorted({max(1, round(point.workers * part)) for part in _FLEETS}))
        deadlines = planner.over_deadlines(point.workers, [deadline * part for part in _DEADLINES])
        if plot is not None:
            _plot_plan(plot, point, fleets, deadlines)
        if as_json:
            _print_json(
                {
                    "cohort": mix(known),
                    "overhead_s": demand.overhead_s,
                    "timeout_s": demand.timeout_s,
                    "gpus": None if planner.gpus is None else _fields(planner.gpus),
                    "fleet": point.as_json(),
                    "by_workers": [one.as_json() for one in fleets],
                    "by_deadline": [one.as_json() for one in deadlines],
                }
            )
            return
        console = _console(Console)
        print_plan(console, demand, planner.gpus, point)
        _print_curves(console, planner, fleets, deadlines)


def _print_curves(console: Any, planner: Planner, fleets: list[Point], deadlines: list[Point]) -> None:
    from reward_gateway.studies.show import print_curve

    print_curve(
        console, "Lean share by the deadline", [(f"{p.deadline_s:.0f} s", p.lean_share) for p in deadlines], 1.0
    )
    print_curve(console, "Lean share by the workers", [(f"{p.workers:,}", p.lean_share) for p in fleets], 1.0)
    if planner.predicts:
        costs = [(f"{p.cost_hour:,.2f} an hour", p.wrong_share) for p in fleets]
        print_curve(console, "Wrong rewards, of those fully checked, by the cost", costs)


def _plot_plan(path: Path, point: Point, fleets: list[Point], deadlines: list[Point]) -> None:
    from reward_gateway.studies.plots import Curve, write_plot

    share = "Lean share"
    by_deadline = {share: [p.lean_share for p in deadlines]}
    by_workers = {share: [p.lean_share for p in fleets]}
    wrong = {"wrong rewards": [p.wrong_share for p in fleets]}
    write_plot(
        path,
        [
            Curve(f"{point.workers:,} workers", "deadline, s", share, [p.deadline_s for p in deadlines], by_deadline),
            Curve("Fleets", "Lean workers", share, [float(p.workers) for p in fleets], by_workers),
            Curve("Fleets", "cost an hour", "wrong rewards", [p.cost_hour for p in fleets], wrong),
        ],
    )


def _print_paper(seed: int, as_json: bool) -> None:
    import numpy as np
    from rich.console import Console

    from reward_gateway.studies import compare
    from reward_gateway.studies.show import print_comparison

    known = compare.paper_cohort(np.random.default_rng(seed))
    found = {mechanism: compare.compare(known, mechanism) for mechanism in compare.Mechanism}
    if as_json:
        _print_json([compare.as_json(rows, mechanism) for mechanism, rows in found.items()])
    else:
        print_comparison(_console(Console), found)


def _cohort(path: Path | None, rng: Any) -> Cohort:
    from reward_gateway.studies.compare import paper_cohort
    from reward_gateway.studies.recorded import read_cohort

    return paper_cohort(rng) if path is None else read_cohort(path)


def _predictions(
    cohort: Cohort, chosen: Evaluator | None, draw: Callable[[], Predictions | None]
) -> Predictions | None:
    """Raises `CohortError`: the recorded predictions are asked for, and there are none."""
    from reward_gateway.studies.cohort import CohortError

    if chosen is Evaluator.SYNTHETIC:
        return draw()
    if chosen is Evaluator.RECORDED and cohort.predictions is None:
        raise CohortError(f"{cohort.name} holds no predictions")
    return None if chosen is Evaluator.NONE else cohort.predictions


def _refuse(context: typer.Context, why: str, options: Iterable[str]) -> None:
    """Raises `typer.BadParameter` where one of these parameters was given, which would have no effect."""
    sources = {name: context.get_parameter_source(name) for name in options}
    given = [name for name, source in sources.items() if source is not None and source.name == "COMMANDLINE"]
    named = [
        p.opts[0] if p.opts[0].startswith("-") else p.opts[0].upper() for p in context.command.params if p.name in given
    ]
    if named:
        raise typer.BadParameter(f"{why}: leave out {', '.join(named)}")


def _overhead_s(command: str, cohort: Cohort, given: float | None, *, is_recorded: bool) -> float:
    from reward_gateway.studies.recorded import overhead_s

    if given is not None or not is_recorded:
        return given or 0.0
    found = overhead_s(cohort)
    if found is None:
        typer.echo(
            f"lean-reward {command}: {cohort.name} does not tell what a check costs a worker beside its own time: no "
            "batch, together with those that overlap with it, ran all its checks to their end and had twice as many as "
            "engines. It is taken to be 0; say it with --overhead.",
            err=True,
        )
    return found or 0.0


@contextmanager
def _told(command: str) -> Iterator[None]:
    """What the caller is told when a cohort or an option cannot be used."""
    from reward_gateway.studies.cohort import CohortError
    from reward_gateway.studies.plots import PlotError

    try:
        yield
    except (CohortError, PlotError, ValueError, OverflowError) as error:
        _fail(command, error)


def _fail(command: str, error: Exception) -> NoReturn:
    typer.echo(f"lean-reward {command}: {error}", err=True)
    raise typer.Exit(2) from None


def _print_json(value: Any) -> None:
    typer.echo(json.dumps(value, indent=1, allow_nan=False))


def _console(make: Any) -> Any:
    """As wide as the terminal, or wide enough for every row where there is none."""
    console = make()
    return console if console.is_terminal else make(width=160)


def _fields(value: Any) -> dict[str, Any]:
    from dataclasses import asdict

    return asdict(value)
