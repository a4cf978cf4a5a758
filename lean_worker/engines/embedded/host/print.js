'use strict';
// The signature of a declaration as Lean prints it (`#check name`), in the pristine environment with its pristine
// notation, whatever the candidate's text defines. Call only in restored memory.

const { Frontend, STATE_MESSAGES } = require('./frontend.js');
const { readMessages } = require('./messages.js');
const { Builder, declareType, Refused } = require('./kernel.js');

/** The signature, or null when it cannot be printed: the kernel refuses its type, or its name cannot be written. */
function printSignature(frontend, pristine, terms, target, heartbeats) {
  const o = frontend.objects;
  let environment;
  try {
    environment = declareType(o, pristine, terms, target, heartbeats);
  } catch (error) {
    if (error instanceof Refused) return null;
    throw error;
  }
  const escape = 1;
  const name = o.text(o.fn.l_Lean_Name_toString(new Builder(o, terms).name(target), escape) >>> 0);
  const printer = new Frontend(o, environment, frontend.options);
  const { context, parserState, messages } = printer.header(`#check ${name}`);
  const state = printer.process(context, parserState, printer.initialState(messages));
  const printed = readMessages(o, o.field(state, STATE_MESSAGES)).messages;
  return printed.length === 1 && printed[0].severity === 'info' ? printed[0].data : null;
}

module.exports = { printSignature };
