"""The recorder: batches that have their answer, as Parquet files in a folder, beside the answers' path.

The event loop only puts a finished batch on a queue; a thread makes the rows and writes a file every `flush_s` seconds
or `_FILE_ROWS` candidates. A file is whole or absent. `close` writes what is left, so that SIGTERM loses nothing; a
process that is killed loses what it took in since its last file. What finds the buffer full (the disk is too slow or
fails) is dropped, counted and logged: an answer never waits for a recording.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import queue
import secrets
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from reward_gateway.batches.state import BatchState, Cut
from reward_gateway.studies.files import NEEDS, write_rows
from reward_gateway.studies.rows import Finished, Names, rows
from services.runtime import metrics
from services.runtime.logging import get_logger
from services.runtime.settings import RecorderSettings, SettingsError

_FILE_ROWS = 65_536
_REST_EVERY, _REST_S = 64, 0.001
_SECRET = ".secret"  # noqa: S105 - a file name


class Recorder:
    """One for each gateway process; `take` is for the event loop's thread. Close it, or what is left is lost.

    Raises `SettingsError`: pyarrow is not installed, or the folder cannot be used.
    """

    def __init__(self, settings: RecorderSettings, folder: Path, home: str) -> None:
        try:
            import pyarrow.parquet  # noqa: F401
        except ImportError:
            raise SettingsError(f"recorder.folder {NEEDS}") from None
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._names = Names(_secret(folder), openly=settings.code)
        except OSError as error:
            raise SettingsError(f"recorder.folder: {error}") from None
        self._folder, self._home = folder, home
        self._limit, self._flush_s = settings.buffer, settings.flush_s
        self._finished: queue.SimpleQueue[Finished | None] = queue.SimpleQueue()
        self._held = 0
        self._lock = threading.Lock()
        self._files = 0
        self._thread = threading.Thread(target=self._run, name="recorder", daemon=True)
        self._thread.start()

    def take(self, batch_id: str, state: BatchState, cut: Cut, engines: int, received_at: float) -> None:
        """Record a batch that has its answer, soon; never waits and never raises."""
        count = len(state.candidates)
        with self._lock:
            full = self._held + count > self._limit
            self._held += 0 if full else count
        if full:
            metrics.RECORDINGS_LOST.labels("buffer").inc(count)
            get_logger().error("recording_lost", batch=batch_id, candidates=count, cause="buffer")
            return
        self._finished.put(Finished(batch_id, state, cut, engines, received_at))

    async def close(self) -> None:
        """Write everything that was taken in."""
        self._finished.put(None)
        await asyncio.to_thread(self._thread.join)

    def _run(self) -> None:
        pending: list[dict[str, Any]] = []
        due = time.monotonic() + self._flush_s
        while True:
            finished: Finished | None = None
            open_still = True
            with contextlib.suppress(queue.Empty):
                finished = self._finished.get(timeout=max(0.0, due - time.monotonic()))
                open_still = finished is not None
            if finished is not None:
                pending += self._rows(finished)
            if not open_still or len(pending) >= _FILE_ROWS or time.monotonic() >= due:
                pending = self._write(pending)
                due = time.monotonic() + self._flush_s
            if not open_still:
                self._lose(pending, "disk")
                return

    def _rows(self, finished: Finished) -> Sequence[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        try:
            for row in rows(finished, self._names):
                found.append(row)
                if len(found) % _REST_EVERY == 0:
                    time.sleep(_REST_S)  # leave the interpreter to the event loop
        except Exception:
            get_logger().exception("recording_failed", batch=finished.id)
            self._release(len(finished.state.candidates))
            metrics.RECORDINGS_LOST.labels("fault").inc(len(finished.state.candidates))
            return []
        return found

    def _write(self, pending: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """The rows that could not be written; they are tried again with the next ones."""
        if not pending:
            return []
        stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
        try:
            write_rows(self._folder / f"{stamp}-{self._home}-{self._files:06d}.parquet", pending)
        except OSError as error:
            get_logger().error("recording_not_written", folder=str(self._folder), rows=len(pending), error=str(error))
            return pending
        self._files += 1
        metrics.RECORDED.inc(len(pending))
        self._release(len(pending))
        return []

    def _lose(self, pending: Sequence[dict[str, Any]], cause: str) -> None:
        if pending:
            metrics.RECORDINGS_LOST.labels(cause).inc(len(pending))
            get_logger().error("recording_lost", candidates=len(pending), cause=cause)

    def _release(self, count: int) -> None:
        with self._lock:
            self._held -= count


def _secret(folder: Path) -> bytes:
    """The folder's secret, made by the first gateway that records there. Raises `OSError`."""
    path = folder / _SECRET
    fresh = folder / f"{_SECRET}.{secrets.token_hex(4)}"
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(secrets.token_bytes(32))
        with contextlib.suppress(FileExistsError):
            os.link(fresh, path)  # whole from the start, whoever else does the same
    finally:
        fresh.unlink()
    return path.read_bytes()


def make_recorder(settings: RecorderSettings, home: str) -> Recorder | None:
    """None where nothing is to be recorded. Raises `SettingsError`."""
    return None if settings.folder is None else Recorder(settings, settings.folder, home)
