"""Nothing that is told or kept holds a secret: the values of secret environment variables are blotted out of it."""

import os
from typing import Final

# A variable whose name ends so holds a secret. The last two are addresses with one in them.
_ENDINGS: Final = ("KEY", "TOKEN", "SECRET", "PASSWORD", "CONNECTION_URL", "WEBHOOK")


def secret_names() -> list[str]:
    """The variables of this process's environment that hold a secret."""
    return [name for name, value in os.environ.items() if name.upper().endswith(_ENDINGS) and value.strip()]


def blotted(text: str) -> str:
    """A text with the values of secret environment variables replaced by `***`."""
    # The longest first: one secret may hold another.
    for secret in sorted({os.environ[name] for name in secret_names()}, key=len, reverse=True):
        text = text.replace(secret, "***")
    return text
