"""One task's settings -> the document of a benchmark, or why it cannot be one. Reads and writes no file.

Field by field as lm-eval 0.4.9 reads them (api/task.py). What has no counterpart here refuses the task by name; a
metric that is not ours, or that is computed by a function of theirs, is left out and named in the notes, as long as one
is left.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic import ValidationError

from eval_tasks.digests import digest_bytes
from eval_tasks.lm_eval_tasks.row_filters import row_filter
from eval_tasks.lm_eval_tasks.scoring_parts import (
    Refusal,
    choice_part,
    generation_part,
    likelihood_part,
    loss_part,
    shown_answer,
)
from eval_tasks.lm_eval_tasks.task_files import PythonFunction, TaskFile
from eval_tasks.registry import BenchmarkSpec
from eval_tasks.registry.yaml_file import NAME

_UNSUPPORTED = {
    "process_docs": "rewrites its data with code",
    "process_results": "scores with code",
    "custom_dataset": "makes its data with code",
    "use_prompt": "takes its prompt from promptsource",
    "doc_to_image": "shows images",
    "doc_to_audio": "plays audio",
    "unsafe_code": "runs the code that a model writes",
    "class": "is a Python class",
}
_NOT_NEEDED = ("metric_list.", "doc_to_decontamination_query")
"""Functions that no prompt and no other metric goes through."""
_SPLIT = re.compile(r"[\w.-]+")
_LONGEST_NAME = 63


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What the command line adds: revisions by hub data set, and the number of examples where not None."""

    revisions: Mapping[str, str] = field(default_factory=dict)
    num_fewshot: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Converted:
    """A benchmark's document, the rows of examples that the task holds itself, and remarks for a person."""

    name: str
    task: str
    document: Mapping[str, Any]
    examples: Sequence[Mapping[str, Any]] = ()
    notes: Sequence[str] = ()


def convert(file: TaskFile, options: Options) -> Converted:
    """The benchmark of a task. Raises Refusal with the reason, which names the field and the function or filter."""
    file, where = _without_row_filter(file)
    task = file.settings
    _refuse_code(file)
    name = benchmark_name(str(task["task"]))
    notes: list[str] = []
    parts = _PARTS.get(str(task.get("output_type", "generate_until")))
    if parts is None:
        raise Refusal("output_type", f"{task.get('output_type')!r} is none of {', '.join(_PARTS)}")
    document: dict[str, Any] = {
        "name": name,
        "version": _version(task),
        "description": f"{task['task']} of lm-evaluation-harness 0.4.9.",
        "licence": "see the data set: the task file names none",
        "source": _source(task, _evaluated_split(task), options, notes),
        **parts(task, notes),
    }
    if where:
        notes.append(f"process_docs keeps the rows with {where}: read from its code, which was not run")
    few_shot, examples = _few_shot(task, name, document, options, notes)
    document |= few_shot
    if where:
        shown = few_shot.get("few_shot", {}).get("source")
        for source in [document["source"], *([shown] if shown and not examples else [])]:
            source["where"] = where
    if few_shot and document["kind"] == "generation":
        document["prompt"]["target"] = shown_answer(document["prompt"]["target"])
    _check(document)
    return Converted(name=name, task=str(task["task"]), document=document, examples=examples, notes=notes)


def benchmark_name(task: str) -> str:
    """The task's name in small letters, other characters as '-'; one that is too long ends in a digest of it.

    Raises Refusal for a task whose name has no letter or digit.
    """
    name = re.sub(r"[^a-z0-9._-]", "-", task.lower()).strip("._-")
    if len(name) > _LONGEST_NAME:
        name = f"{name[: _LONGEST_NAME - 9]}-{digest_bytes(task.encode())[:8]}"
    if not re.fullmatch(NAME, name):
        raise Refusal("task", f"{task!r} gives no name for a benchmark")
    return name


_PARTS = {
    "multiple_choice": choice_part,
    "generate_until": generation_part,
    "loglikelihood": likelihood_part,
    "loglikelihood_rolling": loss_part,
}


def _without_row_filter(file: TaskFile) -> tuple[TaskFile, dict[str, str]]:
    """The file without a process_docs that does nothing but keep rows of a value in a column, and that."""
    function = file.settings.get("process_docs")
    if not isinstance(function, PythonFunction) or function.module is None:
        return file, {}
    where = row_filter(function.module, function.name.rpartition(".")[2])
    if where is None:
        return file, {}
    settings = {name: value for name, value in file.settings.items() if name != "process_docs"}
    functions = tuple(found for found in file.functions if found[0] != "process_docs")
    return TaskFile(path=file.path, settings=settings, functions=functions), where


def _refuse_code(file: TaskFile) -> None:
    if "class" in file.settings:
        raise Refusal("class", "is a Python class")
    needed = [found for found in file.functions if not found[0].startswith(_NOT_NEEDED)]
    if needed:
        where, function = needed[0]
        more = f" and {len(needed) - 1} more" if len(needed) > 1 else ""
        raise Refusal(where, f"needs the Python function {function}{more}")
    for name, what in _UNSUPPORTED.items():
        if file.settings.get(name):
            raise Refusal(name, what)


def _version(task: Mapping[str, Any]) -> str:
    metadata = task.get("metadata")
    return str(metadata.get("version", "0")) if isinstance(metadata, Mapping) else "0"


def _evaluated_split(task: Mapping[str, Any]) -> str:
    split = task.get("test_split") or task.get("validation_split")
    if not split:
        raise Refusal("test_split", "names no split to evaluate on")
    return str(split)


def _source(task: Mapping[str, Any], split: str, options: Options, notes: list[str]) -> dict[str, Any]:
    """A hub data set at its revision, or a local file; without a pin the fields are there to be filled in."""
    path, kwargs = str(task.get("dataset_path") or ""), task.get("dataset_kwargs") or {}
    files = kwargs.get("data_files")
    if path in ("json", "parquet"):
        found = files.get(split) if isinstance(files, Mapping) else files
        if not isinstance(found, str):
            raise Refusal("dataset_kwargs.data_files", f"names no single file for split {split!r}")
        return {"uri": found, "blake3": None, "format": "jsonl" if path == "json" else "parquet"}
    if not path or not re.fullmatch(r"[\w.-]+(/[\w.-]+)?", path):
        raise Refusal("dataset_path", f"{path!r} is neither a hub data set nor json or parquet")
    if unknown := sorted(set(kwargs) - {"trust_remote_code"}):
        raise Refusal("dataset_kwargs", f"has {unknown[0]!r}, which has no counterpart")
    if not _SPLIT.fullmatch(split):
        raise Refusal("test_split", f"{split!r} is a slice of a split")
    revision = options.revisions.get(path)
    if revision is None:
        note = f"pin the revision of {path}: a commit of 40 characters, by hand or with --revision {path}=COMMIT"
        notes += [note] if note not in notes else []
    source = {"hub": path, "revision": revision, "config": task.get("dataset_name"), "split": split}
    return {key: value for key, value in source.items() if value is not None or key == "revision"}


def _few_shot(
    task: Mapping[str, Any], name: str, document: Mapping[str, Any], options: Options, notes: list[str]
) -> tuple[dict[str, Any], Sequence[Mapping[str, Any]]]:
    k = task.get("num_fewshot")
    if options.num_fewshot is not None and k != options.num_fewshot:
        if k == 0:  # as in lm-eval
            notes.append("the task says 0 examples, and keeps that")
        else:
            k = options.num_fewshot
    config = task.get("fewshot_config") or {}
    if not k or document["kind"] == "loss":
        return {}, ()
    if unknown := sorted(set(config) - {"sampler", "samples", "split"}):
        raise Refusal(f"fewshot_config.{unknown[0]}", "changes the prompt of examples alone, which has no counterpart")
    sampler = config.get("sampler", "default")
    if sampler not in ("default", "first_n"):
        raise Refusal("fewshot_config.sampler", f"{sampler!r} is neither default nor first_n")
    few_shot: dict[str, Any] = {"k": int(k), "select": "first" if sampler == "first_n" else "seeded"}
    if sampler == "default":
        few_shot["seed"] = 1234
        notes.append("examples are a function of the item; lm-eval draws them from one stream per process")
    samples = config.get("samples")
    if samples is not None and not task.get("fewshot_split"):
        if not isinstance(samples, list) or not all(isinstance(row, Mapping) for row in samples):
            raise Refusal("fewshot_config.samples", "is no list of rows")
        few_shot["source"] = {"uri": f"{name}-examples.jsonl", "blake3": None, "format": "jsonl"}
        return {"few_shot": few_shot}, samples
    split = task.get("fewshot_split") or task.get("training_split") or task.get("validation_split")
    if split and split != _evaluated_split(task):
        few_shot["source"] = _source(task, str(split), options, notes)
    return {"few_shot": few_shot}, ()


def _check(document: Mapping[str, Any]) -> None:
    """The document as it will be read, pins filled in. Raises Refusal for what our files cannot say."""

    def pinned(source: Mapping[str, Any]) -> dict[str, Any]:
        return {**source, **({"revision": "0" * 40} if "hub" in source else {"blake3": "0" * 64})}

    filled = {**document, "source": pinned(document["source"])}
    if "source" in (few_shot := document.get("few_shot", {})):
        filled["few_shot"] = {**few_shot, "source": pinned(few_shot["source"])}
    try:
        BenchmarkSpec.model_validate(filled)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"]) or "the task"
        raise Refusal(where, str(first["msg"]).removeprefix("Value error, ")) from error
