'use strict';
// Lean objects in the module's memory (lean.h of Lean 4.28, 32-bit).
//
// An object pointer with its lowest bit set is a scalar n, stored as 2n+1. Any other pointer is the address of
//   +0 i32 reference count (0: persistent)  +4 u16 size of small objects  +6 u8 number of fields  +7 u8 tag
// A constructor has its fields, 4 bytes each, from +8, then its scalar bytes. An array (tag 246) has its size at +8,
// capacity at +12, elements from +16; a string (tag 249) its bytes with the closing NUL at +8, capacity at +12,
// characters at +16, text from +20.
//
// Nothing is ever released here: the memory image is restored after every check.

const TAG_ARRAY = 246;
const TAG_STRING = 249;
const HEADER = 8;

/** Reading a damaged or hostile object graph ends in this, never in a wrong answer. */
class BadObject extends Error {}

class Objects {
  constructor(runtime) {
    this.runtime = runtime;
    this.fn = runtime.exports;
    this.refresh();
  }

  /** Typed views of the memory; made again after it has grown. */
  refresh() {
    const buffer = this.runtime.memory.buffer;
    if (this.buffer === buffer) return;
    this.buffer = buffer;
    this.words = new Uint32Array(buffer);
    this.signed = new Int32Array(buffer);
    this.halves = new Uint16Array(buffer);
    this.bytes = new Uint8Array(buffer);
  }

  word(address) { this.refresh(); return this.words[address >>> 2]; }
  byte(address) { this.refresh(); return this.bytes[address]; }
  setWord(address, value) { this.refresh(); this.words[address >>> 2] = value; }

  // Scalars.
  box(n) { return ((n << 1) | 1) >>> 0; }
  isScalar(p) { return (p & 1) === 1; }
  unbox(p) { return p >>> 1; }

  // Constructors.
  tag(p) { return this.isScalar(p) ? this.unbox(p) : this.byte(p + 7); }
  fieldCount(p) { return this.byte(p + 6); }
  field(p, i) {
    if (this.isScalar(p) || i >= this.fieldCount(p)) throw new BadObject(`no field ${i}`);
    return this.word(p + HEADER + 4 * i);
  }
  /** A byte after the last field. */
  scalarByte(p, offset) { return this.byte(p + HEADER + 4 * this.fieldCount(p) + offset); }
  setScalarByte(p, offset, value) {
    const at = p + HEADER + 4 * this.fieldCount(p) + offset; // the views are fresh now
    this.bytes[at] = value;
  }
  /** A 32-bit word after the last field. */
  scalarWord(p, offset) { return this.word(p + HEADER + 4 * this.fieldCount(p) + offset); }

  /** One more reference: arguments of Lean functions are owned. */
  share(p) {
    if (this.isScalar(p)) return p;
    this.refresh();
    const count = this.signed[p >>> 2];
    if (count > 0) this.signed[p >>> 2] = count + 1;
    else if (count < 0) this.signed[p >>> 2] = count - 1;
    return p;
  }

  construct(tag, fields, scalarBytes = []) {
    const size = (HEADER + 4 * fields.length + scalarBytes.length + 7) & ~7;
    const p = this.fn.lean_alloc_object(size) >>> 0;
    this.header(p, size, fields.length, tag);
    fields.forEach((field, i) => { this.words[(p + HEADER + 4 * i) >>> 2] = field; });
    scalarBytes.forEach((byte, i) => { this.bytes[p + HEADER + 4 * fields.length + i] = byte; });
    return p;
  }

  header(p, size, fields, tag) {
    this.refresh();
    this.signed[p >>> 2] = 1;
    this.halves[(p + 4) >>> 1] = size;
    this.bytes[p + 6] = fields;
    this.bytes[p + 7] = tag;
  }

  some(p) { return this.construct(1, [p]); }

  // Arrays.
  array(elements) {
    const p = this.fn.lean_alloc_object((16 + 4 * elements.length + 7) & ~7) >>> 0;
    this.header(p, 0, 0, TAG_ARRAY);
    this.words[(p + 8) >>> 2] = elements.length;
    this.words[(p + 12) >>> 2] = elements.length;
    elements.forEach((element, i) => { this.words[(p + 16 + 4 * i) >>> 2] = element; });
    return p;
  }
  arrayLength(p) {
    if (this.isScalar(p) || this.tag(p) !== TAG_ARRAY) throw new BadObject('not an array');
    return this.word(p + 8);
  }
  elements(p) {
    const length = this.arrayLength(p);
    if (p + 16 + 4 * length > this.buffer.byteLength) throw new BadObject('array out of bounds');
    return Array.from(this.words.subarray((p + 16) >>> 2, ((p + 16) >>> 2) + length));
  }

  // Lists: nil is the scalar 0, cons has [head, tail].
  list(elements) {
    return elements.reduceRight((tail, head) => this.construct(1, [head, tail]), this.box(0));
  }
  listElements(p, limit = 1 << 20) {
    const found = [];
    for (; !this.isScalar(p); p = this.field(p, 1)) {
      if (found.length >= limit) throw new BadObject('list without end');
      found.push(this.field(p, 0));
    }
    return found;
  }

  // Strings.
  string(text) {
    const bytes = Buffer.from(text, 'utf8');
    const at = this.fn.malloc(bytes.length + 1) >>> 0;
    this.refresh();
    this.bytes.set(bytes, at);
    this.bytes[at + bytes.length] = 0;
    const p = this.fn.lean_mk_string_from_bytes(at, bytes.length) >>> 0;
    this.fn.free(at);
    return p;
  }
  /** Length of a string's text in bytes of UTF-8. */
  stringBytes(p) {
    if (this.isScalar(p) || this.tag(p) !== TAG_STRING) throw new BadObject('not a string');
    const length = this.word(p + 8) - 1;
    if (p + 20 + length > this.buffer.byteLength) throw new BadObject('string out of bounds');
    return length;
  }
  text(p) {
    const length = this.stringBytes(p);
    return Buffer.from(this.bytes.slice(p + 20, p + 20 + length)).toString('utf8');
  }

  // Names.
  /** A hierarchical name from its components, strings or numbers. */
  name(components) {
    return components.reduce(
      (prefix, part) => (typeof part === 'number'
        ? this.fn.lean_name_mk_numeral(prefix, this.box(part))
        : this.fn.lean_name_mk_string(prefix, this.string(part))) >>> 0,
      this.box(0),
    );
  }

  // Results of IO actions: tag 0 is ok [value], tag 1 an error.
  io(result, what) {
    const p = result >>> 0;
    if (this.tag(p) === 0) return this.field(p, 0);
    const message = this.text(this.fn.lean_io_error_to_string(this.share(this.field(p, 0))) >>> 0);
    throw new Error(`${what}: ${message}`);
  }

  /** The value of a Lean constant that the module keeps in a global variable. */
  constant(symbol) { return this.share(this.word(this.fn[symbol].value)); }
}

module.exports = { Objects, BadObject };
