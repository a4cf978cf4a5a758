"""Python source that only prints literals (rule 4, lean4agenticrl Appendix I.2).

A literal is a constant, a container or an f-string of literals, or an operator applied to literals (``"=" * 60``).
Beside prints the tree may hold what does nothing: docstrings, ``pass``, ``import sys``, ``import time``, a literal
``time.sleep``, ``exit()``; and control flow that is itself literal: ``if True``, the main guard, ``for`` over
literals. No other name, call, assignment or definition, so nothing can be read, changed or redefined. Any other import
may fail on another machine: it inspects the task's environment.
"""

from __future__ import annotations

import ast
import warnings

_HARMLESS_MODULES = {"sys", "time"}
_PRINTS = {"print", "sys.stdout.write", "sys.stderr.write"}
_NOTHING = {"exit", "quit", "sys.exit", "sys.stdout.flush", "sys.stderr.flush", "time.sleep"}
_CALLED = {"print", "sys", "time", "range", "exit", "quit"}  # names that a loop variable must not take
_STREAMS = {"sys.stdout", "sys.stderr"}


def only_prints_literals(code: str) -> bool:
    """True for code whose whole effect is to print literals, at least once. Code that does not parse gives False."""
    if "print" not in code and "write" not in code:
        return False
    try:
        with warnings.catch_warnings():  # a later Python would print a candidate's own line for "\d"
            warnings.simplefilter("ignore")
            module = ast.parse(code)
        return _block(module.body) and any(_printing(node) for node in ast.walk(module))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False


def _printing(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and _dotted(node.func) in _PRINTS


def _block(body: list[ast.stmt]) -> bool:
    return all(_statement(statement) for statement in body)


def _statement(node: ast.stmt) -> bool:
    if isinstance(node, ast.Expr):
        return _call(node.value) if isinstance(node.value, ast.Call) else _literal(node.value)
    if isinstance(node, ast.Pass):
        return True
    if isinstance(node, ast.Import):
        return all(alias.name in _HARMLESS_MODULES and alias.asname is None for alias in node.names)
    if isinstance(node, ast.If):
        return (_literal(node.test) or _main_guard(node.test)) and _block(node.body) and _block(node.orelse)
    if isinstance(node, ast.For):
        looped = _literal(node.iter) or _range(node.iter)
        # The loop variable must not be a name that a print uses.
        free = isinstance(node.target, ast.Name) and node.target.id not in (
            "print",
            "sys",
            "time",
            "range",
            "exit",
            "quit",
        )
        return looped and free and _block(node.body) and _block(node.orelse)
    return False


def _call(node: ast.Call) -> bool:
    name = _dotted(node.func)
    if name not in _PRINTS and name not in _NOTHING:
        return False
    if not all(_literal(arg.value if isinstance(arg, ast.Starred) else arg) for arg in node.args):
        return False
    return all(k.arg is not None and (_literal(k.value) or _stream(k)) for k in node.keywords)


def _stream(keyword: ast.keyword) -> bool:
    return keyword.arg == "file" and _dotted(keyword.value) in _STREAMS


def _range(node: ast.expr) -> bool:
    return (
        isinstance(node, ast.Call)
        and _dotted(node.func) == "range"
        and all(map(_literal, node.args))
        and not node.keywords
    )


def _main_guard(node: ast.expr) -> bool:
    return (
        isinstance(node, ast.Compare)
        and isinstance(node.left, ast.Name)
        and node.left.id == "__name__"
        and all(_literal(side) for side in node.comparators)
    )


def _literal(node: ast.AST) -> bool:
    if isinstance(node, ast.Constant):
        return True
    if isinstance(node, ast.UnaryOp):
        return _literal(node.operand)
    if isinstance(node, ast.BinOp):
        return _literal(node.left) and _literal(node.right)
    if isinstance(node, ast.Tuple | ast.List | ast.Set):
        return all(_literal(item) for item in node.elts)
    if isinstance(node, ast.Dict):
        return all(key is not None and _literal(key) for key in node.keys) and all(map(_literal, node.values))
    if isinstance(node, ast.JoinedStr):
        return all(_literal(part) for part in node.values)
    if isinstance(node, ast.FormattedValue):
        return _literal(node.value) and (node.format_spec is None or _literal(node.format_spec))
    return False


def _dotted(node: ast.AST) -> str:
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join(reversed([*parts, node.id])) if isinstance(node, ast.Name) else ""
