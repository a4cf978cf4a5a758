"""A batch as the `Job` document that its caller sees, wherever it runs."""

from __future__ import annotations

from dataclasses import dataclass

from reward_gateway.batches.batch import Batch
from reward_gateway.batches.records import Record
from services.contracts.base import Wire
from services.contracts.jobs import JobProgress, JobState
from services.contracts.problems import Problem, ProblemCode
from services.runtime.problems import ProblemError


class _Head(Wire):
    """The members of a `Job` before `result`."""

    id: str
    state: JobState
    progress: JobProgress


@dataclass(frozen=True, slots=True)
class JobView:
    """A job at one moment; `answer` is the JSON of its `ScoreResponse`."""

    id: str
    state: JobState
    progress: JobProgress
    answer: bytes | None = None
    problem: Problem | None = None

    @property
    def ended(self) -> bool:
        return self.state is not JobState.RUNNING

    @property
    def event_id(self) -> int:
        """Grows with the progress, and is the same again on a gateway that took the job over."""
        return self.progress.candidates + 1 if self.ended else self.progress.decided

    def json(self, *, result: bool = True) -> bytes:
        head = _Head(id=self.id, state=self.state, progress=self.progress).model_dump_json().encode()
        answer = self.answer if result and self.answer is not None else b"null"
        problem = b"null" if self.problem is None else self.problem.model_dump_json(exclude_defaults=True).encode()
        return b'%s,"result":%s,"problem":%s}' % (head[:-1], answer, problem)


def view(found: Batch | Record) -> JobView:
    if isinstance(found, Record):
        return JobView(found.id, found.state, found.progress, found.answer, found.problem)
    progress = found.progress()
    if not found.answer.done():
        return JobView(found.id, JobState.RUNNING, progress)
    error = found.answer.exception()
    if error is None:
        return JobView(found.id, JobState.DONE, progress, found.answer.result().body)
    if isinstance(error, ProblemError) and error.code is ProblemCode.CANCELLED:
        return JobView(found.id, JobState.CANCELLED, progress)
    if isinstance(error, ProblemError) and error.code is ProblemCode.SHUTTING_DOWN:
        return JobView(found.id, JobState.RUNNING, progress)  # handed over: another gateway goes on with it
    if not isinstance(error, ProblemError):
        error = ProblemError(ProblemCode.INTERNAL_ERROR, "the log says why")
    return JobView(found.id, JobState.FAILED, progress, problem=error.document(found.id))
