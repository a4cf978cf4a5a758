"""The Lua scripts that change the queue's state, each in one file, each atomic.

A script is its own file behind ``_shared.lua``. Scripts use no command newer than Redis 6.2, are called by their digest
and sent in full only when the server does not know them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from functools import cache
from importlib.resources import files
from typing import Any

from redis.asyncio import Redis
from redis.exceptions import NoScriptError


@cache
def source(name: str) -> tuple[str, str]:
    """Text and SHA-1 digest of the script ``name``."""
    folder = files(__name__)
    text = "".join(folder.joinpath(file).read_text("utf-8") for file in ("_shared.lua", f"{name}.lua"))
    return text, hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()


async def run(redis: Redis, name: str, root: str, arguments: Iterable[str | bytes | int | float]) -> Any:
    """Run the script ``name`` on the queue whose keys start with ``root``; the answer is the script's."""
    text, digest = source(name)
    values = list(arguments)
    try:
        return await redis.execute_command("EVALSHA", digest, 1, root, *values)  # type: ignore[no-untyped-call]
    except NoScriptError:
        return await redis.execute_command("EVAL", text, 1, root, *values)  # type: ignore[no-untyped-call]
