"""What a comparison is of: the runs of both arms, and how they came about."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from eval_tasks.compare.pairing import BenchmarkArms
from eval_tasks.records import BenchmarkVersion, Run
from eval_tasks.records.variance import Lineage


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """What is compared: the runs of each arm, and each shared benchmark's arms and versions (A, B)."""

    a: tuple[Run, ...]
    b: tuple[Run, ...]
    arms: Sequence[BenchmarkArms]
    versions: Mapping[str, tuple[BenchmarkVersion, BenchmarkVersion]]

    @property
    def runs(self) -> tuple[Run, ...]:
        """All runs."""
        return (*self.a, *self.b)


def lineage_of(compared: Compared) -> Lineage:
    """Whether the two arms' runs come of the same training runs."""
    names_a, names_b = ({run.training_run for run in arm} for arm in (compared.a, compared.b))
    if "" in names_a | names_b:
        return "not known"
    return "one training run" if names_a == names_b and len(names_a) == 1 else "trained apart"
