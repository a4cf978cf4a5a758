"""What carrying an environment over does in this REPL: tried, not assumed.

A pickled environment keeps its constants and leaves syntax and attributes behind. Early REPLs add the constants again
through the kernel (`Lean.Environment.replay`), newer ones unchecked (REPL/Lean/Replay.lean says so, from Lean 4.30 on),
and with some versions of Lean in between the elaborator does not see constants that were replayed.
"""

from __future__ import annotations

from dataclasses import dataclass

from lean_worker.engines.repl.faults import kernel_refusal
from lean_worker.engines.repl.launch import Launcher
from lean_worker.engines.repl.probes import print_question
from lean_worker.engines.repl.process import ReplExited, ReplProcess
from lean_worker.engines.repl.session import ReplayRefused, Session, first_error

_HONEST = "theorem repl_selftest : True := True.intro"
# Without the kernel's check each proves what is false; older versions of Lean spell the tactic otherwise.
_UNCHECKED = tuple(
    f"set_option debug.skipKernelTC true in\ntheorem repl_selftest : (1 : Nat) = 2 := by {tactic}"
    for tactic in ("decide +kernel", "decide (config := {kernel := true})")
)


@dataclass(frozen=True, slots=True)
class Replay:
    """`works`: constants that were carried over can be asked about. `asks_kernel`: each was checked on the way."""

    works: bool
    asks_kernel: bool


_known: dict[str, Replay] = {}  # by the hash of REPL and project: engines of one worker try it once


async def try_replay(launcher: Launcher, most_bytes: int) -> Replay:
    """Find out in a process of its own, since a refusal may end it.

    Raises:
        OSError, ReplExited, ReplConfused, ProbeFault, HeaderError: the REPL does not work at all.
    """
    if launcher.environment_hash not in _known:
        process = await ReplProcess.start(launcher.confined(), most_bytes)
        try:
            _known[launcher.environment_hash] = await _try(Session(process))
        finally:
            await process.close()
    return _known[launcher.environment_hash]


async def _try(session: Session) -> Replay:
    pristine = await session.imports("")
    honest = await session.run(_HONEST, pristine)
    if first_error(honest) is not None:
        return Replay(works=False, asks_kernel=False)
    try:
        carried = await session.replayed(honest.env)
        (answer,) = await session.ask(carried, [print_question("repl_selftest")])
    except (ReplayRefused, ReplExited):
        return Replay(works=False, asks_kernel=False)
    if answer is None or answer.severity == "error":
        return Replay(works=False, asks_kernel=False)
    for text in _UNCHECKED:
        reply = await session.run(text, pristine)
        if first_error(reply) is None:
            return Replay(works=True, asks_kernel=await _is_refused(session, reply.env))
    return Replay(works=True, asks_kernel=False)


async def _is_refused(session: Session, env: int) -> bool:
    try:
        await session.replayed(env)
    except ReplayRefused:
        return True
    except ReplExited as exited:
        return kernel_refusal(exited) is not None
    return False
