"""Votes to beta: on any votes what the Lean library's counting gives, and no worse vote ever raises it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.contracts.trajectories import Outcome
from services.contracts.votes import Downgrade, Judgement, Quote, ReplicaVote, RequirementVote
from services.process.certificates.claims import Answer, Ballot
from services.process.judging.answers import parse
from services.process.judging.votes import absent_vote, beta_of, evidence_of, failed_vote
from services.process.prompts import Malformed

END = 5


def lean_beta(ballots: list[Ballot]) -> int | None:
    """`LeanReward.beta`, written down again."""
    if not any(ballot.available for ballot in ballots):
        return None
    positive = [
        b.available and Answer.SUPPORT in b.chunks and Answer.CONTRADICTION not in b.chunks
        and b.quote is not None and b.quote <= b.segment_end
        for b in ballots
    ]  # fmt: skip
    return 1 if 2 * sum(positive) > len(positive) else -1


@st.composite
def requirement(draw: st.DrawFn, number: int) -> RequirementVote:
    judgement = draw(st.sampled_from(Judgement))
    downgrade = draw(st.sampled_from([None, None, *Downgrade])) if judgement is Judgement.SUPPORT else None
    step = {Downgrade.FROM_THE_FUTURE: END + 1, Downgrade.QUOTE_NOT_FOUND: None, Downgrade.TOO_SHORT: None}.get(
        downgrade,
        draw(st.integers(0, END)),  # type: ignore[arg-type]
    )
    accepted = judgement is Judgement.SUPPORT and downgrade is None
    return RequirementVote(
        requirement=number,
        judgement=judgement,
        quote=Quote(text="q" * 20, found_step=step) if judgement is Judgement.SUPPORT else None,
        downgrade=downgrade,
        vote=Outcome.PASSED if accepted else Outcome.FAILED,
    )


@st.composite
def vote(draw: st.DrawFn) -> ReplicaVote:
    kind = draw(st.sampled_from(["answered"] * 4 + ["failed", "absent"]))
    if kind == "failed":
        return failed_vote(0, [END], "no answer")
    if kind == "absent":
        return absent_vote(0)
    made = tuple(draw(requirement(number)) for number in range(draw(st.integers(1, 3))))
    passed = all(item.vote is Outcome.PASSED for item in made)
    return ReplicaVote(
        replica=0, first_step=0, last_step=END, answered=True, requirements=made,
        vote=Outcome.PASSED if passed else Outcome.FAILED,
    )  # fmt: skip


@given(st.lists(vote(), max_size=5))
def test_python_counts_as_the_lean_library_does(votes: list[ReplicaVote]) -> None:
    assert beta_of(votes) == lean_beta(list(evidence_of([], votes).ballots or ()))


@given(st.lists(vote(), min_size=1, max_size=5), st.data())
def test_order_does_not_matter_and_a_worse_vote_never_raises_beta(
    votes: list[ReplicaVote], data: st.DataObject
) -> None:
    assert beta_of(data.draw(st.permutations(votes))) == beta_of(votes)
    at = data.draw(st.integers(0, len(votes) - 1))
    worse = [*votes]
    worse[at] = votes[at].model_copy(update={"vote": Outcome.FAILED})
    before, after = beta_of(votes), beta_of(worse)
    assert before is not None or after is None
    assert before is None or (after is not None and after <= before)


@given(st.one_of(st.text(), st.recursive(st.none() | st.booleans() | st.integers() | st.text(), st.lists).map(str)))
def test_any_text_is_an_answer_or_malformed(text: str) -> None:
    with pytest.raises(Malformed):
        parse(text, 1)


@pytest.mark.parametrize(
    "judgements",
    [
        [],
        [{"requirement": 1, "judgement": "support", "quote": "q"}],
        [{"requirement": 0, "judgement": "maybe", "quote": "q"}],
        [{"requirement": 0, "judgement": "support", "quote": None}],
        [{"requirement": 0, "judgement": "support", "quote": "q"}] * 2,
        [{"requirement": 0, "judgement": "support", "quote": "q" * 2_001}],
    ],
)
def test_an_answer_that_misses_its_form_is_malformed(judgements: list[dict[str, Any]]) -> None:
    import json

    with pytest.raises(Malformed):
        parse(json.dumps({"judgements": judgements}), 1)
