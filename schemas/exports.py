"""Rows of exports, with the column names that training scripts look for. Pictures last."""

from schemas.published import ImageCell
from schemas.records import Record


class DiffusersRow(Record):
    """As instruct-editing scripts read it: `input_image`, `edit_prompt`, `edited_image`."""

    id: str
    edit_prompt: str
    licence: str
    synthetic: bool
    input_image: ImageCell
    edited_image: ImageCell


class PreferenceRow(Record):
    """A ground truth against a finalist of the same source that review did not choose.

    Attributes:
        prompt: The ground truth's instruction.
        rejected_instruction: What the other edit was asked for.
        same_target: Whether both were asked for the same expression.
        chosen_identity, rejected_identity: ArcFace cosine to the source, -1..1.
        chosen_background_rmse, rejected_background_rmse: 0-255.
        image: The source.
    """

    id: str
    prompt: str
    rejected_id: str
    rejected_instruction: str
    same_target: bool
    chosen_identity: float | None
    rejected_identity: float | None
    chosen_background_rmse: float | None
    rejected_background_rmse: float | None
    licence: str
    synthetic: bool
    image: ImageCell
    chosen: ImageCell
    rejected: ImageCell
