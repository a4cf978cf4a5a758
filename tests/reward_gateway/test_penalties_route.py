"""`POST /v1/trajectories/penalties` through the real application."""

from __future__ import annotations

from typing import Any

import pytest

from tests.conftest import load_cases
from tests.reward_gateway.place import Place
from tests.services.process import harness_records as records
from tests.services.process.turns import record

URL = "/v1/trajectories/penalties"
CASES = load_cases("gamma_cases.sample.json")


def found(answer: dict[str, Any]) -> set[tuple[int, int]]:
    return {(row["step"], rule) for row in answer["steps"] for rule in row["rules"]}


async def test_one_trajectory_gives_a_row_for_every_step(place: Place) -> None:
    async with (await place.gateway()).client as client:
        response = await client.post(URL, json={"format": "steps", "trajectory": records.STEPS})
    assert response.status_code == 200
    rows = response.json()["steps"]
    assert [row["step"] for row in rows] == [0, 1, 2, 3]
    assert [row["gamma"] for row in rows] == [0, -1, -1, 0]
    assert rows[2]["evidence"][0]["quote"] == "sleep 5"


async def test_several_trajectories_keep_their_ids_and_order(place: Place) -> None:
    given = [{"id": name, "trajectory": kept} for name, (_, kept) in records.RECORDS.items()]
    async with (await place.gateway()).client as client:
        response = await client.post(URL, json={"trajectories": given})
    results = response.json()["results"]
    assert [result["id"] for result in results] == list(records.RECORDS)
    assert all(found(result) == set(records.PENALTIES) for result in results)


async def test_faults_name_their_place_in_the_body(place: Place) -> None:
    body = {
        "trajectories": [
            {"id": "a", "trajectory": [{"thought": "fine"}]},
            {"id": "a", "format": "steps", "trajectory": [{"tool_calls": "ls"}]},
            {"id": "c", "trajectory": {"unknown": 1}},
        ]
    }
    async with (await place.gateway()).client as client:
        response = await client.post(URL, json=body)
    assert response.status_code == 422
    assert response.headers["content-type"] == "application/problem+json"
    assert [fault["pointer"] for fault in response.json()["errors"]] == [
        "/trajectories/1/id",
        "/trajectories/1/trajectory/0/tool_calls",
        "/trajectories/2/trajectory",
    ]


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"trajectory": None},
        {"trajectory": [], "trajectories": []},
        {"trajectories": []},
        {"trajectory": 3},
        {"x": 1},
    ],
)
async def test_a_body_that_does_not_fit_is_a_422(place: Place, body: dict[str, Any]) -> None:
    async with (await place.gateway()).client as client:
        response = await client.post(URL, json=body)
    assert response.status_code == 422
    assert response.json()["errors"]


async def test_surrogates_and_controls_in_a_record_are_answered(place: Place) -> None:
    text = '{"trajectory": [{"tool_calls": [{"name": "bash", "arguments": {"command": "echo \\ud800\\u0000"}}]}, {}]}'
    async with (await place.gateway()).client as client:
        response = await client.post(URL, content=text, headers={"content-type": "application/json"})
    assert response.status_code == 200
    assert found(response.json()) == {(0, 3)}


async def test_more_steps_than_the_contract_allows_are_refused(place: Place) -> None:
    async with (await place.gateway()).client as client:
        response = await client.post(URL, json={"trajectory": record(*["ls"] * 10_000)})
    assert response.status_code == 422
    assert "at most 10000" in response.text


@pytest.mark.skipif(not CASES, reason="the acceptance cases are not beside this checkout")
async def test_the_acceptance_cases_hold_through_http(place: Place) -> None:
    wrong = []
    async with (await place.gateway()).client as client:
        for case in CASES:
            for form in ("steps", "raw"):
                if form not in case:
                    continue
                response = await client.post(URL, json={"trajectory": case[form]})
                assert response.status_code == 200, response.text
                expected = {(e["step"], e["rule"]) for e in case["expected"]}
                optional = {(e["step"], e["rule"]) for e in case["optional"]}
                if not expected <= found(response.json()) <= expected | optional:
                    wrong.append((case["id"], form))
    assert not wrong
