"""`POST /compat/openrlhf`: what the remote reward call of OpenRLHF sends."""

from __future__ import annotations

import time

from starlette.requests import Request
from starlette.responses import Response

from reward_gateway.bodies.models import parse_model
from reward_gateway.compat.samples import Sample, read_label, response_of
from reward_gateway.operations import BODY_PROBLEMS, Answer, Operation
from reward_gateway.routes.compat.context import FAILURES, rewards_of
from reward_gateway.routes.context import body_of, gateway_of, owner_of, require_room
from services.contracts.compat import OpenRLHFRequest, OpenRLHFResponse, SampleReward
from services.contracts.outcomes import Source, Verdict
from services.contracts.problems import ProblemCode


async def openrlhf(request: Request) -> Response:
    owner = owner_of(request)
    body = await body_of(request)
    received_at = time.monotonic()
    try:
        asked = parse_model(OpenRLHFRequest, body.text)
        require_room(request, owner, len(asked.query), "/query")
        rows = enumerate(zip(asked.query, asked.prompts, asked.labels, strict=True))
        samples = [
            Sample(owner, response_of(query, prompt), read_label(label, ("labels", index)))
            for index, (query, prompt, label) in rows
        ]
        rewards = await rewards_of(request, samples, received_at, "openrlhf")
    finally:
        gateway_of(request).budget.give(body.size)
    return Response(_answer(rewards).model_dump_json(), media_type="application/json")


def _answer(rewards: list[SampleReward]) -> OpenRLHFResponse:
    """`scores` from 0 to 1 are what OpenRLHF filters groups by: 1 for valid, 0 for all else. Its log takes numbers."""

    def column(holds: list[bool]) -> tuple[float, ...]:
        return tuple(map(float, holds))

    return OpenRLHFResponse(
        rewards=tuple(reward.score for reward in rewards),
        scores=column([reward.verdict is Verdict.VALID for reward in rewards]),
        extra_logs={
            "fallback": column([reward.status == "fallback" for reward in rewards]),
            "lean": column([reward.source is Source.LEAN for reward in rewards]),
        },
    )


OPERATIONS = (
    Operation(
        "POST",
        "/compat/openrlhf",
        "compat",
        "Rewards for OpenRLHF",
        openrlhf,
        request=OpenRLHFRequest,
        answers={200: (Answer("Rewards and scores in the order of the queries.", OpenRLHFResponse),)},
        problems=(*BODY_PROBLEMS, ProblemCode.TOO_MANY_CANDIDATES, *FAILURES),
        description="Calls that arrive together are scored as one batch. Answers within 100 s.",
    ),
)
