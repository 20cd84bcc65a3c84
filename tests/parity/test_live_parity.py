"""Our engine beside the real lm-eval 0.4.9, in its own environment: prompts, log-probabilities, predictions, texts.

lm-eval reads local task files in the form of MMLU, GSM8K and IFEval and runs its own `hf` model on them, in float32.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from eval_tasks.engine import load_engine
from eval_tasks.records import EngineConfig
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
    """Every item of the task: the same prompt, and what both engines say to it."""
    engine = load_engine(model, CONFIG)
    requests = task.requests(folder, model, CONFIG, engine.context)
    assert not any(request.prompt_truncated for request in requests)
    _, theirs = task.write(folder)
    reference.ask("load", folder=str(model), dtype="float32")
    answer = reference.ask("evaluate", folder=str(theirs), task=task.name, num_fewshot=task.n_examples, batch_size=4)
    samples: dict[str, dict[str, Any]] = {sample["arguments"][0][0]: sample for sample in answer["samples"]}
    assert set(samples) == {request.prompt for request in requests}
    assert len(requests) == len(answer["samples"]) == len(task.rows)
    for request, response in zip(requests, engine.respond(requests), strict=True):
        sample = samples[request.prompt]
        assert response.status == "ok"
        if request.kind == "generation":
            assert response.output == sample["answers"][0][0]
            continue
        assert [continuation for _, continuation in sample["arguments"]] == [" " + c for c in request.choices]
        expected = [logprob for ((logprob, _),) in sample["answers"]]
        assert response.logprobs == pytest.approx(expected, abs=1e-4, rel=0)
        assert response.logprobs.index(max(response.logprobs)) == expected.index(max(expected))


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
