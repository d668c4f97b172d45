"""How a flow run ends, in Prefect's words: an error of ours is its line and no traceback; waiting is no failure."""

from collections.abc import Callable
from functools import wraps
from typing import Any, Final, TypeVar, cast

from prefect.client.schemas.objects import State, StateType

from flows import leash, logs
from tasks.engine.blotting import blotted
from tasks.engine.errors import BatchesWaiting, FedbenchError, StoppedError, WaitingForReview

T = TypeVar("T")
Body = TypeVar("Body", bound=Callable[..., Any])

WAITING_FOR_REVIEW: Final = "WaitingForReview"
WAITING_FOR_BATCHES: Final = "WaitingForBatches"
STOPPED: Final = "Stopped"
WORKSPACE_IN_USE: Final = "WorkspaceInUse"
# The ends that Prefect does not know; an automation that waits for the end of a run has to.
OUR_ENDS: Final = (WAITING_FOR_REVIEW, WAITING_FOR_BATCHES, WORKSPACE_IN_USE, STOPPED)


def ended(error: FedbenchError) -> State[FedbenchError]:
    """The terminal state that an error of ours means; its message is the error's line, rid of secrets.

    Waiting (for people, for a provider's batches) is completed under a name of its own: the run did what it could, and
    holds no worker and no slot. A clean stop (budget, quota, pilot) is failed under the name `Stopped`.
    """
    kind, name = StateType.FAILED, "Failed"
    if isinstance(error, WaitingForReview):
        kind, name = StateType.COMPLETED, WAITING_FOR_REVIEW
    elif isinstance(error, BatchesWaiting):
        kind, name = StateType.COMPLETED, WAITING_FOR_BATCHES
    elif isinstance(error, StoppedError):
        name = STOPPED
    return State(type=kind, name=name, message=blotted(" ".join(str(error).split())), data=error)


def in_states(body: Body) -> Body:
    """The body of a flow or task whose errors of ours become its state. Everything else is a bug and keeps its trace.

    Called from Python, a failed run raises the error as ever; a waiting one returns it: see `answer`.
    """

    @wraps(body)
    def told(*args: Any, **kwargs: Any) -> Any:
        logs.listen()
        leash.hold()
        try:
            return body(*args, **kwargs)
        except FedbenchError as error:
            return ended(error)
        except Exception as error:
            # Prefect keeps its words as the run's message, and logs its trace.
            if blotted(str(error)) != str(error):
                raise RuntimeError(f"{type(error).__name__}: {blotted(str(error))}") from None
            raise

    return cast(Body, told)


def answer(value: T) -> T:
    """What a flow gave its caller in Python; the error, raised, where it is waiting.

    Raises:
        WaitingForReview: People have yet to decide.
        BatchesWaiting: Batches are in flight.
    """
    if isinstance(value, FedbenchError):
        raise value
    return value
