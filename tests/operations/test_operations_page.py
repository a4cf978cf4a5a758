"""`docs/operations.md` computes what it claims and names settings that exist."""

from __future__ import annotations

import math
import re
from itertools import pairwise

from services.runtime.settings import describe
from tests.operations.dockerfiles import DOCKERFILES, ROOT

PAGE = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")


def engines(candidates_a_minute: float, check_s: float) -> int:
    """At 80% busy."""
    return math.ceil(round(candidates_a_minute * check_s / 60 / 0.8, 6))


def test_the_table_of_engines_is_the_formula() -> None:
    rows = re.findall(r"^\| (\d+) \| (\d+) \| (\d+) \| (\d+) \| (\d+) \|$", PAGE, re.MULTILINE)
    assert len(rows) == 4
    for rate, *cells in rows:
        assert [int(cell) for cell in cells] == [engines(int(rate), check_s) for check_s in (1, 5, 20, 60)]


def test_the_last_row_is_the_load_to_plan_for() -> None:
    assert round(50 * 1024 / 12) == 4267


def test_the_example_of_a_burst_is_the_formula() -> None:
    assert re.search(r"needs 98 engines for a share of 43%, 228 for all", PAGE.replace("\n", " "))
    assert round(0.43 * 1024 * 20 / 90) == 98
    assert math.ceil(1024 * 20 / 90) == 228


def test_every_setting_that_it_names_exists() -> None:
    known = {variable for variable, *_ in describe()} | {"LEAN_REWARD_CONFIG"}
    named = {name for name in re.findall(r"LEAN_REWARD_[A-Z_]+", PAGE) if not name.endswith("_")}
    assert named
    assert named <= known


def test_every_image_is_listed() -> None:
    listed = set(re.findall(r"^\| `(docker/[\w-]+)` \|", PAGE, re.MULTILINE))
    assert listed == {str(path.parent.relative_to(ROOT)) for path in DOCKERFILES}


def test_links_within_the_page_lead_somewhere() -> None:
    anchors = {heading.lower().replace(" ", "-") for heading in re.findall(r"^## (.+)$", PAGE, re.MULTILINE)}
    runbook = (ROOT / "docs" / "runbook.md").read_text(encoding="utf-8")
    links = re.findall(r"\]\(#([\w-]+)\)", PAGE) + re.findall(r"operations\.md#([\w-]+)", runbook)
    assert set(links) <= anchors


def test_sizes_grow_with_load_and_with_check_time() -> None:
    for rate in (100, 500, 1000):
        sizes = [engines(rate, check_s) for check_s in (1, 5, 20, 60)]
        assert all(small < large for small, large in pairwise(sizes))
