"""What a confined program may reach and use: the words of the sandbox."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path

MIB = 1 << 20


class SandboxUnavailable(Exception):
    """No tier that was asked for works on this machine; the message says what was tried."""


class Tier(str, Enum):
    """How a program is confined, strongest first. Resource limits hold in every tier."""

    BUBBLEWRAP = "bubblewrap"  # own user, pid, mount, network and IPC namespaces, and the system call filter
    LANDLOCK = "landlock"  # where namespaces are forbidden: file rules of the kernel, and the system call filter
    LIMITS = "limits"  # resource limits alone: only when an operator said so

    def __str__(self) -> str:
        return str(self.value)


@dataclass(frozen=True, slots=True)
class Limits:
    """Resource limits of one confined process, enforced by the kernel (`setrlimit`)."""

    memory_bytes: int  # writable private memory (RLIMIT_DATA): file mappings, such as compiled libraries, do not count
    cpu_s: int  # processor time over the process's whole life
    file_bytes: int = 256 * MIB  # size of any one file
    open_files: int = 1024
    tasks: int = 1024  # processes and threads of this user; the kernel does not apply it to root

    def __post_init__(self) -> None:
        for name in ("memory_bytes", "cpu_s", "file_bytes", "open_files", "tasks"):
            if getattr(self, name) <= 0:
                raise ValueError(f"{name} must be positive, not {getattr(self, name)}")


@dataclass(frozen=True, slots=True)
class Confinement:
    """What a program needs. Everything else is out of its reach: other files, the network, other processes.

    The system's own libraries (`/usr`, `/lib`) are always readable. `environment` is the program's whole environment.
    It may start threads but no processes.
    """

    limits: Limits
    working_folder: Path
    read_only: tuple[Path, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    scratch_bytes: int = 512 * MIB  # its private writable folder
