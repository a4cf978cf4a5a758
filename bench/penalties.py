"""How fast the six penalty rules read and judge trajectories, and whether the cost is linear in the steps.

    python bench/penalties.py [--json]

Commands are realistic and distinct (each carries its own path, line or pattern), so the cache of parsed commands helps
only as much as it does in training. CPU time of one core, the best of several runs: the figure wanted is the code's
cost, not its neighbours'.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from typing import Any

from services.process.penalties import gamma
from services.process.trajectories import read_trajectory

TEMPLATES = (
    "ls -la src/module_{i}",
    "cd /testbed && python -m pytest tests/test_{i}.py -x -q 2>&1 | tail -20",
    "grep -rn 'def handle_{i}' --include='*.py' . | head -50",
    "sed -n '{i},{j}p' src/core/parser.py",
    "cat > /tmp/r_{i}.py <<'EOF'\nimport core\nfor n in range({i}):\n  print(core.f(n))\nEOF\npython /tmp/r_{i}.py",
    "find . -name '*_{i}.py' -not -path './node_modules/*' -exec grep -l 'TODO' {{}} \\;",
    "git -C /testbed diff HEAD~{i} --stat && git log --oneline -5",
    "python3 -c \"import core; print(core.VERSION, core.parse('{i}'))\"",
    "sed -i 's/return {i}/return {j}/' src/core/parser.py && git diff src/core/parser.py",
    'for f in a b c; do echo "== $f {i}"; head -n 5 "$f.txt"; done',
    "if [ -f build/{i}.log ]; then tail -n 100 build/{i}.log | grep -E 'error|warning'; fi",
    "curl -s http://localhost:8{i}/health | jq .status",
)


def trajectory(steps: int) -> list[dict[str, Any]]:
    """A run of ``steps`` turns over the templates, in our own format."""
    return [
        {
            "thought": "Look at the next part.",
            "tool_calls": [
                {"name": "bash", "arguments": {"command": TEMPLATES[i % len(TEMPLATES)].format(i=i, j=i + 40)}}
            ],
            "observation": "ok\n" * 20,
            "stage": f"stage {i // 40}",
        }
        for i in range(steps)
    ]


def seconds(run: Callable[[], object], repeats: int = 7) -> float:
    best = float("inf")
    for _ in range(repeats):
        start = time.process_time()
        run()
        best = min(best, time.process_time() - start)
    return best


def _cost(record: list[dict[str, Any]]) -> float:
    return seconds(lambda: gamma(read_trajectory(record)))


def main() -> None:
    times = {n: _cost(trajectory(n)) for n in (200, 2_000)}
    result = {
        "steps_per_s": round(2_000 / times[2_000]),
        "seconds_200": round(times[200], 4),
        "seconds_2000": round(times[2_000], 4),
        "ratio_2000_to_200": round(times[2_000] / times[200], 2),
    }
    if "--json" in sys.argv[1:]:
        print(json.dumps(result))
        return
    for name, value in result.items():
        print(f"{name:20} {value}")


if __name__ == "__main__":
    main()
