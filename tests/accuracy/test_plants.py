"""What is planted: every case is what it says, and nobody stands in for himself."""

from collections import Counter

from schemas.expressions import POLARITY, Expression, others
from schemas.records import Candidate, Key, Photo
from tasks.accuracy.plants import Case, plants


def photo(name: str, expression: Expression, subject: str = "") -> Photo:
    values = dict.fromkeys(("file_sha256", "pixel_sha256", "label_source", "path", "split", "clip", "movie"), "")
    return Photo(
        key=Key("pool", name), image=name, width=1, height=1, expression=expression, subject=subject or name,
        licence="", **values,
    )  # fmt: skip


def edits(photos: list[Photo], missing: tuple[str, Expression] | None = None) -> dict[str, dict[Expression, Candidate]]:
    """An edit's picture is called by its photo and target."""
    return {
        str(one.key): {
            target: Candidate.model_construct(
                key=Key("pool", one.key.source_id, target, "e"), image=f"{one.image}>{target}"
            )
            for target in others(one.expression)
            if (one.image, target) != missing
        }
        for one in photos
    }


def test_each_case_is_what_it_says() -> None:
    photos = [photo("a", Expression.SAD), photo("b", Expression.HAPPY), photo("c", Expression.NEUTRAL, "b")]
    found = list(plants(edits(photos), photos))
    assert Counter(plant.case for plant in found) == {
        Case.RIGHT: 18,
        Case.UNCHANGED: 18,
        Case.WRONG_POLARITY: 7,
        Case.SAME_POLARITY: 11,
        Case.OTHER_PERSON: 18,
    }
    shows = {one.image: one.expression for one in photos}
    for plant in found:
        who, _, target = plant.image.partition(">")
        shown = Expression(target) if target else shows[who]
        asked = Expression(plant.asked.key.target)
        assert plant.asked.key.source() == plant.photo.key
        assert (who == plant.photo.image) is (plant.case is not Case.OTHER_PERSON)
        assert (shown is asked) is (plant.case in (Case.RIGHT, Case.OTHER_PERSON))
        if plant.case in (Case.WRONG_POLARITY, Case.SAME_POLARITY):
            assert (POLARITY[shown] is POLARITY[asked]) is (plant.case is Case.SAME_POLARITY)
        if plant.case is Case.OTHER_PERSON and plant.photo.image in "bc":
            assert who == "a", "b and c are one person"


def test_an_edit_that_could_not_be_made_is_nowhere() -> None:
    photos = [photo("a", Expression.SAD), photo("b", Expression.HAPPY)]
    found = list(plants(edits(photos, missing=("a", Expression.FEAR)), photos))
    assert "a>fear" not in {plant.image for plant in found}
    assert not [plant for plant in found if plant.photo.image == "a" and plant.asked.key.target == "fear"]


def test_alone_there_is_nobody_else() -> None:
    photos = [photo("a", Expression.SAD)]
    assert Case.OTHER_PERSON not in {plant.case for plant in plants(edits(photos), photos)}
