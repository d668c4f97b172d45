"""Keys, tokens and passwords: from the environment, or from a file that the environment names. Never written down."""

import os
from pathlib import Path
from typing import Final

from tasks.engine.errors import ConfigError

FILE: Final = "_FILE"


def secret(name: str) -> str:
    """The value of the variable `name`, else what stands in the file that `name`_FILE names, trimmed; "" without both.

    Raises:
        ConfigError: The file cannot be read.
    """
    if value := os.environ.get(name, "").strip():
        return value
    path = os.environ.get(f"{name}{FILE}", "").strip()
    try:
        return Path(path).read_text(encoding="utf-8").strip() if path else ""
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is no text"
        raise ConfigError(f"{name}{FILE} is {path}, which cannot be read: {why}", "name a file, or unset it") from None
