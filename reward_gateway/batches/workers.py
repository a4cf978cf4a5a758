"""What the gateway knows about the Lean workers: who announces itself, how many engines are warm, which Lean."""

from __future__ import annotations

from dataclasses import dataclass

from pydantic import ValidationError

from services.contracts.health import LeanReadiness
from services.contracts.lean import EngineIdentity, WorkerInfo
from services.runtime.logging import get_logger


@dataclass(frozen=True, slots=True)
class Fleet:
    """The announced workers at one moment."""

    workers: tuple[WorkerInfo, ...] = ()

    @classmethod
    def parse(cls, announced: dict[str, bytes]) -> Fleet:
        """Announcements that cannot be read are logged and left out."""
        workers = []
        for name, info in announced.items():
            try:
                workers.append(WorkerInfo.model_validate_json(info))
            except ValidationError as error:
                get_logger().warning("worker_announcement_unreadable", worker=name, errors=error.error_count())
        return cls(tuple(workers))

    @property
    def ready(self) -> int:
        """Warm engines."""
        return sum(worker.ready for worker in self.workers)

    @property
    def identities(self) -> tuple[EngineIdentity, ...]:
        return tuple(dict.fromkeys(worker.identity for worker in self.workers))

    @property
    def identity(self) -> EngineIdentity | None:
        """The one Lean that all workers run; None when there is none or more than one, and no verdict may be reused."""
        identities = self.identities
        return identities[0] if len(identities) == 1 else None

    def readiness(self) -> LeanReadiness:
        return LeanReadiness(
            workers=len(self.workers),
            engines=sum(worker.engines for worker in self.workers),
            ready=self.ready,
            identities=self.identities,
        )
