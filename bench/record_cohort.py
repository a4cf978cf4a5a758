"""Check times and verdicts of the embedded Lean as a cohort, without a gateway around it.

    python -m bench.record_cohort examples/proofs.jsonl --output bench/data/embedded.parquet

Each program of the file is checked as it is and with more work in it: variants repeat its theorem under other names, so
that times spread over two orders of magnitude as they do in training. One engine, one check at a time. The programs
are public, so they and their groups are written as they are; `lean-reward replay` and `bench/scheduling.py` read it.
"""

from __future__ import annotations

import argparse
import asyncio
import re
import time
from collections.abc import Iterator, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from bench.candidates import Candidate, lean_task, read_candidates
from lean_worker.engines.catalog import embedded_engine, embedded_installation
from lean_worker.slot import Slot
from reward_gateway.scheduling.check_time import features
from reward_gateway.studies.files import write_rows
from services.contracts.lean import LeanOutcome
from services.contracts.outcomes import LeanStatus
from services.runtime.settings import load_settings

_REPEATS = (1, 4, 16)
_NAME = re.compile(r"\b(theorem|lemma)\s+([A-Za-z_][\w']*)")


def variants(candidate: Candidate) -> Iterator[tuple[str, Candidate]]:
    """The candidate's group and the program, behind so many copies of its theorem under other names."""
    group = candidate.id.rsplit("-", 1)[0]
    for repeats in _REPEATS:
        copies = [_NAME.sub(rf"\1 \2_{copy}", candidate.code) for copy in range(repeats - 1)]
        code = "\n\n".join([*copies, candidate.code])
        yield (
            f"{group}.{repeats}",
            Candidate(f"{candidate.id}.{repeats}", code, candidate.statement, candidate.header, None),
        )


async def record(candidates: Sequence[Candidate], timeout_s: float) -> list[dict[str, Any]]:
    """One row for each check that ended with a verdict, all of them one batch."""
    slot = Slot(0, embedded_engine(embedded_installation(load_settings())), ("",))
    await slot.bring_up()
    received_at, began = datetime.now(timezone.utc), time.monotonic()
    rows: list[dict[str, Any]] = []
    try:
        for candidate in candidates:
            for group, variant in variants(candidate):
                task = lean_task(variant, timeout_s)
                if task is None:
                    continue
                outcome = await slot.check(task)
                await slot.settle()
                if outcome.status is LeanStatus.OK:
                    rows.append(_row(len(rows), group, variant, outcome, time.monotonic() - began, timeout_s))
    finally:
        await slot.stop()
    spent_s = time.monotonic() - began
    return [{**row, "received_at": received_at, "cutoff_s": spent_s} for row in rows]


def _row(
    index: int, group: str, variant: Candidate, outcome: LeanOutcome, at_s: float, timeout_s: float
) -> dict[str, Any]:
    return {
        "batch": "embedded",
        "mode": "lean",
        "cutoff_policy": "all",
        "cutoff_reason": "decided",
        "timeout_s": timeout_s,
        "scheduling": "fifo",
        "engines": 1,
        "index": index,
        "program": variant.id,
        "check": variant.id,
        "group": group,
        "code": variant.code,
        "characters": len(variant.code),
        "features": features(variant.code).tolist(),
        "lean_status": outcome.status.value,
        "lean_verdict": outcome.verdict.value,
        "lean_reason": outcome.reason.value,
        "check_s": outcome.elapsed_s,
        "lean_at_s": at_s,
        "cached": False,
        "misstated": False,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path, help="JSON lines with id, code, statement?, header?")
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--timeout", type=float, default=20.0, help="wall-clock limit of a check, seconds")
    options = parser.parse_args()
    candidates = read_candidates(options.file, None, ("lean_timeout",))
    rows = asyncio.run(record(candidates, options.timeout))
    options.output.parent.mkdir(parents=True, exist_ok=True)
    write_rows(options.output, rows)
    print(f"{len(rows)} checks, {sum(row['check_s'] for row in rows):.1f} s")


if __name__ == "__main__":
    main()
