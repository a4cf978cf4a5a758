'use strict';
// Run Lean's own frontend over a text.

/** Lean's command state (Lean.Elab.Command.State): fields 0 environment, 1 messages, 2 scopes. */
const STATE_ENVIRONMENT = 0;
const STATE_MESSAGES = 1;
const STATE_SCOPES = 2;

/** A scope (Lean.Elab.Command.Scope): its flags are bytes after the fields. */
const SCOPE_IS_NONCOMPUTABLE = 0;

class Frontend {
  /**
   * @param {import('./objects.js').Objects} objects
   * @param {number} environment  the pristine environment
   * @param {number} options      Lean.Options for every text
   */
  constructor(objects, environment, options) {
    this.objects = objects;
    this.fn = objects.fn;
    this.environment = environment;
    this.options = options;
  }

  inputContext(text) {
    const o = this.objects;
    const source = o.string(text);
    const bytes = o.stringBytes(source);
    const normalizeNewlines = 1;
    return this.fn.l_Lean_Parser_mkInputContext___redArg(source, o.string('<input>'), normalizeNewlines, o.box(bytes)) >>> 0;
  }

  /** The import block of a text. */
  header(text) {
    const o = this.objects;
    const context = this.inputContext(text);
    const parsed = o.io(this.fn.l_Lean_Parser_parseHeader(o.share(context)), 'parse the header');
    const syntax = o.field(parsed, 0);
    const rest = o.field(parsed, 1);
    return { context, syntax, parserState: o.field(rest, 0), messages: o.field(rest, 1) };
  }

  /**
   * The command state at the start of a text in the pristine environment.
   *
   * The whole text is a `noncomputable section`, and inner scopes inherit that: the package has no compiled form of the
   * library that Lean's compiler could read, so `def`s and instances that use it would be refused though they are right.
   * A proof never depends on compiled code: what does (`native_decide`) rests on an axiom that no proof may use.
   */
  initialState(messages) {
    const o = this.objects;
    const state = this.fn.l_Lean_Elab_Command_mkState(o.share(this.environment), messages, o.share(this.options)) >>> 0;
    const scope = o.field(o.field(state, STATE_SCOPES), 0);
    o.setScalarByte(scope, SCOPE_IS_NONCOMPUTABLE, 1);
    return state;
  }

  /** Elaborate everything after `parserState`; returns the final command state. */
  process(context, parserState, state) {
    const o = this.objects;
    const result = this.fn.l_Lean_Elab_IO_processCommandsIncrementally(context, parserState, state, o.box(0)) >>> 0;
    return o.field(o.field(result, 0), 0);
  }
}

module.exports = { Frontend, STATE_ENVIRONMENT, STATE_MESSAGES, STATE_SCOPES };
