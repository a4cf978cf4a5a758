"""The queue over TLS: a real redis-server, certificates made for the test, users of the deployment's ACL."""

from __future__ import annotations

import hashlib
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from queue_helpers import done, jobs, keys_of, read
from redis.exceptions import NoPermissionError

from services.queue import JobQueue, QueueUnavailable, connect

USERS = Path(__file__).parents[3] / "docker" / "redis" / "users.acl"
MISSING = [tool for tool in ("redis-server", "openssl") if shutil.which(tool) is None]
pytestmark = pytest.mark.skipif(bool(MISSING), reason=f"apt-get install {' '.join(MISSING)}")


def openssl(*arguments: str | Path) -> None:
    subprocess.run(["openssl", *map(str, arguments)], check=True, capture_output=True, timeout=60)


def make_ca(folder: Path, name: str) -> Path:
    certificate = folder / f"{name}.crt"
    openssl(
        *("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"),
        *("-subj", f"/CN={name}", "-keyout", folder / f"{name}.key", "-out", certificate),
    )
    return certificate


def make_certificate(folder: Path, ca: str, name: str, host: str) -> tuple[Path, Path]:
    key, request, certificate = (folder / f"{name}.{ending}" for ending in ("key", "csr", "crt"))
    names = folder / f"{name}.ext"
    names.write_text(f"subjectAltName = {host}\n")
    openssl(
        *("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"),
        *("-subj", f"/CN={name}", "-keyout", key, "-out", request),
    )
    openssl(
        *("x509", "-req", "-in", request, "-CA", folder / f"{ca}.crt", "-CAkey", folder / f"{ca}.key"),
        *("-CAcreateserial", "-days", "2", "-extfile", names, "-out", certificate),
    )
    return certificate, key


@dataclass(frozen=True)
class Secured:
    """A server that speaks only TLS and wants certificates of its clients; `folder` holds all of them."""

    folder: Path
    port: int

    def url(
        self, user: str = "gateway:g", host: str = "localhost", ca: str = "ca", client: str | None = "client"
    ) -> str:
        own = f"&ssl_certfile={self.folder / client}.crt&ssl_keyfile={self.folder / client}.key" if client else ""
        return f"rediss://{user}@{host}:{self.port}?ssl_ca_certs={self.folder / ca}.crt{own}"


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    folder = tmp_path_factory.mktemp("tls")
    make_ca(folder, "ca")
    make_ca(folder, "another")
    certificate, key = make_certificate(folder, "ca", "server", "DNS:localhost")
    make_certificate(folder, "ca", "client", "DNS:client")
    make_certificate(folder, "another", "stranger", "DNS:client")
    users = USERS.read_text()
    for mark, password in (("@GATEWAY@", "g"), ("@WORKER@", "w")):
        users = users.replace(mark, hashlib.sha256(password.encode()).hexdigest())
    (folder / "users.acl").write_text(users)
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    command = [
        *("redis-server", "--port", "0", "--tls-port", str(port), "--bind", "127.0.0.1", "--save", ""),
        *(
            "--tls-cert-file",
            str(certificate),
            "--tls-key-file",
            str(key),
            "--tls-ca-cert-file",
            str(folder / "ca.crt"),
        ),
        *("--tls-auth-clients", "yes", "--aclfile", str(folder / "users.acl"), "--dir", str(folder)),
    ]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        for _ in range(400):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            assert process.poll() is None, (folder / "log").read_text()
            time.sleep(0.05)
        yield Secured(folder, port)
    finally:
        process.terminate()
        process.wait(20)


async def test_a_job_passes_through_with_the_users_of_its_roles(secured: Secured) -> None:
    async with connect(secured.url()) as gateway, connect(secured.url("worker:w")) as worker:
        await JobQueue(gateway).submit("s", jobs("a"), home="h")
        claims = await JobQueue(worker).claim("w", 1, 1.0)
        assert keys_of(claims) == ["a"]
        await JobQueue(worker).complete(done(claims))
        assert [d.key for d in await read(JobQueue(gateway), "h", 1)] == ["a"]
        with pytest.raises(NoPermissionError):
            await worker.get("lean-reward:batch:alice:1")


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"ca": "another"}, "certificate verify failed"),
        ({"host": "127.0.0.1"}, "(?i)(hostname|ip address) mismatch"),
    ],
)
async def test_a_server_that_is_not_who_it_should_be_is_not_talked_to(
    secured: Secured, options: dict[str, str], why: str
) -> None:
    async with connect(secured.url(**options)) as redis:
        with pytest.raises(QueueUnavailable, match=why):
            await JobQueue(redis).stats()


@pytest.mark.parametrize("client", [None, "stranger"])
async def test_a_client_without_a_certificate_of_the_ca_is_refused(secured: Secured, client: str | None) -> None:
    async with connect(secured.url(client=client)) as redis:
        with pytest.raises(QueueUnavailable):
            await JobQueue(redis).stats()


async def test_nothing_is_served_in_the_clear(secured: Secured) -> None:
    async with connect(f"redis://gateway:g@localhost:{secured.port}") as redis:
        with pytest.raises(QueueUnavailable):
            await JobQueue(redis, call_limit_s=2.0).stats()


async def test_a_wrong_password_is_named(secured: Secured) -> None:
    async with connect(secured.url("gateway:wrong")) as redis:
        with pytest.raises(QueueUnavailable, match="invalid username-password pair"):
            await JobQueue(redis).stats()
