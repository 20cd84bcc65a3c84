"""What a run was expected to cost, and what it did."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """`tokens` read and written. `device_seconds`, `usd`: None where nobody knows the speed, or the price."""

    items: int
    tokens: int
    device_seconds: float | None = None
    usd: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CostEntry:
    """A line of the ledger. `forecast` is an upper bound: every output as long as it may be. Time: UTC, ISO 8601."""

    run_id: str
    training_run: str
    tier: str
    environment: str
    created_at: str
    forecast: Cost
    actual: Cost | None = None

    @property
    def standing(self) -> Cost:
        """What counts towards a budget: what it cost, or what it is expected to while that is not known."""
        return self.actual or self.forecast
