"""File rules of the kernel for a process that gives up its own rights (landlock(7), Linux 5.13 and later)."""

from __future__ import annotations

import ctypes
import os
import struct
from collections.abc import Iterable
from pathlib import Path

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446  # one numbering on every architecture
_VERSION_FLAG = 1
_RULE_PATH_BENEATH = 1

_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_REMOVE_DIR, _REMOVE_FILE, _MAKE_DIR, _MAKE_REG = 1 << 4, 1 << 5, 1 << 7, 1 << 8
_TRUNCATE = 1 << 14
_READ = _EXECUTE | _READ_FILE | _READ_DIR
_WRITE = _READ_FILE | _READ_DIR | _WRITE_FILE | _REMOVE_DIR | _REMOVE_FILE | _MAKE_DIR | _MAKE_REG | _TRUNCATE
_FILE_ONLY = _EXECUTE | _READ_FILE | _WRITE_FILE | _TRUNCATE

_libc = ctypes.CDLL(None, use_errno=True)


def _handled_files(abi: int) -> int:
    if abi >= 5:
        return (1 << 16) - 1  # IOCTL_DEV
    if abi >= 3:
        return (1 << 15) - 1  # TRUNCATE
    return (1 << 14) - 1 if abi == 2 else (1 << 13) - 1


def abi() -> int:
    """The kernel's Landlock version; 0 where there is none or it is switched off."""
    version: int = _libc.syscall(_CREATE_RULESET, None, 0, _VERSION_FLAG)
    return max(version, 0)


def _check(result: int, what: str) -> int:
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, f"{what}: {os.strerror(code)}")
    return result


def restrict(readable: Iterable[Path], writable: Iterable[Path], devices: Iterable[Path] = ()) -> None:
    """Confine this process, for ever, to files under `readable` (read, execute), `writable` and `devices` (both ways).

    Paths that do not exist are left out. TCP, and signals to and abstract sockets of others, are refused too where the
    kernel can. The caller has set no_new_privs.

    Raises:
        OSError: the kernel refused.
    """
    version = abi()
    files = _handled_files(version)
    attributes = struct.pack(
        "=QQQ", files, 0b11 if version >= 4 else 0, 0b11 if version >= 6 else 0
    )  # files; TCP bind and connect; abstract sockets and signals
    size = 24 if version >= 6 else 16 if version >= 4 else 8
    ruleset = _check(_libc.syscall(_CREATE_RULESET, attributes[:size], size, 0), "landlock_create_ruleset")
    try:
        for paths, access in ((readable, _READ), (writable, _WRITE), (devices, _READ_FILE | _WRITE_FILE)):
            for path in paths:
                _allow(ruleset, path, access & files)
        _check(_libc.syscall(_RESTRICT_SELF, ruleset, 0), "landlock_restrict_self")
    finally:
        os.close(ruleset)


def _allow(ruleset: int, path: Path, access: int) -> None:
    try:
        place = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    try:
        if not path.is_dir():
            access &= _FILE_ONLY
        rule = struct.pack("=Qi", access, place)
        _check(_libc.syscall(_ADD_RULE, ruleset, _RULE_PATH_BENEATH, rule, 0), f"landlock_add_rule {path}")
    finally:
        os.close(place)
