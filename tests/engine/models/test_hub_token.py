"""The token for gated models: in the system's keyring where there is one, else in huggingface_hub's own place; never in both."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from huggingface_hub import constants, get_token, hf_api

from app.base.trouble import Trouble
from app.engine.models import hub, hub_token
from app.engine.models.model import Source
from tests.support.hub import Hub, serving

REPO = "maker/gated"
TOKEN = "hf_thisisright"


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Hub]:
    for name in hub_token.NAMES:
        monkeypatch.delenv(name, raising=False)
    hub_token.take_from_environment.cache_clear()
    monkeypatch.setattr(constants, "HF_TOKEN_PATH", str(tmp_path / "token"))
    monkeypatch.setattr(constants, "HF_STORED_TOKENS_PATH", str(tmp_path / "stored_tokens"))
    with serving(Hub({REPO: {"config.json": b"{}"}}, gated={REPO}, tokens={TOKEN: {REPO}})) as hub:
        monkeypatch.setattr(constants, "ENDPOINT", hub.endpoint)
        monkeypatch.setattr(hf_api.api, "endpoint", hub.endpoint)
        hub_token._read_keyring.cache_clear()
        yield hub
    hub_token._read_keyring.cache_clear()


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch) -> dict[tuple[str, str], str]:
    """What lies in a keyring that is this test's own."""
    keyring = pytest.importorskip("keyring", reason="one of the extras")
    there: dict[tuple[str, str], str] = {}

    class Own(keyring.backend.KeyringBackend):  # type: ignore[name-defined]
        priority = 5

        def get_password(self, service: str, username: str) -> str | None:
            return there.get((service, username))

        def set_password(self, service: str, username: str, password: str) -> None:
            if there.get(("locked", "")):
                raise keyring.errors.PasswordSetError("locked")
            there[service, username] = password

        def delete_password(self, service: str, username: str) -> None:
            del there[service, username]

    before = keyring.get_keyring()
    monkeypatch.setattr(keyring.core, "_keyring_backend", Own())
    assert keyring.get_keyring() is not before
    return there


def opens(served: Hub) -> Any:
    return hub.list_files(Source(REPO, ("*.json",), 1), served.endpoint)


def test_it_lies_in_the_keyring_and_opens_the_gate(served: Hub, kept: dict[tuple[str, str], str]) -> None:
    assert not hub_token.has_token()
    hub_token.store(f" {TOKEN}\n")
    assert kept == {(hub_token.SERVICE, hub_token.ACCOUNT): TOKEN} and get_token() is None
    assert not Path(constants.HF_TOKEN_PATH).exists() and not Path(constants.HF_STORED_TOKENS_PATH).exists()
    assert hub_token.has_token() and opens(served).files
    hub_token.forget()
    assert not kept and not hub_token.has_token()


def test_a_wrong_one_is_kept_nowhere(served: Hub, kept: dict[tuple[str, str], str]) -> None:
    for wrong, key in (("hf_thisiswrong", "token.wrong"), ("api_org_whatever", "token.organisation")):
        with pytest.raises(Trouble) as told:
            hub_token.store(wrong)
        assert told.value.sentence.key == key and told.value.__cause__ is None
    assert not kept and not hub_token.has_token()


def test_a_locked_keyring_gives_way_to_the_hubs_own_place(served: Hub, kept: dict[tuple[str, str], str]) -> None:
    kept["locked", ""] = "yes"
    hub_token.store(TOKEN)
    assert get_token() == TOKEN == hub_token.get_token()
    assert (hub_token.SERVICE, hub_token.ACCOUNT) not in kept
    hub_token.forget()
    assert hub_token.get_token() is None


def test_without_a_keyring_it_lies_where_the_hub_keeps_it(served: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hub_token, "find_keyring", lambda: None)
    hub_token.store(TOKEN)
    assert Path(constants.HF_TOKEN_PATH).read_text() == TOKEN and hub_token.get_token() == TOKEN
    hub_token.forget()
    assert not hub_token.has_token()
