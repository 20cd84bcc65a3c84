"""Corpora and items written by hand, and the scan of them."""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping, Sequence
from io import BytesIO
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from eval_tasks.contamination.corpus import register_corpus
from eval_tasks.contamination.items import ItemText
from eval_tasks.contamination.rule import Rule
from eval_tasks.contamination.scan import plan_scan, run_scan
from eval_tasks.contamination.table import MatchTable, build_table
from eval_tasks.store import ContaminationCheck, Store

NOW = "2026-01-05T00:00:00+00:00"
LATER = "2026-01-06T00:00:00+00:00"


def sentence(first: int, n: int, stem: str = "word") -> str:
    """n words that stand nowhere else: word7 word8 ..."""
    return " ".join(f"{stem}{k}" for k in range(first, first + n))


def item(item_id: str, *question: str, answer: str = "", choices: Sequence[str] = ()) -> ItemText:
    return ItemText(item_id=item_id, question=question, choices=tuple(choices), answer=(answer,) if answer else ())


def write_jsonl(path: Path, texts: Sequence[str], compress: bool = False) -> Path:
    data = "".join(json.dumps({"text": text, "id": f"d{n}"}, ensure_ascii=False) + "\n" for n, text in enumerate(texts))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(data.encode()) if compress else data.encode())
    return path


def table_of(rule: Rule, *items: ItemText, benchmark: str = "bench") -> MatchTable:
    return build_table(rule, [(benchmark, items)])


def scanned(
    store: Store, uri: Path, table: MatchTable, *, now: str = NOW, shard_bytes: int = 10**9, **registering: Any
) -> tuple[ContaminationCheck, Mapping[str, dict[str, Any]]]:
    """The check of the table's only benchmark against the files at `uri`, and its rows by item id."""
    register_corpus(store, "web", str(uri), now=now, **registering)
    scan, _ = plan_scan(store, "web", table.benchmark_ids, table.rule, shard_bytes=shard_bytes)
    (check,) = run_scan(store, scan, now=now, table=table)
    return check, rows_of(store, check)


def rows_of(store: Store, check: ContaminationCheck) -> dict[str, dict[str, Any]]:
    rows = pq.read_table(BytesIO(store.blobs.get(check.details_blob))).to_pylist()
    return {row["item_id"]: row | {"examples": json.loads(row["examples"])} for row in rows}
