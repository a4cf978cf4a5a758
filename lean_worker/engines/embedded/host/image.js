'use strict';
// The memory image of an initialised Lean: kept in a file, copied back after every candidate.
//
// The image is the memory below `*emscripten_get_sbrk_ptr()`. File: 8 bytes of magic, the length of the description
// (u32, little endian), the description as JSON, zeros up to a multiple of 4096, the image. A snapshot belongs to exactly one build, set of
// imports and options: its file name is their hash (chosen by the caller), and a checksum detects a damaged file.

const fs = require('node:fs');
const zlib = require('node:zlib');

const MAGIC = Buffer.from('LEANIMG1');
const ALIGN = 4096;
const PAGE = 65536;
const CHUNK = 64 << 20;

class DamagedSnapshot extends Error {}

const heapTop = (objects) => (objects.word(objects.fn.emscripten_get_sbrk_ptr() >>> 0) + 7) & ~7;

/** Write atomically: a reader sees a whole file or none, and two writers do not disturb each other. */
function write(path, objects, symbols, extra) {
  const top = heapTop(objects);
  const image = Buffer.from(objects.bytes.slice(0, top).buffer);
  const description = Buffer.from(JSON.stringify({
    ...extra, top, crc32: zlib.crc32(image), stackPointer: objects.fn.__stack_pointer.value, symbols: symbols.state(),
  }));
  const length = Buffer.alloc(4);
  length.writeUInt32LE(description.length);
  const head = MAGIC.length + length.length + description.length;
  const temporary = `${path}.${process.pid}.tmp`;
  const file = fs.openSync(temporary, 'wx', 0o600);
  try {
    for (const part of [MAGIC, length, description, Buffer.alloc(padding(head)), image]) {
      for (let at = 0; at < part.length;) at += fs.writeSync(file, part, at, Math.min(CHUNK, part.length - at));
    }
    fs.fsyncSync(file);
  } finally {
    fs.closeSync(file);
  }
  fs.renameSync(temporary, path);
}

const padding = (length) => (ALIGN - (length % ALIGN)) % ALIGN;

function readFully(file, target, start, length, position) {
  for (let done = 0; done < length;) {
    const got = fs.readSync(file, target, start + done, Math.min(CHUNK, length - done), position + done);
    if (got === 0) throw new DamagedSnapshot('the snapshot is shorter than it says');
    done += got;
  }
}

/** One image at a time, in a buffer that is reused, so that changing the environment does not add to the memory. */
class Image {
  constructor() {
    this.buffer = Buffer.alloc(0);
    this.description = null;
  }

  /** Read a snapshot and put it in place. Throws `DamagedSnapshot`. */
  load(path, objects, symbols) {
    const file = fs.openSync(path, 'r');
    try {
      const head = Buffer.alloc(MAGIC.length + 4);
      readFully(file, head, 0, head.length, 0);
      if (!head.subarray(0, MAGIC.length).equals(MAGIC)) throw new DamagedSnapshot('not a snapshot');
      const length = head.readUInt32LE(MAGIC.length);
      const text = Buffer.alloc(length);
      readFully(file, text, 0, length, head.length);
      const description = parse(text);
      if (this.buffer.length < description.top) this.buffer = Buffer.allocUnsafeSlow(description.top);
      const data = head.length + length;
      readFully(file, this.buffer, 0, description.top, data + padding(data));
      this.description = description;
    } finally {
      fs.closeSync(file);
    }
    const { top, crc32 } = this.description;
    this.view = this.buffer.subarray(0, top);
    if (zlib.crc32(this.view) !== crc32) throw new DamagedSnapshot('the checksum of the snapshot is wrong');
    symbols.restore(this.description.symbols);
    const missing = Math.ceil(top / PAGE) - objects.buffer.byteLength / PAGE;
    if (missing > 0) objects.runtime.memory.grow(missing);
    this.dirtyTop = Math.max(this.dirtyTop ?? 0, top);
    this.restore(objects);
    return this.description;
  }

  /** Make the memory what it was when the snapshot was taken. */
  restore(objects) {
    objects.refresh();
    const { top, stackPointer } = this.description;
    const used = Math.min(objects.buffer.byteLength, Math.max(this.dirtyTop, heapTop(objects) >>> 0));
    objects.bytes.set(this.view);
    if (used > top) objects.bytes.fill(0, top, used);
    this.dirtyTop = top;
    objects.fn.__stack_pointer.value = stackPointer;
    objects.fn.setThrew(0, 0);
  }
}

function parse(text) {
  try {
    return JSON.parse(text.toString('utf8'));
  } catch {
    throw new DamagedSnapshot('the description of the snapshot is damaged');
  }
}

module.exports = { Image, DamagedSnapshot, write };
