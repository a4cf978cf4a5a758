'use strict';
// The thread that runs Lean. Answers one request of the supervisor at a time.

const { parentPort, workerData } = require('node:worker_threads');
const { boot } = require('./boot.js');
const { Symbols } = require('./symbols.js');
const { Image, DamagedSnapshot } = require('./image.js');
const { Session, StatementError } = require('./session.js');
const { HeaderError } = require('./header.js');
const { HostTrap } = require('./imports.js');
const watch = require('./watch.js');

async function start() {
  const runtime = await boot(workerData);
  runtime.symbols = new Symbols(runtime.exports);
  const session = new Session(runtime, new Image());
  runtime.seal();
  const state = watch.view(workerData.watch);
  parentPort.on('message', (request) => parentPort.postMessage({ id: request.id, ...answer(session, state, request) }));
  parentPort.postMessage({ ready: true });
}

function answer(session, state, request) {
  if (request.op === 'load') return load(session, request);
  const started = performance.now();
  let reply;
  watch.begin(state);
  try {
    reply = check(session, request);
  } catch (error) {
    reply = failure(session, error);
  }
  const poked = watch.end(state);
  const elapsedMs = performance.now() - started;
  if (reply.dirty) session.reset();
  return { ...reply, poked, elapsedMs, memoryMb: session.objects.runtime.memory.buffer.byteLength >> 20 };
}

function load(session, { path }) {
  try {
    return { status: 'loaded', lean: session.load(path) };
  } catch (error) {
    if (error instanceof DamagedSnapshot || error.code === 'ENOENT') return { status: 'damaged', detail: error.message };
    throw error;
  }
}

/** In the environment that the text imports, or the name of that environment when it is not the loaded one. */
function check(session, request) {
  const imports = session.imports(request.code) ?? session.headerImports(request.header);
  if (request.statement !== null) session.requireSameImports(request.header, imports);
  if (imports.join(' ') !== session.environmentKey) return { status: 'needs', imports };
  return { status: 'done', ...session.check(request) };
}

function failure(session, error) {
  if (error instanceof StatementError) return { status: 'done', [`${error.where}Error`]: error.message, dirty: true };
  if (error instanceof HeaderError) return { status: 'done', headerError: error.message, dirty: true };
  const status = session.runtime.ranOutOfMemory ? 'out_of_memory' : 'crashed';
  return { status, detail: describe(error), dirty: true };
}

function describe(error) {
  if (error instanceof HostTrap) return error.message;
  if (error instanceof RangeError) return `stack overflow (${error.message})`;
  return `${error?.name ?? 'error'}: ${error?.message ?? error}`.slice(0, 500);
}

start();
