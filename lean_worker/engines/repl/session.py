"""What one REPL process holds: the pristine environments of headers, and the way from a candidate to its facts."""

from __future__ import annotations

import itertools
import math
import time
from collections import OrderedDict
from collections.abc import Sequence

from lean_interact.interface import Command, CommandResponse, LeanError, Message, PickleEnvironment, UnpickleEnvironment

from lean_worker.engines.base import HeaderError
from lean_worker.engines.repl.probes import ProbeFault, make_probe, option_questions, printing_options
from lean_worker.engines.repl.process import ReplConfused, ReplProcess


class Session:
    """One process and its environments. An environment's number is only good for the process that gave it."""

    def __init__(self, process: ReplProcess, printing: str | None = None) -> None:
        """`printing`: what an earlier process of the same Lean answered as `options`."""
        self.process = process
        self._printing = printing
        self.checks = 0
        self._looked_at = -math.inf
        self._imports: OrderedDict[str, int] = OrderedDict()
        self._preambles: dict[tuple[str, str, int], int] = {}
        self._pickles = itertools.count()

    @property
    def opened(self) -> int:
        """How many import blocks this process has loaded, the library's core aside."""
        return len(self._imports.keys() - {""})

    def due(self, every_s: float) -> bool:
        """Whether to look at what the process has used; then it counts as looked at."""
        now = time.monotonic()
        if now - self._looked_at < every_s:
            return False
        self._looked_at = now
        return True

    def has(self, imports: str) -> bool:
        return imports in self._imports or not imports

    async def run(self, text: str, env: int | None, *, tactics: bool = False) -> CommandResponse:
        """One command. Raises `ReplConfused` when the REPL answers with a failure of its own."""
        reply = await self.process.ask(Command(cmd=text or "\n", env=env, all_tactics=tactics or None))
        if isinstance(reply, LeanError):
            raise ReplConfused(f"the REPL refused a command: {reply.message[:500]}")
        return reply

    async def imports(self, imports: str) -> int:
        """The pristine environment of an import block.

        Raises:
            HeaderError: Lean cannot import it.
        """
        if imports in self._imports:
            self._imports.move_to_end(imports)
            return self._imports[imports]
        reply = await self.process.ask(Command(cmd=imports or "\n"))
        if isinstance(reply, LeanError):
            raise HeaderError(reply.message[:1000])
        if error := first_error(reply):
            raise HeaderError(error.data[:1000])
        self._imports[imports] = reply.env
        return reply.env

    def known(self, imports: str, heartbeats: int) -> int | None:
        """What `pristine` found before."""
        found = self._preambles.get((imports, "", heartbeats))
        if found is not None:
            self._imports.move_to_end(imports)
        return found

    async def pristine(self, imports: str, heartbeats: int) -> int:
        """The environment in which candidates with this import block run: pristine but for the budget."""
        return await self.preamble(imports, "", heartbeats)

    async def preamble(self, imports: str, preamble: str, heartbeats: int) -> int:
        """The environment behind a header: its imports, our budget, its options, opens and definitions.

        Raises:
            HeaderError: the preamble does not compile.
        """
        key = (imports, preamble, heartbeats)
        if key not in self._preambles:
            env = await self.imports(imports)
            reply = await self.run(f"set_option maxHeartbeats {heartbeats}\n", env)
            if preamble.strip() and not first_error(reply):
                reply = await self.run(preamble, reply.env)
            if error := first_error(reply):
                raise HeaderError(error.data[:1000])
            self._preambles[key] = reply.env
        else:
            await self.imports(imports)  # it was used: keep it longest
        return self._preambles[key]

    async def replayed(self, env: int) -> int:
        """A new environment of the same imports with only the constants of `env`, added one by one."""
        path = f"{self.process.scratch}/env-{next(self._pickles)}.olean"
        for query in (PickleEnvironment(env=env, pickle_to=path), UnpickleEnvironment(unpickle_env_from=path)):
            reply = await self.process.ask(query)
            if isinstance(reply, LeanError):
                raise ReplayRefused(reply.message)
        assert isinstance(reply, CommandResponse)
        return reply.env

    async def options(self) -> str:
        """The commands that set the printer's options, as far as this Lean knows them; asked once."""
        if self._printing is None:
            probe = make_probe(option_questions())
            answers = probe.read(await self.run(probe.text, await self.imports("")))
            self._printing = printing_options(answers)
        return self._printing

    async def ask(self, env: int, questions: Sequence[str], *, plainly: bool = False) -> list[Message | None]:
        """Ask probes in `env`: one message each, or None. `plainly` leaves the printer's options as they are there.

        Raises:
            ProbeFault: the answer is none.
        """
        if not questions:
            return []
        probe = make_probe(questions, "" if plainly else await self.options())
        return probe.read(await self.run(probe.text, env))

    async def confirm(self, env: int) -> None:
        """A probe without questions: the REPL's answers still belong to our commands. Raises `ProbeFault`."""
        probe = make_probe([])
        probe.read(await self.run(probe.text, env))


class ReplayRefused(ProbeFault):
    """The REPL did not carry an environment over; the message is its own."""


def first_error(reply: CommandResponse) -> Message | None:
    return next((message for message in reply.messages if message.severity == "error"), None)
