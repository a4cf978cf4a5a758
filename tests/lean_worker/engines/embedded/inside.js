'use strict';
// Looks into the host from inside, in the thread that runs Lean. node inside.js '{"host", "js", "wasm", "snapshot", "programs"}'
// Prints one JSON object: differences of memory after the kinds of reset, the kernel's answers to forged declarations, and
// what each of `programs` does to memory.

const path = require('node:path');
const fs = require('node:fs');
const { Worker, isMainThread, workerData } = require('node:worker_threads');

const options = isMainThread ? JSON.parse(process.argv[2]) : workerData;
const host = (name) => require(path.join(options.host, name));

if (isMainThread) {
  const module = new WebAssembly.Module(fs.readFileSync(options.wasm));
  const memory = host('boot.js').makeMemory(256, 1024);
  const worker = new Worker(__filename, {
    workerData: { ...options, module, memory, maximumMb: 1024 }, resourceLimits: { stackSizeMb: 200 },
  });
  worker.on('error', (error) => { throw error; });
} else {
  look();
}

async function look() {
  const { boot } = host('boot.js');
  const { Symbols } = host('symbols.js');
  const { Image } = host('image.js');
  const { Session } = host('session.js');
  const runtime = await boot(workerData);
  runtime.symbols = new Symbols(runtime.exports);
  const session = new Session(runtime, new Image());
  session.load(options.snapshot);
  runtime.seal();

  const request = { code: 'theorem t (a b : Nat) : a + b = b + a := by omega', header: 'def f := 1', heartbeats: 800000,
    statement: 'theorem t (a b : Nat) : a + b = b + a', printed: true };
  const report = { afterCheck: [], afterRun: [], forged: {} };
  for (let i = 0; i < 3; i++) {
    session.statements.clear();
    session.check(request);
    report.afterCheck.push(differences(session));
    session.run({ ...request, code: `${request.code}\n#eval (List.range 1000).length` });
    report.afterRun.push(differences(session));
    session.reset();
  }
  report.afterReset = differences(session);
  report.forged = forged(session);
  report.programs = options.programs.map((code) => lookAt(session, code));
  process.stdout.write(JSON.stringify(report));
}

/**
 * What a program does to memory: how often the interpreter asked for a function, whether the library's files were
 * written, how many words a check leaves different, and whether a check puts back what was changed in the library.
 */
function lookAt(session, code) {
  const { runtime, image, objects } = session;
  const request = { code, header: '', heartbeats: 200000, statement: null, printed: false };
  const before = runtime.symbolsAsked;
  session.run(request);
  const asked = runtime.symbolsAsked - before;
  const libraryIsWhole = image.libraryIsWhole(objects);
  session.reset();
  session.check(request);
  const left = differences(session);
  objects.bytes[image.description.library.find(([, length]) => length > 4096)[0] + COMMIT] ^= 1;
  session.check(request);
  const putBack = image.libraryIsWhole(objects);
  session.reset();
  return { asked, libraryIsWhole, left, putBack };
}

const COMMIT = 10; // of Lean, as a file of the library names it; nothing reads it once it is loaded

/** Words of memory that differ from the image. */
function differences(session) {
  const { image, objects } = session;
  objects.refresh();
  const expected = new Uint32Array(image.view.buffer, image.view.byteOffset, image.view.length >>> 2);
  let count = 0;
  for (let i = 0; i < expected.length; i++) if (objects.words[i] !== expected[i]) count++;
  for (let i = expected.length; i < objects.words.length; i++) if (objects.words[i] !== 0) count++;
  return count;
}

/** Declarations that no elaborator would make, offered to the kernel. */
function forged(session) {
  const { Terms, EXPR } = host('terms.js');
  const { Environment } = host('environment.js');
  const { replay, Refused } = host('kernel.js');
  const o = session.objects;
  const attempt = (fill) => {
    const terms = new Terms();
    const constant = (...name) => {
      terms.levelLists.push([]);
      return terms.exprs.add(EXPR.CONST, terms.names.of(name), terms.levelLists.length - 1);
    };
    const declare = (name, kind, type, value, extra = {}) => {
      const id = terms.names.of([name]);
      terms.declarations.set(id, { kind, name: id, levelParams: [], type, value, unsafe: false, ...extra });
      return id;
    };
    const target = fill({ terms, constant, declare });
    try {
      replay(o, new Environment(o, session.pointers.environment).kernel, terms, target, 800_000_000);
      return 'accepted';
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      return error.message;
    } finally {
      session.resetAfterCompiled();
    }
  };
  const regular = { hints: { tag: 0, height: 0 } };
  return {
    honest: attempt(({ constant, declare }) => declare('t', 'theorem', constant('True'), constant('True', 'intro'))),
    wrongProof: attempt(({ constant, declare }) => declare('t', 'theorem', constant('False'), constant('True', 'intro'))),
    notAProposition: attempt(({ constant, declare }) => declare('t', 'theorem', constant('Nat'), constant('Nat', 'zero'))),
    byItself: attempt(({ constant, declare }) => declare('t', 'theorem', constant('False'), constant('t'))),
    unknown: attempt(({ constant, declare }) => declare('t', 'theorem', constant('False'), constant('nowhere'))),
    unsafe: attempt(({ constant, declare }) => {
      declare('f', 'def', constant('False'), constant('f'), { unsafe: true, ...regular });
      return declare('t', 'theorem', constant('False'), constant('f'));
    }),
    wrongDefinition: attempt(({ constant, declare }) => {
      declare('f', 'def', constant('False'), constant('True', 'intro'), regular);
      return declare('t', 'theorem', constant('False'), constant('f'));
    }),
    orphanRecursor: attempt(({ constant, declare }) => {
      declare('r', 'rec', constant('False'), null, { family: [] });
      return declare('t', 'theorem', constant('False'), constant('r'));
    }),
    looseVariable: attempt(({ terms, constant, declare }) => (
      declare('t', 'theorem', constant('False'), terms.exprs.add(EXPR.BVAR, 0)))),
  };
}
