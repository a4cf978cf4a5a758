"""A limit of time on awaiting: `async with within(seconds): ...`, None for no limit. Raises `asyncio.TimeoutError`.

Unlike `asyncio.wait_for`, which up to Python 3.11 swallows a cancellation that comes together with the result: a loop
around it would then go on for ever, and who cancelled it would wait for ever.
"""

from __future__ import annotations

import sys

if sys.version_info >= (3, 11):
    from asyncio import timeout as within
else:
    from async_timeout import timeout as within

__all__ = ["within"]
