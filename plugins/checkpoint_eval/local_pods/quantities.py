"""Kubernetes quantities (``500m``, ``2Gi``) as numbers. Pure; the client's own parser costs a second to import."""

from __future__ import annotations

import re
from decimal import Decimal
from functools import lru_cache

_SUFFIXES = {
    "": Decimal(1),
    "n": Decimal("1e-9"),
    "u": Decimal("1e-6"),
    "m": Decimal("1e-3"),
    **{suffix: Decimal(1000) ** power for power, suffix in enumerate("kMGTPE", start=1)},
    **{f"{suffix}i": Decimal(1024) ** power for power, suffix in enumerate("KMGTPE", start=1)},
}
_QUANTITY = re.compile(r"^(?P<number>[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?)(?P<suffix>[a-zA-Z]{0,2})$")


@lru_cache(maxsize=1024)
def quantity(text: str | float) -> Decimal:
    """The number a quantity stands for, in its base unit (cores, bytes, devices). Raises ValueError."""
    match = _QUANTITY.match(str(text).strip())
    if match is None or match["suffix"] not in _SUFFIXES:
        raise ValueError(
            f"quantities must match the regular expression of Kubernetes, such as 500m or 2Gi, not {text!r}"
        )
    return Decimal(match["number"]) * _SUFFIXES[match["suffix"]]
