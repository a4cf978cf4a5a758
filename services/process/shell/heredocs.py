"""Lifts heredocs out of shell text before it is parsed.

The grammar loses heredocs that share their first line with more commands (``cat <<'EOF'; echo done``) and its scanner
keeps only a bounded number of open ones. So each ``<<WORD`` becomes ``< PLACEHOLDER`` here and its body leaves the
text; the parser then sees ordinary redirections and looks the bodies up. A long single-quoted string leaves in the
same way: files and scripts are written through both, and the parser's own work stays small.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

STEM = "__heredoc"
_LONG_STRING = 1_024

_PLAIN = re.compile(r"[^\\'\"`$(){}<#\n]+")
_DELIMITER = re.compile(r"(?:\\[^\n]|'[^'\n]*'|\"[^\"\n]*\"|[^\s\\'\"|&;<>()])+")
_EXPANSION = re.compile(r"\$[A-Za-z_0-9({?!#@*$-]|`")
_ESCAPE = re.compile(r"\\([$`\\])|\\\n")


@dataclass(frozen=True, slots=True)
class Heredoc:
    """``body`` after escapes are undone; ``constant`` unless it expands something; ``runs`` when an expansion may run
    commands."""

    body: str
    constant: bool
    runs: bool = False


@dataclass(slots=True)
class _Pending:
    delimiter: str
    quoted: bool
    strip_tabs: bool
    placeholder: str


class _Scanner:
    """One pass over the text; ``contexts`` is the stack of open quotes and brackets."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.out: list[str] = []
        self.contexts: list[str] = []
        self.pending: list[_Pending] = []
        self.bodies: dict[str, Heredoc] = {}
        stem = STEM
        while stem in text:
            stem += "_"
        self.stem = stem

    def run(self) -> tuple[str, dict[str, Heredoc]] | None:
        text, size = self.text, len(self.text)
        while self.at < size:
            plain = _PLAIN.match(text, self.at)
            if plain:
                self.emit(plain.end())
                continue
            if not self.special(text[self.at]):
                return None
        return None if self.pending else ("".join(self.out), self.bodies)

    def emit(self, end: int) -> None:
        self.out.append(self.text[self.at : end])
        self.at = end

    def special(self, char: str) -> bool:
        """Consumes one special character and what belongs to it; False when the text cannot be shell."""
        text, at = self.text, self.at
        context = self.contexts[-1] if self.contexts else ""
        quoted = context == '"'
        if char == "\\":
            self.emit(at + 2)
        elif char == '"':
            if quoted:
                self.contexts.pop()
            else:
                self.contexts.append('"')
            self.emit(at + 1)
        elif char == "`":
            if "`" in self.contexts:
                while self.contexts.pop() != "`":
                    pass
            else:
                self.contexts.append("`")
            self.emit(at + 1)
        elif char == "$":
            opener = next((o for o in ("$((", "$(", "${") if text.startswith(o, at)), "$")
            if opener != "$":
                self.contexts.append(opener[1:])
            elif not quoted and text.startswith("$'", at):
                return self.ansi_string()
            self.emit(at + len(opener))
        elif char == "'" and not quoted:
            end = text.find("'", at + 1)
            if end < 0:
                return False
            if end - at > _LONG_STRING:
                placeholder = self.placeholder()
                self.bodies[placeholder] = Heredoc(text[at + 1 : end], True)
                self.out.append(f"'{placeholder}'")
                self.at = end + 1
            else:
                self.emit(end + 1)
        elif not quoted and char in "(){}":
            self.bracket(char, context)
        elif char == "#" and not quoted and (at == 0 or text[at - 1] in " \t\n;&|("):
            end = text.find("\n", at)
            self.emit(len(text) if end < 0 else end)
        elif char == "\n" and not quoted and self.pending:
            self.emit(at + 1)
            return self.read_bodies()
        elif char == "<" and not quoted and context not in ("((", "{") and text.startswith("<<", at):
            return self.operator()
        else:
            self.emit(at + 1)
        return True

    def placeholder(self) -> str:
        return f"{self.stem}{len(self.bodies) + len(self.pending)}"

    def ansi_string(self) -> bool:
        end = self.at + 2
        while end < len(self.text) and self.text[end] != "'":
            end += 2 if self.text[end] == "\\" else 1
        self.emit(end + 1)
        return True

    def bracket(self, char: str, context: str) -> None:
        width = 1
        if char == "(":
            opener = "((" if self.text.startswith("((", self.at) else "("
            self.contexts.append(opener)
            width = len(opener)
        elif char == ")" and context == "((" and self.text.startswith("))", self.at):
            self.contexts.pop()
            width = 2
        elif (char == ")" and context in ("(", "((")) or (char == "}" and context == "{"):
            self.contexts.pop()
        self.emit(self.at + width)

    def operator(self) -> bool:
        text = self.text
        if text.startswith("<<<", self.at):
            self.emit(self.at + 3)
            return True
        at = self.at + 2
        strip_tabs = text.startswith("-", at)
        at += strip_tabs
        while text.startswith((" ", "\t"), at):
            at += 1
        word = _DELIMITER.match(text, at)
        if not word:
            return False
        written = word.group()
        delimiter = re.sub(r"\\(.)|['\"]", lambda m: m.group(1) or "", written)
        placeholder = self.placeholder()
        self.pending.append(_Pending(delimiter, delimiter != written, strip_tabs, placeholder))
        self.out.append(f"< {placeholder} ")
        self.at = word.end()
        return True

    def read_bodies(self) -> bool:
        for heredoc in self.pending:
            lines: list[str] = []
            while True:
                if self.at >= len(self.text):
                    return False
                end = self.text.find("\n", self.at)
                end = len(self.text) if end < 0 else end
                line = self.text[self.at : end]
                self.at = end + 1
                line = line.lstrip("\t") if heredoc.strip_tabs else line
                if line == heredoc.delimiter:
                    break
                lines.append(line + "\n")
            self.bodies[heredoc.placeholder] = _finish("".join(lines), heredoc.quoted)
        self.pending.clear()
        return True


def _finish(body: str, quoted: bool) -> Heredoc:
    if quoted:
        return Heredoc(body, True)
    bare = re.sub(r"\\.", "", body)
    if _EXPANSION.search(bare):
        return Heredoc(body, False, "`" in bare or "$(" in bare)
    return Heredoc(_ESCAPE.sub(lambda m: m.group(1) or "", body), True)


def lift(text: str) -> tuple[str, dict[str, Heredoc]] | None:
    """The text without heredocs, and their bodies by placeholder; None when one is not terminated."""
    if "<<" not in text and len(text) < _LONG_STRING:
        return text, {}
    return _Scanner(text).run()
