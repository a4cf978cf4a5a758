'use strict';
// The memory image of an initialised Lean: kept in a file, put back after every candidate.
//
// A check changes little more than a megabyte of the 120 to 300, and reading is cheaper than writing: what differs from
// the image is found by comparison, and only that is copied. The comparison itself is most of the cost.
//
// The image is the memory below `*emscripten_get_sbrk_ptr()`. File: 8 bytes of magic, length and CRC-32 of the
// description (u32 each, little endian), the description as JSON, zeros up to a multiple of 4096, the image. A snapshot
// belongs to exactly one build and list of imports: its file name is their hash (chosen by the caller), and checksums
// detect a damaged file. A file that was found whole is not summed again while it stays unchanged.

const fs = require('node:fs');
const zlib = require('node:zlib');

const MAGIC = Buffer.from('LEANIMG1');
const HEAD = MAGIC.length + 8;
const ALIGN = 4096;
const PAGE = 65536;
const CHUNK = 64 << 20;
const MAX_IMAGE = 1 << 30;
const GRAIN = 16384; // bytes that are compared and copied together
const UNUSED_STACK = 1 << 20; // bytes: no function of Lean has so large a frame
const CANARY_ROOM = 64; // bytes at the bottom of the stack that the image has

class DamagedSnapshot extends Error {}

const heapTop = (objects) => (objects.word(objects.fn.emscripten_get_sbrk_ptr() >>> 0) + 7) & ~7;

/** Write atomically: a reader sees a whole file or none, and two writers do not disturb each other. */
function write(path, objects, symbols, extra) {
  const top = heapTop(objects);
  const image = Buffer.from(objects.bytes.slice(0, top).buffer);
  const description = Buffer.from(JSON.stringify({
    ...extra, top, crc32: zlib.crc32(image), stackPointer: objects.fn.__stack_pointer.value, symbols: symbols.state(),
  }));
  const head = Buffer.alloc(HEAD);
  MAGIC.copy(head);
  head.writeUInt32LE(description.length, MAGIC.length);
  head.writeUInt32LE(zlib.crc32(description), MAGIC.length + 4);
  const temporary = `${path}.${process.pid}.tmp`;
  const file = fs.openSync(temporary, 'wx', 0o600);
  try {
    for (const part of [head, description, Buffer.alloc(padding(HEAD + description.length)), image]) {
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

/** Changes whenever the file is replaced or written; our own marks of use (access times) leave it as it is. */
const identityOf = ({ dev, ino, size, mtimeNs }) => `${dev} ${ino} ${size} ${mtimeNs}`;

/** One image at a time, in storage that is reused, so that changing the environment does not add to the memory. */
class Image {
  constructor() {
    this.storage = new ArrayBuffer(0, { maxByteLength: MAX_IMAGE }); // only what is used takes memory
    this.description = null;
    this.dirtyTop = 0; // end of what may differ from zero
    this.whole = new Map(); // path -> which file it was when its checksum was right
  }

  /** Read a snapshot and put it in place. Throws `DamagedSnapshot`. */
  load(path, objects, symbols) {
    const file = fs.openSync(path, 'r');
    const identity = identityOf(fs.fstatSync(file, { bigint: true }));
    try {
      const head = Buffer.alloc(HEAD);
      readFully(file, head, 0, head.length, 0);
      if (!head.subarray(0, MAGIC.length).equals(MAGIC)) throw new DamagedSnapshot('not a snapshot');
      const length = head.readUInt32LE(MAGIC.length);
      if (length > fs.fstatSync(file).size) throw new DamagedSnapshot('the description of the snapshot is damaged');
      const text = Buffer.alloc(length);
      readFully(file, text, 0, length, HEAD);
      if (zlib.crc32(text) !== head.readUInt32LE(MAGIC.length + 4)) {
        throw new DamagedSnapshot('the description of the snapshot is damaged');
      }
      const description = JSON.parse(text.toString('utf8'));
      this.storage.resize(description.top);
      this.view = Buffer.from(this.storage, 0, description.top);
      const data = HEAD + length;
      readFully(file, this.view, 0, description.top, data + padding(data));
      this.description = description;
    } finally {
      fs.closeSync(file);
    }
    const { top, crc32 } = this.description;
    if (this.whole.get(path) !== identity) {
      if (zlib.crc32(this.view) !== crc32) throw new DamagedSnapshot('the checksum of the snapshot is wrong');
      this.whole.set(path, identity);
    }
    this.spans = spansToPutBack(this.description, this.view);
    symbols.restore(this.description.symbols);
    const missing = Math.ceil(top / PAGE) - objects.buffer.byteLength / PAGE;
    if (missing > 0) objects.runtime.memory.grow(missing);
    this.dirtyTop = Math.max(this.dirtyTop, top);
    this.restore(objects);
    return this.description;
  }

  /** Make the whole memory what it was when the snapshot was taken. */
  restore(objects) {
    const { stack } = this.description;
    this.putBack(objects, this.spans.all, stack.top - stack.bottom);
  }

  /**
   * The same after compiled Lean alone has run, a third of the bytes: it never writes to the library's files in memory,
   * and leaves no gap in its stack.
   */
  restoreWritable(objects) {
    this.putBack(objects, this.spans.writable, UNUSED_STACK);
  }

  putBack(objects, spans, unusedStack) {
    objects.refresh();
    const live = Buffer.from(objects.buffer);
    const { top, stack, stackPointer } = this.description;
    const used = Math.min(live.length, Math.max(this.dirtyTop, heapTop(objects) >>> 0));
    for (const [start, end] of spans.written) copyDifferent(live, this.view, start, end);
    for (const [start, end] of spans.zero) clear(live, start, end);
    clearStack(live, stack.bottom + CANARY_ROOM, stack.top, unusedStack);
    clear(live, top, used);
    this.dirtyTop = top;
    objects.fn.__stack_pointer.value = stackPointer;
  }

  /** Whether the library's files in memory are what they were. */
  libraryIsWhole(objects) {
    objects.refresh();
    const live = Buffer.from(objects.buffer);
    return filesOf(this.description).every(([start, end]) => live.compare(this.view, start, end, start, end) === 0);
  }
}

function copyDifferent(live, image, start, end) {
  for (let at = start; at < end; at += GRAIN) {
    const stop = Math.min(at + GRAIN, end);
    if (live.compare(image, at, stop, at, stop) !== 0) live.set(image.subarray(at, stop), at);
  }
}

const ZEROS = Buffer.alloc(GRAIN);

/** Whether there was anything but zeros. */
function clearPiece(live, start, end) {
  if (live.compare(ZEROS, 0, end - start, start, end) === 0) return false;
  live.set(ZEROS.subarray(0, end - start), start);
  return true;
}

function clear(live, start, end) {
  for (let at = start; at < end; at += GRAIN) clearPiece(live, at, Math.min(at + GRAIN, end));
}

/** From where a stack begins, its upper end, down to where so many bytes below are unused. */
function clearStack(live, bottom, top, unused) {
  for (let at = top, used = top; at > bottom && used - at < unused; at -= GRAIN) {
    const start = Math.max(at - GRAIN, bottom);
    if (clearPiece(live, start, at)) used = start;
  }
}

/** What has to be put back: all but the stack, which is zero in the image; and that without the library's files. */
function spansToPutBack(description, image) {
  const { top, stack } = description;
  const stackHole = [stack.bottom + CANARY_ROOM, stack.top];
  const writable = complement([stackHole, ...filesOf(description)], top);
  return { all: byContent(complement([stackHole], top), image), writable: byContent(writable, image) };
}

/** Zeros are compared with zeros that are always at hand, which spares the memory half of the reading. */
function byContent(spans, image) {
  const found = { written: [], zero: [] };
  for (const [from, to] of spans) {
    for (let start = from; start < to; start += GRAIN) {
      const end = Math.min(start + GRAIN, to);
      const kind = image.compare(ZEROS, 0, end - start, start, end) === 0 ? found.zero : found.written;
      if (kind.at(-1)?.[1] === start) kind.at(-1)[1] = end;
      else kind.push([start, end]);
    }
  }
  return found;
}

/** [start, end] of each file of the library; shorter reads were of something else. */
const filesOf = ({ library }) =>
  library.filter(([, length]) => length >= ALIGN).map(([start, length]) => [start, start + length]);

/** The parts of [0, end) outside of the holes. */
function complement(holes, end) {
  const spans = [];
  let at = 0;
  for (const [from, to] of holes.sort((x, y) => x[0] - y[0])) {
    if (from > at) spans.push([at, from]);
    at = Math.max(at, to);
  }
  if (end > at) spans.push([at, end]);
  return spans;
}

module.exports = { Image, DamagedSnapshot, write };
