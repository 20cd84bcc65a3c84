"""The five raw outputs: chosen by a rule that anybody can repeat."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

from eval_tasks.raw_outputs import N_SAMPLES, _shown, choose, take_samples
from eval_tasks.store import Store
from tests.answered import answered, checkpoint
from tests.store import samples

__all__ = ["answered", "checkpoint"]

STATUSES = {f"i{n:03d}": "invalid" if n < 2 else "excluded" if n < 5 else "ok" for n in range(100)}


def test_the_choice_is_the_same_each_time_and_in_whatever_order_items_come() -> None:
    turned = dict(reversed(list(STATUSES.items())))
    assert choose("run", STATUSES) == choose("run", turned) == choose("run", STATUSES)
    assert len(set(choose("run", STATUSES))) == N_SAMPLES


def test_another_run_shows_other_items() -> None:
    ok = dict.fromkeys(STATUSES, "ok")
    assert choose("run-1", ok) != choose("run-2", ok)


def test_an_item_that_goes_does_not_change_which_others_are_taken() -> None:
    ok = dict.fromkeys(STATUSES, "ok")
    first = choose("run", ok)
    rest = {item_id: status for item_id, status in ok.items() if item_id != first[0]}
    assert choose("run", rest)[:-1] == first[1:]


def test_statuses_take_turns_worst_first() -> None:
    chosen = choose("run", STATUSES)
    assert [STATUSES[item_id] for item_id in chosen] == ["invalid", "ok", "excluded", "invalid", "ok"]
    many = choose("run", STATUSES, n=8)
    assert Counter(STATUSES[item_id] for item_id in many) == {"invalid": 2, "ok": 3, "excluded": 3}


def test_fewer_items_than_samples_are_all_shown() -> None:
    assert sorted(choose("run", {"a": "ok", "b": "invalid"})) == ["a", "b"]
    assert choose("run", {}) == []


def test_every_sample_of_an_item_is_shown_in_part() -> None:
    outputs = [f"{n} " + "x" * 3000 for n in range(8)]
    shown = _shown(samples.response("i", samples=tuple(samples.sample(output=output) for output in outputs)))
    assert len(shown) <= 1000
    assert [line[:6] for line in shown.splitlines()] == [f"[{n + 1}] {n} " for n in range(8)]


def test_a_sample_shows_prompt_output_reading_and_gold(store: Store, answered: Callable[..., str]) -> None:
    def answer(name: str, n: int) -> dict[str, Any]:
        if name == "colours" and n == 3:
            return {"status": "invalid", "reason": "non-finite logits", "logprobs": (), "token_logprobs": ()}
        return {}

    run = store.catalog.run(answered(answer))
    choice, _text, sums = (store.catalog.benchmark_by_id(i) for i in run.request.benchmark_ids)
    grader = store.scores.graders(run.run_id, choice.benchmark_id)[-1]
    worst, *rest = take_samples(store, run.run_id, choice, grader)
    assert (worst.item_id, worst.status, worst.extracted) == ("c003", "invalid: non-finite logits", None)
    assert worst.prompt_tail == "Which of these is number 3?\nAnswer:"
    assert worst.gold == "choice 3"
    assert all(sample.status == "ok" and sample.extracted in set("0123") for sample in rest)
    assert all(sample.output.count("-") == 4 for sample in rest)
    grader = store.scores.graders(run.run_id, sums.benchmark_id)[-1]
    for sample in take_samples(store, run.run_id, sums, grader):
        n = int(sample.item_id[1:])
        assert (sample.output, sample.gold) == (f" The answer is {n}.", f"#### {2 * n + 1}")
