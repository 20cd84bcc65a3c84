"""Where two runs disagree on one benchmark: the items that flipped, in groups. A is the candidate, B the baseline."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupFlips:
    """Of `n` items only B has `lost` right, only A `gained`. `p`: McNemar's mid-p in the group; `q` over the groups."""

    group: str
    n: int
    lost: int
    gained: int
    p: float
    q: float


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupedFlips:
    """All groups of one kind (`by`: category, stratum or cluster), those that lost most first; `groups` may be cut.

    `p_flips`: would flips spread like this if every item were as likely to flip? `p_direction`: would losses, if every
    flipped item were as likely to be one? None where there is nothing to test.
    """

    by: str
    n_groups: int
    groups: tuple[GroupFlips, ...]
    p_flips: float | None
    p_direction: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class FlippedItem:
    """An item that one run has right and the other wrong, side by side; texts are None where none were kept."""

    item_id: str
    lost: bool
    category: str | None = None
    stratum: str | None = None
    cluster: str | None = None
    prompt: str | None = None
    gold: str | None = None
    output_a: str | None = None
    output_b: str | None = None
    extracted_a: str | None = None
    extracted_b: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """One benchmark's flips. `not_diagnosed`: why there is nothing to say, such as scores that are no 0 or 1."""

    run_a: str
    run_b: str
    benchmark: str
    metric: str
    n_pairs: int = 0
    lost: int = 0
    gained: int = 0
    by: tuple[GroupedFlips, ...] = ()
    items: tuple[FlippedItem, ...] = ()
    not_diagnosed: str = ""
