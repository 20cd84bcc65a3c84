"""How far an instrument moves by itself: what is varied, what cannot be, and that nothing else is left behind."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from eval_tasks.checkpoint import fetch
from eval_tasks.determinism import sensitivity
from eval_tasks.determinism.sensitivity import _reordered
from eval_tasks.errors import UserError
from eval_tasks.records import EngineConfig, Item, Sensitivity
from eval_tasks.register import register_benchmark
from eval_tasks.resolve import resolve
from eval_tasks.store import Store
from tests.planned import N_CHOICE, NOW, register


def study(store: Store, checkpoint: Path, tmp_path: Path, **changes: object) -> Sensitivity:
    resolved = resolve(store, checkpoint_uri=str(checkpoint), training_run="adhoc")
    arguments = {"suite": "colours-all", "engine": EngineConfig(prefix="shared"), "n_draws": 1, **changes}
    folder = fetch(resolved, tmp_path / "cache")
    return sensitivity(store, checkpoint=resolved, folder=folder, now=NOW, **arguments)  # type: ignore[arg-type]


def test_each_choice_that_should_not_matter_is_varied_apart(store: Store, checkpoint: Path, tmp_path: Path) -> None:
    folder = tmp_path / "benchmarks"
    listed = {"item": "{{ question }}\n{{ choices | join(', ') }}\nAnswer:", "choices": "choices"}
    register(store, folder, prompt=listed)
    other = yaml.safe_load((folder / "colours.yaml").read_text("utf-8"))
    other |= {"version": "2", "prompt": {**other["prompt"], "item": "{{ question }}\nThe answer is:"}}
    (folder / "colours-2.yaml").write_text(yaml.safe_dump(other), "utf-8")
    register_benchmark(store, folder / "colours-2.yaml", NOW)
    runs = store.catalog.runs()
    seen: list[tuple[int, int]] = []
    found = study(store, checkpoint, tmp_path, progress=lambda done, total: seen.append((done, total)))
    by = {(s.benchmark, s.varied, s.variant): s for s in found.shifts}
    assert set(by) == {
        ("colours", "choice_order", "order 0"),
        ("colours", "template", "colours@2"),
        *((name, "dtype", "bfloat16") for name in ("colours", "colour-text", "colour-sums")),
    }
    assert by["colours", "template", "colours@2"].n == N_CHOICE
    assert by["colours", "choice_order", "order 0"].n_flipped > 0, "a random model knows no right answer"
    loss = by["colour-text", "dtype", "bfloat16"]
    assert loss.delta != 0 and abs(loss.delta) < 0.1 and loss.unit != "fraction"
    assert sorted(found.not_varied) == sorted(
        [
            "choice_order: colour-text: kind loss has no choices",
            "choice_order: colour-sums: kind generation has no choices",
            *(f"few_shot_draw: {n}: it has no worked examples" for n in ("colours", "colour-text", "colour-sums")),
            *(
                f"template: {n}: no other registered version asks about the same items"
                for n in ("colour-text", "colour-sums")
            ),
        ]
    )
    assert seen[-1][0] == seen[-1][1]
    assert store.catalog.runs() == runs and store.catalog.reruns() == []
    assert store.catalog.sensitivities() == [found]
    assert study(store, checkpoint, tmp_path).study_id == found.study_id
    assert len(store.catalog.sensitivities()) == 1


def test_an_order_moves_the_gold_answer_with_the_choices_and_follows_from_content_alone() -> None:
    item = Item(item_id="a", fields={"question": "q", "options": ["r", "g", "b"], "answer": 1, "year": 1}, target=1)
    orders = {tuple(_reordered(item, "options", {"answer"}, seed).fields["options"]) for seed in range(40)}
    assert len(orders) == 6
    for seed in range(40):
        moved = _reordered(item, "options", {"answer"}, seed)
        assert moved.fields["options"][moved.target] == "g"
        assert (moved.fields["answer"], moved.fields["year"]) == (moved.target, 1)
        assert _reordered(replace(item, item_id="b"), "options", {"answer"}, seed).fields == moved.fields


def test_bad_input_is_refused(store: Store, checkpoint: Path, tmp_path: Path) -> None:
    register(store, tmp_path / "benchmarks")
    with pytest.raises(UserError, match="0 draws"):
        study(store, checkpoint, tmp_path, n_draws=0)
    with pytest.raises(UserError, match="no suite 'x'"):
        study(store, checkpoint, tmp_path, suite="x")
    with pytest.raises(UserError, match="a mock engine makes its answers up"):
        study(store, checkpoint, tmp_path, engine=EngineConfig(mock_accuracy=0.5))
