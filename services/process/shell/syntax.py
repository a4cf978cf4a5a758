"""The shape of a parsed shell command.

Every node carries ``text``, its normal form: comments gone, blanks single, quotes written one way, newlines and
trailing separators folded, heredoc bodies inlined. Two commands are the same command exactly when their normal forms
are equal. What is *not* folded: the order of words, operators (``;`` is not ``&&``), quoting that changes the meaning
(``*.py`` is not ``'*.py'``), letter case, and expansions (``$x`` is not ``"$x"``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Union


@dataclass(frozen=True, slots=True)
class Word:
    """One word after quote removal.

    ``value`` is the string that the shell passes on, None where it depends on the machine (an expansion, a glob, a
    tilde) or where it is several words (braces). ``constant`` says that it is the same on every machine. ``scripts``
    are the commands that run to expand it. ``opaque`` marks an expansion that this parser does not look into.
    """

    text: str
    value: str | None = None
    constant: bool = False
    scripts: tuple[Script, ...] = ()
    opaque: bool = False


@dataclass(frozen=True, slots=True)
class Assignment:
    name: str
    word: Word
    text: str


@dataclass(frozen=True, slots=True)
class Redirect:
    """``operator`` as written (``<<`` for a heredoc, whose body is the target), ``descriptor`` or ''."""

    operator: str
    descriptor: str
    target: Word
    text: str


@dataclass(frozen=True, slots=True)
class Simple:
    """A simple command: ``FOO=1 name arg > file``."""

    text: str
    words: tuple[Word, ...]
    assignments: tuple[Assignment, ...] = ()
    redirects: tuple[Redirect, ...] = ()


@dataclass(frozen=True, slots=True)
class Pipeline:
    text: str
    stages: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Group:
    """A compound command. ``kind`` is ``(``, ``{``, ``!``, ``if``, ``while``, ``until``, ``for``, ``select``, ``case``,
    ``function``, ``[[`` (any test), ``((`` or ``opaque`` (not understood)."""

    text: str
    kind: str
    bodies: tuple[Script, ...] = ()
    words: tuple[Word, ...] = ()
    redirects: tuple[Redirect, ...] = ()
    name: str = ""


Node = Union[Simple, Pipeline, Group, "Script"]


@dataclass(frozen=True, slots=True)
class Script:
    """Commands in order. ``separators[i]`` (``;``, ``&``, ``&&``, ``||``) stands between items i and i + 1; a trailing
    ``&`` is kept as one more separator, every other trailing separator is dropped.
    """

    text: str
    items: tuple[Node, ...] = ()
    separators: tuple[str, ...] = ()
