"""Pictures that answers name go with the answers, and no others do."""

from functools import partial
from pathlib import Path

import pytest

from schemas.routes import CallSettings
from tasks.engine.blobs import Blobs
from tasks.engine.calls import Calls
from tasks.engine.ledger import Ledger, Reply, Request
from tasks.engine.store import Store
from tasks.withdrawal.traces import ANSWERS, forget_answers

ONE, OTHER = "1" * 64, "2" * 64


@pytest.fixture
def pictures(tmp_path: Path) -> dict[str, str]:
    """Blobs by what became of them: of one source, of another, of both, and one whose answer a kill prevented."""
    calls = Calls(tmp_path / ANSWERS, CallSettings(), "run")
    found = {name: calls.blobs.put(name.encode()) for name in ("one", "other", "both", "orphan")}
    asked = [("one", ONE), ("both", ONE), ("other", OTHER), ("both", OTHER)]
    for number, (name, source) in enumerate(asked):
        reply = Reply(f'{{"picture": "{found[name]}"}}')
        calls.ask(Request("editor", "acme", "m", {"n": number}, "", (source,)), partial(lambda one: one, reply))
    calls.close()
    return found


def test_blobs_go_with_the_last_answer_that_names_them(tmp_path: Path, pictures: dict[str, str]) -> None:
    store = Store(tmp_path)
    assert forget_answers(store, {ONE}) == ["acme", "acme"]
    assert set(Blobs(tmp_path).digests()) == {pictures["other"], pictures["both"]}
    assert forget_answers(store, {OTHER}) == ["acme", "acme"]
    assert list(Blobs(tmp_path).digests()) == []


def test_a_withdrawal_killed_after_the_answers_takes_the_blobs_next_time(
    tmp_path: Path, pictures: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(_: Ledger) -> set[str]:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Ledger, "blobs", killed)
        with pytest.raises(KeyboardInterrupt):
            forget_answers(Store(tmp_path), {ONE})
    assert pictures["one"] in set(Blobs(tmp_path).digests())
    assert forget_answers(Store(tmp_path), {ONE}) == []
    assert set(Blobs(tmp_path).digests()) == {pictures["other"], pictures["both"]}


def test_a_workspace_without_answers_has_no_blobs_and_gets_none(tmp_path: Path) -> None:
    assert forget_answers(Store(tmp_path), {ONE}) == []
    assert list(Blobs(tmp_path).digests()) == []
    assert not (tmp_path / "answers").exists()
