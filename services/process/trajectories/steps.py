"""Our own format: a list of ``{thought, tool_calls: [{name, arguments}], observation, stage, phase}``, or ``{"steps":
[...]}``.

Every key is optional; a missing, null or empty ``tool_calls`` means that the turn did not act.
"""

from __future__ import annotations

from typing import Any

from services.process.trajectories import lapses
from services.process.trajectories.model import Draft, Phase, Step, finish
from services.process.trajectories.record import Place

_FOREIGN = {"role", "type", "kind", "action", "source", "event", "message"}


def fits(record: Any) -> bool:
    if isinstance(record, dict):
        return isinstance(record.get("steps"), list) and "schema_version" not in record
    return isinstance(record, list) and all(isinstance(item, dict) and not item.keys() & _FOREIGN for item in record)


def read(record: Any) -> list[Step]:
    root = Place(record)
    steps = root.get("steps") if isinstance(record, dict) else root
    return finish(_step(place, index) for index, place in enumerate(steps.items()))


def _step(place: Place, index: int) -> Draft:
    stage = place.get("stage").string()
    phase = place.get("phase")
    if phase.value not in (None, "plan", "exec"):
        raise phase.fail('expected "plan" or "exec"')
    draft = Draft([index], phase=Phase(phase.value or "exec"), stage=stage or None)
    draft.think(place.get("thought").text())
    draft.calls = [call.call() for call in place.get("tool_calls").items()]
    observation = place.get("observation")
    if observation.value is not None:
        draft.observe(observation.output())
    lapses.mark(draft)
    return draft
