"""lm-eval's `hf` model as a process: commands in as JSON lines on stdin, answers out as JSON lines on stdout.

It runs in lm-eval's own environment (`make parity-env`) and knows nothing of checkpoint-eval. Every answer of a model
call carries `cpu_seconds` and `wall_seconds` of that call alone, without loading and without this protocol.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any

os.environ |= {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1"}


class Worker:
    """One loaded model at a time. Settings that are not named here stay at lm-eval's defaults."""

    def __init__(self) -> None:
        self._model: Any = None

    def versions(self) -> dict[str, Any]:
        """What answers."""
        return {name: version(name) for name in ("lm-eval", "transformers", "torch")}

    def load(self, folder: str, dtype: str) -> dict[str, Any]:
        """Load a checkpoint on one thread."""
        import torch
        from lm_eval.models.huggingface import HFLM

        torch.set_num_threads(1)
        self._model = HFLM(pretrained=folder, dtype=dtype, device="cpu", batch_size=1)
        return {}

    def score(self, pairs: list[list[list[int]]], batch_size: int) -> dict[str, Any]:
        """Log-probability of each (context ids, continuation ids)."""
        self._model.batch_size_per_gpu = batch_size
        requests = [(("", ""), context, continuation) for context, continuation in pairs]
        found, seconds = _timed(lambda: self._model._loglikelihood_tokens(requests, disable_tqdm=True))
        return {"values": [value for value, _ in found], **seconds}

    def generate(self, prompts: list[str], settings: dict[str, Any], batch_size: int) -> dict[str, Any]:
        """Greedy continuation of each prompt; `settings` are lm-eval's gen_kwargs."""
        from lm_eval.api.instance import Instance

        self._model.batch_size_per_gpu = batch_size
        requests = [
            Instance("generate_until", {}, (prompt, dict(settings)), index) for index, prompt in enumerate(prompts)
        ]
        texts, seconds = _timed(lambda: self._model.generate_until(requests, disable_tqdm=True))
        return {"texts": texts, **seconds}

    def evaluate(self, folder: str, task: str, num_fewshot: int, batch_size: int) -> dict[str, Any]:
        """Run a task file of `folder`; per sample its document, its requests' arguments and the model's answers."""
        from lm_eval.evaluator import simple_evaluate
        from lm_eval.tasks import TaskManager

        self._model.batch_size_per_gpu = batch_size
        results = simple_evaluate(
            model=self._model,
            tasks=[task],
            task_manager=TaskManager(include_path=folder, include_defaults=False),
            num_fewshot=num_fewshot,
            log_samples=True,
            bootstrap_iters=0,
        )
        samples = [
            {
                "doc": sample["doc"],
                "arguments": sample["arguments"],
                "answers": sample["resps"],
                "filter": sample["filter"],
                "filtered": sample["filtered_resps"],
                "metrics": {name: sample[name] for name in sample["metrics"]},
            }
            for sample in results["samples"][task]
        ]
        return {"samples": samples}

    def log_samples(self, folder: str, task: str, num_fewshot: int, batch_size: int, out: str) -> dict[str, Any]:
        """What ``lm_eval --log_samples --output_path OUT`` writes for a task file of `folder`, and its results."""
        from lm_eval.evaluator import simple_evaluate
        from lm_eval.loggers import EvaluationTracker
        from lm_eval.tasks import TaskManager

        self._model.batch_size_per_gpu = batch_size
        tracker = EvaluationTracker(output_path=out)
        results = simple_evaluate(
            model=self._model,
            model_args="pretrained=model",  # what the folder in OUT is named for
            tasks=[task],
            task_manager=TaskManager(include_path=folder, include_defaults=False),
            num_fewshot=num_fewshot,
            log_samples=True,
            bootstrap_iters=0,
            evaluation_tracker=tracker,
        )
        samples = results.pop("samples")
        tracker.save_results_aggregated(results=results, samples=samples)
        tracker.save_results_samples(task_name=task, samples=samples[task])
        return {"results": results["results"][task]}

    def tasks_folder(self) -> dict[str, Any]:
        """Where the task files of lm-eval's own wheel are."""
        import lm_eval

        return {"folder": str(Path(lm_eval.__file__).parent / "tasks")}

    def run_task(
        self, path: str, rows: list[dict[str, Any]], examples: list[dict[str, Any]], num_fewshot: int | None
    ) -> dict[str, Any]:
        """Run one of lm-eval's own task files, as it is, on `rows` in the place of its data set, without a model.

        The splits that are not evaluated hold `examples`, of which the first are shown. Answers are made up: a
        log-probability is a hash of the request, a text a variation of the gold answer. `error` says why a task could
        not be run.
        """
        try:
            return {"samples": _run_task(path, rows, examples, num_fewshot)}
        except Exception as error:  # whatever a task of theirs raises is the answer
            return {"error": f"{type(error).__name__}: {error}"}


def _run_task(path: str, rows: list[Any], examples: list[Any], num_fewshot: int | None) -> list[dict[str, Any]]:
    from lm_eval.api.task import ConfigurableTask
    from lm_eval.evaluator import evaluate
    from lm_eval.utils import load_yaml_config

    settings = load_yaml_config(path, mode="full")
    evaluated = settings.get("test_split") or settings.get("validation_split")
    settings["fewshot_config"] = {**(settings.get("fewshot_config") or {}), "sampler": "first_n"}
    if num_fewshot is not None and settings.get("num_fewshot") != 0:  # a 0 in the file stays, as in simple_evaluate
        settings["num_fewshot"] = num_fewshot
    for name in ("group", "dataset_kwargs"):
        settings.pop(name, None)
    with _data_of(evaluated, rows, examples):
        task = ConfigurableTask(config=settings)
    task.set_fewshot_seed(1234)
    name = str(settings["task"])
    results = evaluate(lm=_made_up_answers(task), task_dict={name: task}, bootstrap_iters=0, log_samples=True)
    return [_sample(task, sample) for sample in results["samples"][name]]


@contextmanager
def _data_of(evaluated: str, rows: list[Any], examples: list[Any]) -> Iterator[None]:
    """`datasets.load_dataset` gives the rows for the evaluated split, and the examples for any other."""
    import datasets

    class Splits(dict[str, Any]):
        def __missing__(self, split: str) -> Any:
            return datasets.Dataset.from_list(rows if split == evaluated else examples)

    loader = datasets.load_dataset
    datasets.load_dataset = lambda *_, **__: Splits()
    try:
        yield
    finally:
        datasets.load_dataset = loader


def _made_up_answers(task: Any) -> Any:
    from lm_eval.api.model import LM

    class MadeUp(LM):
        def loglikelihood(self, requests: list[Any], disable_tqdm: bool = False) -> list[tuple[float, bool]]:
            return [_number("\0".join(request.args)) for request in requests]

        def loglikelihood_rolling(self, requests: list[Any], disable_tqdm: bool = False) -> list[float]:
            return [_number(request.args[0])[0] for request in requests]

        def generate_until(self, requests: list[Any], disable_tqdm: bool = False) -> list[str]:
            return [self._text(request) for request in requests]

        def _text(self, request: Any) -> str:
            text = _variation(_gold(task, request.doc), request.doc_id)
            until = request.args[1].get("until") or []
            for stop in [until] if isinstance(until, str) else until:
                text = text.split(stop)[0] if stop else text
            return text

    return MadeUp()


def _number(text: str) -> tuple[float, bool]:
    """A log-probability that any float keeps, and whether greedy decoding agrees."""
    drawn = int(hashlib.sha256(text.encode()).hexdigest()[:8], 16)
    return -0.5 - (drawn % 4096) / 64, bool(drawn & 4096)


def _gold(task: Any, doc: dict[str, Any]) -> str:
    gold = task.doc_to_target(doc)
    if task.config.doc_to_choice is not None and isinstance(gold, int):
        gold = task.doc_to_choice(doc)[gold]
    return str(gold[0] if isinstance(gold, list) and gold else gold)


def _variation(gold: str, number: int) -> str:
    """Right answers in the forms that filters look for, and wrong ones."""
    last = gold.rsplit("#### ")[-1]
    forms = (
        gold,
        f" The answer is {last}.",
        f"#### {last}",
        f"So the answer is {last}. Then ({last}) it is.",
        "I do not know.",
        f"({last})",
        "",
        f"{last.upper()}\n\nQ: And then?",
        f"The final answer is {last}",
        f"First 12, then {last}, but not $1,234.50!",
        f"A: {last}\nQuestion: next",
    )
    return forms[number % len(forms)]


def _sample(task: Any, sample: dict[str, Any]) -> dict[str, Any]:
    doc = sample["doc"]
    kept = {name: sample[name] for name in ("doc_id", "doc", "arguments", "resps", "filter", "filtered_resps")}
    metrics = {name: sample[name] for name in sample["metrics"]}
    return {**kept, "metrics": metrics, "gold": _gold(task, doc)}


def write_punkt(folder: Path) -> Path:
    """English Punkt in the form that NLTK reads: a `punkt_tab` folder."""
    from punkt.data import english

    target = folder / "tokenizers/punkt_tab/english"
    target.mkdir(parents=True)
    tables: dict[str, Iterable[str]] = {
        "abbrev_types.txt": sorted(english.ABBREV_TYPES),
        "sent_starters.txt": sorted(english.SENT_STARTERS),
        "collocations.tab": ("\t".join(pair) for pair in sorted(english.COLLOCATIONS)),
        "ortho_context.tab": (f"{word}\t{flags}" for word, flags in sorted(english.ORTHO_CONTEXT.items())),
    }
    for name, lines in tables.items():
        (target / name).write_text("\n".join(lines), "utf-8")
    return folder


def _timed(call: Callable[[], Any]) -> tuple[Any, dict[str, float]]:
    wall, cpu = time.perf_counter(), time.process_time()
    found = call()
    return found, {"cpu_seconds": time.process_time() - cpu, "wall_seconds": time.perf_counter() - wall}


def main() -> None:
    """Answer until stdin ends. Whatever libraries print goes to stderr."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    sys.path[:] = [entry for entry in sys.path if Path(entry).resolve() != Path(__file__).parent]
    os.environ["NLTK_DATA"] = str(write_punkt(Path("nltk_data").absolute()))
    worker = Worker()
    for line in sys.stdin:
        command = json.loads(line)
        answer = getattr(worker, command.pop("do"))(**command)
        answers.write(json.dumps(answer, default=float) + "\n")  # metrics may be numbers of numpy
        answers.flush()


if __name__ == "__main__":
    main()
