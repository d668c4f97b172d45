"""Nothing that is told or kept holds a secret: those of the environment and its files are blotted out of it."""

import os
from contextlib import suppress
from typing import Final

from tasks.engine.errors import ConfigError
from tasks.engine.secrets import FILE, secret

# A variable whose name ends so holds a secret. The last two are addresses with one in them.
_ENDINGS: Final = ("KEY", "TOKEN", "SECRET", "PASSWORD", "CONNECTION_URL", "WEBHOOK")


def secret_names() -> list[str]:
    """The variables of this process's environment that hold a secret."""
    return [name for name, value in os.environ.items() if name.upper().endswith(_ENDINGS) and value.strip()]


def blotted(text: str) -> str:
    """A text with the values of secret environment variables, and of the files that such name, replaced by `***`."""
    # The longest first: one secret may hold another.
    for value in sorted({os.environ[name] for name in secret_names()} | _in_files(), key=len, reverse=True):
        text = text.replace(value, "***")
    return text


def _in_files() -> set[str]:
    found = set()
    for name in tuple(os.environ):
        plain = name.removesuffix(FILE)
        if plain != name and plain.upper().endswith(_ENDINGS):
            with suppress(ConfigError):  # a file that cannot be read has no secret to hide; whoever needs it says so
                found.add(secret(plain))
    return found - {""}
