"""The null Lean of the benches goes all the way through the native engine, and takes the time that it was given."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest
import uvloop

from bench.null_lean.folder import lay_out
from lean_worker.engines.repl.engine import ReplEngine
from services.contracts.lean import CheckTask
from services.contracts.outcomes import Verdict
from services.proofs.verdict import judge
from services.runtime.settings import ReplSettings

STATEMENT = "theorem t (a b : Nat) : a + b = b + a"


@pytest.mark.parametrize("tier", ["fast", "replay"])
async def test_everything_is_proved_but_what_asks_for_an_error(tmp_path: Path, tier: str) -> None:
    folder = tmp_path / "null lean"
    lake = lay_out(folder, delay_s=0.02)
    settings = ReplSettings(
        folder=folder, lake=str(lake), tier=tier, sandbox="off", read_only=(Path(sys.base_prefix),), memory_mb=1024
    )
    engine = ReplEngine(settings)
    await engine.start()
    try:
        for statement in (STATEMENT, None):
            for proof, verdict in (("by omega", Verdict.VALID), ("by omega -- null: error", Verdict.INVALID)):
                task = CheckTask(code=f"{STATEMENT} := {proof}", statement=statement)
                begin = time.monotonic()
                outcome = judge(task, await engine.check(task))
                assert outcome.verdict is verdict, outcome
                assert time.monotonic() - begin >= 0.04  # the program, and a question about it
    finally:
        await engine.stop()


def test_it_runs_on_the_event_loop_of_the_worker(tmp_path: Path) -> None:
    async def check() -> Verdict:
        folder = tmp_path / "null"
        lake = lay_out(folder)
        engine = ReplEngine(
            ReplSettings(folder=folder, lake=str(lake), sandbox="off", read_only=(Path(sys.base_prefix),))
        )
        await engine.start()
        try:
            task = CheckTask(code=f"{STATEMENT} := by omega", statement=STATEMENT)
            return judge(task, await engine.check(task)).verdict
        finally:
            await engine.stop()

    assert uvloop.run(check()) is Verdict.VALID
