"""Just enough of the WebAssembly binary format to find an exported function's body and to write a short new one.

Source: WebAssembly core specification, chapter 5 (binary format). Every replacement keeps its length, so that no
offset in the module moves.
"""

from __future__ import annotations

from enum import IntEnum

_MAGIC = b"\0asm\x01\0\0\0"

UNREACHABLE = b"\x00"
NOP = b"\x01"
END = b"\x0b"
DROP = b"\x1a"
I32_EQZ = b"\x45"


class _Section(IntEnum):
    IMPORT = 2
    EXPORT = 7
    CODE = 10


class _Kind(IntEnum):
    FUNCTION = 0
    TABLE = 1
    MEMORY = 2
    GLOBAL = 3
    TAG = 4


class WasmError(ValueError):
    """The bytes are not the module that was expected."""


def unsigned(value: int) -> bytes:
    """LEB128 of an unsigned integer."""
    out = bytearray()
    while True:
        low = value & 0x7F
        value >>= 7
        if not value:
            return bytes([*out, low])
        out.append(low | 0x80)


def signed(value: int) -> bytes:
    """LEB128 of a signed integer."""
    out = bytearray()
    while True:
        low = value & 0x7F
        value >>= 7
        if value == (-1 if low & 0x40 else 0):
            return bytes([*out, low])
        out.append(low | 0x80)


def local_get(index: int) -> bytes:
    return b"\x20" + unsigned(index)


def i32_const(value: int) -> bytes:
    return b"\x41" + signed(value)


def call(function: int) -> bytes:
    return b"\x10" + unsigned(function)


def i32_load(offset: int) -> bytes:
    """`i32.load` with an alignment of four bytes."""
    return b"\x28\x02" + unsigned(offset)


IF = b"\x04"  # its block type follows in the original bytes


class Module:
    """The bytes of a module and where its exported functions lie."""

    def __init__(self, data: bytes) -> None:
        if not data.startswith(_MAGIC):
            raise WasmError("not a WebAssembly module")
        self.data = bytearray(data)
        sections = self._sections()
        self._imported = self._count_imported_functions(sections[_Section.IMPORT])
        self._exports = self._exported_functions(sections[_Section.EXPORT])
        self._bodies = self._code_ranges(sections[_Section.CODE])

    def function(self, export: str) -> int:
        """The index of an exported function."""
        try:
            return self._exports[export]
        except KeyError:
            raise WasmError(f"the module exports no function {export}") from None

    def replace_once(self, export: str, old: bytes, new: bytes) -> None:
        """Replace the one occurrence of `old` in a function's body by `new` of the same length."""
        start, end = self._body(export)
        body = bytes(self.data[start:end])
        if len(old) != len(new):
            raise WasmError(f"{export}: the replacement changes the length")
        if body.count(old) != 1:
            raise WasmError(f"{export}: expected the pattern once, found it {body.count(old)} times")
        self.data[start:end] = body.replace(old, new)

    def replace_body(self, export: str, code: bytes) -> None:
        """Replace a whole body by `code` without locals, padded with `nop` to the old length."""
        start, end = self._body(export)
        no_locals = b"\x00"
        padding = (end - start) - len(no_locals) - len(code) - len(END)
        if padding < 0:
            raise WasmError(f"{export}: the new body is longer than the old one")
        self.data[start:end] = no_locals + code + NOP * padding + END

    def _body(self, export: str) -> tuple[int, int]:
        return self._bodies[self.function(export) - self._imported]

    def _number(self, at: int) -> tuple[int, int]:
        value = shift = 0
        while True:
            byte = self.data[at]
            at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value, at

    def _sections(self) -> dict[int, int]:
        found: dict[int, int] = {}
        at = len(_MAGIC)
        while at < len(self.data):
            kind = self.data[at]
            size, at = self._number(at + 1)
            found.setdefault(kind, at)
            at += size
        missing = [section.name for section in _Section if section not in found]
        if missing:
            raise WasmError(f"the module has no section {', '.join(missing)}")
        return found

    def _count_imported_functions(self, at: int) -> int:
        total, at = self._number(at)
        functions = 0
        for _ in range(total):
            for _name in ("module", "field"):
                length, at = self._number(at)
                at += length
            kind = self.data[at]
            at += 1
            if kind == _Kind.FUNCTION:
                functions += 1
                _, at = self._number(at)
            elif kind in (_Kind.TABLE, _Kind.MEMORY):
                at = self._skip_limits(at + (kind == _Kind.TABLE))
            elif kind == _Kind.GLOBAL:
                at += 2
            elif kind == _Kind.TAG:
                _, at = self._number(at + 1)
            else:
                raise WasmError(f"unknown kind of import: {kind}")
        return functions

    def _skip_limits(self, at: int) -> int:
        has_maximum = self.data[at] & 1
        _, at = self._number(at + 1)
        if has_maximum:
            _, at = self._number(at)
        return at

    def _exported_functions(self, at: int) -> dict[str, int]:
        total, at = self._number(at)
        found: dict[str, int] = {}
        for _ in range(total):
            length, at = self._number(at)
            name = bytes(self.data[at : at + length])
            kind = self.data[at + length]
            index, at = self._number(at + length + 1)
            if kind == _Kind.FUNCTION:
                found[name.decode()] = index
        return found

    def _code_ranges(self, at: int) -> list[tuple[int, int]]:
        total, at = self._number(at)
        ranges: list[tuple[int, int]] = []
        for _ in range(total):
            length, start = self._number(at)
            at = start + length
            ranges.append((start, at))
        return ranges
