"""What a parsed shell command does, as the set of kinds of its parts.

The syntactic rules are statements about that set: rule 2 is "only NOTHING", rule 3 "PRINTS, else at most NOTHING",
rule 4 "PRINTS_BY_SCRIPT, else at most PRINTS or NOTHING"; rule 6 asks whether anything changes the environment.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum

from services.process.penalties import interpreters, literal_script, programs, wrappers
from services.process.shell import Group, Node, Pipeline, Redirect, Script, Simple, Word, parse


class Kind(Enum):
    """What one simple command does."""

    NOTHING = "nothing"  # true, :, exit, numeric sleep
    PRINTS = "prints"  # constant text through echo, printf or cat
    PRINTS_BY_SCRIPT = "prints by script"  # a script of literal prints
    INSPECTS = "inspects"  # reads, or prints what it read
    SETS = "sets"  # shell state to a constant (cd /x, X=1, export): doing it twice is doing it once
    SHIFTS = "shifts"  # shell state relative to what it was (cd .., pushd)
    MODIFIES = "modifies"  # writes files, installs, kills; or may: a program that is not known

    __hash__ = object.__hash__  # sets of kinds are made for every word; Enum's own hash is Python code


@dataclass(frozen=True, slots=True)
class Behaviour:
    """``settings`` is the shell state that the command sets before it does anything else (``("cwd", "/x")``);
    ``modifies`` is whether it may change the environment, or shell state in any other way; ``first_line`` is the first
    line of its constant output, where it has one.
    """

    kinds: frozenset[Kind]
    settings: frozenset[tuple[str, str]] = frozenset()
    modifies: bool = False
    first_line: str | None = None


@dataclass(frozen=True, slots=True)
class _Output:
    """What a command is known to print, for the next one of its pipeline: a constant, its text where it is known."""

    text: str | None


_Effect = tuple["set[Kind]", "_Output | None"]
_DEPTH = 6  # of bash -c inside eval inside bash -c
_BIN = re.compile(r"(?:/usr(?:/local)?)?/s?bin/")
_NUMBER = re.compile(r"(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?[smhd]?")
_CAT_OPTION = re.compile(r"-[AbeEnstTuv]+|-|--(?:number|show-\w+|squeeze-blank)")
_HARMLESS_TARGETS = {"/dev/null", "/dev/stdout", "/dev/stderr", "/dev/tty", "/dev/fd/1", "/dev/fd/2"}
# Variables that decide which code a command runs.
_LOADING = {"PATH", "LD_PRELOAD", "LD_LIBRARY_PATH", "BASH_ENV", "ENV", "IFS", "PYTHONSTARTUP", "NODE_OPTIONS"}
_DECLARATIONS = {"export", "declare", "typeset", "readonly", "local"}
_TEST_MODULES = {"pytest", "unittest", "nose", "nose2", "doctest", "mypy", "flake8", "pylint", "json.tool"}


def behaviour_of(script: Script) -> Behaviour:
    """The behaviour of a whole command. Pure; the depth of recursion is bounded by the parser's."""
    look = _Look()
    settings: dict[str, str] = {}
    kinds: set[Kind] = set()
    leading = True
    for item in script.items:
        seen, _ = look.node(item, None, 0)
        if leading and seen <= {Kind.SETS, Kind.NOTHING}:
            settings.update(look.settings)
        elif Kind.SETS in seen or leading:
            leading = False
            if Kind.SETS in seen:
                seen = seen | {Kind.SHIFTS}
        look.settings.clear()
        kinds |= seen
    modifies = bool(kinds & {Kind.MODIFIES, Kind.SHIFTS})
    return Behaviour(frozenset(kinds), frozenset(settings.items()), modifies, look.first_line)


class _Look:
    def __init__(self) -> None:
        self.settings: dict[str, str] = {}
        self.first_line: str | None = None
        self.printed = False

    def script(self, script: Script, depth: int) -> _Effect:
        kinds: set[Kind] = set()
        texts: list[str | None] = []
        for item in script.items:
            seen, output = self.node(item, None, depth)
            kinds |= seen
            texts.append(output.text if output else None)
        constant = bool(kinds & {Kind.PRINTS, Kind.PRINTS_BY_SCRIPT}) and kinds <= _SILENT_OR_CONSTANT
        known = [t for t in texts if t is not None]
        return kinds, _Output("".join(known) if len(known) == len(texts) else None) if constant else None

    def node(self, node: Node, stdin: _Output | None, depth: int) -> _Effect:
        if isinstance(node, Simple):
            return self.simple(node, stdin, depth)
        if isinstance(node, Pipeline):
            return self.pipeline(node, depth)
        if isinstance(node, Script):
            return self.script(node, depth)
        return self.group(node, depth)

    def pipeline(self, node: Pipeline, depth: int) -> _Effect:
        kinds: set[Kind] = set()
        output: _Output | None = None
        before = dict(self.settings)
        for index, stage in enumerate(node.stages):
            seen, made = self.node(stage, output, depth)
            # A constant that a program reads is its input, no longer a print of its own.
            if index and not seen <= {Kind.PRINTS, Kind.NOTHING}:
                kinds -= {Kind.PRINTS}
            kinds |= {Kind.INSPECTS if k in (Kind.SETS, Kind.SHIFTS) else k for k in seen}
            output = made
        self.settings = before
        return kinds, output

    def group(self, node: Group, depth: int) -> _Effect:
        if node.kind in ("function", "opaque"):
            return {Kind.MODIFIES}, None  # may redefine any command, or is not understood
        kinds, _ = self.redirects(node.redirects, depth)
        for word in node.words:
            kinds |= self.word(word, depth)
        before = dict(self.settings)
        output: _Output | None = None
        for body in node.bodies:
            seen, output = self.script(body, depth)
            kinds |= seen
        if node.kind == "[[":
            kinds.add(Kind.INSPECTS)
        elif node.kind == "((":
            kinds.add(Kind.SHIFTS)
        elif node.kind == "(":
            kinds = {Kind.INSPECTS if k in (Kind.SETS, Kind.SHIFTS) else k for k in kinds}
            self.settings = before
        return kinds, output if node.kind in ("(", "{") and not node.redirects else None

    def word(self, word: Word, depth: int) -> set[Kind]:
        """What expanding a word does: a constant does nothing, else it reads, and runs what is substituted."""
        if word.constant:
            return set()
        kinds = {Kind.MODIFIES if word.opaque else Kind.INSPECTS}
        for script in word.scripts:
            kinds |= self.script(script, depth)[0] - {Kind.NOTHING, Kind.PRINTS, Kind.PRINTS_BY_SCRIPT, Kind.SETS}
        return kinds

    def redirects(self, redirects: tuple[Redirect, ...], depth: int) -> _Effect:
        """What redirections do, and the standard input that they give."""
        kinds: set[Kind] = set()
        stdin: _Output | None = None
        for redirect in redirects:
            kinds |= self.word(redirect.target, depth)
            operator, target = redirect.operator, redirect.target.value
            if operator in ("<<", "<<<", "<"):
                constant = operator != "<" and redirect.target.constant
                if operator == "<":
                    kinds.add(Kind.INSPECTS)
                stdin = _Output(target) if constant and redirect.descriptor == "" else None
            elif operator in (">&", "<&") and target is not None and re.fullmatch(r"\d+-?|-", target):
                continue
            elif target not in _HARMLESS_TARGETS:
                kinds.add(Kind.MODIFIES)
        return kinds, stdin

    def simple(self, node: Simple, stdin: _Output | None, depth: int) -> _Effect:
        kinds, given = self.redirects(node.redirects, depth)
        stdin = given if any(r.operator.startswith("<") for r in node.redirects) else stdin
        for assignment in node.assignments:
            kinds |= self.word(assignment.word, depth)
        if not node.words:
            for assignment in node.assignments:
                self.settings[f"var {assignment.name}"] = assignment.text
                kinds.add(Kind.SETS if assignment.word.constant else Kind.SHIFTS)
            return kinds, None
        if any(assignment.name in _LOADING for assignment in node.assignments):
            kinds.add(Kind.MODIFIES)
        for word in node.words:
            kinds |= self.word(word, depth)
        name = node.words[0].value
        if name is None:
            return kinds | {Kind.MODIFIES}, None
        seen, output = self.run(_BIN.sub("", name) if name.startswith("/") else name, node.words[1:], stdin, depth)
        printing = seen & {Kind.PRINTS, Kind.PRINTS_BY_SCRIPT}
        if printing and not self.printed:
            self.printed = True
            self.first_line = output.text.split("\n", 1)[0] if output and output.text else None
        return kinds | seen, output

    def run(self, name: str, words: tuple[Word, ...], stdin: _Output | None, depth: int) -> _Effect:
        """What a program does with these arguments; what expanding them does is counted by the caller."""
        constant = all(word.constant for word in words)
        values = [word.value for word in words]
        if name in ("true", ":", "exit"):
            return {Kind.NOTHING if constant else Kind.INSPECTS}, None
        if name == "sleep":
            numeric = bool(values) and all(v is not None and _NUMBER.fullmatch(v) for v in values)
            return {Kind.NOTHING if numeric else Kind.INSPECTS}, None
        if name in ("echo", "printf"):
            if name == "printf" and values[:1] == ["-v"]:
                return {Kind.SHIFTS}, None
            clock = name == "printf" and any("%(" in (value or "") for value in values)  # prints the time
            if clock or not constant:
                return {Kind.INSPECTS}, None
            return {Kind.PRINTS}, _Output(_printed(name, values))
        if name == "cat" and all(v is not None and _CAT_OPTION.fullmatch(v) for v in values):
            return ({Kind.PRINTS}, stdin) if stdin else ({Kind.INSPECTS}, None)
        if name == "tee":
            files = [v for v in values if v is None or not (v.startswith("-") or v in _HARMLESS_TARGETS)]
            if files:
                return {Kind.MODIFIES}, None
            return ({Kind.PRINTS}, stdin) if stdin else ({Kind.INSPECTS}, None)
        if name in _STATE:
            return self.state(name, words)
        if name == "eval":
            return self.code(None if None in values else " ".join(v or "" for v in values), depth)
        inner = wrappers.unwrap(name, values)
        if inner is not None:
            return self.wrapped(name, words, inner, stdin, depth)
        started = interpreters.start(name, values, stdin.text if stdin else None)
        if started is not None and not (started.language == "awk" and stdin is None and started.code is None):
            return self.interpreter(name, started, values, depth)
        return {Kind.INSPECTS if programs.inspects(name, values) else Kind.MODIFIES}, None

    def wrapped(self, name: str, words: tuple[Word, ...], at: int, stdin: _Output | None, depth: int) -> _Effect:
        """A program that runs another one, whose name is word ``at``; at the end when there is none."""
        if at >= len(words):
            return {Kind.SHIFTS if name == "exec" else Kind.INSPECTS}, None
        inner = words[at].value
        if inner is None or depth >= _DEPTH:
            return {Kind.MODIFIES}, None
        inner = _BIN.sub("", inner) if inner.startswith("/") else inner
        if name == "xargs":  # its arguments come from its input
            seen, _ = self.run(inner, words[at + 1 :], None, depth + 1)
            return {Kind.INSPECTS if k in (Kind.PRINTS, Kind.NOTHING) else k for k in seen}, None
        return self.run(inner, words[at + 1 :], stdin, depth + 1)

    def interpreter(self, name: str, started: interpreters.Start, values: list[str | None], depth: int) -> _Effect:
        if started.asks:
            return {Kind.INSPECTS}, None
        if started.language == "shell":
            return self.code(started.code, depth)
        if started.module:
            module, rest = started.module[0], started.module[1:]
            unlisted = module in _TEST_MODULES and not programs.inspects(module, ())  # as a program of its own
            reads = unlisted or (module in _TEST_MODULES | {"pip"} and programs.inspects(module, rest))
            return {Kind.INSPECTS if reads else Kind.MODIFIES}, None
        if started.code is not None and literal_script.only_prints_literals(started.language, started.code):
            return {Kind.PRINTS_BY_SCRIPT}, _Output(None)
        reads = started.language == "awk" and programs.inspects(name, values)
        return {Kind.INSPECTS if reads else Kind.MODIFIES}, None

    def code(self, text: str | None, depth: int) -> _Effect:
        """Shell text that a shell is given to run."""
        script = parse(text) if text is not None and depth < _DEPTH else None
        if script is None:
            return {Kind.MODIFIES}, None
        before = dict(self.settings)
        kinds, output = self.script(script, depth + 1)
        self.settings = before
        return {Kind.INSPECTS if k in (Kind.SETS, Kind.SHIFTS) else k for k in kinds}, output

    def state(self, name: str, words: tuple[Word, ...]) -> _Effect:
        """Builtins that change the shell's own state."""
        if name == "cd":
            target = words[-1] if words else None
            fixed = target is None or target.text in ("~", '"$HOME"', "$HOME") or (target.value or "").startswith("/")
            if fixed:
                self.settings["cwd"] = target.text if target else "~"
            return {Kind.SETS if fixed else Kind.SHIFTS}, None
        if name in _DECLARATIONS:
            named = [w for w in words if not w.text.startswith("-")]
            if not named:
                return {Kind.INSPECTS}, None
            self.settings.update({"var " + w.text.split("=", 1)[0]: w.text for w in named})
            return {Kind.SETS if all(w.constant for w in named) else Kind.SHIFTS}, None
        if name in _SETTERS:
            if not words or (name == "ulimit" and words[0].value == "-a"):
                return {Kind.INSPECTS}, None
            self.settings[f"{name} {' '.join(w.text for w in words)}"] = ""
            return {Kind.SETS}, None
        return {Kind.SHIFTS}, None


_SILENT_OR_CONSTANT = {Kind.NOTHING, Kind.PRINTS, Kind.PRINTS_BY_SCRIPT}
_SETTERS = {"set", "shopt", "umask", "ulimit", "unset", "trap"}
_STATE = _DECLARATIONS | _SETTERS | {"cd", "pushd", "popd", "alias", "unalias", "let"}


def _printed(name: str, values: list[str | None]) -> str | None:
    """The text that a constant echo or printf prints, where that is simple to say."""
    words = [v for v in values if v is not None]
    if len(words) < len(values):
        return None
    if name == "echo":
        newline = "\n"
        while words and re.fullmatch(r"-[neE]+", words[0]):
            newline = "" if "n" in words[0] else newline
            words.pop(0)
        return " ".join(words) + newline
    if not words:
        return ""
    template, arguments = words[0].replace("\\n", "\n"), words[1:]
    if "%" not in template:
        return template
    if template in ("%s", "%s\n"):
        return "".join(template.replace("%s", a) for a in arguments)
    return None
