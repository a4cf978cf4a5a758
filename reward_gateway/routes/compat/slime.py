"""`POST /compat/slime`: one sample as `remote_rm` of slime sends it."""

from __future__ import annotations

import time

from starlette.requests import Request
from starlette.responses import Response

from reward_gateway.bodies.models import parse_model
from reward_gateway.compat.samples import Sample, read_label
from reward_gateway.operations import BODY_PROBLEMS, Answer, Operation
from reward_gateway.routes.compat.context import FAILURES, rewards_of
from reward_gateway.routes.context import body_of, gateway_of, owner_of
from services.contracts.compat import SampleReward, SlimeRequest


async def slime(request: Request) -> Response:
    owner = owner_of(request)
    body = await body_of(request)
    received_at = time.monotonic()
    try:
        asked = parse_model(SlimeRequest, body.text)
        sample = Sample(owner, asked.response, read_label(asked.label))
        (reward,) = await rewards_of(request, [sample], received_at, "slime")
    finally:
        gateway_of(request).budget.give(body.size)
    return Response(reward.model_dump_json(), media_type="application/json")


OPERATIONS = (
    Operation(
        "POST",
        "/compat/slime",
        "compat",
        "Reward of one sample for slime",
        slime,
        request=SlimeRequest,
        answers={200: (Answer("The reward, and whether somebody decided it.", SampleReward),)},
        problems=(*BODY_PROBLEMS, *FAILURES),
        description="Calls that arrive together are scored as one batch. Answers within 100 s.",
    ),
)
