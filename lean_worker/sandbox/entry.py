"""First program of a confined child: gives up its rights, then becomes the real program.

Runs as its own interpreter (standard library only) instead of between fork and exec of the worker, where other threads
may hold locks. `python -I -S -c BOOT JSON program argument...`, see `confine`.
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import sys
from pathlib import Path
from typing import NoReturn

from lean_worker.sandbox import landlock, seccomp

_PR_SET_PDEATHSIG, _PR_SET_SECCOMP, _PR_SET_NO_NEW_PRIVS = 1, 22, 38
_SECCOMP_MODE_FILTER = 2
_SIGKILL = 9
FAILED = 125  # exit status of a child that could not be confined: it never ran the program


class _FilterProgram(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p))


def set_limits(limits: dict[str, int]) -> None:
    """Lower the resource limits of this process; a limit that is already lower stays."""
    wanted = {
        resource.RLIMIT_DATA: limits["memory_bytes"],
        resource.RLIMIT_CPU: limits["cpu_s"],
        resource.RLIMIT_FSIZE: limits["file_bytes"],
        resource.RLIMIT_NOFILE: limits["open_files"],
        resource.RLIMIT_NPROC: limits["tasks"],
        resource.RLIMIT_CORE: 0,
    }
    for kind, value in wanted.items():
        _, hard = resource.getrlimit(kind)
        value = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(kind, (value, value))


def _prctl(option: int, *arguments: object) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(option, *arguments, *([0] * (4 - len(arguments)))) != 0:
        code = ctypes.get_errno()
        raise OSError(code, f"prctl {option}: {os.strerror(code)}")


def _filter_calls() -> None:
    code = seccomp.program(own_pid=os.getpid())
    _prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, ctypes.byref(_FilterProgram(len(code) // 8, code)))


def main(arguments: list[str]) -> NoReturn:
    """Confine this process as the JSON says and run the program; on failure, say why and exit with `FAILED`."""
    policy = json.loads(arguments[0])
    program = arguments[1:]
    try:
        _prctl(_PR_SET_PDEATHSIG, _SIGKILL)
        if os.getppid() == 1 and policy["parent"] != 1:
            raise OSError("the worker is gone")
        os.chdir(policy["folder"])
        set_limits(policy["limits"])
        if rules := policy.get("landlock"):
            _prctl(_PR_SET_NO_NEW_PRIVS, 1)
            landlock.restrict(
                [Path(p) for p in rules["read"]],
                [Path(p) for p in rules["write"]],
                [Path(p) for p in rules["devices"]],
            )
            _filter_calls()
        os.execve(program[0], program, policy["environment"])  # noqa: S606
    except (OSError, NotImplementedError, ValueError) as error:
        print(f"sandbox: {error}", file=sys.stderr, flush=True)
    os._exit(FAILED)
