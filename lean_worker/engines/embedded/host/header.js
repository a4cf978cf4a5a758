'use strict';
// The import block of a text, as Lean's own parser reads it.

const { hasErrors, readMessages } = require('./messages.js');

/** The header asks for something that the embedded Lean does not have. */
class HeaderError extends Error {}

/**
 * Names of the imported modules in order, without repetitions; `Init` always comes first. Null when Lean cannot read the
 * text so far (a tab, a lone carriage return): it then says so itself when the text is run.
 */
function importsOf(frontend, text) {
  const o = frontend.objects;
  const { syntax, messages } = frontend.header(text);
  if (hasErrors(readMessages(o, messages))) return null;
  if (o.fn.l_Lean_Elab_HeaderSyntax_isModule(o.share(syntax)) & 1) {
    throw new HeaderError('`module` headers are not supported');
  }
  const includeInit = 1;
  const imports = o.elements(o.fn.l_Lean_Elab_HeaderSyntax_imports(o.share(syntax), includeInit) >>> 0);
  const names = imports.map((one) => moduleName(o, o.field(one, 0)));
  if (names[0] !== 'Init') throw new HeaderError('`prelude` headers are not supported');
  return [...new Set(names)];
}

function moduleName(o, name) {
  const parts = [];
  for (let at = name; !o.isScalar(at); at = o.field(at, 0)) parts.push(o.text(o.field(at, 1)));
  return parts.reverse().join('.');
}

module.exports = { importsOf, HeaderError };
