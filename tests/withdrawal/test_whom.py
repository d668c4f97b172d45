"""Who is one person, and who is not."""

import numpy as np
import pytest

from schemas.records import Key
from tasks.engine.errors import ConfigError
from tasks.engine.tombstones import NOBODY, Withdrawn
from tasks.withdrawal.whom import Trace, check_known, going, parse


def key(name: str) -> Key:
    return Key("p", name)


def vector(*numbers: float) -> list[np.ndarray]:
    return [np.array(numbers, np.float32) / np.float32(np.linalg.norm(numbers))]


FOUND = {
    key("a"): Trace({"r"}, {"clip p/1"}, {"A"}, vector(1, 0, 0)),
    key("same-clip"): Trace({"r"}, {"clip p/1", "identity p/anna"}, {"B"}, []),
    key("same-name"): Trace({"s"}, {"identity p/anna"}, {"C"}, vector(0.95, 0, 0.3)),
    key("face"): Trace({"s"}, {"subject p/face"}, {"D"}, vector(0.8, 0.6, 0)),
    key("of-the-face"): Trace({"s"}, {"subject p/face"}, {"E"}, vector(0, 0, 1)),
    key("face-of-the-face"): Trace({"s"}, set(), {"F"}, vector(0.3, 0.95, 0)),
    key("copy"): Trace({"s"}, set(), {"A", "X"}, vector(1, 0, 0)),
    key("other-model"): Trace({"s"}, set(), {"G"}, vector(1, 0)),
    key("unseen"): Trace({"s"}),
}


def test_a_source_takes_its_copies_along_and_nobody_else() -> None:
    went = going(FOUND, [key("a")], NOBODY, person=False, same=0.5)
    assert [(one.key.source_id, one.why, one.pixels) for one in went] == [
        ("a", "asked for", "A"),
        ("copy", "the same picture as p/a", "A"),
    ]


def test_a_person_is_followed_by_name_and_one_step_by_face() -> None:
    why = {one.key.source_id: one.why for one in going(FOUND, [key("a")], NOBODY, person=True, same=0.7)}
    assert why == {
        "a": "asked for",
        "same-clip": "same clip p/1",
        "same-name": "same identity p/anna",
        "face": "cosine 0.800 to p/a, from 0.7 on",
        "copy": "cosine 1.000 to p/a, from 0.7 on",
        "of-the-face": "same subject p/face",
    }


def test_who_is_withdrawn_already_does_not_go_again() -> None:
    withdrawn = Withdrawn(frozenset({key("a")}))
    assert [one.key.source_id for one in going(FOUND, [key("a")], withdrawn, person=False, same=0.5)] == ["copy"]


def test_nothing_is_known_of_a_source_that_only_a_data_set_has() -> None:
    (one,) = going(FOUND, [key("elsewhere")], NOBODY, person=True, same=0.5)
    assert (one.pixels, one.runs) == ("", ())


@pytest.mark.parametrize(
    ("text", "source_id"),
    [("p/a", "a"), ("p/a:sad@warp#0", "a"), ("p/b/c.png", "b/c.png"), ("p/a:b", "a:b"), ("p/x@y", "x@y")],
)
def test_keys(text: str, source_id: str) -> None:
    assert parse(text) == Key("p", source_id)


@pytest.mark.parametrize("text", ["", "a", "/a", "p/"])
def test_no_keys(text: str) -> None:
    with pytest.raises(ConfigError, match="is no key"):
        parse(text)


def test_near_matches() -> None:
    with pytest.raises(ConfigError) as error:
        check_known([key("same-klip")], FOUND)
    assert error.value.hint.startswith("near it: p/same-clip")
