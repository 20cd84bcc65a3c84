"""The closed set of reasons why a checkpoint is not evaluated, wherever that is found. Knows no storage and no model.

A reason either heals by waiting (the upload may still be going on) or it does not (no further byte can make these files
right): the first kind waits and raises one alert after a limit, the second is broken at once. What only the tokenizer
or the engine can see is found when a landing is already settled, so it never heals.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """What a reason means, whether the checkpoint may still become complete by itself, and who finds it."""

    meaning: str
    heals: bool
    found_by: Literal["listing", "tokenizer", "engine"] = "listing"


def _tokenizer(meaning: str) -> Reason:
    return Reason(meaning=meaning, heals=False, found_by="tokenizer")


def _engine(meaning: str) -> Reason:
    return Reason(meaning=meaning, heals=False, found_by="engine")


REASONS: Mapping[str, Reason] = MappingProxyType(
    {
        "no_config": Reason(meaning="config.json is not there", heals=True),
        "no_tokenizer": Reason(meaning="tokenizer.json is not there", heals=True),
        "no_weights": Reason(meaning="there is no safetensors file at all", heals=True),
        "no_index": Reason(meaning="shards are there, and no model.safetensors.index.json", heals=True),
        "no_marker": Reason(meaning="the configured marker file is not there", heals=True),
        "pickle_only": Reason(meaning="weights only as pickles (.bin, .pt, .pth, .ckpt), never loaded", heals=True),
        "missing_shard": Reason(meaning="the index names a shard that is not there", heals=True),
        "zero_byte": Reason(meaning="a required file has 0 bytes", heals=True),
        "torn_header": Reason(meaning="a safetensors file ends within its header", heals=True),
        "truncated": Reason(meaning="a safetensors file is shorter than its header says", heals=True),
        "torn_index": Reason(meaning="the index of shards cannot be read as one", heals=True),
        "unreadable_json": Reason(meaning="config.json or tokenizer.json is not a JSON object", heals=True),
        "unsettled": Reason(meaning="its files keep changing", heals=True),
        "over_long": Reason(meaning="a safetensors file is longer than its header says", heals=False),
        "pointer_file": Reason(meaning="a git-LFS or git-annex pointer stands where a file should", heals=False),
        "bad_header": Reason(meaning="a safetensors header contradicts itself", heals=False),
        "shard_mismatch": Reason(meaning="index and shards, or two shards, contradict each other", heals=False),
        "checksum_mismatch": Reason(meaning="the trainer's checksums do not fit the files", heals=False),
        "gone": Reason(meaning="the checkpoint, or one of its files, was removed", heals=False),
        "no_fast_tokenizer": _tokenizer("tokenizer.json is not in the folder that was fetched"),
        "bad_tokenizer": _tokenizer("the tokenizer's files cannot be read, or name a token that is not in them"),
        "unsupported_architecture": _engine("the engine's contract was not shown for this architecture"),
        "bidirectional_attention": _engine("predictions depend on the tokens that are to be predicted"),
        "sliding_window_unsupported": _engine("a sliding window is no number of positions"),
        "rope_unsupported": _engine("positions depend on the length of what is in the batch"),
        "quantized_unsupported": _engine("the weights are quantized"),
        "tensor_parallel_unsupported": _engine("its layers cannot be shared by so many ranks"),
        "unreadable_weights": _engine("the weights cannot be loaded into the model of config.json"),
        "shape_mismatch": _engine("a weight has another shape than config.json says"),
        "missing_weights": _engine("some weights are not in the files and would be random"),
        "newly_initialised_weights": _engine("most weights are not in the files and would be random"),
        "unexpected_weights": _engine("the files hold weights that the model of config.json does not have"),
        "untied_head_missing": _engine("the output head is not in the files, and config.json says it is not tied"),
        "tied_head_differs": _engine("config.json says the head is tied, and it differs from the embedding"),
        "embedding_too_small": _engine("the tokenizer has more ids than the embedding has rows"),
        "does_not_fit": _engine("weights and work need more memory than the pod may use"),
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """Why a checkpoint cannot be evaluated (now). `message` names the file, what was found, expected, and a way out."""

    reason: str
    message: str

    @property
    def heals(self) -> bool:
        """True when the upload may still complete it, False when it is broken for good."""
        return REASONS[self.reason].heals

    def __str__(self) -> str:
        return f"{self.reason}: {self.message}"
