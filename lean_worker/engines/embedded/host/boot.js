'use strict';
// Instantiate the patched Lean in this thread without running its main function.

const fs = require('node:fs');
const vm = require('node:vm');
const { gate, clearPublishedSlots } = require('./imports.js');

const MEBIBYTE = 1 << 20;
const PAGE = 65536;
const OUTPUT_LIMIT = 64 * 1024; // bytes of a candidate's own output that are kept

/** A shared memory whose maximum is a hard cap: growth beyond it fails inside Lean. */
const makeMemory = (initialMb, maximumMb) => new WebAssembly.Memory({
  initial: (initialMb * MEBIBYTE) / PAGE, maximum: (maximumMb * MEBIBYTE) / PAGE, shared: true,
});

/**
 * @param {{js: string, module: WebAssembly.Module, memory: WebAssembly.Memory, maximumMb: number, library?: string}} options
 *   `library`: the folder of .olean files, mounted only while a snapshot is built.
 * @returns {Promise<Runtime>}
 */
function boot(options) {
  return new Promise((resolve, reject) => {
    const runtime = new Runtime(options);
    globalThis.require = require;
    // The glue code only wants the names of `open` flags; the permission model forbids the real function.
    process.binding = () => ({ fs: fs.constants });
    globalThis.__filename = '/lean/bin/lean.js';
    globalThis.__dirname = __dirname;
    globalThis.Module = {
      noInitialRun: true,
      arguments: [],
      thisProgram: '/lean/bin/lean',
      wasmMemory: options.memory,
      stdin: () => null,
      print: () => {},
      printErr: () => {},
      instantiateWasm: (published, done) => {
        const instance = runtime.instantiate(published);
        done(instance, options.module);
      },
      preRun: [() => mount(options.library)],
      onRuntimeInitialized: () => setImmediate(() => resolve(runtime)),
      onAbort: (why) => reject(new Error(`aborted during start: ${why}`)),
    };
    vm.runInThisContext(fs.readFileSync(options.js, 'utf8'), { filename: 'lean.js' });
  });
}

function mount(library) {
  const { FS, NODEFS, ENV } = globalThis;
  FS.mkdirTree('/lean/bin');
  FS.mkdirTree('/lean/lib/lean');
  if (library) FS.mount(NODEFS, { root: library }, '/lean/lib/lean');
  ENV.LEAN_PATH = '/lean/lib/lean';
  ENV.HOME = '/';
}

class Runtime {
  constructor({ module, memory, maximumMb }) {
    this.module = module;
    this.memory = memory;
    this.maximumBytes = maximumMb * MEBIBYTE;
    this.exports = null;
    this.symbols = null;
    this.filesRead = []; // [address, bytes] of the library's files
    this.resetOutput();
  }

  instantiate(published) {
    const gated = gate(published, this);
    this.closeGate = gated.seal;
    const instance = new WebAssembly.Instance(this.module, gated.imports);
    this.exports = instance.exports;
    return instance;
  }

  /** From here on only candidates run: no file, network, process, timer or dynamic library is reachable. */
  seal() {
    this.closeGate();
    clearPublishedSlots(this.module, this.exports.__indirect_function_table);
  }

  /** Exceptions that a trap left half-handled in the glue code. */
  resetGlue() {
    globalThis.exceptionCaught.length = 0;
    globalThis.uncaughtExceptionCount = 0;
    globalThis.exceptionLast = 0;
  }

  resetOutput() {
    this.outputBytes = 0;
    this.outputParts = [];
    this.ranOutOfMemory = false;
  }

  /** What the candidate printed, cut to the limit. */
  outputText() {
    return Buffer.concat(this.outputParts).toString('utf8');
  }

  // What `imports.js` asks of its host.

  lookupSymbol(address) {
    return this.symbols.address(this.cString(address >>> 0));
  }

  output(fd, bytes) {
    const room = OUTPUT_LIMIT - this.outputBytes;
    this.outputBytes += bytes.length;
    if (room > 0) this.outputParts.push(Buffer.from(bytes.slice(0, room)));
  }

  read(address, length) {
    this.filesRead.push([address, length]);
  }

  outOfMemory() {
    this.ranOutOfMemory = true;
  }

  cString(address) {
    const bytes = new Uint8Array(this.memory.buffer);
    return Buffer.from(bytes.slice(address, bytes.indexOf(0, address))).toString('utf8');
  }
}

module.exports = { boot, makeMemory };
