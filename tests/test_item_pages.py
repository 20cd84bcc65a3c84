"""Pages of a run's items: what was read by the model is shown as that, and as nothing else once it is gone."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from eval_tasks.errors import UnknownError, UserError
from eval_tasks.item_pages import ItemPage, benchmark_of, item_page
from eval_tasks.store import Store
from tests.answered import answered, checkpoint  # noqa: F401 - fixtures
from tests.planned import register
from tests.test_mock_path import evaluated, mocked  # noqa: F401 - fixtures


def page_of(store: Store, run_id: str, name: str = "colours", **wanted: object) -> ItemPage:
    run = store.catalog.run(run_id)
    return item_page(store, run, benchmark_of(store, run, name), **wanted)


@pytest.mark.parametrize("name", ["colours", "colour-text", "colour-sums"])
def test_a_prompt_is_held_against_the_digest_of_what_the_model_read(store: Store, evaluated, name: str) -> None:  # noqa: F811
    page = page_of(store, evaluated(), name, limit=5)
    assert {row.prompt_check for row in page.rows} == {"as recorded"}
    assert all(row.prompt for row in page.rows if name != "colour-text")
    for row in page.rows:
        assert [len(texts) for texts in row.tokens] == [len(values) for values in row.response.token_logprobs]
        if row.choices:
            assert ["".join(texts).strip() for texts in row.tokens] == [choice.strip() for choice in row.choices]


def test_a_checkpoint_that_went_leaves_prompts_unchecked(store: Store, evaluated) -> None:  # noqa: F811
    run = store.catalog.run(evaluated())
    gone = replace(run, checkpoint_uri="/nowhere/step-1")
    page = item_page(store, gone, benchmark_of(store, run, "colours"), limit=3)
    assert {row.prompt_check for row in page.rows} == {"not checked: the checkpoint's tokenizer is not at hand"}
    assert {row.tokens for row in page.rows} == {()}


def test_another_tokenizer_in_the_same_place_is_noticed(
    store: Store,
    evaluated,  # noqa: F811
    checkpoint: Path,  # noqa: F811
    tmp_path: Path,
) -> None:
    run = store.catalog.run(evaluated())
    changed = tmp_path / "changed"
    shutil.copytree(checkpoint, changed)
    text = (changed / "tokenizer.json").read_text("utf-8")
    (changed / "tokenizer.json").write_text(text.replace('"W":', '"W\\u0000":').replace('"Q":', '"W":'), "utf-8")
    page = item_page(store, replace(run, checkpoint_uri=str(changed)), benchmark_of(store, run, "colours"), limit=3)
    assert "as recorded" not in {row.prompt_check for row in page.rows}


def test_statuses_and_places_choose_items(store: Store, answered: Callable[..., str]) -> None:  # noqa: F811
    def answer(name: str, n: int) -> dict[str, object]:
        return {"status": "invalid", "reason": "test", "logprobs": (), "token_logprobs": ()} if n % 10 == 7 else {}

    run_id = answered(answer)
    page = page_of(store, run_id, status="invalid", limit=4)
    assert [row.item_id for row in page.rows] == ["c007", "c017", "c027", "c037"]
    assert (page.n, page.after) == (7, "c037")
    last = page_of(store, run_id, status="invalid", after=page.after, limit=4)
    assert [row.item_id for row in last.rows] == ["c047", "c057", "c067"]
    assert last.after is None
    assert page_of(store, run_id, status="excluded").rows == ()


@pytest.mark.parametrize("limit", [0, 201, -1])
def test_a_page_has_a_size(store: Store, evaluated, limit: int) -> None:  # noqa: F811
    with pytest.raises(UserError, match="give 1 to 200 items"):
        page_of(store, evaluated(), limit=limit)


def test_a_benchmark_that_the_run_has_not_is_named_with_close_ones(store: Store, evaluated) -> None:  # noqa: F811
    with pytest.raises(UnknownError, match="no benchmark 'colour'; close: "):
        page_of(store, evaluated(), "colour")


def test_a_run_that_is_not_closed_has_no_page(store: Store, checkpoint: Path, tmp_path: Path) -> None:  # noqa: F811
    register(store, tmp_path / "benchmarks")
    made = mocked(store, checkpoint)
    with pytest.raises(UserError, match="is not closed"):
        page_of(store, made.run_id)
