"""Predicted and measured batch time on this machine: `python -m bench.plan_validation [--json]`.

Starts `lean-reward up` with the embedded Lean, no verdict cache and the recorder, and sends three batches that wait for
all of Lean: a short one to warm the engines, a first, and a second one, larger and of other programs of the same kind.
From the recording of the first alone the studies learn the check times and what a check costs besides (`overhead_s`),
and predict the second: batches of its size are drawn from the first as `lean-reward plan` draws them, and replayed.

`predicted_s` is their mean, `low_s` to `high_s` hold nine in ten. `pool_s` is the second batch replayed with its own
check times: how far the simulated pool alone is off, without the chance of the draw. Anything else that runs on the
machine between the two batches is part of the error.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import numpy as np

from bench.candidates import Candidate, lean_task, read_candidates
from bench.record_cohort import variants
from reward_gateway.studies.cohort import Cohort
from reward_gateway.studies.recorded import overhead_s, read_cohort
from reward_gateway.studies.replay import Options, replay

_WARM_UP, _DRAWS = 40, 200
_REPEATS, _SECOND = 3, 2.5
_TIMEOUT_S = 60.0


def batches(file: Path, seed: int, programs: int | None) -> list[list[dict[str, Any]]]:
    """Three batches of API candidates, all programs different; `programs`: how many in the one that is learned from."""
    rng = random.Random(seed)
    base = [
        (group, variant)
        for candidate in read_candidates(file, None, ("lean_timeout",))
        for group, variant in variants(candidate)
        if lean_task(variant, _TIMEOUT_S) is not None
    ]
    rng.shuffle(base)
    del base[programs or len(base) :]
    second = [(group, variant, turn) for turn in range(2, 2 + _REPEATS) for group, variant in base]
    rng.shuffle(second)
    first = [(group, variant, 1) for group, variant in base]
    warm_up = [(group, variant, 0) for group, variant in base[:_WARM_UP]]
    return [[_sent(*one) for one in batch] for batch in (warm_up, first, second[: int(_SECOND * len(base))])]


def _sent(group: str, variant: Candidate, turn: int) -> dict[str, Any]:
    return {
        "id": f"{variant.id}#{turn}",
        "group": group,
        "code": f"{variant.code}\n-- {turn}",
        "statement": variant.statement,
        "header": variant.header,
    }


def send(file: Path, seed: int, programs: int | None) -> None:
    """Send the batches one after another to the gateway of the environment."""
    with httpx.Client(base_url=os.environ["LEAN_REWARD_CLIENT_URL"], timeout=None) as client:
        for batch in batches(file, seed, programs):
            options = {"mode": "lean", "cutoff": {"policy": "all", "deadline_s": 3600}, "lean_timeout_s": _TIMEOUT_S}
            client.post("/v1/proofs/score", json={"candidates": batch, **options}).raise_for_status()


def record(file: Path, workers: int, seed: int, programs: int | None, folder: Path) -> None:
    """Run the platform once, with the recorder, around `send`."""
    environment = {
        **os.environ,
        "LEAN_REWARD_RECORDER_FOLDER": str(folder),
        "LEAN_REWARD_QUEUE_CACHE_S": "0",
        "LEAN_REWARD_LOG_LEVEL": "error",
    }
    up = [sys.executable, "-m", "services.runtime.cli", "up", "--port", "0", "--workers", str(workers), "--"]
    inner = [sys.executable, "-m", "bench.plan_validation", str(file), "--seed", str(seed), "--send"]
    inner += [] if programs is None else ["--programs", str(programs)]
    subprocess.run([*up, *inner], env=environment, check=True)


def one_batch(cohort: Cohort, batch: int) -> Cohort:
    """That batch as a cohort of its own."""
    members = cohort.members(batch)
    return replace(
        cohort.take(members),
        batch=np.zeros(len(members), dtype=np.int64),
        arrival_s=np.zeros(1),
        engines=cohort.engines[batch : batch + 1],
        timeout_s=cohort.timeout_s[batch : batch + 1],
        ended_s=cohort.ended_s[batch : batch + 1],
    )


def scoring_s(cohort: Cohort, options: Options) -> float:
    return float(replay(cohort, options, None).scoring_s[0])


def validate(cohort: Cohort, workers: int, seed: int) -> dict[str, float]:
    first, second = one_batch(cohort, 1), one_batch(cohort, 2)
    options = Options(workers=workers, timeout_s=_TIMEOUT_S, overhead_s=overhead_s(first) or 0.0)
    rng = np.random.default_rng(seed)
    drawn: Sequence[float] = [scoring_s(first.sample(len(second), 1, rng), options) for _ in range(_DRAWS)]
    measured = float(second.answered_s.max())
    predicted, pool = float(np.mean(drawn)), scoring_s(second, options)
    return {
        "workers": workers,
        "first_checks": len(first),
        "second_checks": len(second),
        "first_measured_s": float(first.answered_s.max()),
        "overhead_s": options.overhead_s,
        "measured_s": measured,
        "predicted_s": predicted,
        "low_s": float(np.quantile(drawn, 0.05)),
        "high_s": float(np.quantile(drawn, 0.95)),
        "off": predicted / measured - 1,
        "pool_s": pool,
        "pool_off": pool / measured - 1,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path, nargs="?", default=Path("examples/proofs.jsonl"))
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--programs", type=int, help="so many in the first batch; default: all of the file's variants")
    parser.add_argument("--send", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if options.send:
        send(options.file, options.seed, options.programs)
        return
    with tempfile.TemporaryDirectory() as folder:
        record(options.file, options.workers, options.seed, options.programs, Path(folder))
        found = validate(read_cohort(Path(folder)), options.workers, options.seed)
    if options.json:
        print(json.dumps({"machine": os.uname().machine, "cores": os.cpu_count(), **found}))
        return
    for name, value in found.items():
        print(f"{name:18} {value:.3f}" if isinstance(value, float) else f"{name:18} {value}")


if __name__ == "__main__":
    main()
