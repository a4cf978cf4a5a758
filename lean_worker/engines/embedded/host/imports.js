'use strict';
// What the WebAssembly module may ask of JavaScript.
//
// While Lean is being set up every import is the published glue code. From `seal()` on, when candidates run, only the
// names below still reach it: exceptions, clocks and memory growth. Files, sockets, processes, timers, dynamic loading
// and evaluation of JavaScript (`emscripten_run_script` and its kind) are refused at this boundary, whatever the glue
// code behind it could do, so nothing of a candidate survives in JavaScript either.

const PURE = new Set([
  'clock_res_get', 'clock_time_get', 'emscripten_get_now', 'emscripten_date_now', 'random_get',
  '_tzset_js', '_timegm_js', '_mktime_js', '_localtime_js', '_gmtime_js',
  '__cxa_begin_catch', '__cxa_end_catch', '__cxa_throw', '__cxa_rethrow', '__cxa_uncaught_exceptions',
  '__cxa_current_primary_exception', '__cxa_rethrow_primary_exception', '__resumeException', 'llvm_eh_typeid_for',
  '_emscripten_throw_longjmp', 'emscripten_check_blocking_allowed', 'emscripten_num_logical_cores',
  'environ_get', 'environ_sizes_get', '_emscripten_get_progname',
]);
const isPure = (name) => PURE.has(name) || name.startsWith('invoke_') || name.startsWith('__cxa_find_matching_catch_');

const EPERM = 63; // as WASI numbers it

/** Thrown through WebAssembly when the module asks to end: exit, abort, a failed assertion, a refused import. */
class HostTrap extends Error {
  constructor(kind, message) {
    super(message);
    this.name = 'HostTrap';
    this.kind = kind;
  }
}

/**
 * Wrap the glue code's imports. `host` supplies what is answered here instead:
 * `memory`, `maximumBytes`, `lookupSymbol(addressOfName)`, `outOfMemory()`; `read(start, length)` is
 * told where the contents of files went.
 */
function gate(published, host) {
  let sealed = false;
  const replaced = ownImports(host);
  const wrap = (name, real) => {
    if (replaced[name]) return replaced[name];
    if (typeof real !== 'function' || isPure(name)) return real;
    return (...args) => {
      if (!sealed) return name === 'fd_read' ? readIn(host, real, args) : real(...args);
      if (name === 'emscripten_asm_const_int') return 0; // a null string: no such variable, no path
      if (name.startsWith('__syscall_')) return -EPERM;
      if (name.startsWith('fd_')) return EPERM;
      throw new HostTrap('refused', `refused: ${name}`);
    };
  };
  const imports = { ...published };
  for (const module of ['env', 'wasi_snapshot_preview1']) {
    imports[module] = new Proxy(published[module], { get: (target, name) => wrap(String(name), target[name]) });
  }
  return { imports, seal: () => { sealed = true; } };
}

/**
 * Empty the function-table slots through which compiled code could still call the glue code: functions whose address
 * is taken (graphics, sound, consoles, exit). Calling one is a trap.
 */
function clearPublishedSlots(module, table) {
  for (const { module: from, name } of WebAssembly.Module.imports(module)) {
    const slot = from === 'GOT.func' && !isPure(name) ? globalThis.GOT[name]?.value : 0;
    if (slot > 0 && slot < table.length) {
      table.set(slot, null);
      globalThis.wasmTableMirror[slot] = undefined;
    }
  }
}

function ownImports(host) {
  const exit = (status) => { throw new HostTrap('exit', `exit(${status})`); };
  return {
    exit,
    proc_exit: exit,
    _abort_js: () => { throw new HostTrap('abort', 'abort()'); },
    __assert_fail: () => { throw new HostTrap('abort', 'assertion failed'); },
    _dlsym_js: (handle, symbol) => host.lookupSymbol(symbol),
    emscripten_get_heap_max: () => host.maximumBytes,
    emscripten_resize_heap: (requested) => grow(host, requested >>> 0),
    fd_write: (fd, vectors, count, written) => writeOut(host, vectors >>> 0, count, written >>> 0),
  };
}

const PAGE = 65536;
const GROWTH = 32 << 20; // grow by at least this much, so that growing stays rare

function grow(host, requested) {
  const now = host.memory.buffer.byteLength;
  if (requested <= now) return 0;
  const wanted = Math.min(host.maximumBytes, Math.max(requested, now + GROWTH));
  if (requested <= host.maximumBytes) {
    try {
      host.memory.grow(Math.ceil((wanted - now) / PAGE));
      return 1;
    } catch {
      // the operating system refused: the same as reaching our own limit
    }
  }
  host.outOfMemory();
  return 0;
}

/** `readv`, and where it put the bytes. */
function readIn(host, real, [fd, vectors, count, read]) {
  const result = real(fd, vectors, count, read);
  const view = new DataView(host.memory.buffer);
  for (let i = 0; i < count; i++) {
    host.read(view.getUint32(vectors + 8 * i, true), view.getUint32(vectors + 8 * i + 4, true));
  }
  return result;
}

/** `writev`: whatever Lean itself does not capture as a message goes nowhere. */
function writeOut(host, vectors, count, written) {
  const view = new DataView(host.memory.buffer);
  let total = 0;
  for (let i = 0; i < count; i++) total += view.getUint32(vectors + 8 * i + 4, true);
  view.setUint32(written, total, true);
  return 0;
}

module.exports = { gate, clearPublishedSlots, HostTrap };
