'use strict';
// The expected theorem, elaborated in the pristine environment after the header's preamble, with `sorry` as its proof.
//
// A proof cannot change a theorem's type: Lean elaborates the header of a theorem, with the variables it includes and
// the universes it binds, before it looks at the body. So the type found here is what an honest candidate declares.

const { STATE_ENVIRONMENT, STATE_MESSAGES } = require('./frontend.js');
const { Environment } = require('./environment.js');
const { Reader } = require('./read.js');
const { Terms } = require('./terms.js');
const { readMessages } = require('./messages.js');
const { printSignature } = require('./print.js');
const { typeFingerprint, meaningFingerprint, isMade } = require('./fingerprint.js');

/** The header or the statement does not elaborate: the caller's fault, never the candidate's. */
class StatementError extends Error {
  constructor(where, message) {
    super(message);
    this.where = where; // 'header' or 'statement'
  }
}

/**
 * @returns {{name: string[], type: {loose: string, exact: string}, printed: string | null, helpers: [string, string][]}}
 *   `helpers`: key and meaning of each constant of the preamble that the statement's type reaches; those that Lean made
 *   are part of what mentions them.
 */
function elaborate(frontend, header, statement, kernelHeartbeats) {
  const o = frontend.objects;
  const before = preamble(frontend, header);
  const text = `${statement}\n:= by sorry\n`;
  const context = frontend.inputContext(text);
  const start = o.construct(0, [o.box(0)], [0]);
  const after = frontend.process(context, start, o.share(before));
  failOnErrors(o, o.field(after, STATE_MESSAGES), 'statement');

  const known = localNames(o, o.field(before, STATE_ENVIRONMENT));
  const { terms, written } = copyLocals(o, o.field(after, STATE_ENVIRONMENT));
  const targets = written.filter((d) => d.kind === 'theorem' && !known.has(terms.names.key(d.name)));
  if (targets.length !== 1) {
    throw new StatementError('statement', `the statement declares ${targets.length} theorems instead of one`);
  }
  const [target] = targets;
  return {
    name: terms.names.components(target.name),
    type: typeFingerprint(terms, target),
    printed: printSignature(frontend, new Environment(o, frontend.environment), terms, target.name, kernelHeartbeats),
    helpers: reachable(terms, target.type).filter((d) => !isMade(terms, d.name))
      .map((d) => [terms.names.key(d.name), meaningFingerprint(terms, d)]),
  };
}

/** The command state after the header's preamble. Throws `StatementError`. */
function preamble(frontend, header) {
  const { context, parserState, messages } = frontend.header(header);
  failOnErrors(frontend.objects, frontend.objects.share(messages), 'header');
  const state = frontend.process(context, parserState, frontend.initialState(messages));
  failOnErrors(frontend.objects, frontend.objects.field(state, STATE_MESSAGES), 'header');
  return state;
}

function failOnErrors(objects, log, where) {
  const { messages } = readMessages(objects, log);
  const error = messages.find((message) => message.severity === 'error');
  if (error) throw new StatementError(where, `${error.pos.line}:${error.pos.column}: ${error.data}`);
}

function localNames(objects, pointer) {
  const reader = new Reader(objects, new Terms());
  const names = new Set();
  for (const [name] of new Environment(objects, pointer).locals()) {
    names.add(reader.terms.names.key(reader.name(name)));
  }
  return names;
}

/** Copies of every constant that was not imported; `written` are those that the text itself declares. */
function copyLocals(objects, pointer) {
  const terms = new Terms();
  const reader = new Reader(objects, terms);
  const written = [];
  const environment = new Environment(objects, pointer);
  for (const [name, info] of environment.locals()) {
    const declaration = reader.declaration(info);
    if (environment.isWritten(name)) written.push(declaration);
  }
  return { terms, written };
}

/** The copied declarations that an expression reaches, itself excluded; proofs count by their type alone. */
function reachable(terms, root) {
  const found = new Map();
  const stack = [...terms.constantsIn([root])];
  while (stack.length) {
    const id = stack.pop();
    const declaration = terms.declaration(id);
    if (!declaration || found.has(id)) continue;
    found.set(id, declaration);
    const roots = declaration.kind === 'theorem' ? [declaration.type] : terms.expressionsOf(declaration);
    stack.push(...terms.constantsIn(roots), ...(declaration.family ?? []), ...(declaration.constructors ?? []));
  }
  return [...found.values()];
}

module.exports = { elaborate, copyLocals, StatementError };
