"""Does this REPL's way of carrying an environment over ask the kernel about every constant? Tried, not assumed.

Up to Lean 4.29 the REPL replays constants through the kernel (`Lean.Environment.replay`); since 4.30 it puts them into
the new environment unchecked (its `REPL/Lean/Replay.lean` says so). Syntax and attributes are left behind either way.
"""

from __future__ import annotations

from lean_worker.engines.repl.faults import kernel_refusal
from lean_worker.engines.repl.launch import Launcher
from lean_worker.engines.repl.process import ReplExited, ReplProcess
from lean_worker.engines.repl.session import ReplayRefused, Session, first_error

# Without the kernel's check each proves what is false; older versions of Lean spell the tactic otherwise.
_UNCHECKED = tuple(
    f"set_option debug.skipKernelTC true in\ntheorem repl_selftest : (1 : Nat) = 2 := by {tactic}"
    for tactic in ("decide +kernel", "decide (config := {kernel := true})")
)


async def replay_asks_the_kernel(launcher: Launcher, most_bytes: int) -> bool:
    """True when a constant that the kernel never saw is refused. False when it passes, or none could be made.

    Raises:
        OSError, ReplExited, ReplConfused, HeaderError: the REPL does not work at all.
    """
    process = await ReplProcess.start(launcher.confined(), most_bytes)
    try:
        session = Session(process)
        pristine = await session.imports("")
        for text in _UNCHECKED:
            reply = await session.run(text, pristine)
            if first_error(reply) is None:
                return await _is_refused(session, reply.env)
        return False
    finally:
        await process.close()


async def _is_refused(session: Session, env: int) -> bool:
    try:
        await session.replayed(env)
    except ReplayRefused:
        return True
    except ReplExited as exited:
        return kernel_refusal(exited) is not None
    return False
