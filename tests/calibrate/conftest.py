"""An archive of 60 runs of one quiz, in a real store, some of whose gold answers are wrong. Made once, then copied."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from scipy import special

from eval_tasks.aggregate import aggregate
from eval_tasks.records import BenchmarkVersion, Score
from eval_tasks.settings import Settings
from eval_tasks.store import Store, open_store
from tests.compare.stored import stored_run
from tests.health.conftest import benchmark

N_ITEMS = 120
N_RUNS = 60
MISLABELLED = ("i0000", "i0001", "i0002", "i0003")
"""Abler runs get them wrong."""

ALL_RIGHT, ALL_WRONG = "i0010", "i0011"

_A = np.exp(np.random.default_rng(20).normal(0.4, 0.3, N_ITEMS))
_B = np.random.default_rng(21).normal(0, 1.0, N_ITEMS)
_A[: len(MISLABELLED)], _B[: len(MISLABELLED)] = -2.5, 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Archive:
    """`runs`: ids in the order of their numbers, which are 1, 2, 3 ..."""

    store: Store
    quiz: BenchmarkVersion
    runs: list[str]

    def evaluated(self, number: int, right: Sequence[float], **changes) -> str:
        """A further run."""
        return evaluated(self.store, self.quiz, number, right, **changes)


def answers(number: int, theta: float) -> np.ndarray:
    """Right or wrong of a run of that ability; the number is its seed."""
    right = (np.random.default_rng(number).random(N_ITEMS) < special.expit(_A * (theta - _B))).astype(float)
    right[10], right[11] = 1.0, 0.0
    return right


def ability_at(number: int) -> float:
    """Abilities of which any first few are spread as the normal distribution is."""
    return float(special.ndtri(number * (np.sqrt(5) - 1) / 2 % 1))


def scores(version: BenchmarkVersion, right: Sequence[float]) -> list[Score]:
    """Who is wrong says B."""
    return [
        Score(
            benchmark_id=version.benchmark_id,
            item_id=f"i{k:04d}",
            metric="acc",
            value=float(value),
            extracted="A" if value else "B",
        )
        for k, value in enumerate(right)
    ]


def evaluated(store: Store, version: BenchmarkVersion, number: int, right: Sequence[float], **changes) -> str:
    """A closed, measured run; each of its own training run, where none is named."""
    changes.setdefault("training_run", f"model-{number}")
    run = stored_run(store, number, (version, scores(version, right)), **changes)
    store.catalog.update_run(run.run_id, status="closed")
    aggregate(store, run.run_id)
    return run.run_id


@pytest.fixture(scope="session")
def archive_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The home folder of the archive, as it was made."""
    home = tmp_path_factory.mktemp("archive") / "home"
    with open_store(Settings(home=home)) as store:
        quiz = benchmark(store, "quiz", N_ITEMS, kind="choice", chance_level=0.25)
        for number in range(1, N_RUNS + 1):
            evaluated(store, quiz, number, answers(number, ability_at(number)))
    return home


@pytest.fixture
def archive(settings: Settings, archive_home: Path) -> Iterator[Archive]:
    """A copy of the archive, open."""
    shutil.copytree(archive_home, settings.home)
    with open_store(settings) as store:
        runs = sorted(run.run_id for run in store.catalog.runs())
        yield Archive(store=store, quiz=store.catalog.benchmark("quiz"), runs=runs)
