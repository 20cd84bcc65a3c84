"""grade to publish: a run lacks nothing, its steps can be repeated, and an incomplete one is never published."""

from __future__ import annotations

from pathlib import Path

import pytest

from eval_tasks.aggregate import aggregate
from eval_tasks.compare import compare
from eval_tasks.errors import DataError, InfraError, UserError
from eval_tasks.grade import grade
from eval_tasks.guard import guard
from eval_tasks.join_contamination import join_contamination
from eval_tasks.publish import publish
from eval_tasks.records import Plan
from eval_tasks.run import run_shard
from eval_tasks.scoring import vector_file
from eval_tasks.store import Store
from tests.planned import NOW, planned, register, uri_of, write_checkpoint


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_checkpoint(tmp_path_factory.mktemp("checkpoint") / "step-1")


@pytest.fixture
def made(store: Store, checkpoint: Path, tmp_path: Path) -> Plan:
    register(store, tmp_path / "benchmarks")
    return planned(store, checkpoint)


def run_shards(store: Store, made: Plan, tmp_path: Path, shards: list[int] | None = None) -> None:
    for shard in shards if shards is not None else [s.shard for s in made.shards]:
        run_shard(store, plan_uri=uri_of(store, made), shard=shard, owner="pod", cache_dir=tmp_path / "cache")


def finish(store: Store, run_id: str) -> None:
    grade(store, run_id=run_id)
    aggregate(store, run_id)
    join_contamination(store, run_id=run_id)
    guard(store, run_id=run_id, now=NOW)


def test_an_incomplete_run_is_named_kept_and_not_published(store: Store, made: Plan, tmp_path: Path) -> None:
    run_shards(store, made, tmp_path, [0])
    with pytest.raises(InfraError, match=r"incomplete: \d+ of \d+ batches have no result \(shards 1"):
        grade(store, run_id=made.run_id)
    assert store.catalog.run(made.run_id).status == "incomplete"
    assert not store.responses.is_closed(made.run_id)
    with pytest.raises(DataError, match="not published"):
        publish(store, run_id=made.run_id, now=NOW)
    run_shards(store, made, tmp_path)
    assert store.catalog.run(made.run_id).status == "running"
    finish(store, made.run_id)
    assert store.catalog.run(made.run_id).status == "closed"


def test_every_step_can_be_repeated_without_doubling_anything(store: Store, made: Plan, tmp_path: Path) -> None:
    run_shards(store, made, tmp_path)
    finish(store, made.run_id)
    first = publish(store, run_id=made.run_id, now=NOW)
    measurements = store.catalog.measurements(made.run_id)
    finish(store, made.run_id)
    run_shards(store, made, tmp_path)
    assert publish(store, run_id=made.run_id, now=NOW) == first
    assert store.catalog.measurements(made.run_id) == measurements
    assert len(store.catalog.reports(made.run_id)) == 2
    assert {m.benchmark for m in measurements} == {"colours", "colour-text", "colour-sums"}


def test_a_scorer_that_changed_since_registration_is_refused_under_the_old_name(
    store: Store, made: Plan, checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_shards(store, made, tmp_path)
    monkeypatch.setattr(vector_file, "scorer_digest", lambda _ref: "f" * 64)
    refusal = (
        r"'colours' version '1' was registered with scorer choice@1\+.*, and this release scores as choice@1\+ffff"
    )
    with pytest.raises(UserError, match=refusal):
        grade(store, run_id=made.run_id)
    assert store.responses.is_closed(made.run_id)
    assert [store.scores.graders(made.run_id, benchmark_id) for benchmark_id in made.request.benchmark_ids] == [[]] * 3
    assert planned(store, checkpoint) == made
    with pytest.raises(UserError, match=refusal):
        planned(store, checkpoint, repeat=1)


def test_measurements_carry_their_error_bars_and_say_never_checked(store: Store, made: Plan, tmp_path: Path) -> None:
    run_shards(store, made, tmp_path)
    finish(store, made.run_id)
    for m in store.catalog.measurements(made.run_id):
        assert m.score is not None
        assert m.se is not None
        assert m.ci95 is not None
        assert m.ci95[0] <= m.score <= m.ci95[1]
        assert m.n == m.n_attempted
        assert m.contamination == "never checked"
        assert m.companion is None


def test_contamination_that_was_checked_gives_every_number_a_companion(
    store: Store, checkpoint: Path, tmp_path: Path
) -> None:
    from eval_tasks.plan import plan
    from eval_tasks.records import EngineConfig
    from eval_tasks.resolve import resolve
    from eval_tasks.settings import EnvironmentSpec, Limits

    register(store, tmp_path / "benchmarks")
    resolved = resolve(store, checkpoint_uri=str(checkpoint), training_run="tiny", step=1, corpora=("web",))
    made = plan(
        store,
        checkpoint=resolved,
        checkpoint_dir=checkpoint,
        suite="colours-all",
        environment=EnvironmentSpec(name="local"),
        limits=Limits(),
        engine=EngineConfig(),
        now=NOW,
    )
    run_shards(store, made, tmp_path)
    grade(store, run_id=made.run_id)
    aggregate(store, made.run_id)
    colours = store.catalog.benchmark("colours")
    rows = {f"c{n:03d}": "contaminated" if n < 7 else "clean" for n in range(70)}
    store.catalog.save_contamination(colours.benchmark_id, "web", "words-13@1", rows, NOW)
    report = join_contamination(store, run_id=made.run_id)
    assert report.checked == ("colours",)
    assert set(report.never_checked) == {"colour-text", "colour-sums"}
    acc = next(m for m in store.catalog.measurements(made.run_id) if m.benchmark == "colours" and m.metric == "acc")
    assert acc.companion is not None
    assert (acc.companion.n, acc.companion.n_contaminated) == (63, 7)
    assert acc.contamination.startswith("10.0% of items in web")


def test_a_run_compared_with_its_repeat_is_indistinguishable(
    store: Store, made: Plan, checkpoint: Path, tmp_path: Path
) -> None:
    again = planned(store, checkpoint, repeat=1)
    for plan in (made, again):
        run_shards(store, plan, tmp_path)
        finish(store, plan.run_id)
    comparison = compare(store, made.run_id, again.run_id)
    tests = {test.benchmark: test for test in comparison.tests}
    assert tests["colours"].n_discordant == 0
    assert tests["colours"].p == 1
    assert all(test.verdict == "INDISTINGUISHABLE" for test in comparison.tests)
    assert comparison.verdict is None
    published = publish(store, run_id=made.run_id, comparison_id=comparison.comparison_id, now=NOW)
    assert "no primary metric" in published.terminal


def test_an_implausible_number_is_quarantined_with_five_raw_outputs_and_one_alert(
    store: Store, checkpoint: Path, tmp_path: Path
) -> None:
    register(store, tmp_path / "benchmarks", plausible_range={"acc": [0.9, 1.0]})
    made = planned(store, checkpoint)
    run_shards(store, made, tmp_path)
    finish(store, made.run_id)
    finish(store, made.run_id)
    report = store.catalog.guard(made.run_id)
    assert report is not None
    assert not report.passed
    excursion = next(e for e in report.excursions if e.check == "plausible_range")
    assert len(excursion.samples) == 5
    assert all(sample.prompt_tail.endswith("Answer:") for sample in excursion.samples)
    acc = next(m for m in store.catalog.measurements(made.run_id) if m.benchmark == "colours" and m.metric == "acc")
    assert acc.quarantined
    assert "plausible_range" in acc.quarantine_reason
    assert [a.kind for a in store.catalog.alerts() if "plausible_range" in a.title] == ["excursion"]
    quarantined = store.catalog.measurements(made.run_id)
    assert aggregate(store, made.run_id) == store.catalog.measurements(made.run_id) == quarantined
    other = planned(store, checkpoint, repeat=1)
    run_shards(store, other, tmp_path)
    finish(store, other.run_id)
    comparison = compare(store, made.run_id, other.run_id)
    assert next(t for t in comparison.tests if t.benchmark == "colours").not_tested
