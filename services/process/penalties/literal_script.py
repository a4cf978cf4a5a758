"""Scripts of other languages that only print literals (rule 4), by their tree-sitter grammars.

The test is one of closed worlds: every node of the tree is of a kind that the language's table allows, every call's
target is one of its print functions, and there is at least one print. Variables, interpolation, other calls,
assignments, definitions and control flow are in no table.
"""

from __future__ import annotations

import re
from collections.abc import Set
from dataclasses import dataclass

from tree_sitter import Node

from services.process.grammar import encode, parse_tree
from services.process.penalties import literal_python

LIMIT = 65_536


@dataclass(frozen=True, slots=True)
class _Language:
    """``allowed``: node types that are inert. ``calls``: node types of calls, whose target (all but the arguments, as
    text) must be in ``targets``. ``prints``: node types that print by themselves. ``arguments``: types that hold a
    call's arguments.
    """

    grammar: str
    allowed: Set[str]
    calls: Set[str]
    targets: Set[str]
    prints: Set[str] = frozenset()


_LANGUAGES = {
    "javascript": _Language(
        "javascript",
        {
            "program", "expression_statement", "empty_statement", "arguments", "string", "string_fragment",
            "escape_sequence", "template_string", "number", "true", "false", "null", "undefined", "array",
            "binary_expression", "unary_expression", "parenthesized_expression", "comment",
        },
        {"call_expression"},
        {
            "console.log", "console.info", "console.warn", "console.error", "console.debug",
            "process.stdout.write", "process.stderr.write",
        },
    ),
    "ruby": _Language(
        "ruby",
        {
            "program", "argument_list", "string", "string_content", "escape_sequence", "chained_string", "integer",
            "float", "simple_symbol", "true", "false", "nil", "array", "binary", "unary",
            "parenthesized_statements", "empty_statement", "comment",
        },
        {"call"},
        {
            "puts", "print", "p", "pp", "$stdout.puts", "$stdout.print", "$stdout.write", "$stderr.puts",
            "STDOUT.puts", "STDOUT.print", "STDOUT.write", "STDERR.puts",
        },
    ),
    "perl": _Language(
        "perl",
        {
            "source_file", "expression_statement", "list_expression", "string_literal",
            "interpolated_string_literal", "string_content", "escape_sequence", "number", "binary_expression",
            "unary_expression", "parenthesized_expression", "comment",
        },
        {"ambiguous_function_call_expression", "function_call_expression"},
        {"print", "say", "printf", "print STDOUT", "print STDERR", "printf STDERR", "say STDERR"},
    ),
    "php": _Language(
        "php",
        {
            "program", "expression_statement", "echo_statement", "print_intrinsic", "parenthesized_expression",
            "sequence_expression", "arguments", "argument", "encapsed_string", "string", "string_content",
            "escape_sequence", "integer", "float", "boolean", "null", "binary_expression", "unary_op_expression",
            "empty_statement", "comment",
        },
        {"function_call_expression"},
        {"printf", "print_r", "var_dump"},
        {"echo_statement", "print_intrinsic"},
    ),
}  # fmt: skip
_BLANKS = re.compile(r"\s+")


def only_prints_literals(language: str, code: str) -> bool:
    """True when ``code`` parses and does nothing but print literals, at least once. Unknown languages give False."""
    if len(code) > LIMIT:
        return False
    if language == "python":
        return literal_python.only_prints_literals(code)
    if language == "awk":
        return len(code) <= _AWK_LIMIT and _AWK.fullmatch(code) is not None
    table = _LANGUAGES.get(language)
    if table is None:
        return False
    data = encode(code)
    root = parse_tree(table.grammar, data)
    return root is not None and _closed(root, table, data)


# Awk has no kept grammar, but one BEGIN block of prints of string and number literals is regular. Longer texts are not
# matched: nobody prints a constant at such length, and the pattern may backtrack.
_AWK_LIMIT = 2_048
_AWK_STRING = r'"(?:[^"\\\n]|\\.)*"'
_AWK_LITERAL = rf"(?:{_AWK_STRING}|\d+)"
_AWK_PRINT = rf"printf?\s*\(?\s*{_AWK_LITERAL}(?:\s*,\s*{_AWK_LITERAL}|\s*{_AWK_STRING}|\s+\d+)*\s*\)?"
_AWK = re.compile(rf"\s*BEGIN\s*\{{\s*{_AWK_PRINT}(?:\s*[;\n]\s*{_AWK_PRINT})*\s*;?\s*(?:exit\s*;?\s*)?\}}\s*")


def _closed(root: Node, table: _Language, data: bytes) -> bool:
    printed = False
    pending = [root]
    while pending:
        node = pending.pop()
        if node.type in table.calls:
            arguments = node.child_by_field_name("arguments")
            end = node.end_byte if arguments is None else arguments.start_byte
            target = _BLANKS.sub(" ", data[node.start_byte : end].decode("utf-8", "replace")).rstrip("( ").strip()
            if target not in table.targets:
                return False
            printed = True
            if arguments is not None:
                pending.append(arguments)
            continue
        if node.type not in table.allowed:
            return False
        printed = printed or node.type in table.prints
        pending.extend(node.named_children)
    return printed
