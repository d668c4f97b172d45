"""Asking a multimodal model something whose answer has a form; an answer that cannot be read is asked for once more."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Final, Generic, TypeVar

from pydantic import BaseModel, Field

import prompts
from schemas.answers import FORMS
from schemas.outcomes import Abstention, FailureKind
from schemas.routes import Route
from tasks.engine.calls import Calls
from tasks.engine.errors import ItemFailed
from tasks.engine.images import Picture
from tasks.providers.answers import Heard, Said
from tasks.providers.litellm import Question, ask_model
from tasks.providers.routed import Routed

T = TypeVar("T")
REPAIR = "repair"
# Of one question and its answer, for forecasts alone: ours, on the safe side but for models that think at length.
TEXT_TOKENS: Final = 600
PICTURE_TOKENS: Final = 1600
ANSWER_TOKENS: Final = 150


@dataclass(frozen=True, slots=True)
class Told(Generic[T]):
    """What was heard in the end, with the last answer's text, who gave it, and whether it was the second one."""

    heard: Heard[T]
    raw: str
    model: str
    repaired: bool


class Mllm(Routed):
    """Base of the adapters that ask a multimodal model through routes. Subclasses say what."""

    class Params(BaseModel, extra="forbid", frozen=True):
        """Which model, and how it is asked.

        Attributes:
            name: What people call the model; votes and reports show it.
            routes: Ways to it, the preferred one first.
            repeat: Tells apart entries that ask the same model the same thing.
            side: Pixels of the longer side of a picture it is shown.
        """

        name: str = Field(min_length=1)
        routes: tuple[Route, ...] = Field(min_length=1)
        repeat: int = Field(0, ge=0)
        side: int = Field(1024, ge=64, le=4096)

    params: Params
    role: ClassVar[str]
    shows: ClassVar[int] = 1  # pictures in one question, at most

    @classmethod
    def estimate(cls, route: Route) -> float:
        if route.price is None:
            return 0.0
        tokens = TEXT_TOKENS + cls.shows * PICTURE_TOKENS
        return route.price.cost(tokens, ANSWER_TOKENS, cls.shows, batch=route.batch)

    def _ask(
        self, call: Calls, prompt: str, pictures: Sequence[Picture], read: Callable[[Said], Heard[T]], **values: str
    ) -> Told[T]:
        """The model's answer to a prompt; see `ask`."""
        question = Question(
            role=self.role,
            prompt_sha256=prompts.sha256_of(prompt),
            system="",
            text=prompts.render(prompt, **values),
            pictures=tuple(pictures),
            schema=FORMS[prompt],
            repeat=self.params.repeat,
            side=self.params.side,
        )
        return ask(call, self.params.routes, question, read)


def ask(call: Calls, routes: Sequence[Route], question: Question, read: Callable[[Said], Heard[T]]) -> Told[T]:
    """A model's answer, read; one that cannot be read is sent back once, with what is wrong and the form.

    Raises:
        ItemFailed: `PROVIDER`, retryable: no route could be reached.
        StoppedError: As `ask_model` says.
    """
    first = _round(call, routes, question, read)
    if not first.heard.mendable:
        return first
    mend = prompts.render(REPAIR, problem=first.heard.problem, form=prompts.form(question.text))
    # Some providers take no empty message, not even their own model's.
    second = _round(call, routes, replace(question, follow_up=(first.raw or "(no answer)", mend)), read)
    return replace(second, raw=second.raw or first.raw, repaired=True)


def _round(call: Calls, routes: Sequence[Route], question: Question, read: Callable[[Said], Heard[T]]) -> Told[T]:
    try:
        said = ask_model(call, routes, question)
    except ItemFailed as error:
        if error.retryable:
            raise
        filtered = error.kind is FailureKind.REFUSED
        kind = Abstention.FILTERED if filtered else Abstention.NOT_TAKEN
        return Told(Heard(abstained=kind, problem=str(error)), str(error), routes[0].model, False)
    return Told(read(said), said.text or said.refusal, said.model, False)


def failure(told: Told[Any]) -> ItemFailed:
    """An abstention as the accident of an item, where the stage has nothing without an answer."""
    refused = told.heard.abstained in (Abstention.REFUSED, Abstention.FILTERED)
    kind = FailureKind.REFUSED if refused else FailureKind.BAD_OUTPUT
    return ItemFailed(kind, f"{told.model}: {told.heard.abstained}: {told.heard.problem}")
