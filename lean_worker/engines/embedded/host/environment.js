'use strict';
// Look into a Lean environment.
//
// `lean_elab_environment_to_kernel_env` gives the environment of the kernel, with everything that was checked or added
// behind the kernel's back. Its field 0 is the map of constants: [imported, local], where `local` is a persistent hash
// map: entries [array] (tag 0) or collision [keys values] (tag 1), an entry being pair [key value] (tag 0),
// ref [node] (tag 1) or null (the scalar 2).

const { BadObject } = require('./objects.js');

const NODE_ENTRIES = 0;
const ENTRY_PAIR = 0;
const MAX_LOCAL = 1_000_000;

class Environment {
  constructor(objects, pointer) {
    this.objects = objects;
    this.pointer = pointer;
    this.kernel = objects.fn.lean_elab_environment_to_kernel_env(objects.share(pointer)) >>> 0;
  }

  /** The address of a constant's `ConstantInfo`, or null. `name`: address of a name. */
  find(name) {
    return findIn(this.objects, this.kernel, name);
  }

  /**
   * Whether a declaration of the text has this name: Lean records source ranges for those (`Lean.declRangeExt`), not
   * for the auxiliary constants that it makes itself.
   */
  isWritten(name) {
    const o = this.objects;
    const ranges = o.constant('l_Lean_declRangeExt');
    const noDefault = o.box(0);
    return (o.fn.l_Lean_MapDeclarationExtension_contains___redArg(noDefault, ranges, o.share(this.pointer), o.share(name)) & 1) === 1;
  }

  /** Addresses [name, info] of the constants that were not imported. */
  * locals() {
    const o = this.objects;
    const stack = [o.field(o.field(this.kernel, 0), 1)];
    let count = 0;
    while (stack.length) {
      const node = stack.pop();
      if (o.tag(node) !== NODE_ENTRIES) {
        const keys = o.elements(o.field(node, 0));
        const values = o.elements(o.field(node, 1));
        for (let i = 0; i < keys.length; i++) yield [keys[i], values[i]];
        continue;
      }
      for (const entry of o.elements(o.field(node, 0))) {
        if (o.isScalar(entry)) continue;
        if (++count > MAX_LOCAL) throw new BadObject('an environment without end');
        if (o.tag(entry) === ENTRY_PAIR) yield [o.field(entry, 0), o.field(entry, 1)];
        else stack.push(o.field(entry, 0));
      }
    }
  }
}

function findIn(objects, kernel, name) {
  const found = objects.fn.lean_environment_find(objects.share(kernel), objects.share(name)) >>> 0;
  return objects.isScalar(found) ? null : objects.field(found, 0);
}

module.exports = { Environment, findIn };
