'use strict';
// Facts about declarations, from their copies and the pristine environment. Never from text.

const { findIn } = require('./environment.js');

const CORE_AXIOMS = new Set(['propext', 'Classical.choice', 'Quot.sound']);
const COMPILER_AXIOMS = new Set(['Lean.ofReduceBool', 'Lean.ofReduceNat', 'Lean.trustCompiler']);
/** Axioms of the library that a proof must not rest on. */
const FOREIGN_AXIOMS = new Set(['sorryAx', ...COMPILER_AXIOMS]);
const PLACEHOLDER = ['sorryAx'];

/** Axioms behind the constants of the pristine environment; kept for as long as the environment stays loaded. */
class PristineAxioms {
  constructor() {
    this.known = new Map(); // name key -> array of names
  }

  /** Call only in restored memory. */
  of(objects, environment, key, name) {
    let axioms = this.known.get(key);
    if (!axioms) {
      axioms = collect(objects, environment, name);
      this.known.set(key, axioms);
    }
    return axioms;
  }
}

/**
 * Lean.CollectAxioms: state [visited, axioms]. What the library does not export has no body here and looks like an
 * axiom: theorems, and definitions such as `Nat.gcd`; Lean remembers what they were.
 */
function collect(objects, environment, name) {
  const o = objects;
  const state = o.construct(0, [o.box(1), o.array([])]);
  const result = o.fn.l_Lean_CollectAxioms_collect(o.share(name), o.share(environment.pointer), state) >>> 0;
  const found = o.elements(o.field(o.field(result, 1), 1));
  return found.filter((axiom) => isAxiom(o, environment, axiom)).map((axiom) => displayName(o, axiom));
}

/** Lean.ConstantKind: 0 defn, 1 thm, 2 axiom, 3 opaque, ... */
const AXIOM_KIND = 2;

function isAxiom(o, environment, name) {
  const kind = o.fn.l_Lean_getOriginalConstKind_x3f(o.share(environment.pointer), o.share(name)) >>> 0;
  return o.isScalar(kind) || o.unbox(o.field(kind, 0)) === AXIOM_KIND;
}

function displayName(o, name) {
  const parts = [];
  for (let at = name; !o.isScalar(at); at = o.field(at, 0)) {
    const part = o.field(at, 1);
    parts.push(o.tag(at) === 1 ? o.text(part) : String(o.unbox(part)));
  }
  return parts.reverse().join('.');
}

/**
 * What `target` rests on: follows the copied declarations, then the pristine ones.
 * @returns {{core: string[], library: string[], foreign: string[]}}
 */
function axiomsOf(terms, target, pristine) {
  const core = new Set();
  const library = new Set();
  const foreign = new Set();
  const seen = new Set();
  const stack = [target];
  while (stack.length) {
    const id = stack.pop();
    if (seen.has(id)) continue;
    seen.add(id);
    const known = pristine.axioms(id);
    if (known) {
      for (const name of known) {
        if (FOREIGN_AXIOMS.has(name)) foreign.add(name);
        else (CORE_AXIOMS.has(name) ? core : library).add(name);
      }
      continue;
    }
    const declaration = terms.declaration(id);
    if (!declaration) continue; // the kernel will name it
    if (declaration.kind === 'axiom') foreign.add(terms.names.display(id));
    stack.push(...terms.constantsIn(terms.expressionsOf(declaration)), ...(declaration.family ?? []), ...(declaration.constructors ?? []));
  }
  const sorted = (names) => [...names].sort();
  return { core: sorted(core), library: sorted(library), foreign: sorted(foreign) };
}

/** Whether any of the declarations mentions `sorryAx`. */
function hasPlaceholder(terms) {
  const placeholder = terms.names.of(PLACEHOLDER);
  return [...terms.declarations.values()].some((d) => terms.constantsIn(terms.expressionsOf(d)).has(placeholder));
}

/** The pristine environment, asked with the names of `terms`. Call only in restored memory. */
class Pristine {
  constructor(objects, environment, terms, builder, cache) {
    Object.assign(this, { objects, environment, terms, builder, cache });
  }

  has(id) { return findIn(this.objects, this.environment.kernel, this.builder.name(id)) !== null; }

  /** Axioms behind a pristine constant, or null when there is no such constant. */
  axioms(id) {
    const key = this.terms.names.key(id);
    if (this.cache.known.has(key)) return this.cache.known.get(key);
    return this.has(id) ? this.cache.of(this.objects, this.environment, key, this.builder.name(id)) : null;
  }
}

module.exports = { axiomsOf, COMPILER_AXIOMS, hasPlaceholder, Pristine, PristineAxioms };
