"""`make bench-engine`: how fast the engine is, beside lm-eval 0.4.9 and beside itself; one JSON line per figure.

Both sides of a figure run in turn, in one run, on the same model and the same token ids, with one thread; figures are
medians of process CPU time over rounds. Items are those of the golden folder where it is there, made otherwise.

    python -m tests.benchmarks.engine --only choice --model 25m --dtype float32 --items 32
"""

from __future__ import annotations

import argparse
import contextlib
import json
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, get_args

from eval_tasks.engine import Engine, load_engine
from eval_tasks.records import EngineConfig, Request
from eval_tasks.records.benchmark import Policy
from eval_tasks.records.codec import to_json
from tests.benchmarks import engine_against_lm_eval as against
from tests.benchmarks import engine_alone as alone
from tests.benchmarks.engine_models import SHAPES, shape_of, write_model
from tests.benchmarks.engine_rounds import machine
from tests.parity import shaped_tasks
from tests.parity.reference import REPOSITORY, Reference, reference_python

FIGURES = ("choice", "loss", "generation", "peak", "contract", "processes")
NEEDS_LM_EVAL = ("choice", "loss", "generation")
DTYPES = ("float32", "bfloat16")
CACHE = REPOSITORY / ".cache/bench-engine"
_ITEMS_PER_SUBJECT = 16


@dataclass(frozen=True, kw_only=True)
class Case:
    """One model in one data type, and where its files go."""

    model: str
    dtype: str
    golden: Path | None
    n_items: int
    rounds: int
    scratch: Path
    reference: Reference | None = None

    @cached_property
    def folder(self) -> Path:
        """The checkpoint: the named folder, or one of random weights that is written once."""
        if self.model not in SHAPES:
            return Path(self.model)
        folder = CACHE / f"{self.model}-{'golden' if self.golden else 'made'}"
        if not (folder / "model.safetensors").exists():
            write_model(folder, SHAPES[self.model], shaped_tasks.running_text(self.golden))
        return folder

    @cached_property
    def engine(self) -> Engine:
        """Ours, with prefixes shared."""
        return load_engine(self.folder, self._config("never"))

    @cached_property
    def lm_eval(self) -> Reference:
        """lm-eval with the same checkpoint."""
        if self.reference is None:
            raise RuntimeError("this figure needs lm-eval's process")
        self.reference.ask("load", folder=str(self.folder), dtype=self.dtype)
        return self.reference

    def requests(self, task: shaped_tasks.ShapedTask, bos: Policy = "never") -> list[Request]:
        """The task for this model's tokenizer."""
        folder = Path(tempfile.mkdtemp(dir=self.scratch))
        return task.requests(folder, self.folder.resolve(), self._config(bos), self.engine.context)

    def choices(self) -> list[Request]:
        """MMLU 5-shot: items of one subject lie together, as in a plan."""
        n_subjects = max(1, self.n_items // _ITEMS_PER_SUBJECT)
        n_each = min(self.n_items, _ITEMS_PER_SUBJECT)
        return self.requests(shaped_tasks.mmlu(self.golden, n_subjects=n_subjects, n_items=n_each))

    def _config(self, bos: Policy) -> EngineConfig:
        assert bos in get_args(Policy)
        return EngineConfig(dtype=self.dtype, prefix="shared", bos=bos, chat="never")  # type: ignore[arg-type]


def choice(case: Case) -> Iterator[dict[str, Any]]:
    """MMLU, 5-shot."""
    yield against.scoring(case.engine, case.lm_eval, case.choices(), case.rounds)


def loss(case: Case) -> Iterator[dict[str, Any]]:
    """Documents of up to the context's length, from BOS on, in one window each."""
    task = shaped_tasks.documents(case.golden, n_items=max(2, case.n_items // 4))
    yield against.scoring(case.engine, case.lm_eval, case.requests(task, "always"), case.rounds)


def generation(case: Case) -> Iterator[dict[str, Any]]:
    """Outputs of mixed lengths after 5-shot prompts and after plain ones, and very short ones."""
    n = case.n_items
    sums = case.requests(shaped_tasks.gsm8k(case.golden, n_items=n, select="seeded", max_tokens=96))
    prompts = case.requests(shaped_tasks.ifeval(case.golden, n_items=n, max_tokens=160))
    shapes = {
        "gsm8k": against.with_stops(case.engine, sums, mean=36),
        "ifeval": against.with_stops(case.engine, prompts, mean=80),
        "gsm8k, very short": [replace(request, stops=("Question:",), max_tokens=3) for request in sums],
        "ifeval, very short": [replace(request, max_tokens=3) for request in prompts],
    }
    for name, requests in shapes.items():
        yield {"shape": name, **against.generation(case.engine, case.lm_eval, requests, case.rounds)}


def peak(case: Case) -> Iterator[dict[str, Any]]:
    """Share of the matrix product's peak."""
    yield alone.peak(case.engine, shape_of(case.folder), case.rounds)


def contract(case: Case) -> Iterator[dict[str, Any]]:
    """What exactness costs: on choices, and on long documents."""
    documents = shaped_tasks.documents(case.golden, n_items=max(2, case.n_items // 4))
    yield {"shape": "choice", **alone.contract(case.engine, case.choices(), case.rounds)}
    yield {"shape": "loss", **alone.contract(case.engine, case.requests(documents, "always"), case.rounds)}


def processes(case: Case) -> Iterator[dict[str, Any]]:
    """Two workers beside one."""
    path = case.scratch / "requests.jsonl"
    path.write_text("".join(json.dumps(to_json(request)) + "\n" for request in case.choices()), "utf-8")
    yield alone.processes(case.folder, case.dtype, path, case.rounds)


MEASURE: dict[str, Callable[[Case], Iterator[dict[str, Any]]]] = {
    "choice": choice,
    "loss": loss,
    "generation": generation,
    "peak": peak,
    "contract": contract,
    "processes": processes,
}


def main() -> None:
    """Measure what was asked for, a line each as it is known."""
    options = _options()
    golden = options.data if options.data.is_dir() else None
    with contextlib.ExitStack() as stack:
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        about = machine()
        reference = None
        if any(name in NEEDS_LM_EVAL for name in options.only):
            reference = stack.enter_context(Reference(reference_python()))
            about["versions"]["reference"] = reference.ask("versions")
        for model in options.model:
            for dtype in options.dtype:
                case = Case(
                    model=model,
                    dtype=dtype,
                    golden=golden,
                    n_items=options.items,
                    rounds=options.rounds,
                    scratch=scratch,
                    reference=reference,
                )
                for name in options.only:
                    for found in MEASURE[name](case):
                        line = {"benchmark": "engine", "figure": name, "model": model, "dtype": dtype, **found}
                        line["items_are"] = "golden" if golden else "made"
                        print(json.dumps({**line, "machine": {**about, **_load()}}), flush=True)  # noqa: T201


def _load() -> dict[str, Any]:
    return {"load": machine()["load"]}


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--model", nargs="+", default=["25m", "135m"], help=f"folders, or of {sorted(SHAPES)}")
    parser.add_argument("--dtype", nargs="+", default=list(DTYPES), choices=DTYPES)
    parser.add_argument("--only", nargs="+", default=list(FIGURES), choices=FIGURES)
    parser.add_argument("--items", type=int, default=32, help="items per figure (a quarter of them for documents)")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--data", type=Path, default=REPOSITORY / "../shared/golden", help="real MMLU, GSM8K, IFEval")
    return parser.parse_args()


if __name__ == "__main__":
    main()
