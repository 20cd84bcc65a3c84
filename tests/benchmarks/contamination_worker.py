"""One side of `bench-contamination` in a process of its own: prints what it cost and found as one JSON line.

python -m tests.benchmarks.contamination_worker SIDE FOLDER N[,N] [FILE]
"""

from __future__ import annotations

import json
import re
import resource
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import psutil

from tests.benchmarks.contamination_corpus import read_items, read_texts

_SEPARATORS = re.compile(r"[\W_]+")


def ours(folder: Path, grams: Sequence[int], files: Sequence[int]) -> dict[str, Any]:
    """The library, from Parquet files to what was found."""
    from eval_tasks.contamination.finding import Findings
    from eval_tasks.contamination.readers import CorpusReader
    from eval_tasks.contamination.reduce import FoundTables, reduce_found
    from eval_tasks.contamination.rule import Rule
    from eval_tasks.contamination.table import build_table
    from eval_tasks.records import CorpusFile, CorpusManifest, CorpusPiece

    before = psutil.Process().memory_info().rss
    began = time.process_time()
    table = build_table(Rule(thresholds=dict.fromkeys(grams, 0.2)), [("bench", read_items(folder))])
    build_seconds = time.process_time() - began
    paths = [folder / f"corpus-{number}.parquet" for number in files]
    listed = tuple(CorpusFile(path=path.name, size=path.stat().st_size, version="", format="parquet") for path in paths)
    manifest = CorpusManifest(uri=str(folder), files=listed)
    reader = CorpusReader(manifest)
    warm = Findings(table)
    warm.add(next(reader.documents(CorpusPiece(file=0, last_group=1))))  # compiles
    findings = Findings(table)
    wall, began = time.perf_counter(), time.process_time()
    for number in range(len(paths)):
        for documents in reader.documents(CorpusPiece(file=number)):
            findings.add(documents)
    seconds, wall = time.process_time() - began, time.perf_counter() - wall
    found = FoundTables(shard=0, runs=findings.runs(), segments=findings.segments(), examples=findings.examples())
    rows = reduce_found(table, manifest, [found])["bench"]
    shares = np.array(rows["question_share"])
    return {
        "cpu_seconds": seconds,
        "wall_seconds": wall,
        "text_bytes": findings.n_bytes,
        "n_words": findings.n_words,
        "build_seconds": build_seconds,
        "table_mb": table.n_bytes / 1e6,
        "grown_mb": (psutil.Process().memory_info().rss - before) / 1e6,
        "found": {str(n): [int(k) for k in np.flatnonzero(shares[:, at] > 0)] for at, n in enumerate(table.rule.grams)},
        "contaminated": sum(status == "contaminated" for status in rows["status"]),
    }


def set_join(folder: Path, grams: Sequence[int], limit: int) -> dict[str, Any]:
    """A set of n-grams, and every n-gram of every document looked up in it."""
    (n,) = grams

    def grams_of(text: str) -> list[int]:
        words = _SEPARATORS.sub(" ", text.casefold()).split()
        return [hash(" ".join(words[k : k + n])) for k in range(len(words) - n + 1)]

    began = time.process_time()
    owners = {gram: k for k, item in enumerate(read_items(folder)) for gram in grams_of(item.question[0])}
    build_seconds = time.process_time() - began

    def look(texts: Sequence[str]) -> set[int]:
        return {owners[gram] for text in texts for gram in grams_of(text) if gram in owners}

    return _over_slice(folder, limit, build_seconds, look)


def numpy_join(folder: Path, grams: Sequence[int], limit: int) -> dict[str, Any]:
    """Words hashed at once, rolling hashes by whole arrays, and a binary search in the items' sorted hashes."""
    import pandas as pd
    import pyarrow as pa
    import pyarrow.compute as pc

    (n,) = grams
    base = np.uint64(0x9E3779B97F4A7C15)

    def hashes(texts: Sequence[str]) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.int64]]:
        plain = pc.replace_substring_regex(pc.utf8_lower(pa.array(texts)), r"[^\p{L}\p{N}]+", " ")
        lists = pc.split_pattern(pc.utf8_trim_whitespace(plain), " ")
        coded = lists.values.dictionary_encode()
        words = pd.util.hash_array(coded.dictionary.to_numpy(zero_copy_only=False))[coded.indices.to_numpy()]
        rolled = np.zeros(max(0, len(words) - n + 1), np.uint64)
        for k in range(n):
            rolled = rolled * base + words[k : k + len(rolled)]
        text_of = np.repeat(np.arange(len(texts)), np.diff(lists.offsets.to_numpy()))
        inside = text_of[: len(rolled)] == text_of[n - 1 :]
        return rolled[inside], text_of[: len(rolled)][inside]

    began = time.process_time()
    parts, owners = [], []
    texts = [item.question[0] for item in read_items(folder)]
    for first in range(0, len(texts), 5000):
        found, owner = hashes(texts[first : first + 5000])
        parts.append(found)
        owners.append(owner + first)
    every, of = np.concatenate(parts), np.concatenate(owners)
    order = np.argsort(every, kind="stable")
    every, of = every[order], of[order]
    build_seconds = time.process_time() - began

    def look(texts: Sequence[str]) -> set[int]:
        found, _ = hashes(texts)
        at = np.searchsorted(every, found).clip(0, len(every) - 1)
        return set(of[at[every[at] == found]].tolist())

    return _over_slice(folder, limit, build_seconds, look)


def _over_slice(
    folder: Path, limit: int, build_seconds: float, look: Callable[[Sequence[str]], set[int]]
) -> dict[str, Any]:
    """The first `limit` bytes of text through a baseline; reading is in its time, as it is in ours."""
    found: set[int] = set()
    n_bytes = 0
    began = time.process_time()
    for texts in read_texts(folder / "corpus-0.parquet"):
        found |= look(texts)
        n_bytes += sum(len(text.encode()) for text in texts)
        if n_bytes >= limit:
            break
    seconds = time.process_time() - began
    return {"cpu_seconds": seconds, "text_bytes": n_bytes, "build_seconds": build_seconds, "found": sorted(found)}


def main() -> None:
    """Run one side."""
    side, folder, grams, rest = sys.argv[1], Path(sys.argv[2]), [int(n) for n in sys.argv[3].split(",")], sys.argv[4:]
    if side == "ours":
        line = ours(folder, grams, [int(n) for n in rest[0].split(",")])
    else:
        line = {"set_join": set_join, "numpy_join": numpy_join}[side](folder, grams, int(rest[0]))
    line["peak_mb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
    print(json.dumps(line))  # noqa: T201


if __name__ == "__main__":
    main()
