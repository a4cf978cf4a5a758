"""Turns a command into the command that runs it confined."""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

from lean_worker.sandbox import seccomp
from lean_worker.sandbox.policy import Confinement, SandboxUnavailable, Tier

_PACKAGES = Path(__file__).resolve().parents[2]
_BOOT = "import sys; sys.path.insert(0, sys.argv[1]); from lean_worker.sandbox.entry import main; main(sys.argv[2:])"
_SYSTEM = ("/usr", "/lib", "/lib64", "/lib32", "/bin", "/sbin")
_LOADER = ("/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/alternatives")
# Of /proc, a program without a pid namespace sees itself and the machine's size, never another process's environment.
_PROC = ("/proc/self", "/proc/meminfo", "/proc/cpuinfo", "/proc/stat", "/sys/devices/system/cpu")
_DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/urandom", "/dev/random")
_SCRATCH_INSIDE = "/tmp"  # noqa: S108 - inside the sandbox, where it is private


class Confined:
    """A command ready to be started: `argv`, the file descriptors that it inherits, and its private folder.

    `scratch` is the private folder's path as the confined program sees it; `scratch_outside` is the same folder for the
    worker, where it can see it. Close it once the process has started (descriptors) and again when it has ended
    (folder); use it as a context manager around the process's life.
    """

    def __init__(
        self,
        tier: Tier,
        argv: list[str],
        scratch: str,
        scratch_outside: Path | None,
        pass_fds: tuple[int, ...],
        environment: dict[str, str],
    ) -> None:
        self.tier = tier
        self.argv = argv
        self.scratch = scratch
        self.scratch_outside = scratch_outside
        self.pass_fds = pass_fds
        self.environment = environment

    def started(self) -> None:
        """The child has its descriptors: close ours."""
        for descriptor in self.pass_fds:
            os.close(descriptor)
        self.pass_fds = ()

    def close(self) -> None:
        """The child is gone: remove what it left in its private folder."""
        self.started()
        if self.scratch_outside is not None:
            shutil.rmtree(self.scratch_outside, ignore_errors=True)
            self.scratch_outside = None

    def __enter__(self) -> Confined:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def confine(tier: Tier, command: Sequence[str], confinement: Confinement) -> Confined:
    """Prepare `command` (its first word an absolute path) to run in `tier`. Start it in a session of its own.

    Raises:
        SandboxUnavailable: the tier's tool is missing.
    """
    if not Path(command[0]).is_absolute():
        raise ValueError(f"the confined program needs an absolute path, not {command[0]!r}")
    if tier is Tier.BUBBLEWRAP:
        return _in_namespaces(command, confinement)
    scratch = Path(tempfile.mkdtemp(prefix="lean-sandbox-"))
    policy = _policy(confinement, {**confinement.environment, "HOME": str(scratch), "TMPDIR": str(scratch)})
    if tier is Tier.LANDLOCK:
        policy["landlock"] = {
            "read": [*_SYSTEM, *_LOADER, *_PROC, *map(str, confinement.read_only), str(confinement.working_folder)],
            "write": [str(scratch)],
            "devices": list(_DEVICES),
        }
    return Confined(tier, _entry(policy, command), str(scratch), scratch, (), {})


def _policy(confinement: Confinement, environment: dict[str, str]) -> dict[str, object]:
    return {
        "limits": dataclasses.asdict(confinement.limits),
        "environment": environment,
        "folder": str(confinement.working_folder),
        "parent": os.getpid(),
    }


def _entry(policy: dict[str, object], command: Sequence[str]) -> list[str]:
    return [sys.executable, "-I", "-S", "-c", _BOOT, str(_PACKAGES), json.dumps(policy), *command]


def _in_namespaces(command: Sequence[str], confinement: Confinement) -> Confined:
    bubblewrap = shutil.which("bwrap")
    if bubblewrap is None:
        raise SandboxUnavailable("bubblewrap is not installed (Debian: apt-get install bubblewrap)")
    # A file and not a pipe: bubblewrap reads the filter after it has forked, when nobody feeds a pipe any more.
    filter_file = os.memfd_create("lean-sandbox-filter", 0)
    os.write(filter_file, seccomp.program())
    os.lseek(filter_file, 0, os.SEEK_SET)
    argv = [bubblewrap, "--unshare-all", "--unshare-user", "--die-with-parent", "--new-session"]
    argv += ["--cap-drop", "ALL", "--uid", "65534", "--gid", "65534", "--hostname", "sandbox", "--clearenv"]
    argv += ["--seccomp", str(filter_file)]
    for folder in _SYSTEM:
        if Path(folder).is_symlink():
            argv += ["--symlink", os.readlink(folder), folder]
        else:
            argv += ["--ro-bind-try", folder, folder]
    for path in _LOADER:
        argv += ["--ro-bind-try", path, path]
    argv += ["--proc", "/proc", "--dev", "/dev", "--remount-ro", "/dev"]
    argv += ["--size", str(confinement.scratch_bytes), "--tmpfs", _SCRATCH_INSIDE]
    for bound in sorted({*confinement.read_only, confinement.working_folder}):
        if not any(bound.is_relative_to(folder) for folder in _SYSTEM):
            argv += ["--ro-bind", str(bound), str(bound)]
    argv += ["--remount-ro", "/"]  # the root itself is a file system in memory without a bound
    for name, value in {**confinement.environment, "HOME": _SCRATCH_INSIDE, "TMPDIR": _SCRATCH_INSIDE}.items():
        argv += ["--setenv", name, value]
    argv += ["--chdir", str(confinement.working_folder), "--", *command]
    # The limits hold for bubblewrap and for everything below it.
    return Confined(Tier.BUBBLEWRAP, _entry(_policy(confinement, {}), argv), _SCRATCH_INSIDE, None, (filter_file,), {})
