'use strict';
// Lean's interpreter finds compiled functions by name. A memory image contains the function-table slots that it got,
// so a slot must never depend on the order of the look-ups: the n-th exported function always gets the n-th slot.

/** Lean's own compiled declarations and runtime, nothing else: libc and the glue code stay out of reach. */
const isLeanSymbol = (name) => name.startsWith('l_') || name.startsWith('lean_') || name.startsWith('initialize_');

class Symbols {
  constructor(exports) {
    this.exports = exports;
    this.names = Object.keys(exports).filter((name) => typeof exports[name] === 'function' && isLeanSymbol(name));
    this.offsets = new Map(this.names.map((name, offset) => [name, offset]));
    this.table = exports.__indirect_function_table;
    this.base = this.table.grow(this.names.length);
    this.filled = new Set(); // offsets
  }

  /** The address of a symbol for the module: a table slot, or the address of a global; 0 when unknown. */
  address(name) {
    const offset = this.offsets.get(name);
    if (offset !== undefined) return this.fill(offset);
    const global = isLeanSymbol(name) && Object.hasOwn(this.exports, name) ? this.exports[name] : null;
    return global instanceof WebAssembly.Global ? global.value : 0;
  }

  fill(offset) {
    if (!this.filled.has(offset)) {
      this.table.set(this.base + offset, this.exports[this.names[offset]]);
      this.filled.add(offset);
    }
    return this.base + offset;
  }

  /** What a snapshot has to remember. */
  state() {
    return { base: this.base, filled: [...this.filled] };
  }

  restore(state) {
    if (state.base !== this.base) throw new Error(`function table starts at ${this.base}, expected ${state.base}`);
    state.filled.forEach((offset) => this.fill(offset));
  }
}

module.exports = { Symbols };
