"""What the settings allow each API key."""

from __future__ import annotations

from collections.abc import Mapping

from services.contracts.base import MAX_PRIORITY
from services.runtime.settings import KeyLimits

EVERY_KEY = "*"
"""In the settings, the limits of keys that have none of their own."""

OWN_WORK = ":own"
"""The caller of work that the server gives itself; no key has a colon in its name."""

_NONE = KeyLimits()


def limits_of(limits: Mapping[str, KeyLimits], owner: str) -> KeyLimits:
    """The limits of a key: its own, else those of every key, else none."""
    if owner == OWN_WORK:
        return _NONE
    return limits.get(owner) or limits.get(EVERY_KEY) or _NONE


def allowed_priority(asked: int, limits: KeyLimits) -> int:
    """The priority that a batch gets: not above the key's ceiling, moved by its offset, within the wire's range."""
    ceiling = MAX_PRIORITY if limits.max_priority is None else limits.max_priority
    return max(-MAX_PRIORITY, min(MAX_PRIORITY, min(asked, ceiling) + limits.priority_offset))
