"""A grader takes another's place only if it is not inferior in any category."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from eval_tasks.errors import UserError
from eval_tasks.graders.agreement_sets import make_set
from eval_tasks.graders.qualification import qualify, use
from eval_tasks.records.agreement import AgreementItem, AgreementSet, GraderInUse, GraderVerdicts
from eval_tasks.store import Grader, Store
from tests.store.samples import NOW, benchmark

LATER = "2026-02-01T00:00:00+00:00"


def labelled(n: int, category: str = "maths") -> list[AgreementItem]:
    return [
        AgreementItem(
            item_id=f"{category}-{k:04d}",
            output=str(k),
            category=category,
            labels={"ann": float(k % 3 != 0), "ben": float(k % 3 != 0)},
        )
        for k in range(n)
    ]


def judged(
    store: Store, made: AgreementSet, items: list[AgreementItem], grader: str, wrong: Callable[[AgreementItem], bool]
) -> None:
    """Record verdicts that agree with people but where `wrong`."""
    said = {i.item_id: i.labels["ann"] if not wrong(i) else 1 - i.labels["ann"] for i in items}
    verdicts = GraderVerdicts(set_digest=made.set_digest, grader=grader, created_at=NOW, verdicts=said)
    store.catalog.save_verdicts(verdicts)


def number(item: AgreementItem) -> int:
    return int(item.output)


@pytest.fixture
def two_categories(store: Store) -> tuple[AgreementSet, list[AgreementItem]]:
    """500 outputs in each of maths and law; `judge@1`, in use, agrees with people on 90 %."""
    items = labelled(500) + labelled(500, "law")
    made = make_set(store, items, name="panel", now=NOW)
    judged(store, made, items, "judge@1", lambda i: number(i) % 10 == 0)
    return made, items


def test_a_grader_as_good_in_every_category_is_adopted(
    store: Store, two_categories: tuple[AgreementSet, list[AgreementItem]]
) -> None:
    made, items = two_categories
    judged(store, made, items, "judge@2", lambda i: number(i) % 10 == 0 and number(i) % 100 != 0)
    found = qualify(store, made, "judge@2", against="judge@1", margin=0.05, now=LATER)
    assert found.adopted
    assert found.reason == "not inferior in any category by 5 points or more"
    assert [r.outcome for r in found.categories] == ["NON_INFERIOR", "NON_INFERIOR"]
    assert (found.overall_new.n_agree, found.overall_current.n_agree) == (910, 900)
    assert store.catalog.qualifications("judge@2") == [found]


def test_a_good_total_does_not_outweigh_a_bad_category(
    store: Store, two_categories: tuple[AgreementSet, list[AgreementItem]]
) -> None:
    made, items = two_categories
    judged(store, made, items, "judge@2", lambda i: i.category == "law" and number(i) % 6 == 0)
    found = qualify(store, made, "judge@2", against="judge@1", margin=0.05, now=LATER)
    assert not found.adopted
    assert (found.overall_new.agreement or 0) > (found.overall_current.agreement or 0)
    assert found.reason.startswith("category 'law': FAILED, agreement 83.2 % against 90.0 % on 500 labels")
    assert "maths" not in found.reason


def test_too_few_labels_are_refused_as_such(store: Store) -> None:
    items = labelled(500) + labelled(12, "law")
    made = make_set(store, items, name="panel", now=NOW)
    for grader in ("judge@1", "judge@2"):
        judged(store, made, items, grader, lambda i: number(i) % 10 == 0)
    found = qualify(store, made, "judge@2", against="judge@1", margin=0.05, now=LATER)
    assert not found.adopted
    law, maths = found.categories
    assert (law.category, law.outcome, maths.outcome) == ("law", "UNDERPOWERED", "NON_INFERIOR")
    assert law.n_needed is not None
    assert found.reason.endswith(f"about {law.n_needed:,} labels are needed")


def test_outputs_that_people_are_divided_over_count_nowhere(store: Store) -> None:
    items = labelled(300)
    items[1] = replace(items[1], labels={"ann": 1.0, "ben": 0.0})
    items += [replace(items[2], item_id="torn", category="torn", labels={"ann": 1.0, "ben": 0.0})]
    made = make_set(store, items, name="panel", now=NOW)
    for grader in ("judge@1", "judge@2"):
        judged(store, made, items, grader, lambda i: False)
    found = qualify(store, made, "judge@2", against="judge@1", margin=0.05, now=LATER)
    assert (found.n_tied, found.overall_new.n) == (2, 299)
    assert "category 'torn': UNDERPOWERED, no output has a label that people agree on" in found.reason


def test_silence_is_disagreement(store: Store, two_categories: tuple[AgreementSet, list[AgreementItem]]) -> None:
    made, items = two_categories
    said = {i.item_id: i.labels["ann"] for i in items if number(i) % 4}
    store.catalog.save_verdicts(
        GraderVerdicts(set_digest=made.set_digest, grader="shy@1", created_at=NOW, verdicts=said)
    )
    found = qualify(store, made, "shy@1", against="judge@1", margin=0.05, now=LATER)
    assert (found.n_unjudged_new, found.overall_new.agreement, found.adopted) == (250, 0.75, False)


def test_the_same_question_has_one_answer_with_its_first_time(
    store: Store, two_categories: tuple[AgreementSet, list[AgreementItem]]
) -> None:
    made, items = two_categories
    judged(store, made, items, "judge@2", lambda i: False)
    first = qualify(store, made, "judge@2", against="judge@1", margin=0.05, now=NOW)
    assert qualify(store, made, "judge@2", against="judge@1", margin=0.05, now=LATER) == first
    other = qualify(store, made, "judge@2", against="judge@1", margin=0.10, now=LATER)
    assert store.catalog.qualifications() == [first, other]


def test_an_adopted_grader_takes_the_place_of_the_one_in_use(
    store: Store, two_categories: tuple[AgreementSet, list[AgreementItem]]
) -> None:
    store.catalog.save_benchmark(benchmark())
    name = benchmark().name
    use(store, "judge@1", name, reason="the first one", now=NOW)
    made, items = two_categories
    judged(store, made, items, "judge@2", lambda i: False)
    store.catalog.save_grader(Grader(name="judge", version="2", kind="model", digest="d" * 64, created_at=NOW))
    found = qualify(store, made, "judge@2", against="judge@1", margin=0.05, now=LATER)
    (stands,) = store.catalog.graders_in_use()
    assert (stands.grader, stands.since, stands.qualification_id) == ("judge@2", LATER, found.qualification_id)
    grader = store.catalog.grader("judge", "2")
    assert grader.adopted
    assert grader.agreement["agreement"] == 1.0


@pytest.mark.parametrize("used_at", [NOW, LATER])
def test_the_question_asked_again_does_not_undo_what_a_person_said_since(
    store: Store, two_categories: tuple[AgreementSet, list[AgreementItem]], used_at: str
) -> None:
    store.catalog.save_benchmark(benchmark())
    name = benchmark().name
    use(store, "judge@1", name, reason="the first one", now=NOW)
    made, items = two_categories
    judged(store, made, items, "judge@2", lambda i: False)
    assert qualify(store, made, "judge@2", against="judge@1", margin=0.05, now=NOW).adopted
    assert [u.grader for u in store.catalog.graders_in_use()] == ["judge@2"]
    use(store, "judge@1", name, reason="the new one is too dear", now=used_at)
    qualify(store, made, "judge@2", against="judge@1", margin=0.05, now=LATER)
    assert [(u.grader, u.reason) for u in store.catalog.graders_in_use()] == [("judge@1", "the new one is too dear")]


def test_an_answer_given_before_anything_was_in_use_does_not_undo_it(
    store: Store, two_categories: tuple[AgreementSet, list[AgreementItem]]
) -> None:
    store.catalog.save_benchmark(benchmark())
    made, items = two_categories
    judged(store, made, items, "judge@2", lambda i: False)
    qualify(store, made, "judge@2", against="judge@1", margin=0.05, now=NOW)
    use(store, "judge@1", benchmark().name, reason="the first one", now=LATER)
    qualify(store, made, "judge@2", against="judge@1", margin=0.05, now=LATER)
    assert [u.grader for u in store.catalog.graders_in_use()] == ["judge@1"]


def test_a_set_of_one_benchmark_speaks_for_no_other(store: Store) -> None:
    items = labelled(400)
    made = make_set(store, items, name="panel", benchmark="gsm8k", now=NOW)
    for grader in ("judge@1", "judge@2"):
        judged(store, made, items, grader, lambda i: False)
    for name in ("gsm8k", "mmlu"):
        store.catalog.put_grader_in_use(GraderInUse(benchmark=name, grader="judge@1", since=NOW, reason="first"))
    assert qualify(store, made, "judge@2", against="judge@1", margin=0.05, now=LATER).adopted
    assert {u.benchmark: u.grader for u in store.catalog.graders_in_use()} == {"gsm8k": "judge@2", "mmlu": "judge@1"}
    judged(store, made, items, "judge@3", lambda i: False)
    with pytest.raises(UserError, match="'judge@2' is in use for 'gsm8k', not 'judge@1'"):
        qualify(store, made, "judge@3", against="judge@1", margin=0.05, now=LATER)


@pytest.mark.parametrize(
    ("grader", "against", "margin", "alpha", "message"),
    [
        ("judge@1", "judge@1", 0.02, 0.05, "held against itself"),
        ("judge@2", "judge@1", 0.0, 0.05, "margin 0"),
        ("judge@2", "judge@1", 2.0, 0.05, "margin 2"),
        ("judge@2", "judge@1", 0.02, 0.5, "alpha 0.5"),
        ("judge@9", "judge@1", 0.02, 0.05, "'judge@9' has no verdicts on agreement set 'panel@1'; close: 'judge@1'"),
    ],
)
def test_questions_that_make_no_sense_are_refused(
    store: Store,
    two_categories: tuple[AgreementSet, list[AgreementItem]],
    grader: str,
    against: str,
    margin: float,
    alpha: float,
    message: str,
) -> None:
    with pytest.raises(UserError, match=message):
        qualify(store, two_categories[0], grader, against=against, margin=margin, alpha=alpha, now=NOW)
    assert store.catalog.qualifications() == []


def test_verdicts_that_change_need_another_version(
    store: Store, two_categories: tuple[AgreementSet, list[AgreementItem]]
) -> None:
    made, items = two_categories
    judged(store, made, items, "judge@1", lambda i: number(i) % 10 == 0)
    with pytest.raises(UserError, match="'judge@1' has other verdicts on this set"):
        judged(store, made, items, "judge@1", lambda i: False)


def test_a_grader_is_put_in_use_with_a_reason_for_a_benchmark_that_is_there(store: Store) -> None:
    store.catalog.save_benchmark(benchmark())
    with pytest.raises(UserError, match="with a reason"):
        use(store, "judge@1", benchmark().name, reason=" ", now=NOW)
    with pytest.raises(UserError, match="no benchmark 'nope'"):
        use(store, "judge@1", "nope", reason="first", now=NOW)
    use(store, "judge@1", benchmark().name, reason="first", now=NOW)
    use(store, "judge@1", benchmark().name, reason="again", now=LATER)
    assert [u.reason for u in store.catalog.graders_in_use()] == ["first"]
