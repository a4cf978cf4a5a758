"""One sample of a trainer that calls once a sample: what identifies it, and the task that its label refers to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from reward_gateway.bodies.faults import Faults
from reward_gateway.bodies.json_text import parse_json
from services.contracts.compat import TaskReference
from services.contracts.proofs import Candidate
from services.runtime.problems import ProblemError


@dataclass(frozen=True, slots=True)
class Sample:
    """A response and its task. Equal samples of one owner are the same work while they are in flight."""

    owner: str
    response: str
    task: TaskReference

    def candidate(self, index: int) -> Candidate:
        """Its candidate in a joined batch; ids there are positions, as nobody but the joiner reads them."""
        return Candidate(
            id=str(index),
            group=self.task.group,
            response=self.response,
            statement=self.task.statement,
            header=self.task.header,
        )


def read_label(label: Any, location: tuple[str | int, ...] = ("label",)) -> TaskReference:
    """The task that a label refers to: an object with a statement, its JSON text, a statement alone, or nothing.

    Raises `ProblemError` (422), with `location` as the place in the request.
    """
    faults = Faults()
    if label is None:
        return TaskReference()
    if isinstance(label, str):
        if not label.lstrip().startswith(("{", "[")):  # no statement of Lean starts like this
            return _reference({"statement": label}, faults, location)
        try:
            label = parse_json(label)
        except ProblemError as error:
            faults.add(location, f"it starts like JSON and is none: {error.detail}")
            faults.check()
    if not isinstance(label, dict):
        faults.add(location, "a statement, an object or the object's JSON text is needed")
        faults.check()
    if "statement" not in label:  # a misspelt name would give the reward to any theorem
        faults.add((*location, "statement"), "this field is needed; null says that any theorem counts")
    return _reference(label, faults, location)


def _reference(value: Any, faults: Faults, location: tuple[str | int, ...]) -> TaskReference:
    task = TaskReference()
    try:
        task = TaskReference.model_validate(value)
    except ValidationError as error:
        faults.add_validation(error, prefix=location)
    faults.check()
    return task


def response_of(query: str, prompt: str) -> str:
    """The response in a query that is a prompt and its response, one behind the other.

    A chat template may have been put around the prompt: then what follows the prompt's last occurrence is taken, so
    that code in the prompt is never mistaken for the response's. A query that does not hold its prompt is all response.
    """
    _, found, behind = query.rpartition(prompt) if prompt else ("", "", query)
    if not found:
        return query
    return query[len(prompt) :] if query.startswith(prompt) else behind
