"""A batch's bookkeeping: what is new, what is decided, and when the cutoff comes early."""

from __future__ import annotations

from itertools import groupby
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reward_gateway.batches.keys import job_key, verdict_key
from reward_gateway.batches.plan import Plan, make_plan
from reward_gateway.batches.prepare import Prepared, prepare
from reward_gateway.batches.state import BatchState, Cut
from services.contracts.evaluator import Prediction
from services.contracts.lean import CheckTask, EngineIdentity, LeanOutcome
from services.contracts.outcomes import LeanStatus, Profile, Reason, Verdict
from services.contracts.proofs import Candidate, Cutoff, CutoffPolicy, CutoffReason, ScoreOptions
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


HYBRID = make_plan(ScoreOptions(), GatewaySettings(evaluator_urls="http://evaluator"))
ALL = make_plan(ScoreOptions(cutoff=Cutoff(policy=CutoffPolicy.ALL)), GatewaySettings(evaluator_urls="http://e"))
YES = Prediction(id="0", verdict=Verdict.VALID, reason=Reason.OK)
FAILED = Prediction(id="0", verdict=Verdict.UNKNOWN, reason=Reason.INFRASTRUCTURE)


def hybrid(names: str, plan: Plan = HYBRID) -> BatchState:
    batch = BatchState(plan, [Candidate(id=str(i), code="") for i in range(len(names))], 0.0)
    for name in names:
        batch.add(prepared(name), 0.0)
    batch.all_added(0.0)
    return batch


def test_the_first_moment_at_which_every_prediction_is_in_is_the_cutoff() -> None:
    batch = hybrid("ab")
    batch.predict(prepared("a").task.code, YES, "m", 1.0)
    batch.predict(prepared("b").task.code, YES, "m", 2.0)
    assert batch.early_cut() is None, "the evaluator has not said that it has ended"
    batch.evaluator_has_ended(2.5, failed=False)
    assert batch.early_cut() == Cut(CutoffReason.EVALUATOR_DONE, 2.5)
    batch.receive(prepared("a").key, VALID, 3.0)
    batch.receive(prepared("b").key, VALID, 4.0)
    assert batch.early_cut() == Cut(CutoffReason.EVALUATOR_DONE, 2.5), "nothing after it moves it"


def test_what_the_evaluator_failed_on_is_waited_for() -> None:
    batch = hybrid("ab")
    batch.predict(prepared("a").task.code, YES, "m", 1.0)
    batch.predict(prepared("b").task.code, FAILED, "m", 1.0)
    batch.evaluator_has_ended(2.0, failed=True)
    assert batch.early_cut() is None
    batch.receive(prepared("b").key, TIMEOUT, 3.0)
    assert batch.early_cut() == Cut(CutoffReason.EVALUATOR_DONE, 3.0)


def test_without_any_prediction_it_is_a_batch_of_lean_alone() -> None:
    batch = hybrid("ab")
    batch.evaluator_has_ended(0.1, failed=True)
    batch.receive(prepared("a").key, VALID, 1.0)
    assert batch.early_cut() is None
    batch.receive(prepared("b").key, TIMEOUT, 2.0)
    assert batch.early_cut() == Cut(CutoffReason.ALL, 2.0)


def test_the_policy_all_waits_for_the_predictions_of_what_lean_left_open() -> None:
    batch = hybrid("ab", ALL)
    batch.receive(prepared("a").key, VALID, 1.0)
    batch.receive(prepared("b").key, TIMEOUT, 2.0)
    assert batch.early_cut() is None
    batch.predict(prepared("b").task.code, YES, "m", 3.0)
    assert batch.early_cut() == Cut(CutoffReason.ALL, 3.0)


def test_a_verdict_stays_when_a_second_attempt_predicts_again() -> None:
    batch = hybrid("a")
    code = prepared("a").task.code
    batch.predict(code, FAILED, "m", 1.0)
    batch.predict(code, YES, "m", 2.0)
    batch.predict(code, YES.model_copy(update={"verdict": Verdict.INVALID}), "n", 3.0)
    assert (batch.predictions[code].prediction.verdict, batch.predictions[code].at_s) == (Verdict.VALID, 2.0)


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


def checks_with_headers(headers: str) -> list[Prepared]:
    """One check for each letter, in the environment that the letter stands for."""
    texts = {"i": "", "s": "import Std", "l": "import Lean"}
    found = [
        prepare(Candidate(id="x", code=f"{texts[h]}\ntheorem t{n} : True := trivial", header=texts[h]), PLAN)
        for n, h in enumerate(headers)
    ]
    checks = [check for check in found if isinstance(check, Prepared)]
    assert len(checks) == len(headers)
    return checks


@pytest.mark.parametrize("policy", CutoffPolicy)
def test_checks_of_one_header_follow_each_other_within_a_priority(policy: CutoffPolicy) -> None:
    plan = make_plan(ScoreOptions(cutoff=Cutoff(policy=policy)), GatewaySettings())
    batch = BatchState(plan, [], 0.0)
    checks = checks_with_headers("isislisilsliissi" * 4)
    submissions = batch.submissions(checks)
    headers = {check.key: check.task.header for check in checks}
    arrival = {check.key: place for place, check in enumerate(checks)}
    assert {one.key for one in submissions} == set(headers)
    for _, level in groupby(submissions, key=lambda one: one.priority):
        runs = [(header, [one.key for one in run]) for header, run in groupby(level, key=lambda one: headers[one.key])]
        assert len({header for header, _ in runs}) == len(runs)
        for _, keys in runs:
            assert sorted(keys, key=arrival.__getitem__) == keys
    assert [one.priority for one in submissions] == sorted((one.priority for one in submissions), reverse=True)
