"""A checkpoint's folder -> None when it is complete, else the Problem. Reads small files and safetensors headers only.

Complete means: config.json parses, tokenizer.json parses, and `model.safetensors`, or its index and every shard, have
the exact size that their headers say. A zero-filled tail cannot be seen here: a checksum or the health loss finds it.
"""

from __future__ import annotations

from collections.abc import Mapping

from eval_tasks.checkpoint.files import CONFIG, TOKENIZER, is_temporary
from eval_tasks.checkpoint.reasons import Problem
from eval_tasks.checkpoint.storage import Folder, StoredFile
from eval_tasks.checkpoint.weights import Weights, find_weights, read_json
from eval_tasks.errors import CheckpointGoneError


def check_complete(uri: str) -> Problem | None:
    """What keeps the checkpoint at `uri` from being evaluated, or None. Raises InfraError when storage fails."""
    try:
        folder = Folder(uri)
        found = inspect_files(folder, folder.files())
    except CheckpointGoneError as error:
        return Problem(reason="gone", message=str(error))
    return found if isinstance(found, Problem) else None


def inspect_files(folder: Folder, files: Mapping[str, StoredFile]) -> Weights | Problem:
    """The weights of a complete checkpoint, or what is wrong: what no waiting can cure goes before what it may."""
    written = {name: file for name, file in files.items() if not is_temporary(name)}
    weights = find_weights(folder, written)
    problems = [
        problem
        for problem in (
            _required_json(folder, written, CONFIG, "no_config"),
            weights if isinstance(weights, Problem) else None,
            _required_json(folder, written, TOKENIZER, "no_tokenizer"),
        )
        if problem is not None
    ]
    return next((problem for problem in problems if not problem.heals), problems[0]) if problems else weights


def _required_json(folder: Folder, files: Mapping[str, StoredFile], name: str, absent: str) -> Problem | None:
    if name not in files:
        return Problem(
            reason=absent,
            message=f"{folder.uri} has no {name}; wait for the upload to end, or save it there with save_pretrained()",
        )
    value = read_json(folder, files[name])
    return value if isinstance(value, Problem) else None
