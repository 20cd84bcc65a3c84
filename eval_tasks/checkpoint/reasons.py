"""The closed set of reasons why a checkpoint is not evaluated. Knows no storage.

A reason either heals by waiting (the upload may still be going on) or it does not (no further byte can make these files
right): the first kind waits and raises one alert after a limit, the second is broken at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """What a reason means, and whether the checkpoint may still become complete by itself."""

    meaning: str
    heals: bool


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
