"""A checkpoint's local folder in, a checked transformers model out, or a named refusal within seconds.

Safetensors only, no pickles, no remote code, no network. Missing, unexpected and newly initialised weights are refused:
transformers itself only warns of them.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from eval_tasks.engine.attention import ATTENTION, register
from eval_tasks.errors import CheckpointError

if TYPE_CHECKING:
    import torch

# transformers takes weight tying away from every model while it loads one: of two threads that load at once, the later
# one would leave it away for good.
_loading = threading.Lock()


def load_model(folder: Path, dtype: str, device: torch.device, vocab_size: int, *, attention: str = ATTENTION) -> Any:
    """The causal language model in `folder`, in eval mode. `vocab_size`: the tokenizer's largest id plus one.

    `attention`: as transformers names it.

    Raises CheckpointError: ``no_weights``, ``unreadable_weights``, ``shape_mismatch``, ``missing_weights``,
    ``newly_initialised_weights``, ``unexpected_weights``, ``untied_head_missing``, ``tied_head_differs``,
    ``embedding_too_small``.
    """
    if not any(folder.glob("*.safetensors")):
        raise CheckpointError("no_weights", f"{folder} has no .safetensors file; other weight formats are never loaded")
    try:
        model, loading = _from_pretrained(folder, dtype, attention)
    except RuntimeError as error:
        reason = "shape_mismatch" if "mismatch" in str(error) else "unreadable_weights"
        raise CheckpointError(reason, f"{folder}: the weights do not fit config.json: {error}") from error
    except (OSError, ValueError) as error:
        raise CheckpointError("unreadable_weights", f"{folder}: transformers cannot load it: {error}") from error
    except Exception as error:
        if type(error).__module__.partition(".")[0] != "safetensors":
            raise
        raise CheckpointError("unreadable_weights", f"{folder}: {error}") from error
    _check_loading(folder, loading, model)
    _check_embedding(folder, model, vocab_size)
    # A warning about padding looks for this id in every forward; positions are explicit here.
    model.config.pad_token_id = None
    return model.eval().requires_grad_(False).to(device)


def own_weights(base: torch.nn.Module) -> None:
    """Copy what still lies in the mapped file: one that is overwritten would change the weights under the engine."""
    for parameter in base.parameters():
        if parameter.device.type == "cpu":
            parameter.data = parameter.data.clone()


def _from_pretrained(folder: Path, dtype: str, attention: str) -> tuple[Any, Mapping[str, Any]]:
    """The model and what transformers says of its loading, which is checked here and need not be logged too."""
    import torch
    import transformers

    register()
    logging: Any = transformers.utils.logging
    load: Any = transformers.AutoModelForCausalLM.from_pretrained
    with _loading:
        verbosity = logging.get_verbosity()
        logging.disable_progress_bar()
        logging.set_verbosity_error()
        try:
            model, loading = load(
                folder,
                dtype=getattr(torch, dtype),
                attn_implementation=attention,
                use_safetensors=True,
                trust_remote_code=False,
                local_files_only=True,
                output_loading_info=True,
            )
        finally:
            logging.set_verbosity(verbosity)
    return model, loading


def _check_loading(folder: Path, loading: Mapping[str, Any], model: Any) -> None:
    """Refuse what transformers would have made up, left out or left alone."""
    missing = sorted(map(str, loading.get("missing_keys", ())))
    unexpected = sorted(map(str, loading.get("unexpected_keys", ())))
    if "lm_head.weight" in missing and not model.config.tie_word_embeddings:
        raise CheckpointError(
            "untied_head_missing",
            f"{folder}: lm_head.weight is not there and tie_word_embeddings is false; "
            "save the head, or say in config.json that it is tied",
        )
    if missing:
        whole = len(missing) > len(model.state_dict()) // 2
        raise CheckpointError(
            "newly_initialised_weights" if whole else "missing_weights",
            f"{folder}: {len(missing)} weights are not in the files and would be random: {_some(missing)}",
        )
    if loading.get("mismatched_keys"):
        raise CheckpointError(
            "shape_mismatch", f"{folder}: shapes differ from config.json: {_some(map(str, loading['mismatched_keys']))}"
        )
    if unexpected:
        raise CheckpointError(
            "unexpected_weights",
            f"{folder}: {len(unexpected)} weights belong to no part of the model of config.json: {_some(unexpected)}",
        )


def _check_embedding(folder: Path, model: Any, vocab_size: int) -> None:
    """Every token id has a row, and a head that is said to be tied is the embedding."""
    if model.get_input_embeddings() is None or model.get_output_embeddings() is None:
        raise CheckpointError(
            "unsupported_architecture", f"{folder}: {model.config.model_type!r} has no output head over an embedding"
        )
    embedding = model.get_input_embeddings().weight
    head = model.get_output_embeddings().weight
    if embedding.shape[0] < vocab_size or head.shape[0] < vocab_size:
        rows = min(embedding.shape[0], head.shape[0])
        raise CheckpointError(
            "embedding_too_small",
            f"{folder}: the tokenizer has ids up to {vocab_size - 1} and the embedding {rows} rows; "
            "resize the embedding, or save the tokenizer that the model was trained with",
        )
    if model.config.tie_word_embeddings and not (head is embedding or bool((head == embedding).all())):
        raise CheckpointError(
            "tied_head_differs",
            f"{folder}: tie_word_embeddings is true and lm_head.weight differs from the embedding; set it to false",
        )


def _some(names: Any) -> str:
    """The first names of a list that may be long."""
    names = list(names)
    return ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
