"""The shared memory of results."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from tasks.faces.memo import Memo


def test_the_least_recently_used_goes_first() -> None:
    memo: Memo[int] = Memo(2)
    computed: list[int] = []

    def ask(key: int) -> int:
        return memo.get(key, lambda: computed.append(key) or key)

    for key in (1, 2, 1, 3, 1, 2):
        assert ask(key) == key
    assert computed == [1, 2, 3, 2]


def test_one_thread_computes_for_all() -> None:
    memo: Memo[int] = Memo(8)
    started = threading.Barrier(4)
    computed: list[int] = []

    def ask() -> int:
        started.wait()
        return memo.get("key", lambda: computed.append(1) or 7)

    with ThreadPoolExecutor(4) as pool:
        assert {future.result() for future in [pool.submit(ask) for _ in range(4)]} == {7}
    assert computed == [1]


def test_a_failure_is_not_remembered() -> None:
    memo: Memo[int] = Memo(8)
    with pytest.raises(ZeroDivisionError):
        memo.get("key", lambda: 1 // 0)
    assert memo.get("key", lambda: 3) == 3
