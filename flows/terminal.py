"""Consoles on which nobody's words can move the cursor, change a colour or the title."""

from collections.abc import Iterable
from typing import Any

from rich.console import Console, ConsoleOptions
from rich.segment import Segment

from tasks.report.plain import plain


class SafeConsole(Console):
    """A console that shows control characters of what it is given as �; its own colours are no part of that."""

    def render(self, renderable: Any, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """As rich does, every text cleaned."""
        for text, style, control in super().render(renderable, options):
            yield Segment(text if control else plain(text), style, control)
