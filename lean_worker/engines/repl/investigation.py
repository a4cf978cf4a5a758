"""Finds out the facts about a candidate that has compiled, with probes in an environment that can be trusted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from lean_interact.interface import Message

from lean_worker.engines.repl.answers import CORE_AXIOMS, FOREIGN_AXIOMS, classify_axioms
from lean_worker.engines.repl.declarations import declared_theorems, statement_name
from lean_worker.engines.repl.expectation import Expectation, Incomparable, compare, mentioned
from lean_worker.engines.repl.probes import (
    Printed,
    ProbeFault,
    axioms_question,
    is_library_private,
    print_question,
    read_axioms,
    read_printed,
)
from lean_worker.engines.repl.program import split_program
from lean_worker.engines.repl.session import Session, first_error
from services.contracts.lean import CheckTask, TargetFacts
from services.contracts.outcomes import Profile

MAX_THEOREMS = 100  # reported without a statement
_MAX_DEFINITIONS = 500  # that a statement may rest on beside the library's
_KEPT_EXPECTATIONS = 256
_KEPT_LIBRARIES = 32


def _key(task: CheckTask, replayed: bool) -> tuple[str, str, int, bool]:
    assert task.statement is not None
    return task.header, task.statement, task.heartbeats, replayed


@dataclass
class Investigator:
    """Keeps what is the same for many candidates: expected statements, and what the library has."""

    expectations: dict[tuple[str, str, int, bool], Expectation] = field(default_factory=dict)
    library: dict[str, dict[str, bool]] = field(default_factory=dict)

    async def expected(self, session: Session, task: CheckTask, replayed: bool) -> Expectation:
        """The statement, elaborated behind its header where no candidate has been; carried over where theirs is.

        Raises:
            HeaderError: the header cannot be opened.
            ProbeFault: Lean's answers cannot be read.
        """
        assert task.statement is not None
        found = self.known(task, replayed)
        if found is None:
            found = await self._elaborate(session, task.header, task.statement, task.heartbeats, replayed)
            while len(self.expectations) >= _KEPT_EXPECTATIONS:
                self.expectations.pop(next(iter(self.expectations)))
            self.expectations[_key(task, replayed)] = found
        return found

    def known(self, task: CheckTask, replayed: bool) -> Expectation | None:
        """What `expected` found before."""
        key = _key(task, replayed)
        found = self.expectations.pop(key, None)
        if found is not None:
            self.expectations[key] = found  # most recently used last
        return found

    async def _elaborate(
        self, session: Session, header: str, statement: str, heartbeats: int, replayed: bool
    ) -> Expectation:
        program = split_program(header)
        env = await session.preamble(program.imports, program.body, heartbeats)
        reply = await session.run(f"{statement}\n:= by sorry\n", env)
        if error := first_error(reply):
            return Expectation(None, error=error.data[:1000])
        name = statement_name(statement)
        if name is None:
            return Expectation(None, error="the statement declares no theorem")
        # Asked as it is written: the header may leave a namespace open.
        answers = await session.ask(reply.env, [f"#print {name}"])
        target = read_printed(None, answers[0])
        if target is None or target.kind != "theorem":
            return Expectation(None, error=f"the statement declares no theorem `{name}`")
        (signature,) = await session.ask(reply.env, [f"#check {name}"], plainly=True)
        where = reply.env
        if replayed:
            where = await session.replayed(where)
            (target,) = await self.printed(session, where, [target.name])
            if target is None:
                raise ProbeFault("the expected statement was not carried over")
        if target.type is None:
            return Expectation(None, error="the statement's type cannot be compared by the repl engine")
        try:
            definitions = await self._definitions(session, where, program.imports, target)
        except Incomparable as error:
            return Expectation(None, error=str(error))
        return Expectation(target, definitions, signature.data if signature else None)

    async def _definitions(self, session: Session, env: int, imports: str, target: Printed) -> dict[str, Printed]:
        """Everything that the type mentions, directly or not, and that the library does not have."""
        found: dict[str, Printed] = {}
        waiting = mentioned(Printed(target.name, target.kind, target.levels, target.type, None, ""))
        while waiting:
            new = sorted(await self.outside_library(session, imports, sorted(waiting)) - set(found))
            waiting = set()
            for name, printed in zip(new, await self.printed(session, env, new), strict=True):
                if printed is None:
                    raise ProbeFault(f"`{name}` in the statement is not to be found")
                found[name] = printed
                waiting |= mentioned(printed) - set(found)
            if len(found) > _MAX_DEFINITIONS:
                raise Incomparable(f"the statement rests on more than {_MAX_DEFINITIONS} definitions of its header")
        return found

    async def outside_library(self, session: Session, imports: str, names: Sequence[str]) -> set[str]:
        """Those of `names` that the pristine environment of `imports` does not have."""
        if imports not in self.library and len(self.library) >= _KEPT_LIBRARIES:
            self.library.clear()
        known = self.library.setdefault(imports, {})
        unknown = [name for name in names if name not in known and not is_library_private(name)]
        env = await session.imports(imports)
        answers = await session.ask(env, [f"#check @_root_.{name}" for name in unknown], plainly=True)
        for name, answer in zip(unknown, answers, strict=True):
            known[name] = answer is not None and answer.severity != "error"
        missing = {name for name in unknown if not known[name]}
        for name in missing:
            del known[name]  # only the library's own names are worth keeping: candidates invent theirs
        return missing

    async def printed(self, session: Session, env: int, names: Sequence[str]) -> list[Printed | None]:
        answers = await session.ask(env, [print_question(name) for name in names])
        return [read_printed(name, answer) for name, answer in zip(names, answers, strict=True)]

    async def target(
        self, session: Session, env: int, task: CheckTask, imports: str, expected: Expectation, candidate_env: int
    ) -> TargetFacts:
        """Facts about the expected theorem in `env`. `candidate_env` has the candidate's own notation, for `paper`."""
        assert expected.target is not None
        name = expected.target.name
        names = [name, *expected.definitions]
        axioms, *answers = await session.ask(env, [axioms_question(name), *map(print_question, names)])
        target, *definitions = [read_printed(one, answer) for one, answer in zip(names, answers, strict=True)]
        if target is None:
            return TargetFacts(name=name, found=False)
        facts = await self._facts(session, imports, target, axioms)
        if target.kind != "theorem":
            return facts
        comparison = compare(expected, target, dict(zip(expected.definitions, definitions, strict=True)))
        printed_match = None
        if task.profile is Profile.PAPER:
            (signature,) = await session.ask(candidate_env, [f"#check _root_.{name}"], plainly=True)
            printed_match = signature is not None and signature.data == expected.signature
        return facts.model_copy(
            update={
                "statement_match": comparison.statement,
                "binders_match": comparison.binders,
                "printed_match": printed_match,
            }
        )

    async def theorems(self, session: Session, env: int, code: str, imports: str) -> tuple[TargetFacts, ...]:
        """Facts about every theorem that the candidate's own text declares."""
        names = declared_theorems(code)[:MAX_THEOREMS]
        answers = await session.ask(env, [ask(name) for name in names for ask in (print_question, axioms_question)])
        found = []
        for name, printed_answer, axioms in zip(names, answers[::2], answers[1::2], strict=True):
            if (printed := read_printed(name, printed_answer)) is not None:
                found.append(await self._facts(session, imports, printed, axioms))
        return tuple(found)

    async def _facts(self, session: Session, imports: str, printed: Printed, answer: Message | None) -> TargetFacts:
        axioms = read_axioms(printed.name, answer)
        others = [name for name in axioms if name not in CORE_AXIOMS | FOREIGN_AXIOMS]
        outside = await self.outside_library(session, imports, others)
        use = classify_axioms(axioms, frozenset(others) - outside)
        return TargetFacts(name=printed.name, found=True, kind=printed.kind, axioms=use)
