"""What another grader made of outputs that are stored: old and new scores of one run's benchmark, paired by item."""

from __future__ import annotations

from dataclasses import dataclass

from eval_tasks.records.diagnosis import FlippedItem


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupMove:
    """All items (`group` is ''), or those of one category or stratum.

    `old` and `new`: scores over the `n_old` and `n_new` items that each grader gave one, with intervals. `delta` = new
    - old over the `n_pairs` items that both scored, None without any. `lost`: right before and wrong now, `gained` the
    other way; None where scores are no 0 or 1.
    """

    group: str
    old: float | None
    n_old: int
    old_ci95: tuple[float, float] | None
    new: float | None
    n_new: int
    new_ci95: tuple[float, float] | None
    n_pairs: int = 0
    delta: float | None = None
    ci95: tuple[float, float] | None = None
    lost: int | None = None
    gained: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MovedScores:
    """One benchmark of one run under `new_grader`, held against `old_grader` ('' when nobody scored it before).

    `label`: what people call the run. `p`: the paired test over all items. `groups` by `by` (``category``, ``stratum``,
    or '' where none is declared), in the order of their names. `flipped`: items that flipped, those of the groups that
    lost most first, cut to a number that a person reads; in them A is the new grader and B the old one.
    `not_compared`: why old and new could not be held against each other.
    """

    run_id: str
    label: str
    benchmark: str
    version: str
    metric: str
    unit: str
    higher_is_better: bool
    new_grader: str
    old_grader: str = ""
    total: GroupMove
    p: float | None = None
    by: str = ""
    groups: tuple[GroupMove, ...] = ()
    flipped: tuple[FlippedItem, ...] = ()
    notes: tuple[str, ...] = ()
    not_compared: str = ""
