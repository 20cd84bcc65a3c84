"""lm-eval's `hf` model as a process: commands in as JSON lines on stdin, answers out as JSON lines on stdout.

It runs in lm-eval's own environment (`make parity-env`) and knows nothing of checkpoint-eval. Every answer of a model
call carries `cpu_seconds` and `wall_seconds` of that call alone, without loading and without this protocol.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
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
            {"doc": sample["doc"], "arguments": sample["arguments"], "answers": sample["resps"]}
            for sample in results["samples"][task]
        ]
        return {"samples": samples}


def _timed(call: Callable[[], Any]) -> tuple[Any, dict[str, float]]:
    wall, cpu = time.perf_counter(), time.process_time()
    found = call()
    return found, {"cpu_seconds": time.process_time() - cpu, "wall_seconds": time.perf_counter() - wall}


def main() -> None:
    """Answer until stdin ends. Whatever libraries print goes to stderr."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    sys.path[:] = [entry for entry in sys.path if Path(entry).resolve() != Path(__file__).parent]
    worker = Worker()
    for line in sys.stdin:
        command = json.loads(line)
        answer = getattr(worker, command.pop("do"))(**command)
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
