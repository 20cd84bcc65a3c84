"""A checkpoint's local folder -> its config.json, and the context length it declares. Knows no model code."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from eval_tasks.checkpoint.files import CONFIG
from eval_tasks.errors import CheckpointError, UserError

_CONTEXT_KEYS = ("max_position_embeddings", "n_positions", "n_ctx", "max_seq_len", "max_sequence_length", "seq_length")


def read_config(path: Path) -> dict[str, Any]:
    """The object in `path`/config.json. Raises CheckpointError (``no_config``, ``unreadable_json``)."""
    where = path / CONFIG
    try:
        config = json.loads(where.read_bytes())
    except FileNotFoundError as error:
        raise CheckpointError("no_config", f"{where} is not there; save it with save_pretrained()") from error
    except ValueError as error:
        raise CheckpointError("unreadable_json", f"{where} is not JSON: {error}; save the checkpoint again") from error
    if not isinstance(config, dict):
        raise CheckpointError("unreadable_json", f"{where} holds a {type(config).__name__}, and an object is expected")
    return config


def max_context(config: Mapping[str, Any]) -> int:
    """The most positions the model has, in tokens, as its config declares it (a nested text model's included).

    Raises UserError when the config names none: it is never guessed.
    """
    for part in (config, config.get("text_config")):
        if not isinstance(part, Mapping):
            continue
        for key in _CONTEXT_KEYS:
            value = part.get(key)
            if type(value) is int and value > 0:
                return value
    raise UserError(
        f"config.json of {config.get('model_type')!r} names no context length (looked for {', '.join(_CONTEXT_KEYS)}); "
        "give max_context in the engine's configuration"
    )
