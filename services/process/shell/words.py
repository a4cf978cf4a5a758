"""Words of a shell command: quote removal, what is constant, and the normal form of what is not."""

from __future__ import annotations

import re
import shlex
from abc import abstractmethod

from tree_sitter import Node as Tree

from services.process.shell import heredocs
from services.process.shell.syntax import Assignment, Script, Word

DEPTH = 60

WORDS = {
    "word", "number", "string", "raw_string", "ansi_c_string", "translated_string", "concatenation",
    "brace_expression", "variable_name",
}  # fmt: skip
EXPANSIONS = {
    "simple_expansion", "expansion", "command_substitution", "arithmetic_expansion", "process_substitution",
}  # fmt: skip
_GLOB = re.compile(r"(?<!\\)[*?\[]")
_BRACES = re.compile(r"\{([^{}\s]*)\}")
_ESCAPED = re.compile(r"\\(\n|.)", re.DOTALL)
_QUOTED_ESCAPE = re.compile(r"\\([$`\"\\]|\n)")
_SAFE = re.compile(r"[A-Za-z0-9_@%+=:,./-]+")
_PLACEHOLDER = re.compile(rf"(?:< |')({heredocs.STEM}_*\d+)(?: |')")
_ANSI = {"a": "\a", "b": "\b", "e": "\x1b", "E": "\x1b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


class Unsupported(Exception):
    """The tree is too deep, too large, or of a shape that is not a command."""


def quote(value: str) -> str:
    """The one way in which a literal word is written in a normal form."""
    return value if _SAFE.fullmatch(value) else shlex.quote(value)


def _expands_braces(text: str) -> bool:
    """Whether a word holds ``{a,b}`` or ``{1..3}``, which makes several words of it."""
    return any("," in inner or ".." in inner for inner in _BRACES.findall(text))


class WordReader:
    """Reads words out of one parsed text. The scripts inside substitutions are the subclass's business."""

    def __init__(self, data: bytes, bodies: dict[str, heredocs.Heredoc]) -> None:
        self.data = data
        self.bodies = bodies
        self.depth = 0

    @abstractmethod
    def script(self, children: list[Tree]) -> Script:
        """The commands of a substitution."""

    def raw(self, node: Tree) -> str:
        """A node's text; what was lifted out of it is written back, so that normal forms differ where texts do."""
        text = self.data[node.start_byte : node.end_byte].decode("utf-8", "replace")
        if self.bodies and heredocs.STEM in text:
            return _PLACEHOLDER.sub(self.restore, text)
        return text

    def restore(self, match: re.Match[str]) -> str:
        lifted = self.bodies.get(match.group(1))
        if lifted is None:
            return match.group()
        return f"'{lifted.body}'" if match.group().startswith("'") else f"<<{shlex.quote(lifted.body)}"

    def assignment(self, node: Tree) -> Assignment:
        name = node.child_by_field_name("name")
        value = node.child_by_field_name("value")
        label = self.raw(name) if name is not None else ""
        word = Word("", "", True) if value is None else self.word(value)
        operator = "+=" if any(child.type == "+=" for child in node.children) else "="
        return Assignment(label, word, f"{label}{operator}{word.text}")

    def argument(self, node: Tree) -> Word:
        if node.type != "variable_assignment":
            return self.word(node) if node.is_named else self.literal(self.raw(node))
        made = self.assignment(node)
        value = None if made.word.value is None else f"{made.name}={made.word.value}"
        return Word(made.text, value, made.word.constant, made.word.scripts, made.word.opaque)

    def literal(self, value: str) -> Word:
        return Word(quote(value), value, True)

    def word(self, node: Tree) -> Word:
        if node.type == "word":  # most words are short and plain
            raw = self.raw(node)
            if _SAFE.fullmatch(raw):
                return Word(raw, raw, True)
        self.depth += 1
        if self.depth > DEPTH:
            raise Unsupported
        try:
            return self.part(node)
        finally:
            self.depth -= 1

    def part(self, node: Tree) -> Word:
        kind = node.type
        raw = self.raw(node)
        if kind in ("word", "number", "variable_name", "special_variable_name"):
            return self.bare(raw, node)
        if kind == "raw_string":
            return self.literal(raw[1:-1])  # `raw` has put a lifted string back
        if kind == "string":
            if any(child.type in EXPANSIONS for child in node.children):
                return Word(raw, None, False, self.nested(node))
            return self.literal(_QUOTED_ESCAPE.sub(lambda m: "" if m.group(1) == "\n" else m.group(1), raw[1:-1]))
        if kind == "ansi_c_string":
            inner = re.sub(r"\\([abeEfnrtv\\'\"?])", lambda m: _ANSI.get(m.group(1), m.group(1)), raw[2:-1])
            return self.literal(inner) if "\\" not in raw[2:-1].replace("\\\\", "") else Word(raw, inner, True)
        if kind == "translated_string":
            return self.part(node.named_children[0])
        if kind == "brace_expression":
            return Word(raw, None, True)
        if kind == "concatenation":
            return self.joined([self.word(child) for child in node.children])
        if not node.is_named:
            return self.literal(raw)
        return Word(self.tokens(node) if kind == "array" else raw, None, False, self.nested(node))

    def bare(self, raw: str, node: Tree) -> Word:
        if _SAFE.fullmatch(raw):
            return Word(raw, raw, True)
        if raw.startswith("~") or _GLOB.search(raw):
            return Word(raw, None, False)
        if _expands_braces(raw):
            return Word(raw, None, True)
        if node.child_count and any(child.type in EXPANSIONS for child in node.children):
            return Word(raw, None, False, self.nested(node))
        return self.literal(_ESCAPED.sub(lambda m: "" if m.group(1) == "\n" else m.group(1), raw))

    def joined(self, parts: list[Word]) -> Word:
        scripts = tuple(script for part in parts for script in part.scripts)
        opaque = any(part.opaque for part in parts)
        constant = all(part.constant for part in parts)
        values = [part.value for part in parts]
        if constant and None not in values:
            value = "".join(v for v in values if v is not None)
            # A glob or a brace that only forms across the parts: `a{b,"c"}`.
            text = "".join(part.text for part in parts)
            if _expands_braces(text):
                return Word(text, None, True)
            return self.literal(value)
        return Word("".join(part.text for part in parts), None, constant, scripts, opaque)

    def nested(self, node: Tree) -> tuple[Script, ...]:
        """The scripts of every substitution at or below ``node``, outermost ones (they hold the inner ones)."""
        found: list[Script] = []
        pending = [node]
        while pending:
            current = pending.pop()
            if current.type in ("command_substitution", "process_substitution"):
                self.depth += 1
                if self.depth > DEPTH:
                    raise Unsupported
                found.append(self.script(current.children))
                self.depth -= 1
            elif current.type in ("command", "pipeline", "list", "redirected_statement"):
                found.append(self.script([current]))
            else:
                pending.extend(reversed(current.children))
        return tuple(found)

    def tokens(self, node: Tree) -> str:
        """Leaves joined by one blank, words in their normal form: the normal form of what has no better one."""
        parts: list[str] = []
        pending = [node]
        while pending:
            current = pending.pop()
            if current.type in WORDS:
                parts.append(self.word(current).text)
            elif current.child_count == 0 or current.type in EXPANSIONS:
                parts.append(self.raw(current).strip() or ";")
            else:
                pending.extend(reversed(current.children))
        return " ".join(parts)
