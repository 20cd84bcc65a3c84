"""Every exception of the library, by who must act on it. Knows nothing else.

A message names the thing, the value and the way out. Airflow's retry policy is decided from these classes in one
place (`checkpoint_eval.flow`), the command line's exit codes in another (`eval_tasks.cli`).
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence


class EvalError(Exception):
    """Base of all errors of checkpoint-eval."""


class UserError(EvalError):
    """The input is wrong: a person must change it; trying again cannot help."""


class UnknownError(UserError):
    """A name or an id that the catalog does not have."""


class InfraError(EvalError):
    """Storage, database, network or a pod failed: trying again may help."""


class DataError(EvalError):
    """The data contradicts what is recorded of it: a person must look at it before anything goes on."""


class CheckpointError(UserError):
    """A checkpoint that must not be evaluated.

    `reason` is one of the names of `eval_tasks.checkpoint.REASONS`, such as ``missing_shard`` or ``pointer_file``.
    """

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


class BudgetError(UserError):
    """A run would cost more than is left of a budget: a person raises the budget, or leaves it.

    `subject` names the budget as it is configured, `period` the month of one that is counted over days.
    """

    def __init__(self, message: str, *, subject: Sequence[str | float], period: str = "") -> None:
        super().__init__(message)
        self.subject = subject
        self.period = period


class CheckpointGoneError(EvalError):
    """A checkpoint was removed while it was being evaluated: the run ends in the state ``gone``."""


class DriftError(DataError):
    """Bytes do not have the digest that was pinned for them."""


class NotComparableError(UserError):
    """Two runs that cannot be compared; the message says which digest differs."""


class BlockedError(EvalError):
    """Evaluation is blocked for an environment until a person explains why its rows changed."""


# Their own network errors are no OSError, and importing each driver to name them costs seconds.
_STORAGE_DRIVERS = frozenset({"botocore", "aiobotocore", "aiohttp", "google", "gcsfs", "azure", "requests", "urllib3"})


def is_of_storage_driver(error: Exception) -> bool:
    """Whether a client library of an object store raised this: storage failed, and trying again may help."""
    return type(error).__module__.partition(".")[0] in _STORAGE_DRIVERS


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """The tail of an error message: close matches of `name` among `known`, else all of them (at most ten)."""
    names = sorted(set(known))
    close = difflib.get_close_matches(name, names, n=3, cutoff=0.5)
    if close:
        return "close: " + ", ".join(repr(c) for c in close)
    if not names:
        return "none are known"
    return "known: " + ", ".join(names[:10]) + (f" and {len(names) - 10} more" if len(names) > 10 else "")
