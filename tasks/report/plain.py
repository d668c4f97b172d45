"""What somebody else said, as text and nothing more: for terminals, pages and Markdown."""

import re
from typing import Any, Final

# Control characters and marks that turn the reading direction: a terminal or a page would obey them.
_CONTROLS: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def plain(value: Any) -> str:
    """Text without them; line breaks and tabs stay."""
    return _CONTROLS.sub("\ufffd", str(value))


def ascii_controls(json: str) -> str:
    """A JSON text in which they are escaped, as it may: what is read from it is the same."""
    return _CONTROLS.sub(lambda found: f"\\u{ord(found[0]):04x}", json)


def in_markdown(value: Any) -> Any:
    """A value for a Markdown template: no tag, table cell, line or link of its own."""
    if not isinstance(value, str) or hasattr(value, "__html__"):
        return value
    line = " ".join(plain(value).split("\n"))
    return line.replace("<", "&lt;").replace("|", "\\|").replace("](", "]\\(")
