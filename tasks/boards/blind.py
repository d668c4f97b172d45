"""What annotators are shown, and how their A and B go back to finalists: all of it follows from one secret.

Nothing of editor, rank, key or order is in a task: file names and item numbers are keyed hashes, and so is the coin
that says which finalist is A, thrown anew for each question and person. The same secret undoes it.
"""

import hashlib
import hmac
from typing import Any, Final

from schemas.records import Finalist
from schemas.reviews import Question

# Share of tasks without captions, so that their influence shows (ours).
WITHOUT_CAPTIONS: Final = 0.2
# The comment of every answer that no person gave, so that it is never taken for one.
PLAYED: Final = "simulated by fedbench"


def keyed(key: bytes, *words: str) -> str:
    """24 hexadecimal digits that tell nothing of the words."""
    return hmac.new(key, "\0".join(words).encode(), hashlib.sha256).hexdigest()[:24]


def share(key: bytes, *words: str) -> float:
    """A number in 0..1 that falls for these words as it always does."""
    return int(keyed(key, *words)[:13], 16) / 16**13


def item_of(key: bytes, question: Question, annotator: str) -> str:
    """The number of a task: of this question for this person."""
    return keyed(key, "item", question.digest, annotator)


def in_order(key: bytes, question: Question, annotator: str) -> tuple[Finalist, ...]:
    """The finalists as this person sees them: A, then B."""
    swapped = share(key, "order", question.digest, annotator) < 0.5
    return question.finalists[::-1] if swapped else question.finalists


def captioned(key: bytes, question: Question, annotator: str) -> bool:
    """Whether this person sees captions: in one of five tasks they do not, nor where a finalist has none."""
    all_ = all(one.caption for one in question.finalists)
    return all_ and share(key, "captions", question.digest, annotator) >= WITHOUT_CAPTIONS


def folder_of(key: bytes, question: Question) -> str:
    """Name of the folder with the pictures of a question, whoever is asked."""
    return keyed(key, "folder", question.digest)


def files_of(key: bytes, question: Question, annotator: str) -> dict[str, tuple[str, str]]:
    """Where this person's task shows what: by place ("src", "left", "right"), path below the image folder and picture.

    Every picture of every task has a path of its own: that two tasks show the same photo is not in their addresses.
    """
    shown = in_order(key, question, annotator)
    images = {"src": shown[0].source_image} | dict(zip(("left", "right"), (one.image for one in shown), strict=False))
    folder = folder_of(key, question)
    return {
        place: (f"{folder}/{keyed(key, 'file', question.digest, annotator, place)}.png", image)
        for place, image in images.items()
    }


def task(key: bytes, question: Question, annotator: str, address: str) -> dict[str, Any]:
    """What Label Studio gets: addresses of pictures, requests and captions.

    Args:
        key: The secret.
        question: What is asked.
        annotator: Whom.
        address: What comes before a picture's path.
    """
    captions = captioned(key, question, annotator)
    data = {"item": item_of(key, question, annotator)}
    data |= {f"{place}_image": address + path for place, (path, _) in files_of(key, question, annotator).items()}
    for side, one in zip(("left", "right"), in_order(key, question, annotator), strict=False):
        data |= {f"{side}_target": one.instruction, f"{side}_caption": one.caption if captions else ""}
    return {"data": data}
