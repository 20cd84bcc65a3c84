"""Which files of a checkpoint's folder can change a number, by name. Knows no storage.

Only these make a checkpoint's identity and a landing's listing: a log that grows, an optimizer state or a marker beside
them makes no new checkpoint.
"""

from __future__ import annotations

import re

CONFIG = "config.json"
TOKENIZER = "tokenizer.json"
WEIGHTS = "model.safetensors"
INDEX = "model.safetensors.index.json"
CHECKSUMS = "checksums.blake3.json"

_NUMBER_MOVING = frozenset(
    {
        CONFIG,
        "generation_config.json",
        TOKENIZER,
        "tokenizer_config.json",
        "special_tokens_map.json",
        "added_tokens.json",
        "chat_template.jinja",
        "chat_template.json",
        "vocab.json",
        "vocab.txt",
        "merges.txt",
        "tokenizer.model",
        "spiece.model",
        "sentencepiece.bpe.model",
        "tekken.json",
    }
)
_SHARD = re.compile(r"model-\d+-of-\d+\.safetensors")
_PICKLE = re.compile(r"(?!optimizer|scheduler|scaler|rng_state|training_args).*\.(bin|pt|pth|ckpt)")
_TEMPORARY = re.compile(r"^\.|^~|~$|\.(tmp|temp|part|partial|incomplete|lock|swp)$|\.tmp[._-]", re.IGNORECASE)


def is_temporary(name: str) -> bool:
    """True for hidden files, the half-written files of common writers, and names that cannot be decoded."""
    return not name.isprintable() or _TEMPORARY.search(name) is not None


def is_weights(name: str) -> bool:
    """True for a safetensors file or an index of such files."""
    return not is_temporary(name) and (name.endswith(".safetensors") or name == INDEX)


def is_shard(name: str) -> bool:
    """True for a file named as one of several shards."""
    return _SHARD.fullmatch(name) is not None


def is_pickle(name: str) -> bool:
    """True for weights in a format that can run code when it is read."""
    return _PICKLE.fullmatch(name) is not None


def moves_numbers(name: str) -> bool:
    """True for a file that can change what a model answers."""
    return is_weights(name) or name in _NUMBER_MOVING
