'use strict';
// One loaded environment and the checks against it.
//
// A check has three parts. Each starts in the pristine memory:
//   1. the expected statement is elaborated (kept afterwards, since it depends on trusted text alone);
//   2. the candidate runs, and what it declared is copied out;
//   3. the copy is judged: statement, axioms, and the kernel. A program with errors has nothing to be judged.

const { Objects } = require('./objects.js');
const { Frontend, STATE_ENVIRONMENT, STATE_MESSAGES } = require('./frontend.js');
const { Environment } = require('./environment.js');
const { hasErrors, readMessages } = require('./messages.js');
const { copyLocals, elaborate, StatementError } = require('./statement.js');
const { axiomsOf, COMPILER_AXIOMS, hasPlaceholder, Pristine, PristineAxioms } = require('./facts.js');
const { typeFingerprint, meaningFingerprint, isMade } = require('./fingerprint.js');
const { printSignature } = require('./print.js');
const { Builder, replay, Refused } = require('./kernel.js');
const { readTactics } = require('./tactics.js');
const { importsOf, HeaderError } = require('./header.js');

const KEPT_STATEMENTS = 256;
const KEPT_ENVIRONMENTS = 4; // of whose statements, headers and axioms we remember what we found out
const MAX_THEOREMS = 100; // reported without a statement

// Before Lean's interpreter first runs a function, it asks JavaScript for its compiled symbol. A candidate for whom it
// asked nothing ran no code of its own, so that only compiled Lean wrote to memory. This option keeps it from asking;
// a macro that sets it without naming it would have had to be interpreted.
const HIDES_INTERPRETER = /prefer_native/;

class Session {
  constructor(runtime, image) {
    this.runtime = runtime;
    this.image = image;
    this.objects = new Objects(runtime);
    this.environmentKey = null;
    this.memories = new Map(); // environment key -> what is kept of it in JavaScript, most recently loaded last
  }

  load(path) {
    this.environmentKey = null; // a damaged snapshot leaves no usable environment
    const description = this.image.load(path, this.objects, this.runtime.symbols);
    this.environmentKey = description.imports.join(' ');
    this.pointers = description.pointers;
    Object.assign(this, this.remember(this.environmentKey));
    return description.lean;
  }

  /** Facts about an environment hold for as long as the process: its snapshot is the same whenever it is loaded. */
  remember(key) {
    const found = this.memories.get(key) ?? { statements: new Map(), headers: new Map(), axioms: new PristineAxioms() };
    this.memories.delete(key);
    this.memories.set(key, found);
    if (this.memories.size > KEPT_ENVIRONMENTS) this.memories.delete(this.memories.keys().next().value);
    return found;
  }

  /** Back to the pristine memory; only what is in JavaScript remains. */
  reset() {
    this.image.restore(this.objects);
    this.runtime.resetGlue();
  }

  /** The same when only Lean's own compiled code has run since the memory was pristine. */
  resetAfterCompiled() {
    this.image.restoreWritable(this.objects);
    this.runtime.resetGlue();
  }

  frontend(heartbeats) {
    const o = this.objects;
    const { environment, options } = this.pointers;
    const limited = o.fn.l_Lean_KVMap_setNat(o.share(options), o.name(['maxHeartbeats']), o.box(heartbeats)) >>> 0;
    return new Frontend(o, environment, limited);
  }

  /** The imports of a text, in order, or null when it cannot be read. Parsing it leaves the memory dirty. */
  imports(text) {
    return importsOf(this.frontend(1), text);
  }

  headerImports(header) {
    let found = this.headers.get(header);
    if (!found) {
      found = this.imports(header) ?? ['Init'];
      if (this.headers.size >= KEPT_STATEMENTS) this.headers.clear();
      this.headers.set(header, found);
    }
    return found;
  }

  /** A statement is only comparable in the environment that its header asks for; order does not matter. */
  requireSameImports(header, imports) {
    const expected = this.headerImports(header);
    const same = expected.length === imports.length && expected.every((module) => imports.includes(module));
    if (!same) {
      throw new HeaderError(`the program imports ${imports.join(', ')}, its header ${expected.join(', ')}`);
    }
  }

  check(request) {
    const expected = request.statement === null ? null : this.expected(request);
    const asked = this.runtime.symbolsAsked;
    const candidate = this.run(request);
    if (this.shadowStackOverflow()) throw new RangeError('shadow stack overflow');
    if (this.runtime.symbolsAsked !== asked || HIDES_INTERPRETER.test(request.code)) this.reset();
    else this.resetAfterCompiled();
    return candidate.failed ? unjudged(candidate) : this.judge(request, candidate, expected);
  }

  expected({ header, statement, heartbeats }) {
    const key = JSON.stringify([header, statement, heartbeats]);
    let found = this.statements.get(key);
    if (!found) {
      try {
        found = elaborate(this.frontend(heartbeats), header, statement, kernelBudget(heartbeats));
      } finally {
        this.resetAfterCompiled();
      }
      if (this.statements.size >= KEPT_STATEMENTS) this.statements.delete(this.statements.keys().next().value);
    }
    this.statements.delete(key);
    this.statements.set(key, found); // most recently used last
    return found;
  }

  /** Run the candidate and copy out everything that it left. */
  run({ code, heartbeats, tactics }) {
    const o = this.objects;
    const frontend = this.frontend(heartbeats);
    const { context, parserState, messages } = frontend.header(code);
    const unread = readMessages(o, o.share(messages)); // the frontend keeps none of them
    if (hasErrors(unread)) return { report: unread, failed: true, tactics: [] };
    const state = frontend.process(context, parserState, frontend.initialState(messages));
    const report = readMessages(o, o.field(state, STATE_MESSAGES));
    const failed = hasErrors(report);
    return {
      report,
      failed,
      ...(failed ? {} : copyLocals(o, o.field(state, STATE_ENVIRONMENT))),
      tactics: tactics ? readTactics(o, state) : [],
    };
  }

  judge(request, candidate, expected) {
    const { terms, written } = candidate;
    const answer = { ...unjudged(candidate), hasPlaceholder: hasPlaceholder(terms) };
    const judgement = new Judgement(this, terms, request);
    if (expected) {
      answer.target = judgement.target(expected);
    } else {
      const theorems = written.filter((d) => d.kind === 'theorem').slice(0, MAX_THEOREMS);
      answer.theorems = theorems.map((d) => judgement.facts(d, true));
    }
    answer.kernelOutOfBudget = judgement.outOfBudget;
    this.resetAfterCompiled();
    return answer;
  }

  /** Whether C code ran over the end of its stack into the heap. */
  shadowStackOverflow() {
    const { address, value } = this.pointers.canary;
    return this.objects.word(address) !== value;
  }
}

/** What is said of a program that is not judged: its errors decide. */
const unjudged = ({ report, tactics }) => ({
  messages: report.messages, truncated: report.truncated, tactics, hasPlaceholder: false, target: null, theorems: [],
});

/** `maxHeartbeats` counts thousands of allocations; the kernel's limit is a 32-bit number of allocations. */
const kernelBudget = (heartbeats) => Math.min(heartbeats * 1000, 0xffffffff);

/** Judges copied declarations in pristine memory. */
class Judgement {
  constructor(session, terms, { heartbeats, printed }) {
    this.objects = session.objects;
    this.terms = terms;
    this.printed = printed;
    this.frontend = session.frontend(heartbeats);
    this.kernelHeartbeats = kernelBudget(heartbeats);
    this.environment = new Environment(this.objects, session.pointers.environment);
    this.pristine = new Pristine(
      this.objects, this.environment, terms, new Builder(this.objects, terms), session.axioms);
    this.outOfBudget = false;
  }

  target(expected) {
    const id = this.terms.names.of(expected.name);
    const name = expected.name.join('.');
    const declaration = this.terms.declaration(id);
    if (!declaration) return { name, found: false };
    this.dropPristine();
    const type = typeFingerprint(this.terms, declaration);
    const matches = type.loose === expected.type.loose && this.sameHelpers(expected.helpers);
    return {
      ...this.facts(declaration, matches),
      name,
      statementMatch: matches,
      bindersMatch: matches && type.exact === expected.type.exact,
      printedMatch: this.printed ? this.printedMatch(declaration, expected.printed) : null,
    };
  }

  /**
   * A copy under a name of the library is not what the kernel will see. Only a damaged memory has one; of what Lean
   * makes, which is compared by its content, it must not be believed.
   */
  dropPristine() {
    const { declarations } = this.terms;
    for (const id of declarations.keys()) if (isMade(this.terms, id) && this.pristine.has(id)) declarations.delete(id);
  }

  printedMatch({ name }, expected) {
    const printed = printSignature(this.frontend, this.environment, this.terms, name, this.kernelHeartbeats);
    return printed === null || expected === null ? null : printed === expected;
  }

  sameHelpers(helpers) {
    return helpers.every(([key, meaning]) => {
      const id = this.terms.names.byKey.get(key);
      const declaration = id === undefined ? null : this.terms.declaration(id);
      return declaration && meaningFingerprint(this.terms, declaration) === meaning;
    });
  }

  /** The kernel is only asked when nothing else stands against the declaration. */
  facts(declaration, askKernel) {
    const axioms = axiomsOf(this.terms, declaration.name, this.pristine);
    const facts = {
      name: this.terms.names.display(declaration.name), found: true, kind: declaration.kind, axioms,
      kernelAccepts: null, kernelDetail: null,
    };
    if (!askKernel || declaration.kind !== 'theorem') return facts;
    if (axioms.foreign.some((axiom) => COMPILER_AXIOMS.has(axiom))) {
      return { ...facts, kernelDetail: 'it rests on compiled evaluation, which the kernel cannot repeat' };
    }
    try {
      replay(this.objects, this.environment.kernel, this.terms, declaration.name, this.kernelHeartbeats);
      return { ...facts, kernelAccepts: true };
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      this.outOfBudget ||= error.outOfBudget;
      return { ...facts, kernelAccepts: false, kernelDetail: error.message };
    }
  }
}

module.exports = { Session, StatementError };
