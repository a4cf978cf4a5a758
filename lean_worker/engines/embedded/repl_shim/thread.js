'use strict';
// One set of imports in a memory of its own, whose command states are kept, see `repl.js`.

const { parentPort, workerData } = require('node:worker_threads');
const v8 = require('node:v8');
const { boot } = require('../host/boot.js');
const { Symbols } = require('../host/symbols.js');
const { Image } = require('../host/image.js');
const { Objects } = require('../host/objects.js');
const { Frontend, STATE_ENVIRONMENT, STATE_MESSAGES, STATE_SCOPES } = require('../host/frontend.js');
const { importsOf, HeaderError } = require('../host/header.js');
const { copyLocals } = require('../host/statement.js');
const { Builder, replay, Refused } = require('../host/kernel.js');
const { findIn } = require('../host/environment.js');
const { readTactics } = require('../host/tactics.js');
const { Terms } = require('../host/terms.js');

const SEVERITIES = { information: 'info', info: 'info', warning: 'warning', error: 'error' };
const KERNEL_HEARTBEATS = 0xffffffff;
const PLACEHOLDER = 'sorry';

class LeanThread {
  constructor(runtime, snapshot) {
    this.runtime = runtime;
    this.objects = new Objects(runtime);
    const { imports, pointers } = new Image().load(snapshot, this.objects, runtime.symbols);
    this.imports = imports.join(' ');
    this.pointers = pointers;
    this.frontend = new Frontend(this.objects, pointers.environment, pointers.options);
    this.states = [];
  }

  answer(question) {
    switch (question.op) {
      case 'imports': return { imports: this.importsOf(question.text) };
      case 'run': return this.run(question);
      case 'pickle': return { pickle: this.pickle(question.state) };
      case 'unpickle': return this.unpickle(Buffer.from(question.pickle));
      default: throw new Error(`unknown question ${question.op}`);
    }
  }

  importsOf(text) {
    try {
      return importsOf(this.frontend, text) ?? ['Init'];
    } catch (error) {
      if (!(error instanceof HeaderError)) throw error;
      return [error.message];
    }
  }

  run({ text, state: parent, allTactics }) {
    const o = this.objects;
    let state;
    let unread = []; // what Lean says of the import block: the frontend keeps none of it
    if (parent === null) {
      const { context, parserState, messages } = this.frontend.header(text);
      unread = this.messages(messages);
      state = this.frontend.process(context, parserState, this.frontend.initialState(messages));
    } else {
      const start = o.construct(0, [o.box(0)], [0]);
      const before = this.withField(this.states[parent], STATE_MESSAGES, o.constant('l_Lean_MessageLog_empty'));
      state = this.frontend.process(this.frontend.inputContext(text), start, before);
    }
    this.requireIntactStack();
    const tactics = allTactics || text.includes(PLACEHOLDER) ? readTactics(o, state) : [];
    return {
      ...this.keep(state),
      messages: [...unread, ...this.messages(o.field(state, STATE_MESSAGES))],
      sorries: tactics.filter(({ tactic }) => tactic === PLACEHOLDER).map(asSorry),
      tactics: allTactics ? tactics.map(asTactic) : [],
    };
  }

  keep(state) {
    this.states.push(this.objects.share(state));
    return { state: this.states.length - 1 };
  }

  messages(log) {
    const o = this.objects;
    const all = o.fn.l_Lean_MessageLog_toArray(o.share(log)) >>> 0;
    return o.elements(all).map((message) => {
      const json = o.fn.l_Lean_Message_toJson(o.share(message)) >>> 0;
      const { severity, pos, endPos, data } = JSON.parse(o.text(o.fn.l_Lean_Json_compress(json) >>> 0));
      return { severity: SEVERITIES[severity], pos, endPos: endPos ?? null, data: data.trim() };
    });
  }

  /** A copy of a constructor with another field. */
  withField(p, index, value) {
    const o = this.objects;
    const count = o.fieldCount(p);
    const fields = Array.from({ length: count }, (_, i) => (i === index ? value : o.share(o.field(p, i))));
    o.refresh();
    const size = o.halves[(p + 4) >>> 1];
    const scalars = Array.from({ length: size - 8 - 4 * count }, (_, i) => o.scalarByte(p, i));
    return o.construct(o.tag(p), fields, scalars);
  }

  requireIntactStack() {
    const { address, value } = this.pointers.canary;
    if (this.objects.word(address) !== value) throw new RangeError('shadow stack overflow');
  }

  /** First a line that says whose it is, then the constants. The scopes stay here: they only matter to this process. */
  pickle(number) {
    const state = this.states[number];
    const { terms } = copyLocals(this.objects, this.objects.field(state, STATE_ENVIRONMENT));
    const head = { imports: this.imports, process: process.pid, state: number };
    return Buffer.concat([Buffer.from(`${JSON.stringify(head)}\n`), v8.serialize(terms)]);
  }

  /** The pristine environment with the pickled constants, each checked by the kernel; scopes as they were. */
  unpickle(pickle) {
    const o = this.objects;
    const end = pickle.indexOf(10);
    const head = JSON.parse(pickle.subarray(0, end));
    const terms = revive(v8.deserialize(pickle.subarray(end + 1)));
    const safe = [...terms.declarations.values()].filter((declaration) => !declaration.unsafe);
    let kernel = o.fn.lean_elab_environment_to_kernel_env(o.share(this.pointers.environment)) >>> 0;
    for (const { name } of safe) kernel = replay(o, kernel, terms, name, KERNEL_HEARTBEATS);
    // The elaborator does not see what only the kernel's environment has: put it where it looks, as newer REPLs do.
    const builder = new Builder(o, terms);
    let environment = o.share(this.pointers.environment);
    for (const { name } of safe) {
      const checked = findIn(o, kernel, builder.name(name));
      environment = o.fn.lake_environment_add(environment, o.share(checked)) >>> 0;
    }
    let state = new Frontend(o, environment, this.pointers.options).initialState(o.constant('l_Lean_MessageLog_empty'));
    if (head.process === process.pid) {
      state = this.withField(state, STATE_SCOPES, o.share(o.field(this.states[head.state], STATE_SCOPES)));
    }
    return this.keep(state);
  }
}

/** Without the numbers of proof states: single proof steps are not offered. */
const asSorry = ({ pos, endPos, goalsBefore }) => ({ pos, endPos, goal: goalsBefore[0] ?? '' });
const asTactic = ({ pos, endPos, goalsBefore, tactic }) => ({
  pos, endPos, goals: goalsBefore.join('\n') || 'no goals', tactic, usedConstants: [],
});

/** Serialized objects come back without their classes. */
function revive(data) {
  const terms = new Terms();
  for (const part of ['names', 'levels', 'exprs']) Object.assign(terms[part], data[part]);
  Object.assign(terms, { levelLists: data.levelLists, literals: data.literals, declarations: data.declarations });
  return terms;
}

function panicOf(error, runtime) {
  if (error instanceof Refused) return `uncaught exception: ${error.message}`;
  if (runtime.ranOutOfMemory) return 'INTERNAL PANIC: out of memory';
  if (error instanceof RangeError) return `Stack overflow detected. Aborting. (${error.message})`;
  return `INTERNAL PANIC: ${error.name}: ${error.message}`;
}

async function start() {
  const runtime = await boot(workerData);
  runtime.symbols = new Symbols(runtime.exports);
  const thread = new LeanThread(runtime, workerData.snapshot);
  runtime.seal();
  parentPort.on('message', (question) => {
    try {
      parentPort.postMessage(thread.answer(question));
    } catch (error) {
      parentPort.postMessage({ panic: panicOf(error, runtime) });
    }
  });
}

start();
