"""Steps as the rules see them: every tool call read once, each distinct text parsed once."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from services.process.penalties import literal_script
from services.process.penalties.behaviour import Behaviour, Kind, behaviour_of
from services.process.penalties.tools import Use, use_of
from services.process.shell import parse
from services.process.trajectories import Step

_UNPARSED = Behaviour(frozenset({Kind.MODIFIES}), modifies=True)
_LITERAL_CELL = Behaviour(frozenset({Kind.PRINTS_BY_SCRIPT}))
_READING = Behaviour(frozenset({Kind.INSPECTS}))


@dataclass(frozen=True, slots=True)
class Action:
    """``command`` is the normal form of a shell command, None for any other tool. A text that does not parse compares
    as text and counts as modifying; ``parsed`` says so.
    """

    tool: str
    command: str | None
    behaviour: Behaviour
    parsed: bool = True
    text: str = ""


@dataclass(frozen=True, slots=True)
class Turn:
    """A step and its actions. ``visit`` numbers the stage visits, ``stage`` is the visit's label.

    ``identities`` tells for each action which command in which shell state it is: equal numbers mean that the same
    command runs in the same working directory with the same variables. None for an action that is no shell command.
    """

    step: Step
    actions: tuple[Action, ...]
    identities: tuple[int | None, ...]
    stage: str | None
    visit: int


class ActionReader:
    """Reads calls into actions; remembers each text for the length of one trajectory or batch."""

    def __init__(self) -> None:
        self._commands: dict[str, Action] = {}
        self._cells: dict[tuple[str, str], Action] = {}

    def read(self, step: Step) -> tuple[Action, ...]:
        return tuple(self._action(use_of(call)) for call in step.calls)

    def _action(self, use: Use) -> Action:
        if use.shell is not None:
            found = self._commands.get(use.shell)
            if found is None:
                found = self._commands[use.shell] = _command(use.tool, use.shell)
            return found
        if use.code is not None:
            key = (use.language, use.code)
            cell = self._cells.get(key)
            if cell is None:
                literal = literal_script.only_prints_literals(use.language, use.code)
                behaviour = _LITERAL_CELL if literal else _UNPARSED
                cell = self._cells[key] = Action(use.tool, None, behaviour, text=use.code)
            return cell
        return Action(use.tool, None, _UNPARSED if use.modifies else _READING)


def _command(tool: str, text: str) -> Action:
    script = parse(text)
    if script is None:
        return Action(tool, text.strip(), _UNPARSED, parsed=False, text=text)
    return Action(tool, script.text, behaviour_of(script), text=text)


class _ShellState:
    """The shell state that constant settings (``cd /x``, ``X=1``) have made so far, as one number.

    Each setting has a random number and the state is their exclusive or, so that a step costs no more in a long
    history. What a command sets itself first is left out of the state that it runs in: it is the same on every run.
    """

    def __init__(self) -> None:
        self._numbers: dict[tuple[str, str], int] = {}
        self._now: dict[str, int] = {}
        self._state = 0
        self._identities: dict[tuple[str, int], int] = {}

    def run(self, action: Action) -> int | None:
        """The identity of a run, whose settings are in force afterwards."""
        state = self._state
        for name, value in action.behaviour.settings:
            state ^= self._now.get(name, 0)
            number = self._numbers.setdefault((name, value), secrets.randbits(128))
            self._state ^= self._now.get(name, 0) ^ number
            self._now[name] = number
        if not action.command:
            return None
        return self._identities.setdefault((action.command, state), len(self._identities))


Place = tuple[str, int]
"""A stage and the index of the visit to it."""


def turns(steps: Sequence[Step], reader: ActionReader, places: Sequence[Place] | None = None) -> list[Turn]:
    """Steps with their actions and stage visits.

    ``places`` are the visits of a segmentation, one for each step. Without them a visit is a run of steps with one
    stage label: coming back to a stage is another visit, a step without a label goes on with the visit, and without
    any label the trajectory is one visit.
    """
    made: list[Turn] = []
    shell = _ShellState()
    for step, (stage, visit) in zip(steps, _labelled(steps) if places is None else places, strict=True):
        actions = reader.read(step)
        made.append(Turn(step, actions, tuple(map(shell.run, actions)), stage, visit))
    return made


def _labelled(steps: Sequence[Step]) -> Iterator[tuple[str | None, int]]:
    """The stage and the visit of each step by its own label."""
    stage: str | None = None
    visit = 0
    for index, step in enumerate(steps):
        if step.stage is not None and step.stage != stage:
            visit += index > 0
            stage = step.stage
        yield stage, visit
