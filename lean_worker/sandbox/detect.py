"""Which tiers of the sandbox really hold on this machine: each is tried with a child that ought to fail."""

from __future__ import annotations

import functools
import shutil
import subprocess
import tempfile
from pathlib import Path

from lean_worker.sandbox import landlock
from lean_worker.sandbox.confine import confine
from lean_worker.sandbox.policy import MIB, Confinement, Limits, SandboxUnavailable, Tier

_TRIAL_LIMITS = Limits(memory_bytes=512 * MIB, cpu_s=10)
_TRIAL_S = 20.0


def _run(tier: Tier, command: list[str]) -> subprocess.CompletedProcess[bytes]:
    with confine(tier, command, Confinement(_TRIAL_LIMITS, Path("/usr"))) as confined:
        return subprocess.run(
            confined.argv,
            pass_fds=confined.pass_fds,
            env=confined.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_TRIAL_S,
            start_new_session=True,
            check=False,
        )


@functools.cache
def fault(tier: Tier) -> str | None:
    """Why `tier` does not hold here, or None when a trial child ran and could not read a file outside.

    The answer is kept for the life of the process: a machine does not change its kernel.
    """
    if tier is Tier.LIMITS:
        return None
    if tier is Tier.LANDLOCK and landlock.abi() == 0:
        return "the kernel has no Landlock"
    true, cat = shutil.which("true", path="/usr/bin:/bin"), shutil.which("cat", path="/usr/bin:/bin")
    if true is None or cat is None:
        return "no `true` and `cat` in /usr/bin to try it with"
    with tempfile.NamedTemporaryFile(prefix="lean-sandbox-trial-") as secret:
        secret.write(b"secret")
        secret.flush()
        try:
            works = _run(tier, [true])
            if works.returncode != 0:
                return works.stderr.decode(errors="replace").strip() or f"the trial exited with {works.returncode}"
            if b"secret" in _run(tier, [cat, secret.name]).stdout:
                return "a trial child could read a file outside the sandbox"
        except SandboxUnavailable as error:
            return str(error)
        except (OSError, subprocess.TimeoutExpired) as error:
            return f"the trial failed: {error}"
    return None


def usable() -> list[Tier]:
    """The tiers that hold here, strongest first. Starts a few short children the first time."""
    return [tier for tier in Tier if fault(tier) is None]


def choose(wanted: str) -> Tier:
    """The tier to run in: `auto` is the strongest that holds; a tier's name insists on it; `off` is `Tier.LIMITS`.

    Raises:
        SandboxUnavailable: what was wanted does not hold here. `auto` never falls back to limits alone.
    """
    if wanted == "off":
        return Tier.LIMITS
    tried = [Tier.BUBBLEWRAP, Tier.LANDLOCK] if wanted == "auto" else [Tier(wanted)]
    faults = {tier: fault(tier) for tier in tried}
    for tier, why in faults.items():
        if why is None:
            return tier
    reasons = "; ".join(f"{tier}: {why}" for tier, why in faults.items())
    raise SandboxUnavailable(
        f"no sandbox for the native Lean ({reasons}). Candidates are hostile programs: fix this, or run without a "
        "sandbox on your own responsibility with LEAN_REWARD_REPL_SANDBOX=off"
    )
