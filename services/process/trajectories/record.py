"""Walking a JSON record with its place in hand, so that every complaint names where it is."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from services.process.trajectories.model import ToolCall, TrajectoryError


@dataclass(frozen=True, slots=True)
class Place:
    """A JSON value and its pointer."""

    value: Any
    pointer: str = ""

    def fail(self, message: str) -> TrajectoryError:
        return TrajectoryError(self.pointer, message)

    def object(self) -> Mapping[str, Any]:
        if not isinstance(self.value, dict):
            raise self.fail(f"expected an object, found {kind(self.value)}")
        return self.value

    def get(self, key: str) -> Place:
        """The member ``key`` of an object; its value is None when it is missing."""
        escaped = key.replace("~", "~0").replace("/", "~1")
        return Place(self.object().get(key), f"{self.pointer}/{escaped}")

    def items(self) -> Iterator[Place]:
        """The items of a list; none for null or a missing value."""
        if self.value is None:
            return
        if not isinstance(self.value, list):
            raise self.fail(f"expected a list, found {kind(self.value)}")
        for index, item in enumerate(self.value):
            yield Place(item, f"{self.pointer}/{index}")

    def string(self) -> str:
        """A string; '' for null or a missing value."""
        if self.value is None:
            return ""
        if not isinstance(self.value, str):
            raise self.fail(f"expected a string, found {kind(self.value)}")
        return self.value

    def word(self) -> str:
        """The value where it is a string, else '': for what is only compared."""
        return self.value if isinstance(self.value, str) else ""

    def name(self) -> str:
        if not isinstance(self.value, str) or not self.value:
            raise self.fail("expected a name")
        return self.value

    def text(self) -> str:
        """The text of a message content: a string, null, or a list of parts (parts that are no text count as none)."""
        value = self.value
        if value is None or isinstance(value, str):
            return value or ""
        if isinstance(value, list):
            return "\n".join(filter(None, (part.text() for part in self.items())))
        if isinstance(value, dict):
            return next((v for v in (value.get(k) for k in ("text", "content", "output")) if isinstance(v, str)), "")
        raise self.fail(f"expected text or content parts, found {kind(value)}")

    def output(self) -> str:
        """The text of a tool's output: as ``text``, and numbers and booleans as they are written."""
        return json.dumps(self.value) if isinstance(self.value, bool | int | float) else self.text()

    def arguments(self) -> Mapping[str, Any]:
        """Tool arguments: an object, or JSON text of one. Anything else is kept under ``input``, never guessed at."""
        value = self.value
        if isinstance(value, str):
            try:
                value = json.loads(value)
            except (ValueError, RecursionError):
                value = self.value
        if isinstance(value, dict):
            return value
        return {} if value is None or value == "" else {"input": value}

    def call(self) -> ToolCall:
        """A tool call as OpenAI writes it (``function: {name, arguments}``) or flat (``name, arguments``).

        A call without a name is the policy's fault, not the record's: it is kept, as a tool that is not known.
        """
        function = self.get("function")
        inner = function if isinstance(function.value, dict) else self
        identity = self.value.get("id")
        return ToolCall(
            inner.get("name").string(),
            inner.get("arguments").arguments(),
            identity if isinstance(identity, str) else None,
        )


def kind(value: object) -> str:
    """A JSON type in words."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "a boolean"
    names = {str: "a string", int: "a number", float: "a number", list: "a list", dict: "an object"}
    return names.get(type(value), type(value).__name__)
