"""The mini benchmarks' rows (mini/*.jsonl, written by us) -> the Parquet files that ship with the package.

Run as ``python tests/parity/make_mini.py``; it prints nothing, writes the files, and pins their blake3 in the YAML.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from eval_tasks.digests import digest_bytes

SOURCES = Path(__file__).parent / "mini"
SHIPPED = Path(__file__).parents[2] / "eval_tasks/benchmarks/mini"
NAMES = ("mmlu-mini", "mmlu-mini-dev", "gsm8k-mini", "gsm8k-mini-train", "ifeval-mini")


def rows_of(name: str) -> list[dict[str, Any]]:
    """The rows of one source file."""
    return [json.loads(line) for line in (SOURCES / f"{name}.jsonl").read_text("utf-8").splitlines()]


def table_of(name: str) -> pa.Table:
    """The rows as a table; IFEval's kwargs become one struct with every argument, null where there is none."""
    rows = rows_of(name)
    arguments = sorted({key for row in rows for kwargs in row.get("kwargs", []) for key in kwargs})
    for row in rows:
        if "kwargs" in row:
            row["kwargs"] = [{key: kwargs.get(key) for key in arguments} for kwargs in row["kwargs"]]
    return pa.Table.from_pylist(rows)


def main() -> None:
    """Write every Parquet file and its digest."""
    for name in NAMES:
        path = SHIPPED / f"{name}.parquet"
        pq.write_table(table_of(name), path, compression="zstd")
        pin = re.compile(rf"(uri: {re.escape(path.name)}, blake3: )[0-9a-f]{{64}}")
        for benchmark in SHIPPED.glob("*.yaml"):
            text = benchmark.read_text("utf-8")
            benchmark.write_text(pin.sub(rf"\g<1>{digest_bytes(path.read_bytes())}", text), "utf-8")


if __name__ == "__main__":
    main()
