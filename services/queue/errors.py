"""What can go wrong with the queue."""

from __future__ import annotations


class QueueError(Exception):
    """Base of the queue's errors."""


class QueueFull(QueueError):
    """The submission would exceed the queue's bound; none of it was accepted.

    ``depth``: jobs waiting (with room reserved by submissions under way); ``limit``: the bound of this submission;
    ``excess``: how many jobs must leave before it fits, 0 where nobody can tell; ``reason`` says which bound: ``depth``
    or the server's ``memory``.
    """

    def __init__(self, depth: int, limit: int, reason: str = "depth", *, excess: int = 0) -> None:
        self.depth = depth
        self.limit = limit
        self.excess = excess
        self.reason = reason
        if reason == "memory":
            message = f"the queue's server is out of memory ({depth} jobs wait)"
        else:
            message = f"the queue is full: {depth} jobs wait or are being submitted, the limit is {limit}"
        super().__init__(message)


class QueueUnavailable(QueueError):
    """The server cannot be reached, does not answer in time, or refuses to serve.

    Whether the call took effect is unknown. Every call may be repeated: a repeated ``submit`` joins what the first one
    left, a repeated ``complete`` answers False for what the first one completed, and claims whose answer was lost come
    back when their lease ends.
    """
