"""Merge and bookkeeping of one batch: `python -m bench.merge [--candidates 1024] [--repeat 20] [--json]`.

No Lean, no evaluator, no network: a batch is prepared once, then every Lean answer and every prediction is taken in and
the answer is written, as at a cutoff. Half of the candidates are decided by Lean, the others by the cascade.

`receive` takes in Lean's answers, `predict` the predictions (both are spread over a batch's life), `merge` is what
happens after the cutoff: equation 8 for every candidate and the JSON of the answer. The target is 50 ms for 1,024.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median

from reward_gateway.batches.answer import make_answer
from reward_gateway.batches.plan import make_plan
from reward_gateway.batches.prepare import Preparation, Prepared, prepare
from reward_gateway.batches.state import BatchState, Cut
from services.contracts.evaluator import Prediction
from services.contracts.lean import EngineIdentity, LeanOutcome
from services.contracts.outcomes import LeanStatus, Reason, Verdict
from services.contracts.proofs import Candidate, CutoffReason, ScoreOptions
from services.runtime.settings import GatewaySettings

_STATEMENT = "theorem t{n} (a b : Nat) : a + b = b + a"
_OUTCOME = LeanOutcome(
    status=LeanStatus.OK,
    verdict=Verdict.VALID,
    reason=Reason.OK,
    elapsed_s=1.0,
    axioms=("propext",),
    statement_match=True,
    identity=EngineIdentity(engine="none", toolchain="none", environment="none"),
)


@dataclass(frozen=True)
class Times:
    """Milliseconds of one pass."""

    receive: float
    predict: float
    merge: float

    @property
    def together(self) -> float:
        return self.receive + self.predict + self.merge


async def one_pass(
    candidates: list[Candidate], prepared: list[Preparation], plan_of: Callable[[], BatchState]
) -> Times:
    state = plan_of()
    for p in prepared:
        state.add(p, 0.0)
    state.all_added(0.0)
    checks = [p for p in prepared if isinstance(p, Prepared)]
    predictions = [
        Prediction(id=str(i), verdict=Verdict.VALID, reason=Reason.OK, gate=0.9, feedback=Verdict.VALID, detail="trace")
        for i in range(len(checks))
    ]
    begin = time.perf_counter()
    for check in checks[: len(checks) // 2]:
        state.receive(check.key, _OUTCOME, 1.0)
    received = time.perf_counter()
    for check, prediction in zip(checks, predictions, strict=True):
        state.predict(check.task.code, prediction, "model", 1.0)
    predicted = time.perf_counter()
    answer = await make_answer("b", state, Cut(CutoffReason.EVALUATOR_DONE, 2.0), time.monotonic)
    merged = time.perf_counter()
    sources = {source.value: n for (source, _, _), n in answer.tally.decisions.items()}
    if sum(sources.values()) != len(candidates) or set(sources) != {"lean", "cascade"}:
        raise SystemExit(f"the batch was not decided as it should be: {sources}")
    return Times((received - begin) * 1e3, (predicted - received) * 1e3, (merged - predicted) * 1e3)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--candidates", type=int, default=1024)
    parser.add_argument("--lines", type=int, default=40, help="lines of each proof")
    parser.add_argument("--repeat", type=int, default=20)
    options = parser.parse_args()
    plan = make_plan(ScoreOptions(), GatewaySettings(evaluator_urls="http://none"))
    candidates = []
    for n in range(options.candidates):
        statement = _STATEMENT.format(n=n)
        code = f"{statement} := by\n" + "  have h : a = a := by simp [Nat.add_comm]\n" * options.lines + "  omega"
        candidates.append(Candidate(id=str(n), group=f"g{n // 8}", code=code, statement=statement))
    prepared = [prepare(candidate, plan) for candidate in candidates]
    passes = [
        asyncio.run(one_pass(candidates, prepared, lambda: BatchState(plan, candidates, time.monotonic())))
        for _ in range(options.repeat)
    ]
    report = {
        "candidates": options.candidates,
        "passes": options.repeat,
        "ms": {
            name: {
                "median": round(median(getattr(p, name) for p in passes), 2),
                "best": round(min(getattr(p, name) for p in passes), 2),
                "worst": round(max(getattr(p, name) for p in passes), 2),
            }
            for name in ("receive", "predict", "merge", "together")
        },
        "target_ms": 50.0,
    }
    print(json.dumps(report, indent=2))


if __name__ == "__main__":
    main()
