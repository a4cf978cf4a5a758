'use strict';
// Digests of expressions and declarations: equal exactly when they are the same up to the names of level parameters
// (compared by position) and of bound variables. They outlive the memory, so an elaborated statement can be kept.

const crypto = require('node:crypto');
const { EXPR, LEVEL } = require('./terms.js');

const digest = (...parts) => crypto.hash('sha256', parts.join('\u0000'), 'base64url');

class Fingerprints {
  /** @param {boolean} binderKinds whether explicit, implicit and instance binders are told apart */
  constructor(terms, levelParams, binderKinds) {
    this.terms = terms;
    this.binderKinds = binderKinds;
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
      return digest('level', kind[l], ...levelChildren(this.terms.levels, l).map((child) => this.levels.get(child)));
    });
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
        return digest('const', names.key(a[e]), ...this.terms.levelLists[b[e]].map((level) => this.level(level)));
      case EXPR.LAM: case EXPR.FORALL: return digest(kind[e], this.binderKinds ? info[e] : '', ...below);
      case EXPR.LIT: return digest('lit', typeof this.terms.literals[a[e]], this.terms.literals[a[e]]);
      case EXPR.PROJ: return digest('proj', names.key(a[e]), b[e], ...below);
      default: return digest(kind[e], ...below);
    }
  }
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

/** The type of a declaration: `loose` ignores binder kinds, `exact` does not; both include the number of levels. */
function typeFingerprint(terms, declaration) {
  const { levelParams, type } = declaration;
  const of = (binderKinds) => digest('type', levelParams.length, new Fingerprints(terms, levelParams, binderKinds).expr(type));
  return { loose: of(false), exact: of(true) };
}

/** A declaration's meaning: kind, type and, except for proofs, value; an inductive type with its constructors. */
function meaningFingerprint(terms, declaration) {
  const prints = new Fingerprints(terms, declaration.levelParams, true);
  const value = declaration.value === null || declaration.kind === 'theorem' ? '' : prints.expr(declaration.value);
  const constructors = (declaration.constructors ?? []).map((id) => {
    const constructor = terms.declaration(id);
    return constructor ? `${terms.names.key(id)} ${prints.expr(constructor.type)}` : 'missing';
  });
  const family = (declaration.family ?? []).map((id) => terms.names.key(id));
  return digest('declaration', declaration.kind, declaration.levelParams.length, prints.expr(declaration.type), value,
    ...constructors, ...family);
}

module.exports = { typeFingerprint, meaningFingerprint };
