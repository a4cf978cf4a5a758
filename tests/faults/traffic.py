"""Load from real clients that know the truth: every candidate's verdict is known before it is sent."""

from __future__ import annotations

import itertools
import threading
import time
from collections import defaultdict
from dataclasses import dataclass, field
from types import TracebackType

from reward_gateway.client import Client
from services.contracts.outcomes import LeanStatus, Source, Verdict
from services.contracts.proofs import CandidateResult
from tests.faults.services_under_fault import PATIENCE_S

DEADLINE_S = 300.0
REWARDS = {Verdict.VALID: 1.0, Verdict.INVALID: 0.0, Verdict.UNKNOWN: None}

_numbers = itertools.count(1)


@dataclass(frozen=True)
class Known:
    """A candidate that nobody has sent before, and its true verdict."""

    id: str
    code: str
    statement: str
    verdict: Verdict

    def wire(self) -> dict[str, str]:
        return {"id": self.id, "code": self.code, "statement": self.statement}


def cheap(proof: str = "by omega") -> Known:
    number = next(_numbers)
    statement = f"theorem t{number} (a b : Nat) : a + b + {number} = b + a + {number}"
    verdict = Verdict.VALID if proof == "by omega" else Verdict.INVALID
    return Known(f"c{number}", f"{statement} := {proof}", statement, verdict)


def slow(size: int = 9) -> Known:
    """Half a second to seconds of Lean's time."""
    number = next(_numbers)
    statement = f"theorem t{number} : ∀ a b c : Fin {size}, a + b + c = c + b + a"
    code = f"set_option maxRecDepth 100000000\n{statement} := by decide"
    return Known(f"c{number}", code, statement, Verdict.VALID)


def cheat() -> Known:
    """Lean has no complaint about this one; only the facts tell."""
    number = next(_numbers)
    statement = f"theorem t{number} : (1 : Nat) = {number + 1}"
    return Known(f"c{number}", f"theorem t{number} : (1 : Nat) = 1 := rfl", statement, Verdict.INVALID)


def mixed() -> list[Known]:
    return [cheap(), slow(), cheap("by rfl"), cheat()]


@dataclass
class Ledger:
    """All that was ever answered of each candidate."""

    truth: dict[str, Known] = field(default_factory=dict)
    answers: dict[str, list[CandidateResult]] = field(default_factory=lambda: defaultdict(list))
    failures: list[BaseException] = field(default_factory=list)

    def undecided(self) -> list[CandidateResult]:
        """Answers without a verdict."""
        return [each for given in self.answers.values() for each in given if each.verdict is Verdict.UNKNOWN]

    def verify(self, *, undecided: int = 0) -> None:
        """Everything sent was answered, always with the same reward, and the right one.

        `undecided`: so many candidates may be without a verdict, where our own fault took it from them.
        """
        assert self.failures == []
        assert set(self.answers) == set(self.truth)
        assert len(self.undecided()) <= undecided, self.undecided()
        for identity, given in self.answers.items():
            expected = self.truth[identity].verdict
            for answer in given:
                if answer.verdict is Verdict.UNKNOWN:
                    assert answer.reward is None
                    assert answer.lean.status is not LeanStatus.OK
                    continue
                assert answer.source is Source.LEAN, answer
                assert (answer.verdict, answer.reward) == (expected, REWARDS[expected]), (self.truth[identity], answer)
            assert len({(answer.verdict, answer.reward) for answer in given}) == 1, given


class Traffic:
    """Trainers that post batch after batch, as a context; at its end the last batches have their answers.

    Each batch is a call of the real client, which repeats it with the same id until it has an answer.
    """

    def __init__(self, url: str, *, trainers: int = 2, mode: str = "lean", lean_timeout_s: float = 60.0) -> None:
        self._url = url
        self._options = {"mode": mode, "cutoff": {"policy": "all"}, "lean_timeout_s": lean_timeout_s}
        self._stopping = threading.Event()
        self._threads = [threading.Thread(target=self._train, daemon=True) for _ in range(trainers)]
        self._lock = threading.Lock()
        self._batches: list[list[Known]] = []
        self.ledger = Ledger()
        self.answered = 0

    def __enter__(self) -> Traffic:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stopping.set()
        for thread in self._threads:
            thread.join(DEADLINE_S if error is None else 1.0)

    def flows(self, batches: int = 2) -> float:
        """Wait until so many more batches have their answers; answers how long it took, seconds."""
        begin, goal = time.monotonic(), self.answered + batches
        while self.answered < goal:
            assert not self.ledger.failures, self.ledger.failures
            assert time.monotonic() - begin < PATIENCE_S, f"{self.answered} of {goal} batches after {PATIENCE_S:g} s"
            time.sleep(0.05)
        return time.monotonic() - begin

    def ask_again(self) -> None:
        """Once it has ended: send every batch once more, as a trainer would that lost its answers."""
        assert self._stopping.is_set()
        with self._client() as client:
            for batch in self._batches:
                self._score(client, batch)

    def _train(self) -> None:
        with self._client() as client:
            while not self._stopping.is_set():
                batch = mixed()
                with self._lock:
                    self._batches.append(batch)
                    self.ledger.truth.update((known.id, known) for known in batch)
                try:
                    self._score(client, batch)
                except BaseException as error:
                    self.ledger.failures.append(error)
                    return

    def _score(self, client: Client, batch: list[Known]) -> None:
        answer = client.score_proofs([known.wire() for known in batch], deadline_s=DEADLINE_S, **self._options)
        with self._lock:
            for result in answer.results:
                self.ledger.answers[result.id].append(result)
            self.answered += 1

    def _client(self) -> Client:
        return Client(self._url, patience_s=PATIENCE_S)
