"""The linear rules agree with a transcription of the Lean definitions, which look back over all runs."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from services.process.certificates import claims
from services.process.penalties import gamma
from services.process.penalties.actions import ActionReader, turns
from services.process.penalties.claims import claimed_steps
from services.process.trajectories import read_trajectory

Run = tuple[claims.Action, object]

CALLS = st.sampled_from([
    ("Bash", {"command": "ls"}), ("Bash", {"command": "cat a"}), ("Bash", {"command": "make"}),
    ("Bash", {"command": "exit 0"}), ("Bash", {"command": "echo hi"}), ("Bash", {"command": "cd /a && ls"}),
    ("Bash", {"command": "cd /b"}), ("Bash", {"command": "export X=1"}), ("Bash", {"command": 'echo "open'}),
    ("Bash", {"command": "python -c 'print(1)' && echo x"}), ("Bash", {"command": ""}), ("Read", {"file_path": "a"}),
    ("Edit", {"file_path": "a"}), ("execute_ipython_cell", {"code": "print('a')"}),
])  # fmt: skip
TRAJECTORIES = st.lists(
    st.tuples(st.lists(CALLS, max_size=3), st.sampled_from([None, "a", "b"])),
    max_size=12,
).map(
    lambda rows: [
        {"tool_calls": [{"name": n, "arguments": a} for n, a in calls], "stage": stage} for calls, stage in rows
    ]
)


def consecutive(history: list[Run], action: claims.Action) -> bool:
    last = [run for run, _ in history[-2:]]
    return action.is_shell and len(last) == 2 and all(run.is_shell and run.text == action.text for run in last)


def no_progress(history: list[Run], visit: object, action: claims.Action) -> bool:
    if not action.is_shell:
        return False
    for run, its_visit in reversed(history):
        if run.modifies or its_visit != visit:
            return False
        if run.is_shell and run.text == action.text:
            return True
    return False


def rules_of(history: list[Run], step: claims.Step, visit: object) -> list[int]:
    fired: set[int] = set()
    for action in step.actions:
        fired |= {1} if consecutive(history, action) else set()
        fired |= {6} if no_progress(history, visit, action) else set()
        history.append((action, visit))
    whole = bool(step.actions)
    chains = [action.chain for action in step.actions]
    shells = all(action.is_shell for action in step.actions)
    if whole and shells and all(chain and set(chain) == {claims.Link.NOOP} for chain in chains):
        fired.add(2)
    if (
        whole
        and shells
        and all(claims.Link.CONSTANT_PRINT in chain and claims.Link.OTHER not in chain for chain in chains)
    ):
        fired.add(3)
    if whole and all(action.script and claims.Statement.OTHER not in action.script for action in step.actions):
        fired.add(4)
    if not whole and not step.is_final and not step.excused:
        fired.add(5)
    return sorted(fired)


@given(TRAJECTORIES)
@settings(max_examples=400, deadline=None)
def test_gamma_is_what_the_lean_definitions_say(record: list[dict[str, object]]) -> None:
    steps = read_trajectory(record, "steps")
    judged = turns(steps, ActionReader())
    history: list[Run] = []
    expected = [
        rules_of(history, step, (turn.stage, turn.visit))
        for step, turn in zip(claimed_steps(judged), judged, strict=True)
    ]
    assert [list(row.rules) for row in gamma(steps)] == expected
