"""How a REPL that failed is told apart: its fault, the candidate's memory, the clock."""

from __future__ import annotations

import re
import signal

from lean_worker.engines.repl.probes import ProbeFault
from lean_worker.engines.repl.process import ReplConfused, ReplExited
from services.contracts.lean import CheckStatus

_OUT_OF_MEMORY = re.compile(r"out of memory|bad_alloc|allocation failed|cannot allocate memory", re.IGNORECASE)
_KERNEL = re.compile(r"uncaught exception: (?P<what>\(kernel\)[^\n]*)")
_SHELL_OFFSET = 128  # a sandbox tells of its child's signal n as status 128 + n


class Ending(Exception):
    """A check that ended before it was complete; `status` and `detail` are for the answer."""

    def __init__(self, status: CheckStatus, detail: str) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail


def ended(fault: ReplExited | ReplConfused | ProbeFault) -> Ending:
    """What a fault during a candidate's check says about the candidate."""
    if isinstance(fault, ReplExited):
        number = _signal(fault.status)
        if number == signal.SIGKILL or _OUT_OF_MEMORY.search(fault.errors):
            return Ending(CheckStatus.OUT_OF_MEMORY, f"the memory limit was reached: {_last_line(fault.errors)}")
        if number == signal.SIGXCPU:
            return Ending(CheckStatus.CRASHED, "the REPL used up its processor time")
    return Ending(CheckStatus.CRASHED, str(fault)[:1000])


def kernel_refusal(fault: ReplExited) -> str | None:
    """Why the kernel refused a constant that was carried over, of which the REPL dies; None when it died otherwise."""
    found = _KERNEL.search(fault.errors)
    return found["what"] if found else None


def _signal(status: int | None) -> int | None:
    if status is None:
        return None
    return -status if status < 0 else status - _SHELL_OFFSET if status > _SHELL_OFFSET else None


def _last_line(text: str) -> str:
    lines = text.strip().splitlines()
    return lines[-1][:500] if lines else "killed by the system"
