"""API keys: who is let in, and by which of the accepted spellings."""

from __future__ import annotations

import base64
import hashlib

import pytest

from services.runtime.auth import ANONYMOUS, ApiKeys, KeysError


def _digest(key: str) -> str:
    return hashlib.sha256(key.encode()).hexdigest()


KEYS = ApiKeys.parse(f"alpha:{_digest('k-alpha')}, beta:{_digest('k-beta')}")


def _basic(user: str, password: str) -> str:
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


@pytest.mark.parametrize(
    ("header", "name"),
    [
        ("Bearer k-alpha", "alpha"),
        ("bearer k-beta", "beta"),
        ("k-beta", "beta"),
        (_basic("k-alpha", ""), "alpha"),
        (_basic("slime", "k-beta"), "beta"),
        (None, None),
        ("", None),
        ("Bearer", None),
        ("Bearer k-gamma", None),
        ("Basic !!!", None),
        ("Digest k-alpha", None),
        ("Bearer k-alpha k-beta", None),
        (f"Bearer {_digest('k-alpha')}", None),
    ],
)
def test_a_key_is_known_in_every_accepted_spelling_and_no_other(header: str | None, name: str | None) -> None:
    assert KEYS.identify(header) == name


@pytest.mark.parametrize("header", ["Basic \xe9", "Basic =", "Bearer \xff", "\xe9"])
def test_what_is_no_key_at_all_is_nobodys(header: str) -> None:
    assert KEYS.identify(header) is None


def test_a_key_may_have_any_character_that_its_bytes_can_carry() -> None:
    keys = ApiKeys.parse(f"a:{_digest('clé')}")
    assert keys.identify("Bearer " + "clé".encode().decode("latin-1")) == "a"


def test_without_keys_everybody_is_anonymous() -> None:
    assert not ApiKeys.parse("").required
    assert ApiKeys.parse(" ").identify(None) == ANONYMOUS


def test_a_name_has_its_old_and_its_new_key_while_they_are_exchanged() -> None:
    keys = ApiKeys.parse(f"a:{_digest('old')}, a:{_digest('new')}, b:{_digest('other')}")
    assert [keys.identify(f"Bearer {key}") for key in ("old", "new", "other", "none")] == ["a", "a", "b", None]
    assert keys.names == {"a", "b"}


@pytest.mark.parametrize(
    "text",
    [
        " , ",
        "secret-without-name",
        "a:zz",
        f"a b:{_digest('x')}",
        f"a:{_digest('x')},b:{_digest('x')}",
        f"anonymous:{_digest('x')}",
    ],
)
def test_a_malformed_setting_is_an_error_that_quotes_nothing(text: str) -> None:
    with pytest.raises(KeysError) as error:
        ApiKeys.parse(text)
    assert text not in str(error.value)
