"""A provider's queue: calls at once, calls and tokens a minute, slowed down by overload."""

import math
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from schemas.routes import ProviderLimit
from tasks.engine.errors import TransientError


class Limiter:
    """A provider's queue: so many calls at once, so many a minute. Who comes too early waits; nobody is turned away.

    `window`, the calls allowed at once, is halved when the provider is overloaded, and grows by one, up to the limit,
    after as many successes in a row as it is wide.

    Args:
        limit: How fast.
        clock: Seconds, monotonic.
        sleep: Waits so many seconds, or less if nothing is to be sent any more.
    """

    def __init__(self, limit: ProviderLimit, clock: Callable[[], float], sleep: Callable[[float], object]) -> None:
        self.limit, self.window = limit, limit.concurrency
        self._clock, self._sleep = clock, sleep
        self._per_request = 60 / limit.requests_per_minute if limit.requests_per_minute else 0.0
        self._per_token = 60 / limit.tokens_per_minute if limit.tokens_per_minute else 0.0
        self._changed = threading.Condition()
        self._active = self._streak = self._epoch = 0
        self._next = self._next_tokens = self._paused_until = -math.inf

    @contextmanager
    def turn(self, tokens: int = 0) -> Iterator[Callable[[int], None]]:
        """Wait for a turn and hold it. A `TransientError` that passes through slows the whole provider down.

        Args:
            tokens: Forecast of the call's tokens, in and out.

        Yields:
            Tells how many tokens they were, once that is known.
        """
        with self._changed:
            while self._active >= self.window:
                self._changed.wait()
            self._active += 1
            epoch, reached = self._epoch, self._clock()
            turn = max(reached, self._next, self._next_tokens)
            self._next = turn + self._per_request
            self._next_tokens = max(reached, self._next_tokens) + tokens * self._per_token
        try:
            # Another call may lengthen the pause while this one sleeps, hence the loop.
            while (due := max(turn, self._paused_until)) > reached:
                self._sleep(due - reached)
                reached = due
            yield lambda really: self._correct(really - tokens)
        except TransientError as error:
            with self._changed:
                self._streak = 0
                if error.retry_after is not None:
                    self._paused_until = max(self._paused_until, self._clock() + error.retry_after)
                # One overload answers every call in flight with 429: together they count once.
                if error.overload and epoch == self._epoch:
                    self.window = max(1, self.window // 2)
                    self._epoch += 1
            raise
        else:
            with self._changed:
                self._streak += 1
                if self._streak >= self.window:
                    self.window, self._streak = min(self.limit.concurrency, self.window + 1), 0
        finally:
            with self._changed:
                self._active -= 1
                self._changed.notify_all()

    def _correct(self, tokens: int) -> None:
        with self._changed:
            self._next_tokens += tokens * self._per_token
