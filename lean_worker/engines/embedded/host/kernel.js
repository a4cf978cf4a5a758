'use strict';
// Add copied declarations to the pristine environment again, through Lean's kernel, in dependency order.
//
// Runs only in restored memory. The kernel (`lean_add_decl`) checks every declaration as if it were new; recursors and
// constructors are made by the kernel itself from the inductive types.

const { EXPR, LEVEL } = require('./terms.js');
const { findIn } = require('./environment.js');

const DECLARATION = Object.freeze({ AXIOM: 0, DEFINITION: 1, THEOREM: 2, OPAQUE: 3, INDUCTIVE: 6 });
const SAFE = 1; // Lean.DefinitionSafety

/** The kernel refused a declaration, or it cannot be offered to it. */
class Refused extends Error {
  constructor(message, outOfBudget = false) {
    super(message);
    this.outOfBudget = outOfBudget;
  }
}

/** Makes Lean objects from `Terms`; each node once. */
class Builder {
  constructor(objects, terms) {
    this.objects = objects;
    this.fn = objects.fn;
    this.terms = terms;
    this.names = new Map([[0, objects.box(0)]]);
    this.levels = new Map();
    this.exprs = new Map();
  }

  name(id) {
    let made = this.names.get(id);
    if (made === undefined) {
      const { prefix, part } = this.terms.names.nodes[id];
      const before = this.name(prefix);
      made = (typeof part === 'string'
        ? this.fn.lean_name_mk_string(before, this.objects.string(part))
        : this.fn.lean_name_mk_numeral(before, this.natural(part))) >>> 0;
      this.names.set(id, made);
    }
    return this.objects.share(made);
  }

  natural(value) {
    const o = this.objects;
    if (typeof value === 'number') return o.box(value);
    const digits = Buffer.from(`${value}\0`);
    const at = this.fn.malloc(digits.length) >>> 0;
    o.refresh();
    o.bytes.set(digits, at);
    const made = this.fn.lean_cstr_to_nat(at) >>> 0;
    this.fn.free(at);
    return made;
  }

  level(id) {
    let made = this.levels.get(id);
    if (made === undefined) {
      const { kind, a, b } = this.terms.levels;
      const fn = this.fn;
      switch (kind[id]) {
        case LEVEL.ZERO: made = fn.lean_level_mk_zero(this.objects.box(0)); break;
        case LEVEL.SUCC: made = fn.lean_level_mk_succ(this.level(a[id])); break;
        case LEVEL.MAX: made = fn.lean_level_mk_max(this.level(a[id]), this.level(b[id])); break;
        case LEVEL.IMAX: made = fn.lean_level_mk_imax(this.level(a[id]), this.level(b[id])); break;
        default: made = fn.lean_level_mk_param(this.name(a[id])); break;
      }
      made >>>= 0;
      this.levels.set(id, made);
    }
    return this.objects.share(made);
  }

  /** Children are numbered before their parents, so a loop over what is reachable needs no recursion. */
  expr(root) {
    for (const e of this.missing(root)) this.exprs.set(e, this.node(e) >>> 0);
    return this.objects.share(this.exprs.get(root));
  }

  missing(root) {
    const { kind, a, b, c, d } = this.terms.exprs;
    const found = new Set();
    const stack = [root];
    while (stack.length) {
      const e = stack.pop();
      if (this.exprs.has(e) || found.has(e)) continue;
      found.add(e);
      switch (kind[e]) {
        case EXPR.APP: stack.push(a[e], b[e]); break;
        case EXPR.LAM: case EXPR.FORALL: stack.push(b[e], c[e]); break;
        case EXPR.LET: stack.push(b[e], c[e], d[e]); break;
        case EXPR.PROJ: stack.push(c[e]); break;
        default: break;
      }
    }
    return Int32Array.from(found).sort();
  }

  node(e) {
    const { kind, info, a, b, c, d } = this.terms.exprs;
    const { fn, objects: o } = this;
    const made = (child) => o.share(this.exprs.get(child));
    switch (kind[e]) {
      case EXPR.BVAR: return fn.lean_expr_mk_bvar(o.box(a[e]));
      case EXPR.SORT: return fn.lean_expr_mk_sort(this.level(a[e]));
      case EXPR.CONST: {
        const levels = o.list(this.terms.levelLists[b[e]].map((level) => this.level(level)));
        return fn.lean_expr_mk_const(this.name(a[e]), levels);
      }
      case EXPR.APP: return fn.lean_expr_mk_app(made(a[e]), made(b[e]));
      case EXPR.LAM: return fn.lean_expr_mk_lambda(this.name(a[e]), made(b[e]), made(c[e]), info[e]);
      case EXPR.FORALL: return fn.lean_expr_mk_forall(this.name(a[e]), made(b[e]), made(c[e]), info[e]);
      case EXPR.LET: return fn.lean_expr_mk_let(this.name(a[e]), made(b[e]), made(c[e]), made(d[e]));
      case EXPR.LIT: return fn.lean_expr_mk_lit(this.literal(this.terms.literals[a[e]]));
      default: return fn.lean_expr_mk_proj(this.name(a[e]), o.box(b[e]), made(c[e]));
    }
  }

  literal(value) {
    const o = this.objects;
    if (typeof value === 'string') return o.construct(1, [o.string(value)]);
    const small = value < 0x7fffffffn;
    return o.construct(0, [this.natural(small ? Number(value) : value)]);
  }

  nameList(ids) { return this.objects.list(ids.map((id) => this.name(id))); }

  constantVal(declaration) {
    const { name, levelParams, type } = declaration;
    return this.objects.construct(0, [this.name(name), this.nameList(levelParams), this.expr(type)]);
  }

  hints({ tag, height }) {
    const o = this.objects;
    if (tag !== 2) return o.box(tag);
    const bytes = [height & 255, (height >>> 8) & 255, (height >>> 16) & 255, (height >>> 24) & 255];
    return o.construct(tag, [], bytes);
  }

  declaration(d) {
    const o = this.objects;
    const all = () => this.nameList([d.name]);
    switch (d.kind) {
      case 'axiom': return o.construct(DECLARATION.AXIOM, [o.construct(0, [this.constantVal(d)], [0])]);
      case 'def': return o.construct(DECLARATION.DEFINITION, [
        o.construct(0, [this.constantVal(d), this.expr(d.value), this.hints(d.hints), all()], [SAFE])]);
      case 'theorem': return o.construct(DECLARATION.THEOREM, [
        o.construct(0, [this.constantVal(d), this.expr(d.value), all()])]);
      case 'opaque': return o.construct(DECLARATION.OPAQUE, [
        o.construct(0, [this.constantVal(d), this.expr(d.value), all()], [0])]);
      default: throw new Refused(`${this.terms.names.display(d.name)}: a ${d.kind} cannot be declared`);
    }
  }

  /** A family of mutual inductive types with its constructors. */
  family(types) {
    const o = this.objects;
    const list = o.list(types.map((type) => {
      const constructors = type.constructors.map((id) => {
        const constructor = this.terms.declaration(id);
        return o.construct(0, [this.name(id), this.expr(constructor.type)]);
      });
      return o.construct(0, [this.name(type.name), this.expr(type.type), o.list(constructors)]);
    }));
    const { levelParams, parameters } = types[0];
    return o.construct(DECLARATION.INDUCTIVE, [this.nameList(levelParams), o.box(parameters), list], [0]);
  }
}

/**
 * Declarations that `target` needs and that are not pristine, in dependency order; each entry is one declaration or a
 * family of inductive types. Throws `Refused` for what is missing, unsafe or circular.
 */
function dependencyOrder(terms, target, isPristine) {
  const groups = [];
  const state = new Map(); // representative name id -> 'open' | 'done'
  const stack = [{ id: target, leave: false }];
  while (stack.length) {
    const { id, leave, group } = stack.pop();
    if (leave) {
      state.set(id, 'done');
      groups.push(group);
      continue;
    }
    if (isPristine(id)) continue;
    const members = membersOf(terms, id);
    const key = members[0].name;
    if (state.get(key) === 'done') continue;
    if (state.get(key) === 'open') {
      if (members.some((member) => member.kind === 'induct')) continue; // a family mentions itself
      throw new Refused(`${terms.names.display(id)} depends on itself`);
    }
    state.set(key, 'open');
    stack.push({ id: key, leave: true, group: members });
    for (const next of neededBy(terms, members)) stack.push({ id: next, leave: false });
  }
  return groups;
}

function membersOf(terms, id) {
  const declaration = terms.declaration(id);
  if (!declaration) throw new Refused(`unknown constant ${terms.names.display(id)}`);
  if (!declaration.family) return [declaration];
  const inductive = declaration.kind === 'induct' ? declaration : terms.declaration(declaration.family[0]);
  const family = inductive && inductive.kind === 'induct' ? inductive.family : [];
  const types = family.map((member) => terms.declaration(member));
  if (!types.length || types.some((type) => type?.kind !== 'induct')) {
    throw new Refused(`${terms.names.display(id)} belongs to no inductive type`);
  }
  return types;
}

function neededBy(terms, members) {
  const roots = [];
  for (const member of members) {
    if (member.unsafe) throw new Refused(`${terms.names.display(member.name)} is unsafe`);
    roots.push(...terms.expressionsOf(member));
    for (const id of member.constructors ?? []) {
      const constructor = terms.declaration(id);
      if (!constructor) throw new Refused(`unknown constructor ${terms.names.display(id)}`);
      roots.push(constructor.type);
    }
  }
  const own = new Set(members.flatMap((member) => [member.name, ...(member.constructors ?? [])]));
  return [...terms.constantsIn(roots)].filter((id) => members[0].kind !== 'induct' || !own.has(id));
}

/**
 * Adds everything that `target` needs to the pristine environment. Throws `Refused`.
 * `extended` is the environment to extend: of the kernel (`kernelAdd`), or of the elaborator around it (`elaboratorAdd`).
 */
function replay(objects, pristineKernel, terms, target, heartbeats, extended = pristineKernel, add = kernelAdd) {
  const builder = new Builder(objects, terms);
  const pristine = (id) => findIn(objects, pristineKernel, builder.name(id)) !== null;
  let environment = objects.share(extended);
  for (const group of dependencyOrder(terms, target, pristine)) {
    const declaration = group[0].kind === 'induct' ? builder.family(group) : builder.declaration(group[0]);
    const result = add(objects.fn, environment, heartbeats, declaration, objects.box(0)) >>> 0;
    environment = accepted(objects, result, terms.names.display(group[0].name));
  }
  return environment;
}

const kernelAdd = (fn, environment, heartbeats, declaration, none) => fn.lean_add_decl(environment, heartbeats, declaration, none);
const elaboratorAdd = (fn, environment, heartbeats, declaration, none) => {
  const doCheck = 1;
  return fn.l_Lean_Environment_addDeclCore(environment, heartbeats, declaration, none, doCheck);
};

/** Extends an elaborator's environment by the type of `target` alone, as an axiom, and what it needs: to print it. */
function declareType(objects, environment, terms, target, heartbeats) {
  const declaration = terms.declaration(target);
  terms.declarations.set(target, { ...declaration, kind: 'axiom', value: null });
  try {
    return replay(objects, environment.kernel, terms, target, heartbeats, environment.pointer, elaboratorAdd);
  } finally {
    terms.declarations.set(target, declaration);
  }
}

const EXCEPTIONS = [
  'unknown constant', 'already declared', 'declaration type mismatch', 'declaration has metavariables',
  'declaration has free variables', 'function expected', 'type expected', 'let type mismatch', 'type mismatch',
  'application type mismatch', 'invalid projection', 'theorem type is not a proposition', 'other error',
  'deterministic timeout', 'excessive memory consumption', 'deep recursion', 'interrupted',
];
const OUT_OF_BUDGET = new Set(['deterministic timeout']);

/** The new environment of a successful addition (Except: 0 error, 1 ok). */
function accepted(objects, result, what) {
  if (objects.tag(result) === 1) return objects.field(result, 0);
  const why = EXCEPTIONS[objects.tag(objects.field(result, 0))] ?? 'refused';
  throw new Refused(`(kernel) ${why}: ${what}`, OUT_OF_BUDGET.has(why));
}

module.exports = { replay, declareType, Builder, Refused };
