"""Time certificates on the embedded Lean: batches of random rollouts, one program each.

    python bench/certificates.py [--batch 32] [--steps 50] [--batches 2]

Each certificate is one theorem about a rollout's segmentation, votes, penalties and rewards. Prints the cost of the
definitions alone and of whole programs, the definitions included.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import sys
import time
from pathlib import Path

from lean_worker.engines.embedded.engine import EmbeddedEngine
from lean_worker.engines.embedded.layout import Installation
from services.contracts.lean import CheckStatus, CheckTask, Severity
from services.process.certificates.emit import certify, program

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "lean"))
from rollouts import answer, random_case


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in (("batch", 32), ("steps", 50), ("batches", 2)):
        parser.add_argument(f"--{name}", type=int, default=default)
    options = parser.parse_args()
    engine = EmbeddedEngine(Installation.locate())
    await engine.start()
    rng = random.Random(0)
    definitions = [await seconds(engine, program([])) for _ in range(3)]
    print(f"definitions: {1e3 * min(definitions):.0f} ms")
    for _ in range(options.batches):
        cases = [random_case(rng, options.steps) for _ in range(options.batch)]
        batch = [certify(f"r{i}", *case, answer(*case)) for i, case in enumerate(cases)]
        taken = await seconds(engine, program(batch))
        print(f"{options.batch} certificates of {options.steps} steps: {taken:.2f} s, {options.batch / taken:.1f}/s")
    await engine.stop()


async def seconds(engine: EmbeddedEngine, code: str) -> float:
    start = time.perf_counter()
    answer = await engine.check(CheckTask(code=code, timeout_s=300, messages=True))
    taken = time.perf_counter() - start
    errors = [message.data for message in answer.messages if message.severity is Severity.ERROR]
    if answer.status is not CheckStatus.DONE or errors:
        raise SystemExit(f"{answer.status}: {answer.detail or errors[:1]}")
    return taken


if __name__ == "__main__":
    asyncio.run(main())
