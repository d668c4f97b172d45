"""What a withdrawal removes of a review: questions, answers, and the pictures that annotators were shown."""

from collections.abc import Collection

from schemas.records import Key
from tasks.boards.access import read_access
from tasks.boards.answers import forget_answers_of
from tasks.boards.pairs import forget_pairs
from tasks.boards.pictures import hide
from tasks.boards.questions import about, asked, forget_questions
from tasks.engine.store import Store


def forget_review(store: Store, keys: Collection[Key]) -> None:
    """Remove everything about these sources; where nobody was ever asked, there is nothing.

    Label Studio's own tasks stay, without their pictures: request, caption, and a number that leads nowhere.
    """
    if store.path("review").is_dir():
        gone = [question for question in asked(store).values() if about(question, keys)]
        hide(store, read_access(store).key, gone)
        forget_questions(store, keys)
        forget_answers_of(store, keys)
    forget_pairs(store, keys)
