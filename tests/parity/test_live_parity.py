"""All of ours beside the real lm-eval 0.4.9, in its own environment: prompts, log-probabilities, texts and scores.

lm-eval reads local task files in the form of MMLU, GSM8K and IFEval, with the filters and scores of its own files, and
runs its own `hf` model on them, in float32. What differs on purpose is listed in docs/benchmarks.md.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from eval_tasks.engine import load_engine
from eval_tasks.records import EngineConfig, Item, Request, Response, Score
from eval_tasks.scoring import score
from eval_tasks.scoring.instructions import is_skipped
from tests.parity.reference import Reference, UnavailableError, reference_python
from tests.parity.shaped_tasks import ShapedTask, gsm8k, ifeval, mmlu
from tests.parity.tiny_model import write_model

pytestmark = pytest.mark.full

N_ITEMS = 10
N_TEXTS = 6
MAX_TOKENS = 40
CONFIG = EngineConfig(bos="never", chat="never", prefix="shared")


@pytest.fixture(scope="module")
def reference() -> Iterator[Reference]:
    try:
        python = reference_python()
    except UnavailableError as error:
        pytest.skip(f"lm-eval's environment cannot be made here: {error}")
    with Reference(python) as running:
        yield running


@pytest.fixture(scope="module")
def random_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_model(tmp_path_factory.mktemp("random") / "model")


@pytest.fixture(scope="module")
def trained_model(tmp_path_factory: pytest.TempPathFactory, golden: Path) -> Path:
    """A golden model, with the tokenizer's class under the name that the reference's transformers knows."""
    folder = Path(shutil.copytree(golden / "models/stories260K-hf", tmp_path_factory.mktemp("trained") / "model"))
    path = folder / "tokenizer_config.json"
    settings = json.loads(path.read_text("utf-8")) | {"tokenizer_class": "PreTrainedTokenizerFast"}
    path.write_text(json.dumps(settings), "utf-8")
    return folder


def tasks_of(data: Path | None, n_examples: int) -> dict[str, ShapedTask]:
    return {
        "mmlu": mmlu(data, n_subjects=1, n_items=N_ITEMS, n_examples=n_examples),
        "gsm8k": gsm8k(data, n_items=N_TEXTS, n_examples=min(3, n_examples), max_tokens=MAX_TOKENS),
        "ifeval": ifeval(data, n_items=N_TEXTS, max_tokens=MAX_TOKENS),
    }


def check(task: ShapedTask, model: Path, reference: Reference, folder: Path) -> None:
    """Every item of the task: the same prompt, what both engines say to it, and what both sides make of that."""
    engine = load_engine(model, CONFIG)
    requests = task.requests(folder, model, CONFIG, engine.context)
    assert not any(request.prompt_truncated for request in requests)
    _, theirs = task.write(folder, Path(reference.ask("tasks_folder")["folder"]))
    reference.ask("load", folder=str(model), dtype="float32")
    answer = reference.ask("evaluate", folder=str(theirs), task=task.name, num_fewshot=task.n_examples, batch_size=4)
    samples: dict[str, list[dict[str, Any]]] = {}
    for sample in answer["samples"]:
        samples.setdefault(sample["arguments"][0][0], []).append(sample)
    assert set(samples) == {request.prompt for request in requests}
    assert len(requests) == len(samples) == len(task.rows)
    benchmark, dataset = task.registered(folder)
    items = {item.item_id: item for item in dataset.items}
    for request, response in zip(requests, engine.respond(requests), strict=True):
        theirs_of_item = samples[request.prompt]
        assert response.status == "ok"
        check_answer(request, response, theirs_of_item[0])
        scores = {row.metric: row for row in score(benchmark, items[request.item_id], response)}
        check_scores(task.name, scores, theirs_of_item, items[request.item_id])


def check_answer(request: Request, response: Response, sample: dict[str, Any]) -> None:
    """The same text, or the same log-probabilities of the same choices."""
    if request.kind == "generation":
        assert response.output == sample["answers"][0][0]
        return
    assert [continuation for _, continuation in sample["arguments"]] == [" " + c for c in request.choices]
    expected = [(logprob, is_greedy) for ((logprob, is_greedy),) in sample["answers"]]
    assert response.logprobs == pytest.approx([logprob for logprob, _ in expected], abs=1e-4, rel=0)
    assert list(response.greedy) == [is_greedy for _, is_greedy in expected]


def check_scores(name: str, ours: dict[str, Score], samples: list[dict[str, Any]], item: Item) -> None:
    """acc and acc_norm; strict and flexible with what they read; strict and loose, instruction by instruction."""
    metrics = {sample["filter"]: sample["metrics"] for sample in samples}
    if name == "mmlu-shaped":
        assert {metric: row.value for metric, row in ours.items()} == metrics["none"]
    elif name == "gsm8k-shaped":
        for level, pipeline in (("strict", "strict-match"), ("flexible", "flexible-extract")):
            assert ours[level].value == metrics[pipeline]["exact_match"]
            (sample,) = (sample for sample in samples if sample["filter"] == pipeline)
            read = ours[level].extracted
            assert ("[invalid]" if read is None else read) == sample["filtered"][0]
    else:
        kept = [not is_skipped(instruction) for instruction in item.fields["instruction_id_list"]]
        for level in ("strict", "loose"):
            verdicts = metrics["none"][f"inst_level_{level}_acc"]
            theirs = [bool(verdict) for verdict, is_kept in zip(verdicts, kept, strict=True) if is_kept]
            detail = json.loads(ours[f"prompt_{level}"].detail) if theirs else []
            assert [verdict for verdict, is_kept in zip(detail, kept, strict=True) if is_kept] == theirs
            assert ours[f"prompt_{level}"].value == (float(all(theirs)) if theirs else None)


@pytest.mark.parametrize("name", ["mmlu", "gsm8k", "ifeval"])
def test_random_model_on_made_items(name: str, random_model: Path, reference: Reference, tmp_path: Path) -> None:
    check(tasks_of(None, 5)[name], random_model, reference, tmp_path)


@pytest.mark.parametrize("name", ["mmlu", "gsm8k", "ifeval"])
def test_random_model_on_real_items(
    name: str, random_model: Path, reference: Reference, golden: Path, tmp_path: Path
) -> None:
    check(tasks_of(golden, 5)[name], random_model, reference, tmp_path)


@pytest.mark.parametrize("name", ["mmlu", "gsm8k", "ifeval"])
def test_trained_model_on_real_items(
    name: str, trained_model: Path, reference: Reference, golden: Path, tmp_path: Path
) -> None:
    """Without examples: its context has room for none."""
    check(tasks_of(golden, 0)[name], trained_model, reference, tmp_path)
