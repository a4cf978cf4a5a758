'use strict';
// The clock's side of a check, shared by the supervisor and the thread that runs Lean.
//
// Lean stops by itself when its heartbeat counter passes its limit, so the supervisor ends a check by raising the
// counter. Whether that happened before or after the check was complete is settled by one atomic word.

const IDLE = 0;
const RUNNING = 1;
const POKED = 2;

/** Address of Lean's heartbeat counter (64 bits) in the published module. */
const HEARTBEAT_COUNTER = 1112;
const BEYOND_ANY_LIMIT = 1n << 60n;

const allocate = () => new SharedArrayBuffer(4);
const view = (buffer) => new Int32Array(buffer);

const begin = (state) => Atomics.store(state, 0, RUNNING);

/** The check is complete; true when the clock had stopped it before. */
const end = (state) => Atomics.exchange(state, 0, IDLE) === POKED;

/** Raise the counter of a running check; false when there is none. */
function poke(state, memory) {
  if (Atomics.load(state, 0) === IDLE) return false;
  Atomics.compareExchange(state, 0, RUNNING, POKED);
  new BigUint64Array(memory.buffer, HEARTBEAT_COUNTER, 1)[0] = BEYOND_ANY_LIMIT;
  return true;
}

module.exports = { allocate, view, begin, end, poke };
