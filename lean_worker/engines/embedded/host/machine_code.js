'use strict';
// The machine code that V8 has made of the module, kept from one process to the next: a host that finds it starts as
// quick as one that has run for a minute. V8 gives and takes it through two of its natives, which are switched on for
// that moment only, and refuses code of another release, other flags, or another processor.
//
// File: 8 bytes of magic, CRC-32 of the rest (u32, little endian), what V8 gave. V8 itself does not notice damage.

const fs = require('node:fs');
const v8 = require('node:v8');
const zlib = require('node:zlib');

const MAGIC = Buffer.from('LEANCOD1');
const HEAD = MAGIC.length + 4;

/** The module with the code of a file, or null when there is none that this process can use. */
function load(path, bytes) {
  let file;
  if (path === null) return null;
  try {
    file = fs.readFileSync(path);
  } catch {
    return null;
  }
  const code = Uint8Array.from(file.subarray(HEAD)); // an array buffer of its own, as V8 wants it
  const whole = file.length > HEAD && file.subarray(0, MAGIC.length).equals(MAGIC)
    && file.readUInt32LE(MAGIC.length) === zlib.crc32(code);
  return whole ? natively('return %DeserializeWasmModule(a, b)', code.buffer, bytes) ?? null : null;
}

/** Write what is compiled by now. V8 gives what it has compiled for speed: what ran often. */
function save(path, module) {
  const code = new Uint8Array(natively('return %SerializeWasmModule(a)', module));
  const head = Buffer.alloc(HEAD);
  MAGIC.copy(head);
  head.writeUInt32LE(zlib.crc32(code), MAGIC.length);
  const temporary = `${path}.${process.pid}.tmp`;
  try {
    fs.writeFileSync(temporary, Buffer.concat([head, code]), { mode: 0o600 });
    fs.renameSync(temporary, path);
  } catch (error) {
    fs.rmSync(temporary, { force: true });
    throw error;
  }
}

function natively(body, a, b) {
  v8.setFlagsFromString('--allow-natives-syntax');
  try {
    return new Function('a', 'b', body)(a, b);
  } finally {
    v8.setFlagsFromString('--no-allow-natives-syntax');
  }
}

module.exports = { load, save };
