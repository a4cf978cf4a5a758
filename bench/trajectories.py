"""How long a group of rollouts takes from its body to its answer, without a judge.

    python bench/trajectories.py [--json] [--rollouts 1024] [--steps 50]

Read, parsed, penalised, rewarded and written out again, as `POST /v1/trajectories/score` does it between socket and
socket. CPU time of one core. Commands are those of `bench/penalties.py`, different in every rollout.
"""

from __future__ import annotations

import argparse
import itertools
import json
import time
from typing import Any

from bench.penalties import TEMPLATES
from reward_gateway.trajectories.group import penalise, read_group
from reward_gateway.trajectories.rows import answer_of

STAGES = ["explore", "reproduce", "fix", "verify", "submit"]


def rollout(number: int, steps: int) -> dict[str, Any]:
    """One rollout with labelled stages and a beta for each."""
    trajectory = [
        {
            "thought": "Look at the next part.",
            "tool_calls": [
                {
                    "name": "bash",
                    "arguments": {"command": TEMPLATES[i % len(TEMPLATES)].format(i=number * steps + i, j=i + 40)},
                }
            ],
            "observation": "ok\n" * 20,
            "stage": STAGES[i * len(STAGES) // steps],
        }
        for i in range(steps)
    ]
    betas = [{"node": node, "visit": 0, "beta": 1 if (number + node) % 3 else -1} for node in range(len(STAGES))]
    return {"id": f"r{number}", "alpha": 1, "format": "steps", "trajectory": trajectory, "stage_rewards": betas}


def body(rollouts: int, steps: int) -> str:
    return json.dumps(
        {
            "group": "bench",
            "general_workflow": STAGES,
            "rollouts": [rollout(number, steps) for number in range(rollouts)],
        }
    )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rollouts", type=int, default=1024)
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--json", action="store_true")
    chosen = parser.parse_args()
    text = body(chosen.rollouts, chosen.steps)
    marks = [time.process_time()]
    group = read_group(text)
    marks.append(time.process_time())
    for work in group.rollouts:
        penalise(group, work)
    marks.append(time.process_time())
    answer = answer_of(group, 0.0).model_dump_json()
    marks.append(time.process_time())
    parts = dict(zip(("read_s", "gamma_s", "answer_s"), (b - a for a, b in itertools.pairwise(marks)), strict=True))
    result = {
        "rollouts": chosen.rollouts,
        "steps": chosen.steps,
        "body_mb": round(len(text) / 1e6, 1),
        "answer_mb": round(len(answer) / 1e6, 1),
        **{name: round(seconds, 2) for name, seconds in parts.items()},
        "total_s": round(marks[-1] - marks[0], 2),
    }
    if chosen.json:
        print(json.dumps(result))
        return
    for name, value in result.items():
        print(f"{name:12} {value}")


if __name__ == "__main__":
    main()
