"""How a row can leave a stage: kept, rejected, failed or waiting, and why."""

from enum import StrEnum


class Status(StrEnum):
    """The four ways out. Rejected is a decision, failed an accident, waiting a person's turn."""

    KEPT = "kept"
    REJECTED = "rejected"
    FAILED = "failed"
    WAITING = "waiting"


class Reason(StrEnum):
    """Why a row was rejected."""

    WITHDRAWN = "withdrawn"
    UNREADABLE = "unreadable"
    NO_FACE = "no_face"
    SEVERAL_FACES = "several_faces"
    FACE_TOO_SMALL = "face_too_small"
    POSE = "pose"
    BLURRED = "blurred"
    EXPOSURE = "exposure"
    LOW_LABEL_CONFIDENCE = "low_label_confidence"
    UNLABELLED = "unlabelled"
    LABEL_DOUBTED = "label_doubted"
    DUPLICATE = "duplicate"
    NEAR_DUPLICATE = "near_duplicate"
    LEAK_CLIP = "leak_clip"
    LEAK_DUPLICATE = "leak_duplicate"
    LEAK_IDENTITY = "leak_identity"
    CAP_CLIP = "cap_clip"
    CAP_MOVIE = "cap_movie"
    CAP_IDENTITY = "cap_identity"
    UNCHANGED_PICTURE = "unchanged_picture"
    PICTURE_MOVED = "picture_moved"
    WRONG_POLARITY = "wrong_polarity"
    NO_MAJORITY = "no_majority"
    UNCHANGED_EXPRESSION = "unchanged_expression"
    WRONG_EXPRESSION = "wrong_expression"
    FACE_LOST = "face_lost"
    LOW_IDENTITY = "low_identity"
    NO_BACKGROUND = "no_background"
    BACKGROUND_CHANGED = "background_changed"
    BELOW_TOP_K = "below_top_k"
    NOT_CHOSEN = "not_chosen"
    NO_DIFFERENCE = "no_difference"
    NOT_SELECTED = "not_selected"
    BEYOND_PREFIX = "beyond_prefix"


class FailureKind(StrEnum):
    """Which accident befell a row."""

    CRASHED = "crashed"
    REFUSED = "refused"
    TIMEOUT = "timeout"
    OUT_OF_MEMORY = "out_of_memory"
    NO_FACE = "no_face"
    BAD_OUTPUT = "bad_output"
    INSUFFICIENT_VOTES = "insufficient_votes"
    PROVIDER = "provider"


class BackCheck(StrEnum):
    """Whether another model found the ground truth by the dense instruction.

    Rewritten: by the second text. Failed: by neither, or by the only one there is. Abstained: it gave no answer.
    """

    PASSED = "passed"
    REWRITTEN = "rewritten"
    FAILED = "failed"
    ABSTAINED = "abstained"
    NOT_CHECKED = "not_checked"


class Abstention(StrEnum):
    """Why there is no answer. Never a class, a number or a midpoint.

    A refusal is the model's own, a filter the provider's; an unparsable answer may also contradict itself or lie
    outside its scale; a truncated one ran into the limit of tokens, maybe in its thoughts; `not_taken` is a question
    that the provider will not take for another reason (a picture too small). A model that could not be reached has not
    abstained: its row fails, and a later run asks it.
    """

    NO_FACE = "no_face"
    CANNOT_TELL = "cannot_tell"
    REFUSED = "refused"
    FILTERED = "filtered"
    UNPARSABLE = "unparsable"
    TRUNCATED = "truncated"
    NOT_TAKEN = "not_taken"
