'use strict';
// Tactics of a text with the goals around them, from Lean's info trees (Lean 4.28, `src/Lean/Elab/InfoTree/Types.lean`).
// For reference traces only: no verdict depends on them.
//
//   InfoTree           0 context [PartialContextInfo tree]  1 node [Info children]  2 hole [id]
//   Info               0 tactic [TacticInfo], others
//   TacticInfo         [[elaborator syntax] mctxBefore goalsBefore mctxAfter goalsAfter]
//   ContextInfo        [CommandContextInfo parentDecl autoImplicits], CommandContextInfo field 2 file map, 3 mctx
//   InfoState          [lazyAssignment assignment trees]
//   PersistentArray    [root tail ..], its nodes 0 node [array] and 1 leaf [array]
//   Syntax             1 node [info kind arguments]  2 atom [info value]  3 identifier [info ..]; info 0 is original

const STATE_INFO = 8; // of Lean.Elab.Command.State
const INFO = Object.freeze({ ASSIGNMENT: 1, TREES: 2 });
const TREE = Object.freeze({ CONTEXT: 0, NODE: 1 });
const FILE_MAP = 2;
const METAVARIABLES = 3;
const MAX_TACTICS = 500;
const MAX_CHARACTERS = 1 << 20;
/** Syntax that only groups tactics. */
const GROUPS = new Set([
  'byTactic', 'tacticSeq', 'tacticSeq1Indented', 'tacticSeqBracketed', 'null', 'by', 'withAnnotateState', 'cdotTk',
]);

class TacticReader {
  constructor(objects) {
    this.objects = objects;
    this.fn = objects.fn;
    this.found = new Map(); // range -> tactic state
    this.characters = 0;
  }

  read(state) {
    const o = this.objects;
    const settled = this.fn.l_Lean_Elab_InfoState_substituteLazy(o.share(o.field(state, STATE_INFO)));
    const info = this.fn.lean_task_get(settled) >>> 0;
    for (const tree of this.persistent(o.field(info, INFO.TREES))) {
      const whole = this.fn.l_Lean_Elab_InfoTree_substitute(o.share(tree), o.share(o.field(info, INFO.ASSIGNMENT))) >>> 0;
      this.walk(whole);
    }
    return [...this.found.values()];
  }

  walk(root) {
    const o = this.objects;
    const stack = [[root, o.box(0)]];
    while (stack.length && this.found.size < MAX_TACTICS && this.characters < MAX_CHARACTERS) {
      const [tree, context] = stack.pop();
      if (o.tag(tree) === TREE.CONTEXT) {
        const merged = this.fn.l_Lean_Elab_PartialContextInfo_mergeIntoOuter_x3f(o.share(o.field(tree, 0)), o.share(context));
        stack.push([o.field(tree, 1), merged >>> 0]);
      } else if (o.tag(tree) === TREE.NODE) {
        const info = o.field(tree, 0);
        if (o.tag(info) === 0 && !o.isScalar(context)) this.tactic(o.field(info, 0), o.field(context, 0));
        for (const child of this.persistent(o.field(tree, 1)).reverse()) stack.push([child, context]);
      }
    }
  }

  tactic(info, context) {
    const o = this.objects;
    const syntax = o.field(o.field(info, 0), 1);
    if (!this.isWritten(syntax)) return;
    const range = this.fn.l_Lean_Syntax_getRange_x3f(o.share(syntax), 1) >>> 0;
    if (o.isScalar(range)) return;
    const [start, end] = [0, 1].map((i) => o.field(o.field(range, 0), i));
    const key = `${start} ${end}`;
    if (this.found.has(key)) return;
    const map = o.field(o.field(context, 0), FILE_MAP);
    const state = {
      tactic: this.source(map, o.unbox(start), o.unbox(end)), pos: this.position(map, start), endPos: this.position(map, end),
      goalsBefore: this.goals(context, o.field(info, 1), o.field(info, 2)),
      goalsAfter: this.goals(context, o.field(info, 3), o.field(info, 4)),
    };
    this.characters += JSON.stringify(state).length;
    this.found.set(key, state);
  }

  /** Written as it stands, not made by a macro, and more than a group of tactics. */
  isWritten(syntax) {
    const o = this.objects;
    if (o.isScalar(syntax) || o.tag(syntax) !== 1) return false;
    const kind = o.field(syntax, 1);
    if (o.isScalar(kind) || (o.tag(kind) === 1 && GROUPS.has(o.text(o.field(kind, 1))))) return false;
    const head = this.head(syntax);
    return head !== null && !o.isScalar(head) && o.tag(head) === 0;
  }

  /** The source information of the first word. */
  head(syntax) {
    const o = this.objects;
    if (o.isScalar(syntax)) return null;
    if (o.tag(syntax) !== 1) return o.field(syntax, 0);
    for (const argument of o.elements(o.field(syntax, 2))) {
      const found = this.head(argument);
      if (found !== null) return found;
    }
    return null;
  }

  goals(context, metavariables, goals) {
    const o = this.objects;
    const at = this.withMetavariables(context, metavariables);
    return o.listElements(goals).map((goal) => {
      const result = this.fn.l_Lean_Elab_ContextInfo_ppGoals(o.share(at), o.list([o.share(goal)]));
      const format = o.io(result, 'print a goal');
      const width = 120;
      return o.text(this.fn.l_Std_Format_pretty(o.share(format), o.box(width), o.box(0), o.box(0)) >>> 0).trimStart();
    });
  }

  withMetavariables(context, metavariables) {
    const o = this.objects;
    const command = o.field(context, 0);
    const fields = (p) => Array.from({ length: o.fieldCount(p) }, (_, i) => o.field(p, i));
    const changed = fields(command).with(METAVARIABLES, metavariables).map((field) => o.share(field));
    return o.construct(0, fields(context).with(0, o.construct(0, changed)).map((field, i) => (i === 0 ? field : o.share(field))));
  }

  source(map, start, end) {
    return Buffer.from(this.objects.text(this.objects.field(map, 0)), 'utf8').subarray(start, end).toString('utf8');
  }

  position(map, at) {
    const o = this.objects;
    const position = this.fn.l_Lean_FileMap_toPosition(o.share(map), at) >>> 0;
    return { line: o.unbox(o.field(position, 0)), column: o.unbox(o.field(position, 1)) };
  }

  persistent(array) {
    const o = this.objects;
    const found = [];
    const visit = (node) => {
      const children = o.elements(o.field(node, 0));
      if (o.tag(node) === 0) children.forEach(visit);
      else found.push(...children);
    };
    visit(o.field(array, 0));
    return [...found, ...o.elements(o.field(array, 1))];
  }
}

const readTactics = (objects, state) => new TacticReader(objects).read(state);

module.exports = { readTactics };
