"""A tiny npm registry on a local port, and tarballs for it."""

from __future__ import annotations

import gzip
import io
import json
import tarfile
import threading
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


def tarball(files: Mapping[str, bytes | tarfile.TarInfo]) -> bytes:
    """A gzipped tar of plain files; a `TarInfo` value goes in as it is, for entries that an honest package lacks."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for name, content in files.items():
            if isinstance(content, tarfile.TarInfo):
                archive.addfile(content)
                continue
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return gzip.compress(buffer.getvalue(), mtime=0)  # the same bytes every time


class Registry:
    """Serves one package; `served` is what it sends for the tarball, which need not be what it announces."""

    def __init__(self, name: str, version: str, integrity: str, served: bytes) -> None:
        self.served = served
        self.status = 200
        self.downloads = 0
        self.stall = threading.Event()
        self.stall.set()
        self.asked = threading.Event()
        registry = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                if not self.path.endswith(".tgz"):
                    dist = {"integrity": integrity, "tarball": f"{registry.url}/{name}-{version}.tgz"}
                    body = json.dumps(
                        {
                            "name": name,
                            "dist-tags": {"latest": version},
                            "versions": {version: {"name": name, "version": version, "dist": dist}},
                        }
                    ).encode()
                else:
                    registry.downloads += 1
                    registry.asked.set()
                    registry.stall.wait(30)
                    body = registry.served
                self.send_response(registry.status)
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self.stall.set()
        self._server.shutdown()
        self._server.server_close()
