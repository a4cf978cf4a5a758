"""The shell rules against a real bash: what they call constant depends on no machine and leaves nothing behind."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from services.process.penalties import gamma
from services.process.shell import parse
from services.process.trajectories import read_trajectory
from tests.services.process.turns import record

BASH = shutil.which("bash")
pytestmark = pytest.mark.skipif(BASH is None, reason="needs bash")

# Harmless pieces only: every text that they make is run.
PIECES = st.sampled_from([
    "echo", "printf", "cat", "true", "exit", "exit 0", "sleep 0", "ls", "pwd", "tee out", "wc -c", "hi", "a b",
    "'a b'", '"a  b"', '"$HOME"', "$HOME", "$$", "$(pwd)", "`pwd`", "*", "?", "~", "[a-z]", "{a,b}", "{1..3}", "\\*",
    "\\$HOME", "'*'", '"*"', "$'x\\ty'", '$"x"', "'%s\\n'", "-n", "-e", "<<'E'\nbody $HOME\nE\n",
    "<<E\nbody $HOME\nE\n", "<<E\nplain\nE\n", "<<<'word'", "<<<$HOME", "> out", ">> out", ">&2", "2>&1",
    "> /dev/null", "2>/dev/null", ";", "&&", "||", "|", "\n", "#", "(", ")", "{", "}", "!", "if true; then", "else",
    "fi", "for x in 1 2; do", "done", "X=1", "$X", "bash -c 'echo hi'", 'bash -c "echo $HOME"', "eval 'echo hi'",
    "echo() { pwd; }", "time", "command", "env",
])  # fmt: skip
SCRIPTS = st.lists(PIECES, min_size=1, max_size=9).map(" ".join)


def run(script: str, place: Path) -> tuple[bytes, set[str]]:
    """What bash prints in ``place``, and the files that are there afterwards."""
    home = place / "home"
    done = subprocess.run(
        [str(BASH), "-c", script],
        cwd=place,
        env={"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(home)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=10,
    )
    return done.stdout, {p.name for p in place.iterdir()}


@pytest.fixture
def places(tmp_path: Path) -> tuple[Path, Path]:
    """Two working directories in which anything that looks finds something else."""
    for name, files in (("one", ["a", "home"]), ("other", ["b", "c", "home"])):
        (tmp_path / name).mkdir()
        for file in files:
            (tmp_path / name / file).touch()
    return tmp_path / "one", tmp_path / "other"


@given(SCRIPTS)
@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_what_is_called_constant_is_the_same_on_every_machine(places: tuple[Path, Path], script: str) -> None:
    rules = set(gamma(read_trajectory(record(script)))[0].rules)
    if not rules & {2, 3, 4}:
        return
    before = [{p.name for p in place.iterdir()} for place in places]
    (one, left_one), (other, left_other) = (run(script, place) for place in places)
    assert one == other
    assert [left_one, left_other] == before
    if rules == {2} and "2>&1" not in script:  # an `exit x` complains
        assert one == b""


@given(SCRIPTS, st.sampled_from([(" ", "  "), (";", "\n"), ("'a b'", '"a b"'), ("hi", "'hi'"), ("> ", ">")]))
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_equal_normal_forms_mean_equal_output(places: tuple[Path, Path], script: str, change: tuple[str, str]) -> None:
    other = script.replace(*change)
    mine, theirs = parse(script), parse(other)
    if other == script or mine is None or theirs is None or mine.text != theirs.text:
        return
    if "$$" in script or "2>&1" in script:  # a process number, and line numbers in complaints, do differ
        return
    assert run(script, places[0])[0] == run(other, places[0])[0]
