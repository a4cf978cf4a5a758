"""tree-sitter behind one bounded call, for the shell and for the script languages."""

from __future__ import annotations

import ctypes
import importlib
import re
import threading
import time

from tree_sitter import Language, Node, Parser

NODES = 20_000
_GUARDED_BYTES = 2_048  # below this the worst text costs milliseconds, and the guard would cost more than it saves
_BUDGET_S = 0.02
_BUDGET_PER_BYTE_S = 1e-6

# Grammar name -> (module, function that gives the language).
_GRAMMARS = {
    "bash": ("tree_sitter_bash", "language"),
    "javascript": ("tree_sitter_javascript", "language"),
    "perl": ("tree_sitter_perl", "language"),
    "php": ("tree_sitter_php", "language_php_only"),
    "ruby": ("tree_sitter_ruby", "language"),
}
_local = threading.local()


def _parser(name: str) -> Parser:
    parsers: dict[str, Parser] = _local.__dict__.setdefault("parsers", {})
    if name not in parsers:
        module, function = _GRAMMARS[name]
        parsers[name] = Parser(Language(_capsule(getattr(importlib.import_module(module), function)())))
    return parsers[name]


def encode(text: str) -> bytes:
    """UTF-8 for a parser. Lone surrogates and NUL, which no shell or interpreter can be given, become U+FFFD."""
    try:
        data = text.encode()
    except UnicodeEncodeError:
        data = re.sub("[\ud800-\udfff]", "\ufffd", text).encode()
    return data.replace(b"\0", b"\xef\xbf\xbd")


def _capsule(language: object) -> object:
    """A grammar's language as the capsule that tree-sitter wants; some grammars still hand out a bare address."""
    if not isinstance(language, int):
        return language
    make = ctypes.pythonapi.PyCapsule_New
    make.restype, make.argtypes = ctypes.py_object, (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
    capsule: object = make(language, b"tree_sitter.Language", None)
    return capsule


def parse_tree(name: str, data: bytes) -> Node | None:
    """The root of ``data``'s tree, or None when it does not parse whole.

    tree-sitter's error recovery can take minutes and gigabytes on a hostile text of 200 KB, so a text over 2 KiB gets
    20 ms and 1 microsecond a byte of this thread's CPU time, two to three times what a correct text needs. A tree of
    more than ``NODES`` nodes counts as unparsed too.
    """
    parser = _parser(name)
    if len(data) <= _GUARDED_BYTES:
        tree = parser.parse(data)
    else:
        deadline = time.thread_time() + _BUDGET_S + _BUDGET_PER_BYTE_S * len(data)
        try:
            tree = parser.parse(
                lambda offset, _point: data[offset : offset + 65_536],
                progress_callback=lambda _offset, _has_error: time.thread_time() > deadline,
            )
        except ValueError:  # cancelled
            parser.reset()
            return None
    if tree is None or tree.root_node.has_error or tree.root_node.descendant_count > NODES:
        return None
    return tree.root_node
