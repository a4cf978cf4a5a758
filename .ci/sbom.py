"""`make sbom`: a CycloneDX bill of materials of what the platform runs on.

    python .ci/sbom.py .test-venvs/supply/bin/cyclonedx-py build/sbom.cdx.json

cyclonedx-py writes what requirements.lock pins; the embedded Lean, which `lean-reward lean install` fetches from npm,
is added with the digest that the installer demands.
"""

from __future__ import annotations

import base64
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from lean_worker.engines.embedded import patch


def embedded_lean() -> dict[str, Any]:
    """The component of the npm package."""
    algorithm, _, digest = patch.INTEGRITY.partition("-")
    return {
        "type": "library",
        "bom-ref": f"npm-{patch.PACKAGE}",
        "name": patch.PACKAGE,
        "version": patch.VERSION,
        "purl": f"pkg:npm/{patch.PACKAGE}@{patch.VERSION}",
        "hashes": [{"alg": algorithm.upper().replace("SHA", "SHA-"), "content": base64.b64decode(digest).hex()}],
        "description": "Lean 4 for WebAssembly, patched by the installer",
    }


def main() -> None:
    tool, output = sys.argv[1], Path(sys.argv[2])
    command = [tool, "requirements", "requirements.lock", "--pyproject", "pyproject.toml", "--output-reproducible"]
    made = subprocess.run([*command, "--output-format", "JSON"], check=True, capture_output=True, text=True).stdout
    bill = json.loads(made)
    bill["components"].append(embedded_lean())
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(json.dumps(bill, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    print(f"{len(bill['components'])} components in {output}")


if __name__ == "__main__":
    main()
