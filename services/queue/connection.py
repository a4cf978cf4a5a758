"""The client of the queue's server, and what its failures mean."""

from __future__ import annotations

import asyncio
import re
import sys
from collections.abc import Awaitable
from typing import Any, TypeVar

from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import ConnectionError, OutOfMemoryError, ResponseError, TimeoutError

from services.queue.errors import QueueUnavailable

if sys.version_info >= (3, 11):
    from asyncio import timeout
else:
    from async_timeout import timeout  # redis-py requires it there

T = TypeVar("T")

# Every call under way has a connection of its own, and so has every reader that waits. redis-py's limit of 100 would
# turn a busy gateway into an unavailable server.
_MAX_CONNECTIONS = 10_000

# Answers of a server that is up but cannot serve: it loads its data, lost its primary, cannot write to its disk.
_REFUSALS = re.compile(r"\b(OOM|MISCONF|READONLY|BUSY|LOADING|MASTERDOWN|NOREPLICAS|CLUSTERDOWN|TRYAGAIN|UNBLOCKED)\b")
# redis-py takes the code off the messages that it knows and raises a class of its own instead.
_REFUSING_CLASSES = frozenset({"ReadOnlyError", "TryAgainError", "ClusterDownError", "MasterDownError"})


def connect(url: str, **options: Any) -> Redis:
    """A client for ``JobQueue`` and ``VerdictCache``.

    ``url``: ``redis://``, ``rediss://`` (TLS, with the host's name checked; ``?ssl_ca_certs=FILE`` names a CA of your
    own, ``&ssl_certfile=FILE&ssl_keyfile=FILE`` the client's certificate) or ``unix://``. It does not repeat commands
    by itself (a claim that was executed twice would keep jobs from other workers until their lease ends), has no limit
    on the wait for an answer (the queue limits each call itself, and some wait on purpose), and finds dead peers by TCP
    keepalive.
    """
    settings: dict[str, Any] = {
        "decode_responses": False,
        "retry": Retry(NoBackoff(), 0),
        "socket_timeout": None,
        "socket_connect_timeout": 5.0,
        "max_connections": _MAX_CONNECTIONS,
        **options,
    }
    if not url.startswith("unix:"):
        settings.setdefault("socket_keepalive", True)
    if url.startswith("rediss:"):
        settings.setdefault("ssl_check_hostname", True)  # which redis-py left out before version 6
    return Redis.from_url(url, **settings)


def out_of_memory(error: ResponseError) -> bool:
    """Whether the server refused a command because it reached ``maxmemory``."""
    return isinstance(error, OutOfMemoryError) or "OOM command not allowed" in str(error)


async def reach(call: Awaitable[T], limit_s: float) -> T:
    """The answer of a call to the server.

    Raises ``QueueUnavailable`` when there is none within ``limit_s`` seconds or the server cannot serve, and redis-py's
    ``ResponseError`` for everything that is wrong with the call itself, running out of memory included.
    """
    try:
        async with timeout(limit_s):
            return await call
    except asyncio.TimeoutError:
        raise QueueUnavailable(f"no answer from the queue's server within {limit_s:g} s") from None
    except (ConnectionError, TimeoutError, OSError) as error:
        raise QueueUnavailable(f"the queue's server cannot be reached: {error}") from error
    except ResponseError as error:
        if not out_of_memory(error) and (type(error).__name__ in _REFUSING_CLASSES or _REFUSALS.search(str(error))):
            raise QueueUnavailable(f"the queue's server does not serve: {error}") from error
        raise
