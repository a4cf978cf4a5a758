"""`make audit`: known vulnerabilities of everything that requirements.lock pins, by pip-audit.

    python .ci/audit.py .test-venvs/supply/bin/pip-audit

pip-audit ends well when its advisory service knows none of the packages, as behind a mirror that serves packages alone.
That is no clean bill, so here it has an exit status of its own.

Exit status: 0 every package was looked up and none is vulnerable, 1 some are, 3 some could not be looked up, 4
pip-audit failed.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import Any

CLEAN, VULNERABLE, UNKNOWN, FAILED = 0, 1, 3, 4
_NAMED = 5


def judge(dependencies: Sequence[Mapping[str, Any]]) -> tuple[int, list[str]]:
    """The exit status and what to print, from the `dependencies` of pip-audit's JSON."""
    skipped = [str(each["name"]) for each in dependencies if "skip_reason" in each]
    lines = [
        f"{each['name']} {each['version']}: {fault['id']}, mended in {', '.join(fault['fix_versions']) or 'no version'}"
        for each in dependencies
        for fault in each.get("vulns", ())
    ]
    looked_up = len(dependencies) - len(skipped)
    lines.append(f"{looked_up} of {len(dependencies)} packages were looked up, {len(lines)} vulnerabilities are known")
    if skipped:
        named = ", ".join(skipped[:_NAMED]) + (" ..." if len(skipped) > _NAMED else "")
        lines.append(f"not looked up, because the advisory service did not know or answer: {named}")
    if len(lines) > 1 + bool(skipped):
        return VULNERABLE, lines
    return (UNKNOWN if skipped or not dependencies else CLEAN), lines


def main() -> None:
    command = [sys.argv[1], "--requirement", "requirements.lock", "--no-deps", "--disable-pip", "--format", "json"]
    run = subprocess.run([*command, "--progress-spinner", "off"], capture_output=True, text=True, check=False)
    try:
        dependencies = json.loads(run.stdout)["dependencies"]
    except (ValueError, KeyError):
        print(f"pip-audit failed with status {run.returncode}:\n{run.stderr[-2000:]}", file=sys.stderr)
        sys.exit(FAILED)
    status, lines = judge(dependencies)
    print("\n".join(lines))
    sys.exit(status)


if __name__ == "__main__":
    main()
