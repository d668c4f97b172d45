"""Where Label Studio is and who may enter: one file of the workspace that nobody but its owner can read."""

import json
import os
import secrets
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, SecretStr, ValidationError

from tasks.engine.errors import ConfigError, WorkspaceError
from tasks.engine.secrets import secret
from tasks.engine.store import Store, disk

FILE: Final = "review/access.json"
ADMIN: Final = "admin"
# For a server that somebody else runs.
URL, TOKEN = "FEDBENCH_STUDIO_URL", "FEDBENCH_STUDIO_TOKEN"


class Person(BaseModel):
    """An account. `token` is a personal access token, which only its owner's actions need."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    email: str
    token: SecretStr = SecretStr("")


class Access(BaseModel):
    """The door to Label Studio.

    Attributes:
        url: Its address, without a slash at the end.
        people: By name; "admin" is the one who makes projects and reads answers.
        secret: Hexadecimal key of orders and opaque names; whoever has it can undo the blinding.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    url: str = ""
    people: dict[str, Person] = Field(default_factory=dict)
    secret: SecretStr = SecretStr("")

    @property
    def key(self) -> bytes:
        return bytes.fromhex(self.secret.get_secret_value())

    def token(self, name: str) -> str:
        """A person's token.

        Raises:
            ConfigError: Nobody here has one for that name.
        """
        person = self.people.get(name)
        if person is None or not person.token.get_secret_value():
            raise ConfigError(f"no token of '{name}' is known here", "make the accounts: fedbench review up")
        return person.token.get_secret_value()


def read_access(store: Store) -> Access:
    """The workspace's access, with a secret; what the environment says of server and admin comes first.

    Raises:
        WorkspaceError: The file is damaged.
        ConfigError: The address in the environment is none, or the file of its token cannot be read.
    """
    try:
        access = Access.model_validate(store.read_json(FILE) or {})
    except ValidationError as error:
        what = ".".join(str(part) for part in error.errors()[0]["loc"])
        raise WorkspaceError(
            f"{store.path(FILE)} is damaged, or another version of fedbench wrote it: {what}",
            "bring back a copy, or update fedbench; without its `secret` answers of people cannot be told apart",
        ) from None
    if not access.secret.get_secret_value():
        access = access.model_copy(update={"secret": SecretStr(secrets.token_hex(32))})
        write_access(store, access)
    url, token = os.environ.get(URL, ""), secret(TOKEN)
    if url:
        _check_address(url)
        access = access.model_copy(update={"url": url.rstrip("/")})
    if token:
        admin = access.people.get(ADMIN, Person(email="")).model_copy(update={"token": SecretStr(token)})
        access = access.model_copy(update={"people": access.people | {ADMIN: admin}})
    return access


def _check_address(url: str) -> None:
    try:
        parts = urlsplit(url)
        fine = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0 and " " not in url
    except ValueError:  # brackets that do not close, a port beyond 65535
        fine = False
    # A password in it would stand in every message; nor is the refused one shown.
    if not fine or "@" in url:
        shown = "it holds a name or password" if "@" in url else url
        raise ConfigError(f"{URL} is no address: {shown}", "give http://HOST:PORT")


def write_access(store: Store, access: Access) -> None:
    """Write it, readable by its owner alone from the first byte."""
    path = store.path(FILE)
    values = {
        "url": access.url,
        "people": {
            name: {"email": one.email, "token": one.token.get_secret_value()} for name, one in access.people.items()
        },
        "secret": access.secret.get_secret_value(),
    }
    aside = Path(f"{path}.{os.getpid()}")
    with disk(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        with os.fdopen(os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
            file.write(json.dumps(values, indent=1, sort_keys=True) + "\n")
        aside.replace(path)
