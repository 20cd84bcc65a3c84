"""Claims and completions: one winner, whoever dies."""

from __future__ import annotations

import multiprocessing
import threading
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import HealthCheck
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from eval_tasks.errors import DataError, UserError
from eval_tasks.settings import Settings
from eval_tasks.store import Store, open_store, queue
from eval_tasks.store.queue import work_key
from tests.store.samples import batch


def test_a_claimed_batch_is_held_until_its_lease_ends(store: Store) -> None:
    assert store.queue.enqueue("run", [batch(0, "a", "b")]) == 2
    assert store.queue.try_claim("run", 0, "pod-1", 60, 1000.0)
    assert not store.queue.try_claim("run", 0, "pod-2", 60, 1059.9)
    assert not store.queue.try_claim("run", 0, "pod-1", 60, 1059.9)
    assert store.queue.try_claim("run", 0, "pod-2", 60, 1060.0)
    assert store.queue.counts("run") == {"pending": 0, "running": 2, "done": 0}


def test_a_lease_is_renewed_by_its_owner_only(store: Store) -> None:
    store.queue.enqueue("run", [batch(0, "a")])
    now = datetime(2026, 1, 31, 12, tzinfo=UTC)
    assert not store.queue.renew("run", 0, "pod-1", 60, now)
    store.queue.try_claim("run", 0, "pod-1", 60, now)
    assert store.queue.renew("run", 0, "pod-1", 60, "2026-01-31T12:00:50+00:00")
    assert not store.queue.renew("run", 0, "pod-2", 60, now)
    assert not store.queue.try_claim("run", 0, "pod-2", 60, "2026-01-31T12:01:49+00:00")
    assert store.queue.try_claim("run", 0, "pod-2", 60, "2026-01-31T12:01:50+00:00")
    assert not store.queue.renew("run", 0, "pod-1", 60, now)


def test_a_released_batch_is_free_at_once(store: Store) -> None:
    store.queue.enqueue("run", [batch(0, "a")])
    store.queue.try_claim("run", 0, "pod-1", 60, 0.0)
    assert not store.queue.release("run", 0, "pod-2")
    assert store.queue.release("run", 0, "pod-1")
    assert store.queue.counts("run")["pending"] == 1
    assert store.queue.try_claim("run", 0, "pod-2", 60, 0.0)


def test_completion_is_by_the_owner_and_once(store: Store) -> None:
    store.queue.enqueue("run", [batch(0, "a", "b"), batch(1, "c")])
    store.queue.try_claim("run", 0, "pod-1", 60, 0.0)
    assert store.queue.try_complete("run", 0, "pod-1", "r0")
    assert store.queue.try_complete("run", 0, "pod-1", "r0")
    assert not store.queue.try_claim("run", 0, "pod-2", 60, 1e9)
    assert not store.queue.release("run", 0, "pod-1")
    assert store.queue.results("run") == {0: "r0"}
    assert store.queue.counts("run") == {"pending": 1, "running": 0, "done": 2}


def test_who_never_claimed_cannot_complete(store: Store) -> None:
    store.queue.enqueue("run", [batch(0, "a")])
    store.queue.try_claim("run", 0, "pod-10", 60, 0.0)
    with pytest.raises(UserError, match="'pod-1' cannot complete batch 0"):
        store.queue.try_complete("run", 0, "pod-1", "r0")
    assert store.queue.results("run") == {}


def test_an_owner_that_comes_late_may_still_be_first(store: Store) -> None:
    store.queue.enqueue("run", [batch(0, "a")])
    store.queue.try_claim("run", 0, "late", 60, 0.0)
    store.queue.try_claim("run", 0, "quick", 60, 60.0)
    assert store.queue.try_complete("run", 0, "late", "r0")
    assert not store.queue.try_complete("run", 0, "quick", "r0")
    assert store.queue.results("run") == {0: "r0"}


@pytest.mark.parametrize("second", ["late", "quick"])
def test_another_result_for_the_same_items_is_said_loudly(store: Store, second: str) -> None:
    store.queue.enqueue("run", [batch(0, "a")])
    store.queue.try_claim("run", 0, "late", 60, 0.0)
    store.queue.try_claim("run", 0, "quick", 60, 60.0)
    store.queue.try_complete("run", 0, "quick", "r0")
    with pytest.raises(DataError, match=f"has the result r0 by 'quick', and '{second}' got r1.*not deterministic"):
        store.queue.try_complete("run", 0, second, "r1")
    assert store.queue.results("run") == {0: "r0"}


def test_enqueueing_again_changes_nothing(store: Store) -> None:
    batches = [batch(n, f"{n}-a", f"{n}-b") for n in range(1200)]
    assert store.queue.enqueue("run", batches[:700]) == 1400
    store.queue.try_claim("run", 3, "pod-1", 60, 0.0)
    store.queue.try_complete("run", 3, "pod-1", "r3")
    assert store.queue.enqueue("run", batches) == 1000
    assert store.queue.enqueue("run", batches[::-1]) == 0
    assert store.queue.enqueue("run", []) == 0
    assert store.queue.counts("run") == {"pending": 2398, "running": 0, "done": 2}


def test_a_plan_that_changed_is_refused(store: Store) -> None:
    store.queue.enqueue("run", [batch(0, "a", "b")])
    with pytest.raises(DataError, match="batch 0 of run 'run' is queued with other items"):
        store.queue.enqueue("run", [batch(0, "a", "c")])
    with pytest.raises(DataError, match="an item is in two batches"):
        store.queue.enqueue("run", [batch(1, "b", "c")])
    assert store.queue.counts("run")["pending"] == 2
    assert store.queue.enqueue("run", [batch(1, "b", benchmark_id="other")]) == 1
    assert store.queue.enqueue("run-2", [batch(0, "a", "c")]) == 2


def test_batches_that_were_never_queued_are_named(store: Store) -> None:
    with pytest.raises(UserError, match="run 'run' has no batch 5"):
        store.queue.try_claim("run", 5, "pod-1", 60, 0.0)
    with pytest.raises(UserError, match="run 'run' has no batch 5"):
        store.queue.try_complete("run", 5, "pod-1", "r")
    with pytest.raises(UserError, match="not a name of an owner"):
        store.queue.try_claim("run", 5, "pod\n1", 60, 0.0)
    assert store.queue.counts("run") == {"pending": 0, "running": 0, "done": 0}


def test_a_finished_run_is_compacted_and_keeps_its_results(store: Store) -> None:
    store.queue.enqueue("run", [batch(0, "a", "b"), batch(1, "c")])
    store.queue.enqueue("other", [batch(0, "a")])
    for number in (0, 1):
        with pytest.raises(UserError, match="not done"):
            store.queue.compact("run")
        store.queue.try_claim("run", number, "pod-1", 60, 0.0)
        store.queue.try_complete("run", number, "pod-1", f"r{number}")
    assert store.queue.compact("run") == 3
    assert store.queue.compact("run") == 0
    assert store.queue.results("run") == {0: "r0", 1: "r1"}
    assert store.queue.counts("run")["done"] == 3
    assert store.queue.enqueue("run", [batch(0, "a", "b"), batch(1, "c")]) == 0


def test_compacting_holds_the_write_lock_for_some_batches_at_a_time(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queue, "_CHUNK", 2)
    store.queue.enqueue("run", [batch(n, f"i{n}") for n in range(5)])
    for number in range(5):
        store.queue.try_claim("run", number, "pod", 60, 0.0)
        store.queue.try_complete("run", number, "pod", "r")
    write, dropped = store.queue._database.write, []
    monkeypatch.setattr(store.queue._database, "write", lambda work: dropped.append(write(work)) or dropped[-1])
    assert store.queue.compact("run") == 5
    assert dropped == [2, 2, 1]


def test_a_work_key_tells_its_parts_apart() -> None:
    keys = {work_key(*parts) for parts in (("r", "b", "i"), ("rb", "", "i"), ("r", "bi", ""), ("r", "b", "j"))}
    assert len(keys) == 4
    assert {len(key) for key in keys} == {32}


def _claim_all(home: Path, owner: str, n_batches: int, won: list[int]) -> None:
    with open_store(Settings(home=home)) as store:
        for number in range(n_batches):
            if store.queue.try_claim("run", number, owner, 600, 0.0):
                assert store.queue.try_complete("run", number, owner, f"r{number}")
                won.append(number)


def test_threads_share_the_work_without_overlap(store: Store, settings: Settings) -> None:
    store.queue.enqueue("run", [batch(n, f"i{n}") for n in range(30)])
    won: list[list[int]] = [[] for _ in range(4)]
    threads = [threading.Thread(target=_claim_all, args=(settings.home, f"t{n}", 30, won[n])) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(number for numbers in won for number in numbers) == list(range(30))
    assert store.queue.results("run") == {n: f"r{n}" for n in range(30)}


def _claim_in_a_process(home: Path, owner: str, n_batches: int, out: Path) -> None:
    won: list[int] = []
    _claim_all(home, owner, n_batches, won)
    out.write_text(" ".join(map(str, won)))


def test_processes_share_the_work_without_overlap(store: Store, settings: Settings, tmp_path: Path) -> None:
    store.queue.enqueue("run", [batch(n, f"i{n}") for n in range(40)])
    fork = multiprocessing.get_context("fork")  # with the parent's connection open, as Airflow's task runner forks
    outs = [tmp_path / f"won-{n}" for n in range(2)]
    processes = [
        fork.Process(target=_claim_in_a_process, args=(settings.home, f"p{n}", 40, out)) for n, out in enumerate(outs)
    ]
    for process in processes:
        process.start()
    for process in processes:
        process.join(60)
    assert [process.exitcode for process in processes] == [0, 0]
    assert sorted(int(number) for out in outs for number in out.read_text().split()) == list(range(40))
    assert store.queue.counts("run") == {"pending": 0, "running": 0, "done": 40}


OWNERS = st.sampled_from(["a", "b", "c"])
RESULTS = st.sampled_from(["same", "same", "same", "different"])


class SingleWinner(RuleBasedStateMachine):
    """One batch, three owners that stall, die and come back: it is completed once, and never changes after."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = TemporaryDirectory()
        self.store = open_store(Settings(home=Path(self.folder.name)))
        self.store.queue.enqueue("run", [batch(0, "x", "y")])
        self.now = 0.0
        self.held: tuple[str, float] | None = None
        self.claimed: set[str] = set()
        self.winner: tuple[str, str] | None = None

    def teardown(self) -> None:
        self.store.close()
        self.folder.cleanup()

    @rule(seconds=st.integers(1, 30))
    def wait(self, seconds: int) -> None:
        self.now += seconds

    @rule(owner=OWNERS)
    def claim(self, owner: str) -> None:
        free = self.winner is None and (self.held is None or self.held[1] <= self.now)
        assert self.store.queue.try_claim("run", 0, owner, 20, self.now) == free
        if free:
            self.held = (owner, self.now + 20)
            self.claimed.add(owner)

    @rule(owner=OWNERS)
    def renew(self, owner: str) -> None:
        holds = self.winner is None and self.held is not None and self.held[0] == owner
        assert self.store.queue.renew("run", 0, owner, 20, self.now) == holds
        if holds:
            self.held = (owner, self.now + 20)

    @rule(owner=OWNERS)
    def release(self, owner: str) -> None:
        holds = self.winner is None and self.held is not None and self.held[0] == owner
        assert self.store.queue.release("run", 0, owner) == holds
        if holds:
            self.held = None

    @rule(owner=OWNERS, result=RESULTS)
    def complete(self, owner: str, result: str) -> None:
        if owner not in self.claimed:
            with pytest.raises(UserError):
                self.store.queue.try_complete("run", 0, owner, result)
        elif self.winner is None:
            assert self.store.queue.try_complete("run", 0, owner, result)
            self.winner = (owner, result)
        elif result != self.winner[1]:
            with pytest.raises(DataError):
                self.store.queue.try_complete("run", 0, owner, result)
        else:
            assert self.store.queue.try_complete("run", 0, owner, result) == (owner == self.winner[0])

    @rule()
    def enqueue_again(self) -> None:
        assert self.store.queue.enqueue("run", [batch(0, "x", "y")]) == 0

    @invariant()
    def the_result_is_the_winners(self) -> None:
        assert self.store.queue.results("run") == ({} if self.winner is None else {0: self.winner[1]})
        assert sum(self.store.queue.counts("run").values()) == 2


SingleWinner.TestCase.settings = hypothesis_settings(
    max_examples=15,
    stateful_step_count=20,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.too_slow],
)
TestSingleWinner = SingleWinner.TestCase
