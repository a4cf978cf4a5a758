"""Check times and verdicts of the embedded Lean as a cohort for `bench/scheduling.py`.

    python -m bench.record_cohort examples/proofs.jsonl --output bench/data/embedded.json

Each program of the file is checked as it is and with more work in it: variants repeat its theorem under other names, so
that times spread over two orders of magnitude as they do in training. One engine, one check at a time.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from bench.candidates import Candidate, lean_task, read_candidates
from lean_worker.engines.catalog import embedded_engine, embedded_installation
from lean_worker.slot import Slot
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


async def record(candidates: Sequence[Candidate], timeout_s: float) -> list[dict[str, object]]:
    """One row for each check that ended with a verdict."""
    slot = Slot(0, embedded_engine(embedded_installation(load_settings())), ("",))
    await slot.bring_up()
    rows: list[dict[str, object]] = []
    try:
        for candidate in candidates:
            for group, variant in variants(candidate):
                task = lean_task(variant, timeout_s)
                if task is None:
                    continue
                outcome = await slot.check(task)
                await slot.settle()
                if outcome.status is LeanStatus.OK:
                    rows.append(
                        {
                            "group": group,
                            "seconds": round(outcome.elapsed_s, 4),
                            "verdict": outcome.verdict.value,
                            "code": variant.code,
                        }
                    )
    finally:
        await slot.stop()
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path, help="JSON lines with id, code, statement?, header?")
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--timeout", type=float, default=20.0, help="wall-clock limit of a check, seconds")
    options = parser.parse_args()
    candidates = read_candidates(options.file, None, ("lean_timeout",))
    rows = asyncio.run(record(candidates, options.timeout))
    options.output.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps({"engine": "embedded", "source": options.file.name, "checks": rows}, indent=0, ensure_ascii=False)
    options.output.write_text(text + "\n", encoding="utf-8")
    print(f"{len(rows)} checks, {sum(float(str(row['seconds'])) for row in rows):.1f} s")


if __name__ == "__main__":
    main()
