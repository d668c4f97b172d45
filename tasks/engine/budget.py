"""What a run may spend: forecasts of what is in flight are set aside, so that no budget is ever passed."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from schemas.routes import CallSettings
from tasks.engine.errors import StoppedError
from tasks.engine.ledger import Ledger, Request

# Dollars. Sums of floats: a call that fits the budget to the cent must not fail on the last bit.
_EPSILON: Final = 1e-9


class Budget:
    """The budgets of a run and its roles. Thread-safe.

    Args:
        settings: Names the budgets.
        ledger: Knows what earlier processes of the run spent; read once.
    """

    def __init__(self, settings: CallSettings, ledger: Ledger) -> None:
        self._settings, self._ledger = settings, ledger
        # Guards all below; notified whenever a call comes back.
        self._changed = threading.Condition()
        # Dollars: by role; by role, set aside and for how many calls; the dearest by role and model.
        self._spent: dict[str, float] | None = None
        self._held: dict[str, tuple[float, int]] = {}
        self._dearest: dict[tuple[str, str], float] = {}

    @contextmanager
    def reserve(self, request: Request, estimate: float, check: Callable[[], None]) -> Iterator[None]:
        """Set a call's forecast aside while it is in flight; wait where that depends on what else is.

        Args:
            request: Whose role and model count.
            estimate: Dollars it may cost; the dearest call of its role and model so far counts if higher.
            check: Raises where nothing is to be sent any more; asked before each look.

        Raises:
            StoppedError: A budget cannot hold it.
        """
        with self._changed:
            while True:
                check()
                forecast = self._forecast(request, estimate)
                if self._fits(request.role, forecast):
                    break
                self._changed.wait()
            self._hold(request.role, forecast)
        try:
            yield
        finally:
            self.free(request.role, forecast)

    def take(self, request: Request, estimate: float) -> float | None:
        """Set a forecast aside till it is freed; returns it, or None where that depends on what else is in flight.

        Raises:
            StoppedError: A budget cannot hold it.
        """
        with self._changed:
            forecast = self._forecast(request, estimate)
            if not self._fits(request.role, forecast):
                return None
            self._hold(request.role, forecast)
            return forecast

    def hold(self, role: str, forecast: float) -> None:
        """Set aside what an earlier process has sent already."""
        with self._changed:
            self._hold(role, forecast)

    def free(self, role: str, forecast: float) -> None:
        """A call came back: its forecast counts no more."""
        with self._changed:
            dollars, calls = self._held[role]
            # Without calls nothing is held, whatever the sums of floats leave over.
            self._held[role] = (dollars - forecast, calls - 1) if calls > 1 else (0.0, 0)
            self._changed.notify_all()

    def paid(self, request: Request, cost: float | None) -> None:
        """What an answer cost."""
        if cost is not None:
            with self._changed:
                spent, model = self._costs(), (request.role, request.model)
                spent[request.role] = spent.get(request.role, 0.0) + cost
                self._dearest[model] = max(cost, self._dearest.get(model, 0.0))

    def _costs(self) -> dict[str, float]:
        """What the run has spent by role, read from the ledger once."""
        if self._spent is None:
            self._spent, self._dearest = self._ledger.costs()
        return self._spent

    def _forecast(self, request: Request, estimate: float) -> float:
        self._costs()
        return max(estimate, self._dearest.get((request.role, request.model), 0.0))

    def _hold(self, role: str, forecast: float) -> None:
        dollars, calls = self._held.get(role, (0.0, 0))
        self._held[role] = (dollars + forecast, calls + 1)

    def _fits(self, role: str, forecast: float) -> bool:
        """Whether the budgets hold one more call; False where that depends on what is in flight."""
        spent, held = self._costs(), {each: dollars for each, (dollars, _) in self._held.items()}
        run = ("budget", self._settings.budget, sum(spent.values()), sum(held.values()))
        limit = self._settings.role_budgets.get(role)
        own = (f"role_budgets.{role}", limit, spent.get(role, 0.0), held.get(role, 0.0))
        fits = True
        for name, budget, paid, reserved in (run, own):
            if budget is None:
                continue
            room = budget - paid - forecast + _EPSILON
            if room < 0:
                unpriced = sum(total.unpriced for total in self._ledger.totals())
                raise StoppedError(
                    f"{name}: ${paid:.4f} of ${budget:.4f} is spent, and the next {role} call may cost ${forecast:.4f}"
                    f" ({unpriced} answers of unknown price are not counted)",
                    f"raise {name} and run again; stored answers are not paid twice",
                )
            fits &= room >= reserved
        return fits
