"""What the steps of scoring share. They are stages that only measure: what makes a score of it is a pure function."""

from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

from schemas.records import Key, Record
from schemas.routes import deciding
from schemas.score_config import ScoredEditor
from schemas.scoring import Granularity
from schemas.sections import Adapter, Section
from tasks.editors import EDITORS
from tasks.engine.errors import ContractError
from tasks.engine.stage import Item, Outcome, Stage

Row = TypeVar("Row", bound=Record)
M = TypeVar("M", bound=Record)


class Entry:
    """One editor under one granularity: what a run scores, and what every measurement of it hangs on.

    Attributes:
        called: What rows call the editor.
        spec: The editor, with `{granularity}` filled in.
        granularity: Which instruction it gets.
        identity: What decides its outputs.
    """

    def __init__(self, editor: ScoredEditor, granularity: Granularity) -> None:
        self.called, self.granularity = editor.called, granularity
        self.spec = filled(editor.adapter, granularity)
        self.identity = EDITORS.identity(self.spec.name, self.spec.params)

    def __str__(self) -> str:
        return f"{self.called} ({self.granularity})"


def filled(spec: Adapter, granularity: Granularity) -> Adapter:
    """An editor with `{granularity}` in its text parameters filled in: the two kinds of outputs lie apart."""
    params = {
        name: value.replace("{granularity}", granularity) if isinstance(value, str) else value
        for name, value in spec.params.items()
    }
    return Adapter(name=spec.name, params=params)


class Step(Stage[Row, M]):
    """A stage of scoring. Its answers lie apart for every entry, so that entries never wait for each other."""

    def __init__(self, entry: Entry, measure_params: Any) -> None:
        super().__init__(measure_params, Section())
        self.entry = entry

    def choice(self) -> Any:
        """What was chosen: the editor, its instruction, and this step's own parameters."""
        return [self.entry.identity, str(self.entry.granularity), deciding(self.measure_params.model_dump(mode="json"))]

    def cut(self, items: Sequence[Item[Row, M]]) -> Iterable[tuple[Key, Outcome]]:
        """Refused: steps are measured, never decided on."""
        raise ContractError(f"step '{self.name}' decides nothing", "tasks.metrics.score makes the score")
