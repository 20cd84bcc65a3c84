"""Judges' files: what is registered, what changes nothing, and what is refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from eval_tasks.errors import CheckpointError, UserError
from eval_tasks.store import Store
from tests.graders.judged import PROMPT, register, write_judge
from tests.planned import write_checkpoint


@pytest.fixture(scope="module")
def judge_checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_checkpoint(tmp_path_factory.mktemp("judge") / "judge", seed=7)


def test_what_no_verdict_depends_on_may_change_and_the_rest_is_kept(
    store: Store, judge_checkpoint: Path, tmp_path: Path
) -> None:
    first = register(store, write_judge(tmp_path, judge_checkpoint))
    assert (first.name, first.kind, first.reproducible) == ("judge/helpful", "model", True)
    assert first.grader == f"judge/helpful@1+{first.digest[:8]}"
    store.catalog.save_grader(replace(first, adopted=True, created_at="2020-01-01T00:00:00+00:00"))
    again = register(store, write_judge(tmp_path, judge_checkpoint, description="Checks sums."))
    assert (again.grader, again.adopted, again.created_at) == (first.grader, True, "2020-01-01T00:00:00+00:00")
    assert store.catalog.graders() == [again]
    assert again.description == "Checks sums."


@pytest.mark.parametrize(
    ("changes", "part"),
    [
        ({"prompt": {"item": PROMPT + " "}}, "prompt"),
        ({"answers": {" Yes": 1, " no": 0}}, "prompt, answer set"),
        ({"answers": {" Yes": 1, " No": 0.5}}, "answer set"),
        ({"engine": {"dtype": "bfloat16"}}, "engine"),
    ],
)
def test_a_changed_judge_needs_another_version(
    store: Store, judge_checkpoint: Path, tmp_path: Path, changes: dict[str, Any], part: str
) -> None:
    first = register(store, write_judge(tmp_path, judge_checkpoint))
    with pytest.raises(UserError, match=rf"registered with other content \({part} differ\); choose a new version"):
        register(store, write_judge(tmp_path, judge_checkpoint, **changes))
    assert store.catalog.graders() == [first]
    second = register(store, write_judge(tmp_path, judge_checkpoint, version="2", **changes))
    assert store.catalog.grader("judge/helpful") == second != first


def test_another_checkpoint_at_the_same_place_is_another_judge(store: Store, tmp_path: Path) -> None:
    folder = write_checkpoint(tmp_path / "judge", seed=1)
    register(store, write_judge(tmp_path, folder))
    write_checkpoint(folder, seed=2)
    with pytest.raises(UserError, match="checkpoint differ"):
        register(store, write_judge(tmp_path, folder))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"prompt": {"item": "{{ ouput }}"}}, "no field 'ouput' to render; close: 'output'"),
        ({"prompt": {"item": "{{ output"}}, "not a template: line 1"),
        ({"prompt": {"item": PROMPT, "chat": "always"}}, "has no chat template"),
        ({"answers": {" Yes": 1}}, "1 of them; a verdict is one of at least two"),
        ({"answers": {" Yes": 1, " No": 1}}, "all have one value"),
        ({"answers": {" Yes": 2, " No": 0}}, "' Yes' has the value 2.0; give a number from 0 to 1"),
        ({"answers": {True: 1, False: 0}}, "True is no text to YAML; quote it"),
        ({"answers": {" {{ a }}": 1, " No": 0}}, "is a template, and an answer is plain text"),
        ({"answers": {" ": 1, " No": 0}}, "' ' is blank"),
        ({"kind": "generative", "answers": {"Yes": 1, " yes.": 0}}, "' yes.' is read as 'Yes' is"),
        ({"kind": "generative", "answers": {"*": 1, "no": 0}}, r"'\*' is nothing but marks"),
        ({"kind": "generative", "verdict": {"pattern": "Verdict"}}, "has no group"),
        ({"kind": "generative", "verdict": {"pattern": "("}}, "no regular expression"),
        ({"kind": "generative", "verdict": {"max_tokens": 5000}}, "no room is left for a prompt"),
        ({"verdict": {"max_tokens": 5}}, "kind 'logprob' writes none"),
        ({"endpoint": {"base_url": "http://a/v1", "model": "m"}}, "'endpoint' does not go with kind 'logprob'"),
        ({"kind": "endpoint"}, "kind 'endpoint' needs 'endpoint'"),
        ({"name": "gsm8k"}, "'gsm8k' is the name of a scorer"),
        ({"version": "1+2"}, "version"),
        ({"temperature": 0.5}, "unknown field"),
    ],
)
def test_a_file_that_is_wrong_is_refused_and_leaves_nothing(
    store: Store, judge_checkpoint: Path, tmp_path: Path, changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(UserError, match=message):
        register(store, write_judge(tmp_path, judge_checkpoint, **changes))
    assert store.catalog.graders() == []
    assert store.catalog.checkpoints() == []


def test_a_checkpoint_that_is_none_is_refused(store: Store, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="kind 'logprob' needs 'checkpoint'"):
        register(store, write_judge(tmp_path, None))
    (tmp_path / "empty").mkdir()
    with pytest.raises(CheckpointError):
        register(store, write_judge(tmp_path, tmp_path / "empty"))


def test_answers_of_several_lengths_are_warned_of(
    store: Store, judge_checkpoint: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    register(store, write_judge(tmp_path, judge_checkpoint, answers={" A": 1, " B": 0}))
    assert not caplog.messages
    register(store, write_judge(tmp_path, judge_checkpoint, version="2"))
    assert "answers differ in tokens (' Yes' has 4, ' No' has 3)" in caplog.text
