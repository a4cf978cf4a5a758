'use strict';
// The embedded Lean behind the Lean REPL's protocol: node repl.js CONFIG.json, commands on standard input.
//
// A command is JSON ended by a blank line, and so is its answer. `{cmd, env?, allTactics?}` and `{path, ...}` run Lean
// and answer `{env, messages?, sorries?, tactics?}`; without `env` the text's own imports decide the environment.
// `{env, pickleTo}` and `{unpickleEnvFrom}` carry an environment's constants over, through the kernel. What the real REPL
// refuses is answered `{message}`; what kills it (malformed JSON, a trap, a constant that the kernel refuses) ends this
// process too. Not offered: proof states, info trees and root goals.
//
// CONFIG: {"js", "wasm", "memoryMb", "modules": [names], "snapshots": {"Init Std": path}}. Each set of imports gets a
// thread with a memory of its own; environments stay in it for ever, as they do in the real REPL.

const fs = require('node:fs');
const path = require('node:path');
const readline = require('node:readline');
const { Worker } = require('node:worker_threads');
const { makeMemory } = require('../host/boot.js');

const INITIAL_MB = 256;
const STACK_MB = 200;
const CORE = 'Init';

class Repl {
  constructor(config) {
    this.config = config;
    this.module = new WebAssembly.Module(fs.readFileSync(config.wasm));
    this.threads = new Map();
    this.environments = []; // [thread, number of the state in it]
  }

  thread(imports) {
    let thread = this.threads.get(imports);
    if (!thread) {
      thread = new Thread(this.config, this.module, this.config.snapshots[imports]);
      this.threads.set(imports, thread);
    }
    return thread;
  }

  async answer(query) {
    if ('pickleTo' in query) return this.pickle(query);
    if ('unpickleEnvFrom' in query) return this.unpickle(query);
    if ('path' in query) return this.file(query);
    if (typeof query.cmd === 'string') return this.command(query);
    if ('proofState' in query || 'unpickleProofStateFrom' in query) return { message: 'Unknown proof state.' };
    die('uncaught exception: {"message": "Could not parse as a valid JSON command"}');
  }

  async command({ cmd, env, allTactics = false }) {
    if (env !== undefined && env !== null) {
      const known = this.environments[env];
      if (!known) return { message: 'Unknown environment.' };
      const [thread, state] = known;
      return this.record(thread, await thread.ask({ op: 'run', text: cmd, state, allTactics }));
    }
    const { imports } = await this.thread(CORE).ask({ op: 'imports', text: cmd });
    const missing = imports.find((name) => !this.config.modules.includes(name));
    const key = imports.join(' ');
    if (missing || !this.config.snapshots[key]) return this.headerFailed(missing ?? imports.at(-1));
    const thread = this.thread(key);
    return this.record(thread, await thread.ask({ op: 'run', text: cmd, state: null, allTactics }));
  }

  /** As the real REPL: the error is a message, and the environment behind it is of no use. */
  async headerFailed(name) {
    const thread = this.thread(CORE);
    const { state } = await thread.ask({ op: 'run', text: '', state: null });
    const data = `unknown module prefix '${name}'\n\nNo directory '${name}' or file '${name}.olean' in the search path entries`;
    return this.record(thread, { state, messages: [{ severity: 'error', pos: { line: 1, column: 0 }, endPos: null, data }] });
  }

  async file(query) {
    let cmd;
    try {
      cmd = fs.readFileSync(query.path, 'utf8');
    } catch (error) {
      return { message: error.message };
    }
    return this.command({ ...query, cmd });
  }

  async pickle({ env, pickleTo }) {
    const known = this.environments[env];
    if (!known) return { message: 'Unknown environment.' };
    const [thread, state] = known;
    const { pickle } = await thread.ask({ op: 'pickle', state });
    fs.writeFileSync(pickleTo, pickle);
    return { env };
  }

  async unpickle({ unpickleEnvFrom }) {
    let pickle;
    try {
      pickle = fs.readFileSync(unpickleEnvFrom);
    } catch (error) {
      die(`uncaught exception: ${error.message}`);
    }
    const { imports } = JSON.parse(pickle.subarray(0, pickle.indexOf(10)));
    const thread = this.thread(imports);
    return this.record(thread, await thread.ask({ op: 'unpickle', pickle }));
  }

  /** Empty lists are left out, as the real REPL does. */
  record(thread, { state, ...lists }) {
    this.environments.push([thread, state]);
    const filled = Object.entries(lists).filter(([, list]) => list.length);
    return { env: this.environments.length - 1, ...Object.fromEntries(filled) };
  }
}

/** A thread with one set of imports. One question at a time. */
class Thread {
  constructor(config, module, snapshot) {
    const memory = makeMemory(INITIAL_MB, config.memoryMb);
    this.worker = new Worker(path.join(__dirname, 'thread.js'), {
      workerData: { js: config.js, module, memory, maximumMb: config.memoryMb, snapshot },
      resourceLimits: { stackSizeMb: STACK_MB, maxOldGenerationSizeMb: 1024 },
      stdout: true,
      stderr: true,
      env: {},
    });
    this.worker.on('error', (error) => die(`INTERNAL PANIC: ${error.name}: ${error.message}`));
    this.worker.on('exit', (code) => die(`INTERNAL PANIC: the thread ended with ${code}`));
    this.worker.on('message', (message) => {
      if (message.panic) die(message.panic);
      this.resolve(message);
    });
  }

  ask(question) {
    return new Promise((resolve) => {
      this.resolve = resolve;
      this.worker.postMessage(question);
    });
  }
}

function write(text) {
  const bytes = Buffer.from(text);
  for (let at = 0; at < bytes.length;) {
    try {
      at += fs.writeSync(1, bytes, at);
    } catch (error) {
      if (error.code !== 'EAGAIN') throw error;
    }
  }
}

function die(why) {
  fs.writeSync(2, `${why}\n`);
  process.abort(); // a sandbox refuses `kill`
}

async function main(configPath) {
  const repl = new Repl(JSON.parse(fs.readFileSync(configPath, 'utf8')));
  let pending = '';
  for await (const line of readline.createInterface({ input: process.stdin })) {
    if (line.trim()) {
      pending += line.trimEnd();
      continue;
    }
    if (!pending) process.exit(0); // an empty command ends the real REPL
    const text = pending;
    pending = '';
    if (text.startsWith('#') || text.startsWith('--')) continue;
    let query;
    try {
      query = JSON.parse(text);
    } catch (error) {
      die(`uncaught exception: {"message": "Could not parse JSON:\\n${error.message}"}`);
    }
    write(`${JSON.stringify(await repl.answer(query), null, 1)}\n\n`);
  }
  process.exit(0);
}

main(process.argv[2]);
