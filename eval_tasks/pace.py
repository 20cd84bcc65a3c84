"""Finished batches in, a line for the log out, now and then: items and tokens per second, and the time that is left.

Knows no store and no engine; the clock is handed in.
"""

from __future__ import annotations

import time
from collections.abc import Callable

_EVERY_SECONDS = 10.0


class Pace:
    """The speed of one pod's work. `n_items` in all, `n_done` before it began, `cost_left` in planned tokens."""

    def __init__(
        self,
        *,
        n_items: int,
        n_done: int,
        cost_left: int,
        every_seconds: float = _EVERY_SECONDS,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self.n_items = n_items
        self.n_done = n_done
        self._cost_left = cost_left
        self._every = every_seconds
        self._now = now
        self._began = now()
        self._said = float("-inf")
        self._n_here = 0
        self._n_tokens = 0
        self._cost = 0

    def add(self, n_items: int, n_tokens: int, cost: int) -> str:
        """Count a batch that was computed here; a line when it is time for one, else ''.

        `n_tokens` were read and written, `cost` is what the plan reckoned with: time left follows the plan, since long
        prompts come in runs.
        """
        self.n_done += n_items
        self._n_here += n_items
        self._n_tokens += n_tokens
        self._cost += cost
        now = self._now()
        if now - self._said < self._every:
            return ""
        self._said = now
        return self.line()

    def line(self) -> str:
        """How far the work is, at the mean speed so far."""
        seconds = max(self._now() - self._began, 1e-9)
        left = max(0, self._cost_left - self._cost) * seconds / max(self._cost, 1)
        done = f"{self.n_done:,} of {self.n_items:,} items"
        speed = f"{self._n_here / seconds:,.1f} items/s, {self._n_tokens / seconds:,.0f} tokens/s"
        return f"{done}, {speed}" + (f", about {duration(left)} left" if self.n_done < self.n_items else "")


def duration(seconds: float) -> str:
    """Seconds for people: ``40 s``, ``12 min``, ``3 h 20 min``."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60} min"
