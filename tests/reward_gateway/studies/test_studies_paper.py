"""The synthetic cohort against the paper's numbers, and the comparison that is printed."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from reward_gateway.studies import paper, plan
from reward_gateway.studies.cohort import CohortError
from reward_gateway.studies.commands import app
from reward_gateway.studies.compare import Mechanism, compare, paper_cohort
from reward_gateway.studies.files import write_rows
from reward_gateway.studies.plan import Demand, Planner, Unreachable
from reward_gateway.studies.schema import COLUMNS
from reward_gateway.studies.synthetic import FIXED_POOL, synthetic_cohort

ON_A_POOL_THAT_NEVER_IDLES = {"scoring", "step", "saving"}
ON_UNDISTURBED_WORKERS = {"scaling_64", "scaling_96"}


@pytest.mark.parametrize(("mechanism", "seed"), [(Mechanism.FIXED, 0), (Mechanism.SHARED, 1)])
def test_every_relation_that_can_hold_does_within_5_percent(mechanism: Mechanism, seed: int) -> None:
    rows = compare(paper_cohort(np.random.default_rng(seed)), mechanism)
    assert [row.relation for row in rows] == list(paper.RELATIONS)
    known = ON_A_POOL_THAT_NEVER_IDLES | (ON_UNDISTURBED_WORKERS if mechanism is Mechanism.FIXED else set())
    assert {row.relation.name for row in rows if not row.holds} == known


def test_counted_shares_are_exactly_those_of_the_papers_cohort() -> None:
    cohort = synthetic_cohort(FIXED_POOL, np.random.default_rng(3))
    assert len(cohort) == paper.ROLLOUTS
    assert (~cohort.asked).sum() == paper.NO_CODE
    late = cohort.asked & (cohort.seconds >= paper.TIMEOUT_S)
    resolved = late & np.isfinite(cohort.seconds)
    assert (late.sum(), resolved.sum()) == (paper.TIMEOUTS, paper.RESOLVED)
    assert (cohort.verdict[resolved] == 1).sum() == paper.RESOLVED_VALID
    assert cohort.labelled.sum() == paper.LABELLED
    assert (cohort.verdict[cohort.labelled] == 1).mean() == pytest.approx(paper.VALID, abs=1e-4)


def test_a_fleet_that_is_found_reaches_its_goal_and_a_smaller_one_does_not() -> None:
    cohort = paper_cohort(np.random.default_rng(0), batches=4)
    demand = Demand(batch=128, every_s=720.0, trainers=6, deadline_s=90.0, timeout_s=60.0, cost=paper.CASCADE_COST)
    planner = Planner(cohort, demand)
    point = planner.fewest(lean_share=0.5)
    assert point.lean_share >= 0.5
    assert planner.simulate(int(point.workers * 0.8)).lean_share < 0.5
    exact = planner.fewest(wrong_share=0.05)
    assert exact.agreement is not None
    assert exact.agreement >= 0.95
    shares = [one.lean_share for one in planner.over_workers([8, 32, 128])]
    assert shares == sorted(shares)
    assert all(0 <= one.busy <= 1 for one in planner.over_workers([1, 8, 512]))
    with pytest.raises(Unreachable, match="reached at best"):
        planner.fewest(lean_share=0.999)


def test_a_part_of_every_batch_on_a_part_of_the_pool_stands_for_the_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    cohort = paper_cohort(np.random.default_rng(0), batches=4)
    demand = Demand(batch=256, every_s=720.0, trainers=64, deadline_s=90.0, timeout_s=60.0, cost=paper.CASCADE_COST)
    part = Planner(cohort, demand).simulate(100)
    monkeypatch.setattr(plan, "_SIMULATED", 64 * 256)
    whole = Planner(cohort, demand).simulate(100)
    assert part.lean_share == pytest.approx(whole.lean_share, abs=0.03)
    assert part.wrong_share == pytest.approx(whole.wrong_share, abs=0.02)
    assert part.busy == pytest.approx(whole.busy, abs=0.03)


def test_few_trainers_are_simulated_for_many_periods_so_that_the_answer_has_an_error() -> None:
    cohort = paper_cohort(np.random.default_rng(0), batches=4)
    demand = Demand(batch=64, every_s=720.0, trainers=1, deadline_s=90.0, timeout_s=60.0, cost=paper.CASCADE_COST)
    points = [Planner(cohort, demand, seed).simulate(4) for seed in range(6)]
    shares = [point.lean_share for point in points]
    assert max(shares) - min(shares) < 0.05
    assert np.std(shares) == pytest.approx(points[0].lean_share_error, rel=1.0)


def test_a_reward_that_is_withheld_counts_against_the_most_wrong_ones() -> None:
    cohort = replace(paper_cohort(np.random.default_rng(0), batches=4), predictions=None)
    demand = Demand(batch=128, every_s=720.0, trainers=1, deadline_s=90.0, timeout_s=60.0, cost=paper.CASCADE_COST)
    planner = Planner(cohort, demand)
    point = planner.fewest(wrong_share=0.1)
    assert (point.wrong_share, point.workers > 10) == (0.0, True)
    assert point.lean_share > 0.85


def test_the_gpus_that_the_worst_moment_needs_are_paid_like_all_workers() -> None:
    cohort = paper_cohort(np.random.default_rng(0), batches=4)
    demand = Demand(64, 720.0, 3, 90.0, 60.0, paper.CASCADE_COST, core_price=1.0, gpu_price=10.0)
    planner = Planner(cohort, demand)
    assert planner.gpus is not None
    assert planner.gpus.load < planner.gpus.fleet
    assert planner.simulate(7).cost_hour == 7 + 10 * planner.gpus.fleet


def test_a_plan_is_made_from_what_lean_was_asked() -> None:
    cohort = paper_cohort(np.random.default_rng(0), batches=4)
    demand = Demand(64, 720.0, 1, 90.0, 60.0, paper.CASCADE_COST)
    half = replace(cohort, asked=cohort.asked & (cohort.batch < 2))
    assert Planner(half, demand).simulate(1000).lean_share > 0.9
    never = replace(cohort, asked=cohort.asked & False, precheck=[None] * len(cohort))
    with pytest.raises(CohortError, match="Lean was never asked"):
        Planner(never, demand)


def test_gpus_are_those_that_the_deadline_needs() -> None:
    cohort = paper_cohort(np.random.default_rng(0), batches=4)
    demand = Demand(batch=1024, every_s=720.0, trainers=2, deadline_s=90.0, timeout_s=60.0, cost=paper.CASCADE_COST)
    gpus = Planner(cohort, demand).gpus
    assert gpus is not None
    assert (gpus.batch, gpus.ready_s) == (8, pytest.approx(90.0))
    assert gpus.load == pytest.approx(2 * 8 * 90 / 720)
    with pytest.raises(Unreachable, match="even for one program"):
        Planner(cohort, Demand(64, 720.0, 1, 20.0, 60.0, paper.CASCADE_COST))


def test_a_deadline_after_the_next_batch_is_refused() -> None:
    with pytest.raises(ValueError, match="a batch every 60 s already"):
        Demand(64, 60.0, 1, 90.0, 60.0, paper.CASCADE_COST)


def run(*arguments: str) -> tuple[int, str]:
    done = CliRunner().invoke(app, list(arguments))
    return done.exit_code, done.output


def test_the_paper_and_the_replay_are_printed_side_by_side_with_what_does_not_hold_and_why() -> None:
    status, text = run("replay", "--paper")
    assert status == 0, text
    assert "batch time, 60 s limit" in text
    assert "does not hold" in text
    assert "cannot give 43% of the verdicts after 90 s" in " ".join(text.split())


def test_the_comparison_is_printed_as_json() -> None:
    status, text = run("replay", "--paper", "--json")
    assert status == 0, text
    told = json.loads(text)
    assert [one["mechanism"] for one in told] == [mechanism.value for mechanism in Mechanism]
    assert {relation["holds"] for one in told for relation in one["relations"]} == {True, False}


def recording(path: Path, **values: Any) -> Path:
    """Two batches of ten checks of one second that came together to two engines, and took turns."""
    base = {column.name: None for column in COLUMNS}
    told = {"received_at": datetime(2026, 1, 1, tzinfo=timezone.utc), "mode": "lean", "cutoff_policy": "all"}
    told |= {"cutoff_reason": "all", "cutoff_s": 10.0, "timeout_s": 7.0, "scheduling": "fifo", "engines": 2}
    told |= {"lean_status": "ok", "lean_verdict": "valid", "lean_reason": "ok", "check_s": 1.0, "cached": False}
    rows = [
        {**base, **told, "batch": name, "index": i, "check": f"{name}{i}", "lean_at_s": i + 1.0, "misstated": False}
        for name in "ab"
        for i in range(10)
    ]
    write_rows(path, [{**row, **values} for row in rows])
    return path


def test_the_limit_and_the_overhead_are_those_of_the_recording_and_are_shown(tmp_path: Path) -> None:
    path = str(recording(tmp_path / "x.parquet"))
    status, text = run("replay", path, "--shared", "--json")
    assert status == 0, text
    told = json.loads(text)
    assert (told["overhead_s"], told["report"]["timeout_s"]) == (pytest.approx(0, abs=1e-5), 7.0)
    assert told["report"]["scoring_s"] == pytest.approx(10.0, abs=0.01)
    assert told["report"]["step_gpu_h"] > 0, "the GPUs of training wait for Lean"
    assert "checks limited to 7 s and" in run("replay", path)[1]
    status, text = run("plan", "--cohort", path, "--batch", "8", "--json")
    assert (status, json.loads(text)["timeout_s"]) == (0, 7.0), text


def test_an_overhead_that_the_recording_does_not_tell_is_said_to_be_taken_as_0(tmp_path: Path) -> None:
    path = recording(tmp_path / "x.parquet", engines=0)
    for command in (["replay", str(path)], ["plan", "--cohort", str(path), "--batch", "8"]):
        status, text = run(*command)
        assert status == 0, text
        assert "It is taken to be 0; say it with --overhead." in text
        assert "taken to be 0" not in run(*command, "--overhead", "0.1")[1]


def test_a_plan_names_the_fleet_and_writes_its_curves(tmp_path: object) -> None:
    status, text = run("plan", "--batch", "64", "--trainers", "3", "--json", "--plot", f"{tmp_path}/p.SVG")
    assert status == 0, text
    told = json.loads(text)
    assert told["fleet"]["lean_share"] >= 0.43
    assert len(told["by_workers"]) >= 3
    with open(f"{tmp_path}/p.SVG", encoding="utf-8") as file:
        assert "<svg" in file.read()


@pytest.mark.parametrize(
    ("arguments", "status", "says"),
    [
        (("replay", "nowhere.parquet"), 2, "there is no file or folder nowhere.parquet"),
        (("replay", "--cutoff", "soon"), 2, "neither seconds above 0"),
        (("replay", "x.parquet", "--paper"), 2, "leave out COHORT"),
        (("replay", "--paper", "--workers", "8", "--plot", "x.svg"), 2, "leave out --workers, --plot"),
        (("replay", "--true-positive", "0.5"), 2, "leave out --true-positive"),
        (("replay", "--evaluator", "none", "--evaluator-seconds", "5"), 2, "leave out --evaluator-seconds"),
        (("plan", "--false-positive", "0.5", "--evaluator", "recorded"), 2, "leave out --false-positive"),
        (("plan", "--evaluator", "none", "--gpus", "4"), 2, "no evaluator predicts here: leave out --gpus"),
        (("replay", "--cutoff", "inf"), 2, "neither seconds above 0"),
        (("replay", "--evaluator-seconds", "inf", "--evaluator", "synthetic"), 2, "--evaluator-seconds"),
        (("replay", "--rest", "nan"), 2, "--rest"),
        (("plan", "--deadline", "inf"), 2, "--deadline"),
        (("plan", "--every", "1e308"), 2, "--every"),
        (("plan", "--core-price", "nan"), 2, "--core-price"),
        (("plan", "--trainers", "1" + "0" * 400), 2, "--trainers"),
        (("replay", "--plot", "x.pdf"), 2, "ends in .png or .svg"),
        (("plan", "--deadline", "800"), 2, "a batch every 720 s already"),
        (("plan", "--deadline", "20", "--batch", "64"), 1, "even for one program"),
        (("plan", "--true-positive", "1", "--evaluator", "synthetic"), 2, "strictly between 0 and 1"),
    ],
)
def test_what_cannot_be_used_is_told(arguments: tuple[str, ...], status: int, says: str) -> None:
    ended, text = run(*arguments)
    assert (ended, says in " ".join(text.replace("│", " ").split())) == (status, True), text
