"""Finds the code that an interpreter is started with: in ``-c`` or ``-e``, or on its standard input."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

_PYTHON = re.compile(r"(?:python|pypy)(?:\d+(?:\.\d+)*)?|ipython3?")
_NAMES = {
    "node": "javascript", "nodejs": "javascript", "bun": "javascript", "ruby": "ruby", "perl": "perl", "php": "php",
    "bash": "shell", "sh": "shell", "zsh": "shell", "dash": "shell", "ksh": "shell", "ash": "shell",
    "awk": "awk", "gawk": "awk", "mawk": "awk",
}  # fmt: skip
# Options that take the code, options that take some other argument, and options that do nothing to the meaning.
_CODE = {
    "python": re.compile(r"-[bBdEiIOqsSuvx]*c"),
    "javascript": re.compile(r"-e|--eval"),
    "ruby": re.compile(r"-[wW]*e"),
    "perl": re.compile(r"-[wlMmW]*[eE]"),
    "php": re.compile(r"-r"),
    "shell": re.compile(r"-[abefhiklmnptuvxBCHP]*c"),
}
_VERSION_V = {"javascript", "ruby", "perl", "php"}  # elsewhere -v means verbose
_ATTACHED = {"python": "-c", "perl": "-e", "ruby": "-e", "php": "-r"}  # the code may follow in the same word
_ARGUMENT = {
    "python": {"-W", "-X"},
    "shell": {"-o", "-O", "--rcfile", "--init-file"},
    "javascript": {"-r", "--require"},
}


@dataclass(frozen=True, slots=True)
class Start:
    """How an interpreter is started. ``code`` is None when it is not known; ``module`` is Python's ``-m``; ``asks``
    when it only prints its version or checks syntax.
    """

    language: str
    code: str | None = None
    module: tuple[str, ...] = ()
    asks: bool = False


def language_of(name: str) -> str | None:
    if _PYTHON.fullmatch(name):
        return "python"
    return _NAMES.get(name)


def start(name: str, arguments: Sequence[str | None], stdin: str | None) -> Start | None:
    """What ``name arguments`` runs; None when ``name`` is no interpreter. ``stdin`` is its input when that is known."""
    language = language_of(name)
    if language is None:
        return None
    if language == "awk":
        return Start("awk", arguments[0] if len(arguments) == 1 else None)
    rest = list(arguments)
    while rest:
        word = rest.pop(0)
        if word is None:
            return Start(language)
        if word == "-":
            return Start(language, stdin)
        if not word.startswith("-"):
            return Start(language)  # a script file: its content is not known
        if word in ("--version", "-V", "-version", "--help") or (word == "-v" and language in _VERSION_V):
            return Start(language, asks=True)
        attached = _ATTACHED.get(language)
        if attached and word.startswith(attached) and len(word) > 2:
            return Start(language, word[2:])
        if _CODE[language].fullmatch(word):
            return Start(language, rest[0] if rest else None)
        if language == "python" and word == "-m":
            return Start(language, module=tuple(part or "" for part in rest))
        if language == "shell" and word == "-n":
            return Start(language, asks=True)
        if word in _ARGUMENT.get(language, ()) and rest:
            rest.pop(0)
        elif language in ("perl", "ruby") and re.search(r"[nipa]", word[1:]):
            return Start(language)  # loops over its input, or edits files in place
    return Start(language, stdin)
