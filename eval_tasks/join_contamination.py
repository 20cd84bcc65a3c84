"""Measurements + contamination records -> measurements with their decontaminated companions.

Contamination is a side service: this step only reads what the catalog says was checked. A benchmark that was never
checked against the checkpoint's corpora says so in each of its numbers.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ContaminationReport:
    """Benchmarks that have a companion now, and those that were never checked, by name."""

    run_id: str
    checked: tuple[str, ...]
    never_checked: tuple[str, ...]
