"""Programs that run another program: ``time``, ``sudo``, ``env``, ``timeout``, ``xargs`` and their like."""

from __future__ import annotations

import re
from collections.abc import Sequence

# Name -> options that take a separate argument.
_WRAPPERS: dict[str, frozenset[str]] = {
    "time": frozenset({"-f", "-o"}),
    "command": frozenset(),
    "builtin": frozenset(),
    "exec": frozenset({"-a"}),
    "nohup": frozenset(),
    "setsid": frozenset(),
    "nice": frozenset({"-n"}),
    "ionice": frozenset({"-c", "-n"}),
    "stdbuf": frozenset({"-i", "-o", "-e"}),
    "sudo": frozenset({"-u", "-g", "-h", "-p", "-C", "-r", "-t", "-U"}),
    "env": frozenset({"-u", "-C", "-S"}),
    "timeout": frozenset({"-k", "-s", "--signal", "--kill-after"}),
    "xargs": frozenset({"-I", "-n", "-P", "-L", "-d", "-a", "-E", "-s"}),
}
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")


def unwrap(name: str, arguments: Sequence[str | None]) -> int | None:
    """The index among ``arguments`` of the inner program's name, ``len(arguments)`` when there is none; None when
    ``name`` wraps nothing.
    """
    taking = _WRAPPERS.get(name)
    if taking is None:
        return None
    at = 0
    while at < len(arguments):
        word = arguments[at]
        if word is None or word == "--":
            return at + (word == "--")
        if name == "command" and word in ("-v", "-V"):
            return len(arguments)
        if word.startswith("-") and word != "-":
            at += 2 if word in taking else 1
        elif name == "env" and _ASSIGNMENT.match(word):
            at += 1
        else:
            return at + (name == "timeout")
    return at
