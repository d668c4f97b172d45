"""What the door knows of a provider's batches: a service to send them to, and how a request offers itself for one."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from tasks.engine.ledger import Reply, Request


@dataclass(frozen=True, slots=True)
class Seen:
    """What a provider says of a batch.

    Attributes:
        word: Its own word for how the batch is.
        ended: Nothing more will come; some requests may be without an answer.
        failed: It never began.
        gone: The provider does not know it.
        total, answered, troubled: Requests in all, with an answer, with an error; 0 where it does not say.
        message: Why it failed.
        results: Its files of answers and errors.
        files: All its files at the provider; one of them holds the pictures.
    """

    word: str
    ended: bool = False
    failed: bool = False
    gone: bool = False
    total: int = 0
    answered: int = 0
    troubled: int = 0
    message: str = ""
    results: tuple[str, ...] = ()
    files: tuple[str, ...] = ()


class Service(Protocol):
    """A provider's batches of one model. Each method raises one of the three `ProviderError`s."""

    @property
    def name(self) -> str:
        """Provider and model."""

    def upload(self, path: Path) -> str:
        """Bring a file of lines; its id."""

    def create(self, file: str, name: str) -> str:
        """Begin a batch that is called `name`; its id."""

    def find(self, name: str) -> str | None:
        """The id of the batch of that name, None where there is none. `PermanentError`: it lists none."""

    def look(self, id_: str) -> Seen:
        """How a batch is."""

    def fetch(self, seen: Seen, path: Path) -> None:
        """Write all result lines into a file."""

    def reply(self, request: Request, line: dict[str, Any]) -> Reply:
        """The answer in a result line; raises what the line says went wrong."""

    def cancel(self, id_: str) -> None:
        """Ask for the end of a batch."""

    def delete(self, file: str) -> None:
        """Delete a file at the provider."""


@dataclass(frozen=True, slots=True)
class Offer:
    """A way to ask a request in a batch.

    Attributes:
        service: Who takes batches of its model.
        line: Makes its line, pictures and all; called once, if it is collected.
        wanted: Whether it is to be collected; otherwise only a batch that has it already is waited for.
        estimate: Dollars it may cost in a batch.
    """

    service: Service
    line: Callable[[], bytes]
    wanted: bool
    estimate: float = 0.0
