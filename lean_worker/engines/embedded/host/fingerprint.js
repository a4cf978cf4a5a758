'use strict';
// Digests of expressions and declarations: equal exactly when they are the same up to the names of level parameters, of
// bound variables and of the constants that Lean makes itself. They outlive the memory, so an elaborated statement can
// be kept.
//
// Lean names such a constant (`f.match_1`, `t._proof_2`) after the declaration that needed it first and uses it again
// wherever the same is needed. An honest lemma in front of the target thereby renames what the target's type mentions,
// so they count by what they are: a definition by its value, since equal values unfold to the same, a proof by what it
// proves.

const crypto = require('node:crypto');
const { EXPR, LEVEL } = require('./terms.js');

/** Last components of names that Lean makes: those of `Name.isInternalDetail` that a type can mention. */
const MADE_BY_LEAN = /^(?:_|match_\d+$)/;
/** Types mention few of them; more are a candidate's doing, and count by their names. It also bounds the recursion. */
const MADE_CONSTANTS = 200;
/** Maxima of more levels are compared as they are written. */
const MAXIMUM_NODES = 64;

const digest = (...parts) => crypto.hash('sha256', parts.join('\u0000'), 'base64url');

class Fingerprints {
  /** @param {boolean} binderKinds whether explicit, implicit and instance binders are told apart */
  constructor(terms, levelParams, binderKinds, made = new Map()) {
    this.terms = terms;
    this.binderKinds = binderKinds;
    this.made = made; // name id -> digest, or null while it is computed
    this.positions = new Map(levelParams.map((id, position) => [id, position]));
    this.levels = new Map();
    this.exprs = new Map();
  }

  level(root) {
    return bottomUp(root, this.levels, (l) => levelChildren(this.terms.levels, l), (l) => {
      const { kind, a, b } = this.terms.levels;
      if (kind[l] === LEVEL.PARAM) {
        const position = this.positions.get(a[l]);
        return position === undefined ? digest('free', this.terms.names.key(a[l])) : digest('param', position);
      }
      if (kind[l] === LEVEL.MAX) return digest('max', ...this.maximumOf(l));
      return digest('level', kind[l], ...levelChildren(this.terms.levels, l).map((child) => this.levels.get(child)));
    });
  }

  /** `max` is associative, commutative and idempotent; Lean orders its arguments by the names of the parameters. */
  maximumOf(l) {
    const { kind } = this.terms.levels;
    const leaves = new Set();
    const seen = new Set([l]);
    for (const at of seen) { // grows while it is read
      if (kind[at] !== LEVEL.MAX) leaves.add(this.levels.get(at));
      else for (const child of levelChildren(this.terms.levels, at)) seen.add(child);
      if (seen.size > MAXIMUM_NODES) return levelChildren(this.terms.levels, l).map((child) => this.levels.get(child));
    }
    return [...leaves].sort();
  }

  /** What a constant is compared by. */
  constant(id) {
    const declaration = isMade(this.terms, id) ? this.terms.declaration(id) : null;
    if (!declaration || this.made.get(id) === null || this.made.size > MADE_CONSTANTS) return this.terms.names.key(id);
    if (!this.made.has(id)) {
      this.made.set(id, null);
      this.made.set(id, meaningFingerprint(this.terms, declaration, this.made));
    }
    return this.made.get(id);
  }

  expr(root) {
    return bottomUp(root, this.exprs, (e) => exprChildren(this.terms.exprs, e), (e) => this.node(e));
  }

  node(e) {
    const { kind, info, a, b } = this.terms.exprs;
    const names = this.terms.names;
    const below = exprChildren(this.terms.exprs, e).map((child) => this.exprs.get(child));
    switch (kind[e]) {
      case EXPR.BVAR: return digest('bvar', a[e]);
      case EXPR.SORT: return digest('sort', this.level(a[e]));
      case EXPR.CONST:
        return digest('const', this.constant(a[e]), ...this.terms.levelLists[b[e]].map((level) => this.level(level)));
      case EXPR.LAM: case EXPR.FORALL: return digest(kind[e], this.binderKinds ? info[e] : '', ...below);
      case EXPR.LIT: return digest('lit', typeof this.terms.literals[a[e]], this.terms.literals[a[e]]);
      case EXPR.PROJ: return digest('proj', names.key(a[e]), b[e], ...below);
      default: return digest(kind[e], ...below);
    }
  }
}

/** Whether Lean made this constant of the text, so that its name says nothing. */
function isMade(terms, id) {
  const kind = terms.declaration(id)?.kind;
  if (kind !== 'def' && kind !== 'theorem') return false;
  const { part } = terms.names.nodes[id];
  return typeof part === 'string' && MADE_BY_LEAN.test(part);
}

function levelChildren({ kind, a, b }, l) {
  switch (kind[l]) {
    case LEVEL.SUCC: return [a[l]];
    case LEVEL.MAX: case LEVEL.IMAX: return [a[l], b[l]];
    default: return [];
  }
}

function exprChildren({ kind, a, b, c, d }, e) {
  switch (kind[e]) {
    case EXPR.APP: return [a[e], b[e]];
    case EXPR.LAM: case EXPR.FORALL: return [b[e], c[e]];
    case EXPR.LET: return [b[e], c[e], d[e]];
    case EXPR.PROJ: return [c[e]];
    default: return [];
  }
}

/** Children always have smaller numbers than their parents. */
function bottomUp(root, known, childrenOf, make) {
  const needed = new Set();
  const stack = [root];
  while (stack.length) {
    const node = stack.pop();
    if (known.has(node) || needed.has(node)) continue;
    needed.add(node);
    stack.push(...childrenOf(node));
  }
  for (const node of Int32Array.from(needed).sort()) known.set(node, make(node));
  return known.get(root);
}

/**
 * The type of a declaration: `loose` ignores binder kinds, `exact` does not; both include the number of levels. Their
 * order is that in which the type mentions them: `t.{u, v}` and `t.{v, u}` prove the same.
 */
function typeFingerprint(terms, declaration) {
  const { levelParams, type } = declaration;
  const order = inOrder(terms, type);
  const of = (binderKinds) => digest('type', levelParams.length, new Fingerprints(terms, order, binderKinds).expr(type));
  return { loose: of(false), exact: of(true) };
}

/** The level parameters of an expression, as they come from left to right. */
function inOrder({ exprs, levels, levelLists }, root) {
  const roots = [];
  for (const e of leftToRight(root, (e) => exprChildren(exprs, e))) {
    if (exprs.kind[e] === EXPR.SORT) roots.push(exprs.a[e]);
    if (exprs.kind[e] === EXPR.CONST) roots.push(...levelLists[exprs.b[e]]);
  }
  const parameters = [...new Set(roots)].flatMap((l) => [...leftToRight(l, (l) => levelChildren(levels, l))]);
  return [...new Set(parameters.filter((l) => levels.kind[l] === LEVEL.PARAM).map((l) => levels.a[l]))];
}

/** The nodes below a root, each once. */
function leftToRight(root, childrenOf) {
  const found = new Set();
  const stack = [root];
  while (stack.length) {
    const node = stack.pop();
    if (found.has(node)) continue;
    found.add(node);
    stack.push(...childrenOf(node).reverse());
  }
  return found;
}

/** A declaration's meaning: kind, type and, except for proofs, value; an inductive type with its constructors. */
function meaningFingerprint(terms, declaration, made = new Map()) {
  const prints = new Fingerprints(terms, declaration.levelParams, true, made);
  const value = declaration.value === null || declaration.kind === 'theorem' ? '' : prints.expr(declaration.value);
  const constructors = (declaration.constructors ?? []).map((id) => {
    const constructor = terms.declaration(id);
    return constructor ? `${terms.names.key(id)} ${prints.expr(constructor.type)}` : 'missing';
  });
  const family = (declaration.family ?? []).map((id) => terms.names.key(id));
  return digest('declaration', declaration.kind, declaration.levelParams.length, prints.expr(declaration.type), value,
    ...constructors, ...family);
}

module.exports = { typeFingerprint, meaningFingerprint, isMade };
