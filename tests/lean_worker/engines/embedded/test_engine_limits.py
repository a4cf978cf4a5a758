"""Budgets, clocks, memory, cancellation: each end of a check has its own status, and the engine recovers from all."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

import pytest

from lean_worker.engines.base import EngineUnavailable, HeaderError
from lean_worker.engines.embedded.engine import EmbeddedEngine
from lean_worker.engines.embedded.layout import Installation
from services.contracts.lean import CheckAnswer, CheckStatus, CheckTask

Check = Callable[..., Awaitable[CheckAnswer]]

pytestmark = [pytest.mark.lean, pytest.mark.slow, pytest.mark.asyncio(loop_scope="module")]

HONEST = "theorem t (a b : Nat) : a + b = b + a := by omega"
SLOW = "set_option maxRecDepth 100000000\n{options}theorem t : ∀ a b c : Fin 60, a + b + c = c + b + a := by decide"
ENDLESS = "partial def loop (n : Nat) : Nat := loop (n + 1)\n#eval loop 0"
GREEDY = 'partial def grow (s : String) : Nat := grow (s ++ s)\n#eval grow "x"'


async def works(check: Check) -> bool:
    answer = await check(HONEST, timeout_s=30)
    return answer.status is CheckStatus.DONE and bool(answer.theorems[0].kernel_accepts)


async def test_an_exhausted_budget_is_not_a_timeout(check: Check) -> None:
    answer = await check(SLOW.format(options=""), heartbeats=1_000, timeout_s=60)
    assert answer.status is CheckStatus.HEARTBEATS


async def test_a_lower_budget_of_the_candidate_is_honoured(check: Check) -> None:
    answer = await check(SLOW.format(options="set_option maxHeartbeats 1000\n"), timeout_s=60)
    assert answer.status is CheckStatus.HEARTBEATS


async def test_another_error_beside_an_exhausted_budget_is_the_reason(check: Check) -> None:
    code = SLOW.format(options="") + "\ntheorem u : 1 = 2 := by decide"
    assert (await check(code, heartbeats=1_000, timeout_s=60)).status is CheckStatus.DONE


async def test_the_clock_stops_elaboration_softly(check: Check) -> None:
    code = SLOW.format(options="set_option maxHeartbeats 100000000\n")
    begin = time.monotonic()
    answer = await check(code, timeout_s=0.5)
    assert answer.status is CheckStatus.TIMEOUT
    assert time.monotonic() - begin < 2.5
    assert await works(check)


@pytest.mark.parametrize("code", [ENDLESS, "#eval (IO.sleep 100000 : IO Unit)"])
async def test_what_ignores_the_clock_is_killed(check: Check, code: str) -> None:
    answer = await check(code, timeout_s=0.5)
    assert answer.status is CheckStatus.TIMEOUT
    assert await works(check)


async def test_the_memory_cap_holds(check: Check, engine: EmbeddedEngine) -> None:
    answer = await check(GREEDY, timeout_s=30)
    assert answer.status is CheckStatus.OUT_OF_MEMORY
    assert await works(check)
    assert engine.rss_bytes < 1_000_000_000


async def test_deep_recursion_is_a_crash(check: Check) -> None:
    code = "def f : Nat → Nat | 0 => 0 | n + 1 => f n + 1\n#eval f 10000000"
    answer = await check(code, timeout_s=30)
    assert answer.status in (CheckStatus.CRASHED, CheckStatus.OUT_OF_MEMORY)
    assert await works(check)


async def test_a_cancelled_check_stops_within_200_ms(check: Check, engine: EmbeddedEngine) -> None:
    for code in (SLOW.format(options=""), ENDLESS):
        running = asyncio.create_task(check(code, timeout_s=60))
        await asyncio.sleep(1.0)
        running.cancel()
        begin = time.monotonic()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert time.monotonic() - begin < 0.2
        assert await works(check)


async def test_a_killed_host_fails_one_check(check: Check, engine: EmbeddedEngine) -> None:
    assert await works(check)
    running = asyncio.create_task(check(ENDLESS, timeout_s=60))
    await asyncio.sleep(0.5)
    assert engine._host is not None
    engine._host._process.kill()
    assert (await running).status is CheckStatus.CRASHED
    assert await works(check)


async def test_restart_keeps_a_process_that_has_checked_nothing(engine: EmbeddedEngine, check: Check) -> None:
    await check(HONEST)
    used = engine._host
    await engine.restart("growth")
    fresh = engine._host
    assert fresh is not used
    await engine.restart("growth")
    assert engine._host is fresh
    assert await works(check)


async def test_open_loads_the_environment_and_compiles_the_preamble(engine: EmbeddedEngine, check: Check) -> None:
    await engine.open("import Std\nopen Std")
    assert (
        (await check("import Std\ntheorem t : (∅ : Std.HashMap Nat Nat).size = 0 := by simp"))
        .theorems[0]
        .kernel_accepts
    )
    with pytest.raises(HeaderError, match="unknown import `Nowhere`"):
        await engine.open("import Nowhere")
    with pytest.raises(HeaderError, match="does not compile: 1:"):
        await engine.open("open Nowhere")
    await engine.open("")


async def test_any_modules_of_the_package_can_be_imported(check: Check) -> None:
    code = "import Lean.Data.Position\nimport Std.Data.HashSet\ntheorem t (p : Lean.Position) : p = p := rfl"
    answer = await check(
        code, "theorem t (p : Lean.Position) : p = p", "import Std.Data.HashSet\nimport Lean.Data.Position"
    )
    assert answer.header_error is None
    assert answer.target is not None
    assert answer.target.kernel_accepts
    assert await works(check)


async def test_an_engine_that_is_not_installed_says_what_to_do(tmp_path_factory: pytest.TempPathFactory) -> None:
    nowhere = EmbeddedEngine(Installation(tmp_path_factory.mktemp("nowhere")))
    with pytest.raises(EngineUnavailable, match="lean-reward lean install"):
        await nowhere.start()


async def test_memory_stays_flat(engine: EmbeddedEngine) -> None:
    """The short form of `bench/engine_soak.py`."""
    sizes = []
    for i in range(200):
        statement = f"theorem t{i % 7} (n : Nat) : n + {i % 7} = {i % 7} + n"
        proof = "by omega" if i % 3 else "by\n  induction n with\n  | zero => simp\n  | succ n ih => omega"
        answer = await engine.check(CheckTask(code=f"{statement} := {proof}", statement=statement))
        assert answer.target is not None
        assert answer.target.kernel_accepts
        sizes.append(engine.rss_bytes)
    assert max(sizes[-50:]) < 1.05 * max(sizes[50:100])
    assert max(sizes) < 1_200_000_000
