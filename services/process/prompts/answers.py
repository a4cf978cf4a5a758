"""What every model's answer has in common: it is, or ends with, one JSON object."""

from __future__ import annotations

import json
from typing import Any


class Malformed(ValueError):
    """A model's answer that does not have the form it was asked for. The message carries none of its text."""


def object_in(text: str) -> Any:
    """The JSON object that a model's answer is, after its reasoning, or in a fence. Raises `Malformed`."""
    body = text.rpartition("</think>")[2].strip()
    if body.startswith("```"):
        body = body.partition("\n")[2].rpartition("```")[0].strip()
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        raise Malformed("no JSON") from None
    if not isinstance(value, dict):
        raise Malformed("no JSON object")
    return value
