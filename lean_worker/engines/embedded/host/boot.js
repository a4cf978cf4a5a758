'use strict';
// Instantiate the patched Lean in this thread without running its main function.

const fs = require('node:fs');
const vm = require('node:vm');
const { gate, clearPublishedSlots } = require('./imports.js');

const MEBIBYTE = 1 << 20;
const PAGE = 65536;

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
    this.ranOutOfMemory = false;
    this.symbolsAsked = 0; // how often Lean's interpreter asked for a compiled function
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

  /** Forget what a check left in JavaScript: exceptions that a trap left half-handled in the glue code. */
  resetGlue() {
    globalThis.exceptionCaught.length = 0;
    globalThis.uncaughtExceptionCount = 0;
    globalThis.exceptionLast = 0;
    this.ranOutOfMemory = false;
  }

  // What `imports.js` asks of its host.

  lookupSymbol(address) {
    this.symbolsAsked++;
    return this.symbols.address(this.cString(address >>> 0));
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
