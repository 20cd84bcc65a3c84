"""The words of a verdict, and how far two benchmark versions compare."""

from __future__ import annotations

from typing import Literal

Verdict = Literal["A better", "B better", "INDISTINGUISHABLE"]
Inconclusive = Literal["", "EQUIVALENT", "UNDERPOWERED"]
Compatibility = Literal["SCORE", "PAIRED", "PARTIAL", "NONE"]
Multiplicity = Literal["none", "holm", "bh"]

DEFAULT_MARGIN = 0.01
"""Equivalence margin for fractions when no rule names one: 1 point, the precision a release is held to."""
