'use strict';
// Copy declarations out of the module's memory into `Terms`.
//
// The memory may have been damaged on purpose: every address is checked, cycles and sizes are bounded, and anything
// unexpected ends in `BadObject`. Layouts (fields, then scalar bytes; Lean 4.28, `src/Lean/{Expr,Level,Declaration}.lean`):
//   Level  0 zero  1 succ [l]  2 max [l l]  3 imax [l l]  4 param [name]  5 mvar [..]
//   Expr   0 bvar [nat]  1 fvar  2 mvar  3 sort [level]  4 const [name levels]  5 app [f a]  6 lam [name type body]
//          7 forallE [name type body]  8 letE [name type value body]  9 lit [literal]  10 mdata [data e]  11 proj [name nat e]
//          scalars: 8 bytes of cached data, then the binder kind of lam and forallE
//   ConstantInfo 0 axiom  1 defn  2 thm  3 opaque  4 quot  5 induct  6 ctor  7 rec, each with one value whose field 0 is
//          ConstantVal [name levelParams type]:
//          axiom [cv] isUnsafe   defn [cv value hints all] safety   thm [cv value all]   opaque [cv value all] isUnsafe
//          induct [cv numParams numIndices all ctors numNested] isRec isUnsafe isReflexive
//          ctor [cv induct cidx numParams numFields] isUnsafe   rec [cv all ...] k isUnsafe

const { BadObject } = require('./objects.js');
const { EXPR, LEVEL } = require('./terms.js');

const KINDS = ['axiom', 'def', 'theorem', 'opaque', 'quot', 'induct', 'ctor', 'rec'];
const SAFE = 1; // Lean.DefinitionSafety: 0 unsafe, 1 safe, 2 partial
const CACHED_DATA_BYTES = 8;
const MAX_NODES = 20_000_000;
const HEADER = 8;

class Reader {
  constructor(objects, terms) {
    this.objects = objects;
    this.terms = terms;
    this.names = new Map([[objects.box(0), 0]]);
    this.levels = new Map([[objects.box(0), 0]]);
    this.exprs = new Map();
  }

  name(pointer) {
    const known = this.names.get(pointer);
    if (known !== undefined) return known;
    const o = this.objects;
    const chain = [];
    let at = pointer;
    for (; !this.names.has(at); at = o.field(at, 0)) {
      if (chain.length > 10_000) throw new BadObject('name without end');
      chain.push(at);
    }
    let id = this.names.get(at);
    for (const p of chain.reverse()) {
      const part = o.field(p, 1);
      id = this.terms.names.add(id, o.tag(p) === 1 ? o.text(part) : this.natural(part));
      this.names.set(p, id);
    }
    return id;
  }

  /** A natural number: a JavaScript number, or decimal text when it is large. */
  natural(pointer) {
    const o = this.objects;
    if (o.isScalar(pointer)) return o.unbox(pointer);
    return BigInt(o.text(o.fn.l_Nat_reprFast(o.share(pointer)) >>> 0));
  }

  nameList(pointer) { return this.objects.listElements(pointer).map((p) => this.name(p)); }

  level(root) {
    return this.fold(root, this.levels, this.terms.levels, (p) => this.levelChildren(p), (p, children) => {
      const kind = this.objects.tag(p);
      if (kind === LEVEL.PARAM) return this.terms.levels.add(kind, this.name(this.objects.field(p, 0)));
      if (kind === LEVEL.MVAR) throw new BadObject('a level metavariable');
      return this.terms.levels.add(kind, ...children);
    });
  }

  levelChildren(p) {
    const o = this.objects;
    switch (o.tag(p)) {
      case LEVEL.SUCC: return [o.field(p, 0)];
      case LEVEL.MAX: case LEVEL.IMAX: return [o.field(p, 0), o.field(p, 1)];
      case LEVEL.ZERO: case LEVEL.PARAM: case LEVEL.MVAR: return [];
      default: throw new BadObject('not a level');
    }
  }

  expr(root) {
    return this.fold(root, this.exprs, this.terms.exprs, (p) => this.exprChildren(p), (p, children) => this.exprNode(p, children));
  }

  exprChildren(p) {
    const o = this.objects;
    if (o.isScalar(p)) throw new BadObject('not an expression');
    switch (o.tag(p)) {
      case EXPR.APP: return [o.field(p, 0), o.field(p, 1)];
      case EXPR.LAM: case EXPR.FORALL: return [o.field(p, 1), o.field(p, 2)];
      case EXPR.LET: return [o.field(p, 1), o.field(p, 2), o.field(p, 3)];
      case EXPR.MDATA: return [o.field(p, 1)];
      case EXPR.PROJ: return [o.field(p, 2)];
      case EXPR.BVAR: case EXPR.FVAR: case EXPR.MVAR: case EXPR.SORT: case EXPR.CONST: case EXPR.LIT: return [];
      default: throw new BadObject('not an expression');
    }
  }

  exprNode(p, children) {
    const o = this.objects;
    const kind = o.tag(p);
    const exprs = this.terms.exprs;
    switch (kind) {
      case EXPR.BVAR: return exprs.add(kind, this.small(o.field(p, 0)));
      case EXPR.SORT: return exprs.add(kind, this.level(o.field(p, 0)));
      case EXPR.CONST: return exprs.add(kind, this.name(o.field(p, 0)), this.levelList(o.field(p, 1)));
      case EXPR.APP: return exprs.add(kind, children[0], children[1]);
      case EXPR.LAM: case EXPR.FORALL:
        return exprs.add(kind, this.name(o.field(p, 0)), children[0], children[1], 0, o.scalarByte(p, CACHED_DATA_BYTES));
      case EXPR.LET: return exprs.add(kind, this.name(o.field(p, 0)), ...children);
      case EXPR.LIT: return exprs.add(kind, this.literal(o.field(p, 0)));
      case EXPR.MDATA: return children[0];
      case EXPR.PROJ: return exprs.add(kind, this.name(o.field(p, 0)), this.small(o.field(p, 1)), children[0]);
      case EXPR.FVAR: throw new BadObject('a free variable');
      default: throw new BadObject('a metavariable');
    }
  }

  small(pointer) {
    if (!this.objects.isScalar(pointer)) throw new BadObject('an index out of range');
    return this.objects.unbox(pointer);
  }

  levelList(pointer) {
    const lists = this.terms.levelLists;
    lists.push(this.objects.listElements(pointer).map((p) => this.level(p)));
    return lists.length - 1;
  }

  literal(pointer) {
    const o = this.objects;
    const value = o.field(pointer, 0);
    this.terms.literals.push(o.tag(pointer) === 0 ? BigInt(this.natural(value)) : o.text(value));
    return this.terms.literals.length - 1;
  }

  /** Number the nodes of a graph, children first, each address once. */
  fold(root, known, nodes, childrenOf, make) {
    const UNFINISHED = -1;
    const stack = [root];
    while (stack.length) {
      const p = stack[stack.length - 1];
      const state = known.get(p);
      if (state !== undefined && state !== UNFINISHED) {
        stack.pop();
        continue;
      }
      const children = childrenOf(p);
      if (state === undefined) {
        if (nodes.count + known.size > MAX_NODES) throw new BadObject('a term too large');
        known.set(p, UNFINISHED);
        let ready = true;
        for (const child of children) {
          const seen = known.get(child);
          if (seen === UNFINISHED) throw new BadObject('a cyclic term');
          if (seen === undefined) {
            stack.push(child);
            ready = false;
          }
        }
        if (!ready) continue;
      }
      known.set(p, make(p, children.map((child) => known.get(child))));
      stack.pop();
    }
    return known.get(root);
  }

  /** One `ConstantInfo`, recorded in `terms.declarations`. */
  declaration(info) {
    const o = this.objects;
    const kind = KINDS[o.tag(info)];
    if (!kind) throw new BadObject('not a declaration');
    const value = o.field(info, 0);
    const common = o.field(value, 0);
    const declaration = {
      kind,
      name: this.name(o.field(common, 0)),
      levelParams: this.nameList(o.field(common, 1)),
      type: this.expr(o.field(common, 2)),
      value: null,
      ...this.details(kind, value),
    };
    this.terms.declarations.set(declaration.name, declaration);
    return declaration;
  }

  details(kind, value) {
    const o = this.objects;
    switch (kind) {
      case 'axiom': return { unsafe: o.scalarByte(value, 0) !== 0 };
      case 'def': return {
        value: this.expr(o.field(value, 1)), hints: this.hints(o.field(value, 2)), unsafe: o.scalarByte(value, 0) !== SAFE,
      };
      case 'theorem': return { value: this.expr(o.field(value, 1)), unsafe: false };
      case 'opaque': return { value: this.expr(o.field(value, 1)), unsafe: o.scalarByte(value, 0) !== 0 };
      case 'induct': return {
        parameters: this.small(o.field(value, 1)), family: this.nameList(o.field(value, 3)),
        constructors: this.nameList(o.field(value, 4)), unsafe: o.scalarByte(value, 1) !== 0,
      };
      case 'ctor': return { family: [this.name(o.field(value, 1))], unsafe: o.scalarByte(value, 0) !== 0 };
      case 'rec': return { family: this.nameList(o.field(value, 1)), unsafe: o.scalarByte(value, 1) !== 0 };
      default: return { unsafe: false };
    }
  }

  /** Lean.ReducibilityHints: 0 opaque, 1 abbrev, 2 regular with a 32-bit height. */
  hints(pointer) {
    const o = this.objects;
    const tag = o.tag(pointer);
    return tag === 2 ? { tag, height: o.word(pointer + HEADER) } : { tag, height: 0 };
  }
}

module.exports = { Reader };
