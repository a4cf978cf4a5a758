"""`make test-trainers`: the contract tests with the real packages, each in its own environment, against a live server.

`python tests/trainers/run.py [NAME...]` installs what is missing (`environments.py`), starts the whole platform with
the embedded Lean for each (`lean-reward up`), and runs its `contract_*.py` with the environment's own Python. Exit
status: 0 all passed, 1 some failed.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from environments import ENVIRONMENTS, ROOT, ensure

LEAN_REWARD = Path(sys.executable).with_name("lean-reward")


def run(name: str) -> bool:
    python = ensure(name)
    tests = [f"tests/trainers/{file}" for file in ENVIRONMENTS[name].tests]
    command = [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", *tests]
    variables = {**os.environ, "TOKENIZERS_PARALLELISM": "false", "HF_HUB_OFFLINE": "1", "CUDA_VISIBLE_DEVICES": ""}
    ended = subprocess.run([LEAN_REWARD, "up", "--port", "0", "--", *command], cwd=ROOT, env=variables, check=False)
    return ended.returncode == 0


if __name__ == "__main__":
    failed = [name for name in (sys.argv[1:] or ENVIRONMENTS) if not run(name)]
    if failed:
        print(f"failed: {', '.join(failed)}", file=sys.stderr)
    raise SystemExit(bool(failed))
