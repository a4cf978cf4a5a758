"""API keys: kept as SHA-256 digests, compared in constant time.

The setting `gateway.keys` lists `NAME:DIGEST` separated by commas. The name is what logs, metrics and the ownership of
batch ids use; the key itself is known to its holder alone (`printf %s KEY | sha256sum` gives the digest). A key should
be long and random: a fast hash is right for such a key, and for no other. A name may have several keys: a new one
beside the old, until everybody uses it.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
from dataclasses import dataclass

ANONYMOUS = "anonymous"
_WIRE = "latin-1"  # gives the bytes of a header back as they came
_ENTRY = re.compile(r"([A-Za-z0-9_-]{1,64}):([0-9a-f]{64})")


class KeysError(ValueError):
    """The setting cannot be read; the message names the entry by its position and never quotes it."""


@dataclass(frozen=True, slots=True)
class ApiKeys:
    """The known keys: (name, digest). Without any, everybody is `anonymous`."""

    digests: tuple[tuple[str, bytes], ...] = ()

    @classmethod
    def parse(cls, text: str) -> ApiKeys:
        """Raises `KeysError`."""
        owners: dict[bytes, str] = {}
        for position, part in enumerate(filter(None, (part.strip() for part in text.split(","))), 1):
            match = _ENTRY.fullmatch(part)
            if match is None:
                raise KeysError(
                    f"API key {position} is not NAME:DIGEST with a SHA-256 digest in lower-case hexadecimal"
                )
            name, digest = match.groups()
            if name == ANONYMOUS:
                raise KeysError(f"API key {position} has the name of those without a key")
            if owners.setdefault(bytes.fromhex(digest), name) != name:
                raise KeysError(f"API key {position} is another name's too")
        if text.strip() and not owners:
            raise KeysError("the setting of API keys holds none; leave it empty when no key is needed")
        return cls(tuple((name, digest) for digest, name in owners.items()))

    @property
    def names(self) -> frozenset[str]:
        """Of everybody who may call."""
        return frozenset(name for name, _ in self.digests) or frozenset((ANONYMOUS,))

    @property
    def required(self) -> bool:
        return bool(self.digests)

    def identify(self, authorization: str | None) -> str | None:
        """The name of the caller, or None when the header holds no valid key.

        Accepted: `Bearer KEY`, the bare key, and Basic credentials that carry the key as user name or as password
        (a URL is the only place where some trainers can put it).
        """
        if not self.digests:
            return ANONYMOUS
        found: str | None = None
        for key in _presented(authorization):
            digest = hashlib.sha256(key).digest()
            for name, known in self.digests:  # every one, so that the time does not tell which
                if hmac.compare_digest(digest, known):
                    found = name
        return found


def _presented(authorization: str | None) -> list[bytes]:
    if not authorization:
        return []
    scheme, _, rest = authorization.strip().partition(" ")
    rest = rest.strip()
    if not rest:
        return [scheme.encode(_WIRE)]
    if scheme.lower() == "bearer":
        return [rest.encode(_WIRE)]
    if scheme.lower() == "basic":
        try:
            user, _, password = base64.b64decode(rest, validate=True).partition(b":")
        except ValueError:  # no Base64, or no ASCII
            return []
        return [part for part in (user, password) if part]
    return []
