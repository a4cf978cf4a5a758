"""Feedback traces: how fast they are read and scored: `python -m bench.traces [--programs 2004] [--repeat 5]`.

`parse_mb_s` is the rate at which annotated programs are parsed (10^6 bytes of UTF-8 a second), the target is 20.
`metrics_s` is all four metrics of learning-lean-feedback, Appendix D, on as many pairs of traces as the paper has
(2,004), the target is 10 s; half of the pairs differ by a paraphrased error. The traces are made by `build_trace` from
tactic states with two to eight new hypotheses each. One core, pinned seed; JSON out.
"""

from __future__ import annotations

import argparse
import json
import platform
import random
import time
from collections.abc import Callable, Sequence

from gpu_evaluator.feedback.blocks import find_blocks, strip_blocks
from gpu_evaluator.feedback.metrics import average
from gpu_evaluator.feedback.trace import build_trace
from gpu_evaluator.feedback.verdict import judge_trace
from services.contracts.lean import Message, Position, Severity, TacticState

_SEED = 42
_TYPES = (
    "ℝ",
    "ℕ",
    "x ^ 2 + y ^ 2 = 25",
    "∀ n : ℕ, 0 < n → a n = 2 * n + 1",
    "Finset.card S ≤ 12",
    "f (x + 1) = f x + 3",
)
_TACTICS = (
    "norm_num [Nat.pow_succ]",
    "rw [h₁] at h₀",
    "nlinarith [sq_nonneg (x - y)]",
    "have h₂ : x = 5 := by simp",
)


def make_trace(random_: random.Random, lines: int, error: str | None) -> str:
    """An annotated program of so many tactics; `error` is Lean's message on the last of them."""
    source = ["import Mathlib", "", "theorem t (x y : ℝ) (h₀ : x + y = 7) (h₁ : x ^ 2 + y ^ 2 = 25) : x * y = 12 := by"]
    states = []
    for _ in range(lines):
        tactic = random_.choice(_TACTICS)
        source.append("  " + tactic)
        hypotheses = [f"h{n} : {random_.choice(_TYPES)}" for n in range(random_.randint(2, 8))]
        state = "\n".join([*hypotheses, f"⊢ x * y = {random_.randint(1, 99)}"])
        line = len(source)
        start, end = Position(line=line, column=2), Position(line=line, column=2 + len(tactic))
        states.append(TacticState(tactic=tactic, pos=start, end_pos=end, goals_before=(state,), goals_after=()))
    messages = []
    if error is not None:
        place = Position(line=len(source), column=2)
        messages.append(Message(severity=Severity.ERROR, pos=place, end_pos=place, data=error))
    return build_trace("\n".join(source), states, messages)


def make_pairs(programs: int, lines: int) -> list[tuple[str | None, str]]:
    """(reference, prediction); every second pair ends in an error that the prediction words otherwise."""
    pairs: list[tuple[str | None, str]] = []
    for number in range(programs):
        seed = f"{_SEED}-{number}"
        invalid = number % 2 == 1
        errors = ("linarith failed to find a contradiction", "linarith failed") if invalid else (None, None)
        reference, predicted = (make_trace(random.Random(seed), lines, error) for error in errors)
        pairs.append((reference, predicted))
    return pairs


def best_s(repeat: int, work: Callable[[], object]) -> float:
    """The shortest of so many passes, seconds."""
    took = []
    for _ in range(repeat):
        begin = time.perf_counter()
        work()
        took.append(time.perf_counter() - begin)
    return min(took)


def rate_mb_s(repeat: int, traces: Sequence[str], work: Callable[[str], object]) -> float:
    size = sum(len(trace.encode()) for trace in traces) / 1e6
    return size / best_s(repeat, lambda: [work(trace) for trace in traces])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", type=int, default=2004)
    parser.add_argument("--lines", type=int, default=40, help="tactics of each program")
    parser.add_argument("--repeat", type=int, default=5)
    options = parser.parse_args()
    pairs = make_pairs(options.programs, options.lines)
    traces = [predicted for _, predicted in pairs]
    report = {
        "machine": f"{platform.machine()}, Python {platform.python_version()}, one core",
        "programs": options.programs,
        "mean_bytes": round(sum(len(trace.encode()) for trace in traces) / len(traces)),
        "parse_mb_s": {
            "find_blocks": round(rate_mb_s(options.repeat, traces, lambda trace: list(find_blocks(trace))), 1),
            "strip_blocks": round(rate_mb_s(options.repeat, traces, strip_blocks), 1),
            "judge_trace": round(rate_mb_s(options.repeat, traces, lambda t: judge_trace(t, hit_limit=False)), 1),
        },
        "metrics_s": round(best_s(options.repeat, lambda: average(pairs)), 3),
        "targets": {"parse_mb_s": 20, "metrics_s": 10},
    }
    print(json.dumps(report, indent=2))


if __name__ == "__main__":
    main()
