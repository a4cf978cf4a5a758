"""Steps as the rules see them: every tool call read once, each distinct text parsed once."""

from __future__ import annotations

from collections.abc import Sequence
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
    """A step and its actions. ``visit`` numbers the stage visits, ``stage`` is the visit's label."""

    step: Step
    actions: tuple[Action, ...]
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


def turns(steps: Sequence[Step], reader: ActionReader) -> list[Turn]:
    """Steps with their actions and stage visits. A visit is a run of steps with one stage label: coming back to a
    stage is another visit. A step without a label goes on with the visit; without any label the trajectory is one
    visit.
    """
    made: list[Turn] = []
    stage: str | None = None
    visit = 0
    for step in steps:
        if step.stage is not None and step.stage != stage:
            visit += bool(made)
            stage = step.stage
        made.append(Turn(step, reader.read(step), stage, visit))
    return made
