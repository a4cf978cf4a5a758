'use strict';
// Declarations as plain data, outside of the module's memory.
//
// What a candidate leaves behind is copied out of its memory into this form before the memory is restored. Everything
// that decides a verdict then works on the copy and on the pristine environment, so that even a candidate that could
// write to arbitrary addresses of the module decides nothing but which declarations are offered to the kernel.
//
// Names, levels and expressions are numbered; 0 is the anonymous name and the level zero. `mdata` is dropped: neither
// the kernel nor a comparison of statements looks at it.

const EXPR = Object.freeze({
  BVAR: 0, FVAR: 1, MVAR: 2, SORT: 3, CONST: 4, APP: 5, LAM: 6, FORALL: 7, LET: 8, LIT: 9, MDATA: 10, PROJ: 11,
});
const LEVEL = Object.freeze({ ZERO: 0, SUCC: 1, MAX: 2, IMAX: 3, PARAM: 4, MVAR: 5 });

/** A list of nodes with up to four integers each, in typed arrays that grow. */
class Nodes {
  constructor() {
    this.count = 0;
    this.allocate(1024);
  }

  allocate(capacity) {
    const grown = (Type, old) => { const fresh = new Type(capacity); if (old) fresh.set(old); return fresh; };
    this.capacity = capacity;
    this.kind = grown(Uint8Array, this.kind);
    this.info = grown(Uint8Array, this.info);
    this.a = grown(Int32Array, this.a);
    this.b = grown(Int32Array, this.b);
    this.c = grown(Int32Array, this.c);
    this.d = grown(Int32Array, this.d);
  }

  add(kind, a = 0, b = 0, c = 0, d = 0, info = 0) {
    if (this.count === this.capacity) this.allocate(2 * this.capacity);
    const i = this.count++;
    this.kind[i] = kind;
    this.info[i] = info;
    this.a[i] = a;
    this.b[i] = b;
    this.c[i] = c;
    this.d[i] = d;
    return i;
  }
}

/** Names as a tree: {prefix, part}, part a string or a number (decimal text for large ones). */
class Names {
  constructor() {
    this.nodes = [{ prefix: 0, part: null }];
    this.keys = [''];
    this.byKey = new Map([['', 0]]);
  }

  add(prefix, part) {
    const key = this.keys[prefix] + (typeof part === 'string' ? `.${part.length}:${part}` : `#${part}`);
    let id = this.byKey.get(key);
    if (id === undefined) {
      id = this.nodes.length;
      this.nodes.push({ prefix, part });
      this.keys.push(key);
      this.byKey.set(key, id);
    }
    return id;
  }

  /** Unambiguous text of a name: equal for equal names, whatever characters they contain. */
  key(id) { return this.keys[id]; }

  /** The name for people, its components joined by dots. */
  display(id) {
    const parts = this.components(id);
    return parts.length ? parts.join('.') : '[anonymous]';
  }

  components(id) {
    const parts = [];
    for (; id !== 0; id = this.nodes[id].prefix) parts.push(this.nodes[id].part);
    return parts.reverse();
  }

  of(components) { return components.reduce((prefix, part) => this.add(prefix, part), 0); }
}

class Terms {
  constructor() {
    this.names = new Names();
    this.levels = new Nodes();
    this.levels.add(LEVEL.ZERO);
    this.levelLists = [];
    this.exprs = new Nodes();
    this.literals = [];
    /** name id -> declaration, see `read.js` */
    this.declarations = new Map();
  }

  declaration(nameId) { return this.declarations.get(nameId); }

  /** The expressions of one declaration. */
  expressionsOf(declaration) {
    return declaration.value === null ? [declaration.type] : [declaration.type, declaration.value];
  }

  /** The ids of all names that an expression mentions as constants or as structures of projections. */
  constantsIn(roots) {
    const { kind, a, b, c, d } = this.exprs;
    const seen = new Set();
    const found = new Set();
    const stack = [...roots];
    while (stack.length) {
      const e = stack.pop();
      if (seen.has(e)) continue;
      seen.add(e);
      switch (kind[e]) {
        case EXPR.CONST: found.add(a[e]); break;
        case EXPR.APP: stack.push(a[e], b[e]); break;
        case EXPR.LAM: case EXPR.FORALL: stack.push(b[e], c[e]); break;
        case EXPR.LET: stack.push(b[e], c[e], d[e]); break;
        case EXPR.PROJ: found.add(a[e]); stack.push(c[e]); break;
        default: break;
      }
    }
    return found;
  }
}

module.exports = { Terms, EXPR, LEVEL };
