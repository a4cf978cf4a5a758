"""A batch's bookkeeping: what is new, what is decided, and when the cutoff comes early."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from reward_gateway.batches.keys import job_key, verdict_key
from reward_gateway.batches.plan import make_plan
from reward_gateway.batches.prepare import Prepared, prepare
from reward_gateway.batches.state import BatchState
from services.contracts.lean import CheckTask, EngineIdentity, LeanOutcome
from services.contracts.outcomes import LeanStatus, Profile, Reason, Verdict
from services.contracts.proofs import Candidate, CutoffReason, ScoreOptions
from services.proofs.precheck import Rejection
from services.runtime.settings import GatewaySettings

PLAN = make_plan(ScoreOptions(), GatewaySettings())
VALID = LeanOutcome(status=LeanStatus.OK, verdict=Verdict.VALID, reason=Reason.OK)
TIMEOUT = LeanOutcome(status=LeanStatus.TIMEOUT, verdict=Verdict.UNKNOWN, reason=Reason.LEAN_TIMEOUT)


def prepared(name: str) -> Prepared:
    found = prepare(Candidate(id="x", code=f"theorem {name} : True := trivial"), PLAN)
    assert isinstance(found, Prepared)
    return found


def state(names: str) -> tuple[BatchState, list[bool]]:
    """A batch of theorems named by letters; `!` is one that the precheck rejects."""
    batch = BatchState(PLAN, [Candidate(id=str(i), code="") for i in range(len(names))], 0.0)
    bad = Rejection(Reason.NO_THEOREM, "", None)
    return batch, [batch.add(bad if name == "!" else prepared(name), 0.0) for name in names]


def test_only_the_first_of_identical_programs_is_asked() -> None:
    batch, new = state("aab!a")
    assert new == [True, False, True, False, False]
    assert (batch.duplicates, batch.rejected, batch.waiting) == (2, 1, {prepared("a").key, prepared("b").key})


def test_the_cutoff_waits_until_everything_was_asked() -> None:
    batch, _ = state("!!")
    assert batch.early_cut() is None
    batch.all_added(0.0)
    cut = batch.early_cut()
    assert cut is not None
    assert cut.reason is CutoffReason.DECIDED


def test_all_is_when_lean_has_ended_and_not_decided_everything() -> None:
    batch, _ = state("ab")
    batch.all_added(0.0)
    batch.receive(prepared("a").key, VALID, 1.0)
    assert batch.early_cut() is None
    batch.receive(prepared("b").key, TIMEOUT, 2.0)
    cut = batch.early_cut()
    assert cut is not None
    assert (cut.reason, cut.at_s) == (CutoffReason.ALL, 2.0)


def test_an_answer_that_came_before_its_candidate_counts() -> None:
    batch = BatchState(PLAN, [Candidate(id="0", code="")], 0.0)
    batch.receive(prepared("a").key, VALID, 0.1)
    assert not batch.add(prepared("a"), 0.2)
    batch.all_added(0.0)
    assert batch.decided == 1
    assert batch.early_cut() is not None


@given(
    st.text(alphabet="abc!", min_size=1, max_size=8),
    st.lists(st.tuples(st.sampled_from("abcd"), st.sampled_from([VALID, TIMEOUT]), st.integers(0, 9)), max_size=12),
)
def test_the_count_of_decided_candidates_is_right_after_any_answers(
    names: str, answers: list[tuple[str, LeanOutcome, int]]
) -> None:
    batch, _ = state(names)
    for name, outcome, at in answers:
        batch.receive(prepared(name).key, outcome, float(at))
    valid = {name for name, outcome, _ in answers if outcome is VALID}
    answered = {name for name, *_ in answers}
    assert batch.decided == sum(name == "!" or name in valid for name in names)
    assert batch.pending == len(names) - batch.decided
    assert batch.waiting == {prepared(name).key for name in set(names) - answered - {"!"}}


IDENTITY = EngineIdentity(engine="embedded", toolchain="4", environment="e")
TASK = CheckTask(code="c", header="h", statement="s")


def test_keys_tell_apart_everything_a_verdict_depends_on_and_nothing_else() -> None:
    changes: list[dict[str, Any]] = [
        {"code": "d"},
        {"header": "i"},
        {"statement": None},
        {"statement": ""},
        {"profile": Profile.PAPER},
        {"heartbeats": 1},
        {"messages": True},
        {"tactics": True},
        {"code": "sc", "statement": ""},
        {"header": "hs", "statement": ""},
    ]
    keys = [job_key(TASK.model_copy(update=change)) for change in changes]
    assert len({*keys, job_key(TASK)}) == len(changes) + 1
    assert job_key(TASK.model_copy(update={"timeout_s": 1.0})) == job_key(TASK)
    others = [IDENTITY.model_copy(update={name: "z"}) for name in ("engine", "toolchain", "environment")]
    assert len({verdict_key("k", identity) for identity in [IDENTITY, *others]}) == 4
