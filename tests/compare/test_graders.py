"""What a comparison says of the grader that scored both arms."""

from __future__ import annotations

import pytest

from eval_tasks.compare import compare
from eval_tasks.compare.graders import GradersOnRecord, scored_by
from eval_tasks.errors import NotComparableError, UserError
from eval_tasks.graders.agreement_sets import make_set
from eval_tasks.graders.qualification import qualify
from eval_tasks.records.agreement import AgreementItem, AgreementSet, GraderInUse, GraderVerdicts
from eval_tasks.store import Grader, Store
from tests.compare.stored import scores_of, stored_run
from tests.store import samples

NOW = "2026-01-01T00:00:00+00:00"


@pytest.fixture
def panel(store: Store) -> AgreementSet:
    """400 outputs of gsm8k that judge@1 and judge@2 get right, and judge@3 wrong."""
    items = [AgreementItem(item_id=f"i{k:03d}", output="x", labels={"ann": float(k % 2)}) for k in range(400)]
    made = make_set(store, items, name="panel", benchmark="gsm8k", now=NOW)
    for number in (1, 2, 3):
        said = {i.item_id: abs(i.labels["ann"] - (number == 3)) for i in items}
        store.catalog.save_verdicts(
            GraderVerdicts(set_digest=made.set_digest, grader=f"judge@{number}", created_at=NOW, verdicts=said)
        )
    return made


def test_nothing_is_said_of_a_scorer_of_which_nothing_is_on_record(store: Store) -> None:
    assert GradersOnRecord(store).notes("gsm8k@2+abcdef01", "gsm8k") == ()


def test_a_model_that_was_never_held_against_people(store: Store) -> None:
    grader = Grader(name="judge", version="1", kind="model", digest="d" * 64, created_at=NOW)
    store.catalog.save_grader(grader)
    (note,) = GradersOnRecord(store).notes(grader.grader, "gsm8k")
    assert "is not qualified: it was never held against people's labels" in note


def test_a_qualified_grader_says_on_what(store: Store, panel: AgreementSet) -> None:
    qualify(store, panel, "judge@2", against="judge@1", margin=0.05, now=NOW)
    (note,) = GradersOnRecord(store).notes("judge@2", "gsm8k")
    assert note.startswith("judge@2 is qualified: not inferior to judge@1 on panel@1 by 5 points")


def test_a_qualification_speaks_for_its_benchmark_alone(store: Store, panel: AgreementSet) -> None:
    qualify(store, panel, "judge@2", against="judge@1", margin=0.05, now=NOW)
    assert GradersOnRecord(store).notes("judge@2", "mmlu") == ()


def test_a_refused_grader_says_why(store: Store, panel: AgreementSet) -> None:
    qualify(store, panel, "judge@3", against="judge@1", margin=0.05, now=NOW)
    (note,) = GradersOnRecord(store).notes("judge@3", "gsm8k")
    assert "judge@3 is NOT QUALIFIED: items without a category: FAILED" in note


def test_a_grader_in_use_by_a_persons_word_and_one_that_is_not_in_use(store: Store) -> None:
    store.catalog.put_grader_in_use(GraderInUse(benchmark="gsm8k", grader="judge@1", since=NOW, reason="the first"))
    (note,) = GradersOnRecord(store).notes("judge@1", "gsm8k")
    assert note == f"judge@1 is in use by a person's word and not qualified: the first ({NOW})"
    assert GradersOnRecord(store).notes("gsm8k@2", "gsm8k") == ("the grader in use for gsm8k is judge@1, not gsm8k@2",)


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("judge/helpful@2+22222222", "judge/helpful@2+22222222"),
        ("helpful@1", "judge/helpful@1+11111111"),
        ("helpful", "judge/helpful@2+22222222"),
        ("judge/helpful", "judge/helpful@2+22222222"),
        ("panel", "human/panel@1"),
        ("sum", "sum@1+0"),
    ],
)
def test_a_grader_may_be_called_by_less_than_its_reference(store: Store, name: str, meant: str) -> None:
    benchmark = samples.benchmark()
    rows = scores_of(benchmark, [1.0, 0.0])
    a, b = (stored_run(store, number, (benchmark, rows), grader="sum@1+0") for number in (1, 2))
    known = ["judge/helpful@1+11111111", "judge/helpful@2+22222222", "human/panel@1", "human/twin@1", "judge/twin@1+2"]
    for run in (a, b):
        for grader in known:
            store.scores.write(run.run_id, benchmark.benchmark_id, grader, rows)
    store.scores.write(a.run_id, benchmark.benchmark_id, "judge/helpful@3+33333333", rows)
    versions = {benchmark.name: (benchmark, benchmark)}
    assert scored_by(store, [a], [b], versions, name) == {benchmark.name: meant}
    assert compare(store, a.run_id, b.run_id, grader=name).tests[0].grader == meant
    with pytest.raises(NotComparableError, match="no benchmark of both runs; it scored one of them: regrade the other"):
        scored_by(store, [a], [b], versions, "helpful@3")
    with pytest.raises(NotComparableError, match="scored no benchmark of both runs; "):
        scored_by(store, [a], [b], versions, "unheard-of")
    with pytest.raises(UserError, match="may be any of human/twin, judge/twin"):
        scored_by(store, [a], [b], versions, "twin")
