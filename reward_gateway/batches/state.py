"""One batch while it runs: what is asked, what has been answered, and whether the cutoff has come.

No I/O and no clock of its own: times are seconds since receipt, given by the caller.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from reward_gateway.batches.lean_jobs import submission
from reward_gateway.batches.plan import Plan
from reward_gateway.batches.prepare import Preparation, Prepared, Unusable
from reward_gateway.evaluator.stated import positive_counts
from reward_gateway.scheduling.check_time import CheckTimePredictor
from reward_gateway.scheduling.order import BatchOrder, valid_probability
from services.contracts.evaluator import Prediction
from services.contracts.jobs import JobProgress
from services.contracts.lean import LeanOutcome
from services.contracts.outcomes import LeanStatus, Verdict
from services.contracts.proofs import Candidate, CutoffPolicy, CutoffReason, Mode
from services.proofs.precheck import Rejection
from services.queue.jobs import Submission
from services.rewards.merge import LeanAnswer, prefer

_EXTRA_TTL_S = 60.0


@dataclass(frozen=True, slots=True)
class Cut:
    """The cutoff: why, and when (seconds since receipt)."""

    reason: CutoffReason
    at_s: float


@dataclass(frozen=True, slots=True)
class Predicted:
    """A prediction, when it was received, and the models that made it."""

    prediction: Prediction
    at_s: float
    model: str


class BatchState:
    """Candidates, their prechecks and jobs, Lean's answers by key and the evaluator's by program.

    Several keys may share a program (one proof, two statements), which is then predicted once.
    """

    def __init__(
        self,
        plan: Plan,
        candidates: list[Candidate],
        received_at: float,
        predictor: CheckTimePredictor | None = None,
    ) -> None:
        self.plan = plan
        self.order = BatchOrder(plan.scheduling, plan.priority, predictor)
        self.candidates = candidates
        self.received_at = received_at
        self.prepared: list[Preparation] = []
        self.answers: dict[str, LeanAnswer] = {}
        self.predictions: dict[str, Predicted] = {}
        self.scores: dict[str, Prediction] = {}
        self.cached: set[str] = set()
        self.audited: set[str] = set()
        self.misstated: set[str] = set()  # predicted valid, which does not count: `positive_counts`
        self.changed = asyncio.Event()
        self.scored = asyncio.Event()
        self.complete = False
        self.lean_was_missing = False
        self.evaluator_ended = plan.mode is Mode.LEAN
        self.evaluator_was_missing = False
        self.rejected = 0
        self.duplicates = 0
        self._members: dict[str, int] = {}
        self._programs: dict[str, list[Prepared]] = {}
        self._waiting: set[str] = set()
        self._open: set[str] = set()  # neither ended by Lean for good nor predicted
        self._uncovered: set[str] = set()  # waiting for Lean, without a prediction
        self._decided_by_lean = 0
        self._last_s = 0.0
        self._cut: Cut | None = None

    # What is asked

    def add(self, prepared: Preparation, at_s: float) -> bool:
        """Take in the next candidate. True when its check is new to this batch and has to be asked for."""
        self.prepared.append(prepared)
        if isinstance(prepared, Rejection):
            self.rejected += 1
            self._last_s = max(self._last_s, at_s)
            return False
        if isinstance(prepared, Unusable):
            return False
        key = prepared.key
        before = self._members.get(key, 0)
        self._members[key] = before + 1
        held = self.answers.get(key)
        if held is not None and held.decides:
            self._decided_by_lean += 1
        if before:
            self.duplicates += 1
            return False
        self._programs.setdefault(prepared.task.code, []).append(prepared)
        if held is None or held.leaves_to_cascade:
            self._open.add(key)
        if held is None and self.plan.mode is not Mode.EVALUATOR:
            self._waiting.add(key)  # else it came before the batch was prepared again (it was taken over)
            self._uncovered.add(key)
            group = self.candidates[len(self.prepared) - 1].group
            self.order.add(key, prepared.task.code, group=group, problem=prepared.task.statement or group)
        return key in self._waiting

    def all_added(self, at_s: float) -> None:
        """Every candidate is prepared and every check is asked for: the cutoff may now come early."""
        self.complete = True
        self._note(max(at_s, self._last_s))

    def lean_is_missing(self) -> None:
        """Lean is not there and will not be asked: the evaluator goes on alone."""
        self.lean_was_missing = True
        self._waiting.clear()
        self._uncovered.clear()

    # What is answered

    def receive(self, key: str, outcome: LeanOutcome, at_s: float) -> bool:
        """Take in Lean's answer for a key; also one that was not asked for yet. False: it changes nothing."""
        held = self.answers.get(key)
        answer = prefer(held, LeanAnswer(outcome, at_s))
        if answer is held:
            return False
        self.answers[key] = answer
        members = self._members.get(key, 0)
        self._decided_by_lean += members * (answer.decides - (held is not None and held.decides))
        self._waiting.discard(key)
        self._uncovered.discard(key)
        if not answer.leaves_to_cascade:
            self._open.discard(key)
        self._note(at_s)
        return True

    def predict(self, program: str, prediction: Prediction, model: str, at_s: float) -> None:
        """Take in the evaluator's word on a program; the first that is a verdict stays."""
        if program in self.predictions and self.predictions[program].prediction.verdict is not Verdict.UNKNOWN:
            return
        self.predictions[program] = Predicted(prediction, at_s, model)
        if prediction.verdict is not Verdict.UNKNOWN:
            for prepared in self._programs.get(program, ()):
                self._open.discard(prepared.key)
                self._uncovered.discard(prepared.key)
                if prediction.verdict is Verdict.VALID and not positive_counts(program, prepared.task.statement):
                    self.misstated.add(prepared.key)
        self.scored.set()
        self._note(at_s)

    def score(self, program: str, news: Prediction) -> None:
        """Take in news of a gate score; it decides nothing."""
        self.scores[program] = news
        self.scored.set()

    def evaluator_has_ended(self, at_s: float, *, failed: bool) -> None:
        """Nothing more will come from the evaluator. `failed`: it was not there, or left programs unpredicted."""
        self.evaluator_ended = True
        self.evaluator_was_missing = failed
        self.scored.set()
        self._note(at_s)

    # How far it is

    @property
    def waiting(self) -> set[str]:
        """Keys that Lean was asked for and has not answered."""
        return self._waiting

    def to_predict(self) -> list[str]:
        """Programs that the evaluator is to predict: all that Lean has not decided yet, and the audited ones."""
        return [
            program
            for program, checks in self._programs.items()
            if any(check.key in self._open or check.key in self.audited for check in checks)
        ]

    @property
    def decided(self) -> int:
        return self.rejected + self._decided_by_lean

    @property
    def pending(self) -> int:
        """Candidates that are not final yet."""
        return len(self.candidates) - self.decided

    def checks(self) -> Iterator[Prepared]:
        """Every check once."""
        for checks in self._programs.values():
            yield from checks

    # What the desk of Lean needs to know

    @property
    def ttl_s(self) -> float:
        """Nobody waits for the answers any longer than this."""
        return self.plan.deadline_s + _EXTRA_TTL_S

    @property
    def flow(self) -> str:
        """Callers share the workers, however many batches each has."""
        return self.plan.owner

    @property
    def share(self) -> float:
        return self.plan.share

    def submissions(self, asked: Sequence[Prepared]) -> list[Submission]:
        """Checks as jobs, in the order in which they should run.

        Among those of one priority, all of one header follow each other: a change of environment can cost an engine
        half a second.
        """
        checks = {check.key: check for check in asked}
        turns = {header: turn for turn, header in enumerate(dict.fromkeys(check.task.header for check in asked))}
        ranked = self.order.first(list(checks))
        ranked.sort(key=lambda place: (-place[1], turns[checks[place[0]].task.header]))
        return [
            submission(checks[key], priority=priority, timeout_s=self.plan.lean_timeout_s) for key, priority in ranked
        ]

    def unanswered(self) -> list[Submission]:
        """What Lean was asked for and has not answered, to be asked again."""
        return self.submissions([check for check in self.checks() if check.key in self._waiting])

    def checked(self, key: str, outcome: LeanOutcome) -> None:
        """Learn from a check that ended now."""
        self.order.finished(key, outcome, self.plan.lean_timeout_s)

    def chances(self) -> dict[str, float]:
        """Of each predicted check, the probability of `valid`, as far as it is known now."""
        found = {}
        for program, checks in self._programs.items():
            predicted = self.predictions.get(program)
            word = self.scores.get(program) if predicted is None else predicted.prediction
            chance = None if word is None else valid_probability(word)
            if chance is not None:
                found.update(dict.fromkeys((check.key for check in checks), chance))
        return found

    def settled_by_group(self) -> dict[str, tuple[float, int]]:
        """Of each group, the number of candidates that are decided, and how many of them are valid."""
        found: dict[str, tuple[float, int]] = {}
        for candidate, prepared in zip(self.candidates, self.prepared, strict=False):
            answer = self.answers.get(prepared.key) if isinstance(prepared, Prepared) else None
            decided = isinstance(prepared, Rejection) or (answer is not None and answer.decides)
            if candidate.group is not None and decided:
                valid, count = found.get(candidate.group, (0.0, 0))
                is_valid = answer is not None and answer.outcome.verdict is Verdict.VALID
                found[candidate.group] = (valid + is_valid, count + 1)
        return found

    def early_cut(self) -> Cut | None:
        """The cutoff, if an event before the deadline has brought it."""
        return self._cut

    def _note(self, at_s: float) -> None:
        """Something happened: the first event that ends the batch is its cutoff."""
        self._last_s = max(self._last_s, at_s)
        if self.complete and self._cut is None:
            reason = self._ending()
            self._cut = None if reason is None else Cut(reason, self._last_s)
        self.changed.set()

    def _ending(self) -> CutoffReason | None:
        if self.decided == len(self.candidates):
            return CutoffReason.DECIDED
        predicted = self.plan.mode is not Mode.LEAN and bool(self.predictions)
        if (
            self.plan.policy is CutoffPolicy.EVALUATOR_DONE
            and predicted
            and self.evaluator_ended
            and not self._uncovered
        ):
            return CutoffReason.EVALUATOR_DONE
        if not self._waiting and (self.evaluator_ended or not self._open):
            # Lean has ended every check, some without a verdict, and the evaluator has said what it can say of those.
            # Nothing can change any more, whatever the policy waits for.
            return CutoffReason.EVALUATOR_DONE if self.plan.mode is Mode.EVALUATOR else CutoffReason.ALL
        return None

    def without_lean(self) -> LeanStatus:
        """What to say of checks that never answered."""
        if self.plan.mode is Mode.EVALUATOR:
            return LeanStatus.SKIPPED
        return LeanStatus.UNAVAILABLE if self.lean_was_missing else LeanStatus.CANCELLED

    def progress(self, elapsed_s: float) -> JobProgress:
        return JobProgress(
            candidates=len(self.candidates),
            decided=self.decided,
            lean=self._decided_by_lean,
            elapsed_s=round(elapsed_s, 3),
        )
