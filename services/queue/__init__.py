"""The job queue on a Redis-protocol server: jobs, leases, cancellation, results.

``JobQueue`` (``queue.py``) is all that a gateway or a worker needs; ``connect`` makes its client, ``EmbeddedServer``
a server for one machine, ``VerdictCache`` keeps verdicts. Words: a *job* is one check, known by its *key*; a
*subscriber* is a batch that wants its result; a *home* is the gateway process that hears results at once; a *flow* is
the party that jobs are charged to when turns are shared out, first between flows, then between the subscribers of each.

Where the interface differs from the first sketch of it, and why:

- ``cancellations()`` and ``heartbeat()`` answer with lease **tokens** (``Claim.token``), not keys. A key can be
  cancelled, submitted again and claimed again by the same worker while the message about its first run is on the
  way; by key, that message would stop the wrong run.
- ``Completion.timed_out``: a check that ended at its time limit answers only the subscribers whose limit was no longer
  than the one it ran under. Who asked for longer (and joined while it ran) gets another run.
- ``submit(..., ttl_s=)``: a subscription ends by itself after that time, so that a gateway that died leaves no work
  behind. Give the batch's deadline and a grace.
- ``SubmitReport.finished``: keys that this subscriber was answered before (submitting is idempotent); their results are
  in ``delivered()``. Results are never shared between subscribers once a job has ended: that is the verdict cache's
  task, which knows which verdicts may be kept.
- ``stats().epoch`` changes when the server was restarted or replaced. A gateway that sees it change submits
  again whatever is undelivered; what survived is joined, what was lost runs again.
- ``announce`` with ``ttl_s=0`` withdraws a worker.
"""

from services.queue.connection import connect
from services.queue.errors import QueueFull, QueueUnavailable
from services.queue.jobs import (
    CancelReport,
    Claim,
    Completion,
    Delivery,
    QueueStats,
    ReapReport,
    Submission,
    SubmitReport,
)
from services.queue.queue import JobQueue

__all__ = [
    "CancelReport",
    "Claim",
    "Completion",
    "Delivery",
    "JobQueue",
    "QueueFull",
    "QueueStats",
    "QueueUnavailable",
    "ReapReport",
    "Submission",
    "SubmitReport",
    "connect",
]
