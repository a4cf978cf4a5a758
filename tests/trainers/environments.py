"""The virtual environments in which the contract tests meet the real packages.

`python tests/trainers/environments.py [NAME...]` makes those that are missing or whose list has changed, under
`.test-venvs/`. Every trainer pins its own versions, so each has an environment of its own, apart from the project's.
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
import venv
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / ".test-venvs"

_TORCH = ("torch==2.13.0",)  # first and alone: what depends on it then finds it there
_CLIENT = ("httpx", "pydantic", "numpy", "pytest", "pytest-asyncio")


@dataclass(frozen=True, slots=True)
class Environment:
    """`steps`: the arguments of one `pip install` after the other. `tests`: files of `tests/trainers`."""

    steps: tuple[tuple[str, ...], ...]
    tests: tuple[str, ...]

    @property
    def digest(self) -> str:
        return hashlib.sha256(repr(self.steps).encode()).hexdigest()


ENVIRONMENTS = {
    # On Python before 3.12 the client needs what `kimina_clients.py` does before it imports it.
    "kimina": Environment((("kimina-client==0.2.1", "pytest", "pytest-asyncio"),), ("contract_kimina.py",)),
    "verifiers": Environment((("verifiers==0.4.0", *_CLIENT),), ("contract_verifiers.py",)),
    "trl": Environment((_TORCH, ("trl==1.16.0", "transformers>=5.5.3", *_CLIENT)), ("contract_trl.py",)),
    "openrlhf": Environment(
        (
            _TORCH,
            (
                "transformers>=5.5.3",
                "ray",
                "aiohttp",
                "datasets",
                "accelerate",
                "peft",
                "requests",
                "tqdm",
                "pylatexenc",
                *_CLIENT,
            ),
            ("--no-deps", "openrlhf==0.11.2"),
        ),
        # slime is on no registry: its own call is replayed, with the same HTTP client.
        ("contract_openrlhf.py", "contract_slime.py"),
    ),
    "verl": Environment(
        (
            _TORCH,
            (
                *(
                    "numpy",
                    "aiohttp",
                    "ray",
                    "omegaconf",
                    "hydra-core",
                    "tensordict<=0.10",
                    "transformers>=5.5.3,<5.11",
                ),
                *("codetiming", "dill", "pandas", "pyarrow", "datasets", "torchdata", "accelerate", "peft", "Pillow"),
                *("pylatexenc", "sympy", "TransferQueue", "cachetools", "fastapi", "uvicorn", *_CLIENT),
            ),
            ("--no-deps", "verl==0.9.1"),
        ),
        ("contract_verl.py",),
    ),
}


def python_of(name: str) -> Path:
    return FOLDER / name / "bin" / "python"


def ensure(name: str) -> Path:
    """The interpreter of an environment, installed now if need be. Raises `subprocess.CalledProcessError`."""
    environment, python = ENVIRONMENTS[name], python_of(name)
    stamp = FOLDER / name / ".installed"
    if stamp.is_file() and stamp.read_text(encoding="utf-8") == environment.digest:
        return python
    venv.create(FOLDER / name, with_pip=True, clear=True)
    for step in environment.steps:
        subprocess.run([python, "-m", "pip", "install", "--quiet", *step], check=True)
    # The project's own code, without its dependencies: those of the trainer's image must do.
    subprocess.run([python, "-m", "pip", "install", "--quiet", "--no-deps", "--editable", ROOT], check=True)
    stamp.write_text(environment.digest, encoding="utf-8")
    return python


if __name__ == "__main__":
    for chosen in sys.argv[1:] or ENVIRONMENTS:
        print(f"{chosen}: {ensure(chosen)}", flush=True)
