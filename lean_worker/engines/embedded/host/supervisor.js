'use strict';
// JSON lines on standard input and output: node supervisor.js '{"js","wasm","machineCode","memoryMb"}'
//
//   first                                                              -> {"ready", "pid", "warm"}
//   {"id", "op": "load", "path"}                                       -> {"id", "status": "loaded" | "damaged"}
//   {"id", "op": "check", "code", "header", "statement", "heartbeats", "softMs", "hardMs"}
//        -> {"id", "status": "done" | "needs" | "out_of_memory" | "crashed" | "timeout", ...}
//   {"op": "interrupt"}: the running check ends soon, as at its soft limit; it is answered as always
//   {"id", "op": "save", "path"}                                       -> {"id", "status": "saved" | "unsaved"}
//
// One request at a time. After a hard timeout the process ends: a thread inside Lean cannot be stopped, and its memory
// is not given back.

const fs = require('node:fs');
const path = require('node:path');
const readline = require('node:readline');
const { Worker } = require('node:worker_threads');
const { makeMemory } = require('./boot.js');
const machineCode = require('./machine_code.js');
const watch = require('./watch.js');

const INITIAL_MB = 256;
const STACK_MB = 200;
const POKE_EVERY_MS = 5;

class Supervisor {
  constructor(options) {
    this.memory = makeMemory(INITIAL_MB, options.memoryMb);
    this.watchBuffer = watch.allocate();
    this.watch = watch.view(this.watchBuffer);
    this.running = null;
    this.queue = [];
    const { module, warm } = compile(options);
    globalThis.gc(); // either way V8 keeps its own copy of the module's bytes: ours (137 MB) goes at once
    this.module = module;
    this.worker = new Worker(path.join(__dirname, 'worker.js'), {
      workerData: { ...options, module, memory: this.memory, maximumMb: options.memoryMb, watch: this.watchBuffer },
      resourceLimits: { stackSizeMb: STACK_MB, maxOldGenerationSizeMb: 1024 },
      stdout: true, // captured and dropped: standard output carries our lines only
      stderr: true,
      env: {},
    });
    this.worker.on('message', (message) => (message.ready ? write({ ready: true, pid: process.pid, warm }) : this.finish(message)));
    this.worker.on('error', (error) => this.die('crashed', `${error.name}: ${error.message}`));
    this.worker.on('exit', (code) => this.die('crashed', `the Lean thread ended with ${code}`));
  }

  accept(line) {
    const request = JSON.parse(line);
    if (request.op === 'interrupt') return this.interrupt();
    this.queue.push(request);
    this.next();
  }

  next() {
    if (this.running || !this.queue.length) return;
    const request = this.queue.shift();
    this.running = { id: request.id, timers: [] };
    if (request.op === 'save') return this.finish(this.save(request));
    if (request.op === 'check') this.startClock(request);
    this.worker.postMessage(request);
  }

  save({ id, path: file }) {
    try {
      machineCode.save(file, this.module);
      return { id, status: 'saved' };
    } catch (error) {
      return { id, status: 'unsaved', detail: error.message };
    }
  }

  startClock({ softMs, hardMs }) {
    const { timers } = this.running;
    timers.push(setTimeout(() => this.interrupt(), softMs));
    timers.push(setTimeout(() => this.die('timeout', `not finished after ${softMs / 1000} s`), hardMs));
  }

  /** Stop the running check through its heartbeat counter, for as long as it runs. */
  interrupt() {
    if (!this.running) return;
    const poke = () => watch.poke(this.watch, this.memory);
    poke();
    this.running.timers.push(setInterval(poke, POKE_EVERY_MS));
  }

  stopClock() {
    this.running?.timers.forEach((timer) => clearTimeout(timer));
  }

  finish(message) {
    this.stopClock();
    this.running = null;
    write({ ...message, rssMb: Math.round(process.memoryUsage.rss() / 1e6) });
    this.next();
  }

  /** Answer for the running request and end the process, whatever its threads do. */
  die(status, detail) {
    write({ id: this.running?.id ?? null, status, detail, ended: true });
    process.kill(process.pid, 'SIGKILL');
  }
}

function compile(options) {
  const bytes = fs.readFileSync(options.wasm);
  const found = machineCode.load(options.machineCode, bytes);
  const module = found ?? new WebAssembly.Module(bytes);
  return { module, warm: found !== null };
}

const write = (message) => {
  const line = Buffer.from(`${JSON.stringify(message)}\n`);
  for (let at = 0; at < line.length;) at += writeSome(line, at);
};

function writeSome(line, at) {
  try {
    return fs.writeSync(1, line, at);
  } catch (error) {
    if (error.code === 'EAGAIN') return 0;
    throw error;
  }
}

const supervisor = new Supervisor(JSON.parse(process.argv[2]));
readline.createInterface({ input: process.stdin })
  .on('line', (line) => supervisor.accept(line))
  .on('close', () => process.kill(process.pid, 'SIGKILL')); // our owner is gone
