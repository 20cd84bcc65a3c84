"""How hits are stored: the Parquet schemas of a shard's findings and of a check's rows, one per item."""

from __future__ import annotations

import pyarrow as pa

from eval_tasks.store.parquet import Form


def _schema(**columns: pa.DataType) -> pa.Schema:
    return pa.schema([pa.field(name, kind, nullable=False) for name, kind in columns.items()])


RUNS = Form(schema=_schema(n=pa.int32(), start=pa.int64(), stop=pa.int64(), n_documents=pa.int64()), few_values=("n",))
"""N-grams at positions [start, stop) of the table's words stand in `n_documents` documents of the shard each."""

SEGMENTS = Form(
    schema=_schema(segment=pa.int64(), n_documents=pa.int64(), n_answer_near=pa.int64(), n_whole=pa.int64())
)
"""Documents with a span of the segment, with its answer near one, and with all of it."""

EXAMPLES = Form(
    schema=_schema(
        segment=pa.int64(),
        start=pa.int32(),
        length=pa.int32(),
        answer_near=pa.bool_(),
        file=pa.int32(),
        row=pa.int64(),
        word=pa.int64(),
        document=pa.string(),
        text=pa.string(),
    ),
)
"""Different spans of a segment, each in the first documents that have it: words [start, start + length), and the text
as it stands there."""

ITEMS = Form(
    schema=pa.schema(
        [
            pa.field("item_id", pa.string(), nullable=False),
            pa.field("status", pa.string(), nullable=False),
            pa.field("n", pa.list_(pa.int32()), nullable=False),
            *(
                pa.field(f"{section}_share", pa.list_(pa.float64()), nullable=False)
                for section in ("question", "choices", "answer")
            ),
            pa.field("n_boilerplate", pa.int64(), nullable=False),
            pa.field("longest_words", pa.int64(), nullable=False),
            pa.field("n_documents", pa.int64(), nullable=False),
            pa.field("n_answer_near", pa.int64(), nullable=False),
            pa.field("whole_question", pa.bool_(), nullable=False),
            pa.field("examples", pa.string(), nullable=False),
        ]
    ),
    few_values=("status",),
)
"""A check's rows. Shares are one per n of the column `n`, NaN where a section has no n-gram. `examples` is JSON."""
