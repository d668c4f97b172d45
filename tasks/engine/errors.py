"""The error taxonomy. Everything a user can mend is one line: what, where, how."""

from collections.abc import Callable
from functools import partial

from schemas.outcomes import FailureKind


class FedbenchError(Exception):
    """An error with words for its reader.

    Args:
        message: What went wrong and where, in one line.
        hint: How to mend it, in one line.
    """

    exit_code = 1

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message} ({self.hint})" if self.hint else self.message

    def __reduce__(self) -> tuple[type, tuple[str, str]]:
        return type(self), (self.message, self.hint)


class ConfigError(FedbenchError):
    """A wrong config, key, path or option; raised before anything is spent."""

    exit_code = 2


class ContractError(FedbenchError):
    """A stage broke its contract: a bug, so the run stops."""

    exit_code = 3


class StoppedError(FedbenchError):
    """A clean stop that a later run resumes: budget, quota, authorisation."""

    exit_code = 4


class NotSent(StoppedError):
    """A question without a stored answer, while nothing may be sent."""


class Postponed(FedbenchError):
    """A question waits for a provider's batch: whoever asks asks again when that is settled. Never reaches a user."""


class BatchesWaiting(StoppedError):
    """Batches are in flight, and nobody is to wait for them; a later run collects them."""

    exit_code = 6


class PilotStopped(StoppedError):
    """The first sources turned out otherwise than expected; nothing behind them was begun."""


class TooManyFailures(FedbenchError):
    """A stage failed more often than its `max_failed` allows."""

    exit_code = 5


class TooManyErrors(FedbenchError):
    """People who looked at a sample found the best rank wrong more often than `review.max_error` allows."""

    exit_code = 5


class WaitingForReview(FedbenchError):
    """People have yet to decide; a later run goes on."""

    exit_code = 6


class WorkspaceError(FedbenchError):
    """The disk, a lock or a file of the workspace or the environment."""

    exit_code = 7


class UnreadableImage(Exception):
    """A picture that cannot enter: `reason` is a short code, the message says the rest."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason

    def __reduce__(self) -> tuple[type, tuple[str, str]]:
        return type(self), (self.reason, str(self))


class ItemFailed(Exception):
    """An accident of one item (refusal, time-out, no face). The stage turns it into a `Failed` row.

    Args:
        kind: Which accident.
        message: One line for the person who reads the funnel.
        retryable: Whether the same request may succeed later.
    """

    def __init__(self, kind: FailureKind, message: str, *, retryable: bool = False) -> None:
        super().__init__(message)
        self.kind = kind
        self.retryable = retryable

    def __reduce__(self) -> tuple[Callable[..., "ItemFailed"], tuple[()]]:
        return partial(ItemFailed, self.kind, str(self), retryable=self.retryable), ()


class ProviderError(Exception):
    """A call that brought no answer, as the adapter classed it: one of the three below. Never reaches a user.

    `tasks.engine.calls` turns it into `ItemFailed` or `StoppedError`.

    Args:
        message: What the provider said; trimmed and rid of secrets before it is kept or shown.
    """


class TransientError(ProviderError):
    """Worth another try: time-out, hang-up, 408, 429, 5xx, a cut body.

    Args:
        message: What the provider said.
        retry_after: Seconds the provider asked to wait (0 or more). A wait too long to sit out (a spent day quota)
            is `FatalError` instead.
        overload: Whether the provider has too much to do (429, 503, 529), so that fewer calls at once may help.
    """

    def __init__(self, message: str, *, retry_after: float | None = None, overload: bool = False) -> None:
        super().__init__(message)
        self.retry_after = retry_after
        self.overload = overload


class PermanentError(ProviderError):
    """The same request would fail again: refused, filtered, malformed.

    Args:
        message: What the provider said.
        kind: `REFUSED` for a refusal by policy, else `PROVIDER`.
    """

    def __init__(self, message: str, *, kind: FailureKind = FailureKind.PROVIDER) -> None:
        super().__init__(message)
        self.kind = kind


class FatalError(ProviderError):
    """Every further call would fail too: authorisation, spent quota, closed account.

    Args:
        message: What the provider said.
        hint: How to mend it, in one line.
    """

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint
