"""The model and the field types that every wire model is made of."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

MAX_CANDIDATES = 65_536
"""Candidates in one request."""
MAX_PROGRAM_CHARACTERS = 262_144
"""A longer program is its candidate's own rejection, `too_long`."""
MAX_PROGRAM_BYTES = 1_048_576
"""A program with more UTF-8 bytes than this refuses the whole request, 413."""
MAX_HEADER_CHARACTERS = 65_536
"""Longest header and longest statement."""
MAX_TIMEOUT_S = 3_600.0
MAX_DEADLINE_S = 86_400.0
MAX_PRIORITY = 100
"""Of a batch; the lowest is as far below 0."""


_NO_CONTROL_CHARACTER = r"^[^\x00-\x1f\x7f]+$"
_PATH_SAFE = r"^[A-Za-z0-9][A-Za-z0-9._:-]*$"
_NO_NUL = r"^[^\x00]*$"

PATTERNS = {
    _NO_CONTROL_CHARACTER: "control characters (U+0000 to U+001F, U+007F) are not allowed",
    _PATH_SAFE: "only letters, digits, `.`, `_`, `:` and `-` of ASCII are allowed, a letter or digit first",
    _NO_NUL: "NUL (U+0000) is not allowed",
}
"""What the patterns of these fields ask for, in words for the caller."""


class Wire(BaseModel):
    """A model on the wire: nothing unknown is let through, nothing changes after it was checked."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


Number = Annotated[float, Field(strict=True, allow_inf_nan=False)]
"""A finite JSON number; text and booleans are refused."""

Integer = Annotated[int, Field(strict=True)]
"""A JSON integer; text and booleans are refused."""

Boolean = Annotated[bool, Field(strict=True)]

Name = Annotated[str, Field(min_length=1, max_length=256, pattern=_NO_CONTROL_CHARACTER)]
"""An id that the caller chose: 1 to 256 characters, no control characters."""

BatchId = Annotated[str, Field(min_length=1, max_length=128, pattern=_PATH_SAFE)]
"""An id that also appears in a path."""

LeanText = Annotated[str, Field(max_length=MAX_HEADER_CHARACTERS, pattern=_NO_NUL)]
"""A header or a statement: text of the trainer, not of the policy."""

Json = Any
"""Any JSON value: what another program wrote and only its reader understands."""
