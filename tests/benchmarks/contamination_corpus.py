"""A generated corpus and items for `bench-contamination`: words of a Zipf law, and 13-word plants at known places.

Text is ASCII with punctuation and capitals, and one word in 200 has a letter that is not; everything comes from a seed.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from eval_tasks.contamination.items import ItemText

PLANT_WORDS = 13
DOCUMENT_WORDS = 500
ITEM_WORDS = 300
N_WORDS = 200_000
_ROWS = 2_000


class Language:
    """Words with the frequencies of natural text, drawn from one seed."""

    def __init__(self, seed: int) -> None:
        self._random = np.random.default_rng(seed)
        lengths = np.clip(self._random.poisson(4.2, N_WORDS) + 1, 1, 14)
        letters = self._random.integers(0, 26, int(lengths.sum()), dtype=np.uint8) + ord("a")
        ends = np.cumsum(lengths)
        text = letters.tobytes().decode()
        words = [
            text[end - n : end] + ("é" if k % 200 == 7 else "")
            for k, (n, end) in enumerate(zip(lengths.tolist(), ends.tolist(), strict=True))
        ]
        written = np.array(
            [*words, *(f"{w}," for w in words), *(f"{w}." for w in words), *(w.title() for w in words)], object
        )
        self._written = written
        chance = 1.0 / (np.arange(N_WORDS) + 4.0)
        self._cumulative = np.cumsum(chance / chance.sum())
        self._forms = np.cumsum([0.82, 0.06, 0.05, 0.07])

    def words(self, n: int) -> list[str]:
        """n words as they are written."""
        which = np.searchsorted(self._cumulative, self._random.random(n)).clip(0, N_WORDS - 1)
        form = np.searchsorted(self._forms, self._random.random(n)).clip(0, 3)
        found: list[str] = self._written[form * N_WORDS + which].tolist()
        return found


def write_corpus(
    folder: Path, *, n_bytes: int, n_items: int, n_plants: int, n_files: int, seed: int = 1
) -> dict[str, Any]:
    """Items, corpus files of about `n_bytes` of text in all, and what was planted; gives what is in `made.json`.

    Item k with k < n_plants has PLANT_WORDS consecutive words of it in one document, written in upper case.
    """
    folder.mkdir(parents=True, exist_ok=True)
    language = Language(seed)
    items = [language.words(ITEM_WORDS) for _ in range(n_items)]
    pq.write_table(pa.table({"question": [" ".join(words) for words in items]}), folder / "items.parquet")
    random = np.random.default_rng(seed + 1)
    per_file = n_bytes // n_files
    plants = iter(range(n_plants))
    n_documents = max(1, n_bytes // (DOCUMENT_WORDS * 6))
    planted_at = {int(d): next(plants) for d in sorted(random.choice(n_documents, n_plants, replace=False).tolist())}
    made = {"plants": n_plants, "text_bytes": 0, "documents": 0, "files": []}
    document = 0
    for number in range(n_files):
        path = folder / f"corpus-{number}.parquet"
        size = 0
        with pq.ParquetWriter(path, pa.schema([("text", pa.string())]), compression="zstd") as writer:
            while size < per_file or (number == n_files - 1 and document <= max(planted_at, default=0)):
                texts = []
                words = language.words(DOCUMENT_WORDS * _ROWS)
                for row in range(_ROWS):
                    own = words[row * DOCUMENT_WORDS : (row + 1) * DOCUMENT_WORDS]
                    item = planted_at.get(document)
                    if item is not None:
                        start = int(random.integers(0, ITEM_WORDS - PLANT_WORDS + 1))
                        at = int(random.integers(0, DOCUMENT_WORDS))
                        own[at:at] = [word.upper() for word in items[item][start : start + PLANT_WORDS]]
                    texts.append(" ".join(own))
                    document += 1
                writer.write_table(pa.table({"text": texts}))
                size += sum(len(text.encode()) for text in texts)
        made["text_bytes"] += size
        made["files"].append({"path": path.name, "text_bytes": size, "stored_bytes": path.stat().st_size})
    made["documents"] = document
    (folder / "made.json").write_text(json.dumps(made), "utf-8")
    return made


def read_items(folder: Path) -> list[ItemText]:
    """The generated items."""
    texts = pq.read_table(folder / "items.parquet")["question"].to_pylist()
    return [ItemText(item_id=f"i{n}", question=(text,)) for n, text in enumerate(texts)]


def read_texts(path: Path) -> Iterator[list[str]]:
    """The documents of a file, some at a time."""
    for batch in pq.ParquetFile(path).iter_batches(batch_size=1000, columns=["text"], use_threads=False):
        yield batch.column(0).to_pylist()
