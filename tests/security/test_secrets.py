"""Keys come from the environment or from files, and nothing that they are is written down."""

from pathlib import Path

import pytest

from schemas.routes import Route
from tasks.boards.access import TOKEN, read_access, write_access
from tasks.engine.errors import ConfigError
from tasks.engine.ledger import clean
from tasks.engine.secrets import secret
from tasks.engine.store import Store
from tasks.providers.routes import key_of

ROUTE = Route(model="openai/m", provider="acme", api_base="https://example.org/v1", key_env="ACME_API_KEY")


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("ACME_API_KEY", raising=False)
    path = tmp_path / "acme"
    path.write_text("of-the-file\n")
    monkeypatch.setenv("ACME_API_KEY_FILE", str(path))
    return path


@pytest.mark.usefixtures("file")
def test_a_key_comes_from_its_file_and_a_variable_comes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    assert key_of(ROUTE) == "of-the-file"
    monkeypatch.setenv("ACME_API_KEY", " of-the-variable ")
    assert key_of(ROUTE) == "of-the-variable"
    monkeypatch.setenv("ACME_API_KEY", "  ")
    assert key_of(ROUTE) == "of-the-file"


def test_without_either_both_ways_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ACME_API_KEY", raising=False)
    assert secret("ACME_API_KEY") == ""
    with pytest.raises(ConfigError, match=r"ACME_API_KEY_FILE=PATH"):
        key_of(ROUTE)


def test_a_file_that_cannot_be_read_is_named_and_no_content(file: Path) -> None:
    file.write_bytes(b"\xff\xfesecret")
    with pytest.raises(
        ConfigError, match=r"ACME_API_KEY_FILE is .*acme, which cannot be read: it is no text"
    ) as caught:
        key_of(ROUTE)
    assert "secret" not in str(caught.value).replace("ACME_API_KEY", "")
    file.unlink()
    with pytest.raises(ConfigError, match="No such file"):
        key_of(ROUTE)
    assert clean("401") == "401", "who only looks for words to blot out is not stopped by it"


def test_the_secret_of_a_file_is_blotted_out_too(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert clean("401: of-the-file is no key") == "401: *** is no key"
    monkeypatch.setenv("ACME_API_KEY", "of-the-file-and-more")
    assert clean("of-the-file-and-more") == "***", "the longest first"
    assert str(file) in clean(f"{file} cannot be read")


def test_the_token_of_a_studio_comes_from_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "token").write_text("studio-token")
    monkeypatch.delenv(TOKEN, raising=False)
    monkeypatch.setenv(f"{TOKEN}_FILE", str(tmp_path / "token"))
    store = Store(tmp_path / "w")
    assert read_access(store).token("admin") == "studio-token"
    assert b"studio-token" not in (tmp_path / "w/review/access.json").read_bytes()
    write_access(store, read_access(store))
    assert (tmp_path / "w/review/access.json").stat().st_mode & 0o077 == 0
