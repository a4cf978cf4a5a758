'use strict';
// Import an environment and write its snapshot: node build.js '{"js","wasm","library","imports","snapshot",...}'
// Trusted: no candidate ever runs in this process.

const fs = require('node:fs');
const { Worker, isMainThread, workerData } = require('node:worker_threads');
const { boot, makeMemory } = require('./boot.js');
const { Objects } = require('./objects.js');
const { Symbols } = require('./symbols.js');
const image = require('./image.js');

const MEBIBYTE = 1 << 20;
// The 64 KiB stack of the published build is too small for Lean's C++ part.
const SHADOW_STACK = 16 * MEBIBYTE;
const STACK_MB = 200;
const INITIAL_MB = 256;
const CANARY = 0x5afe57ac;
const TRUST_LEVEL = 1024; // as Lean's own command line uses

async function main(options) {
  const module = new WebAssembly.Module(fs.readFileSync(options.wasm));
  const memory = makeMemory(INITIAL_MB, options.memoryMb);
  const worker = new Worker(__filename, {
    workerData: { ...options, module, memory, maximumMb: options.memoryMb }, resourceLimits: { stackSizeMb: STACK_MB },
  });
  worker.on('error', (error) => {
    fs.writeSync(2, `${error.message}\n`);
    process.exitCode = 1;
  });
}

async function build(options) {
  const runtime = await boot(options);
  runtime.symbols = new Symbols(runtime.exports);
  const objects = new Objects(runtime);
  const stack = prepareStack(objects);
  initialise(objects);
  const leanOptions = objects.constant('l_Lean_Options_empty');
  runtime.filesRead = [];
  const environment = importModules(objects, options.imports, leanOptions);
  const lean = versions(objects);
  objects.refresh();
  objects.bytes.fill(0, stack.canary.address + 4, stack.top); // what imports left in the dead part of the stack
  image.write(options.snapshot, objects, runtime.symbols, {
    imports: options.imports,
    pointers: { environment, options: leanOptions, canary: stack.canary },
    stack: { bottom: stack.bottom, top: stack.top },
    library: runtime.filesRead,
    lean,
  });
}

function prepareStack(objects) {
  const bottom = objects.fn.malloc(SHADOW_STACK) >>> 0;
  const top = (bottom + SHADOW_STACK - 64) & ~15;
  objects.fn.emscripten_stack_set_limits(top, bottom);
  objects.fn.__stack_pointer.value = top;
  const address = (bottom + 15) & ~15;
  objects.setWord(address, CANARY);
  return { bottom, top, canary: { address, value: CANARY } };
}

function initialise(objects) {
  const { fn } = objects;
  fn.lean_initialize();
  objects.io(fn.lean_init_search_path(), 'search path');
  objects.io(fn.lean_enable_initializer_execution(), 'initializers');
  fn.lean_io_mark_end_initialization();
  fn.lean_init_task_manager_using(1);
}

function importModules(objects, imports, leanOptions) {
  const list = objects.array(imports.map((module) => {
    const [importAll, isExported, isMeta] = [0, 1, 0];
    return objects.construct(0, [objects.name(module.split('.'))], [importAll, isExported, isMeta]);
  }));
  const [leakEnvironment, loadExtensions, privateLevel, noArtifacts] = [1, 1, 2, objects.box(1)];
  const result = objects.fn.l_Lean_importModules(
    list, leanOptions, TRUST_LEVEL, objects.array([]), leakEnvironment, loadExtensions, privateLevel, noArtifacts);
  return objects.io(result, `import ${imports.join(', ')}`);
}

function versions(objects) {
  const unit = objects.box(0);
  return {
    version: objects.text(objects.constant('l_Lean_versionString')),
    commit: objects.text(objects.fn.lean_get_githash(unit) >>> 0),
  };
}

if (isMainThread) main(JSON.parse(process.argv[2]));
else build(workerData);
