"""What is wrong in a corpus is counted and named, ends no scan, and takes nothing else with it."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from eval_tasks.contamination.corpus import cut_shards, manifest_of, register_corpus
from eval_tasks.contamination.readers import PROBLEMS, CorpusReader
from eval_tasks.contamination.rule import Rule
from eval_tasks.errors import UserError
from eval_tasks.records import CorpusPiece
from eval_tasks.store import Store
from tests.contamination.corpora import NOW, item, scanned, sentence, table_of, write_jsonl

PLANT = sentence(0, 20)
TABLE = table_of(Rule(), item("i", PLANT))


def line(text: str) -> bytes:
    return json.dumps({"text": text}).encode() + b"\n"


def test_torn_lines_bad_bytes_and_empty_documents(store: Store, tmp_path: Path) -> None:
    lines = [
        b'{"text": "torn\n',
        b"\n",
        b"[1, 2]\n",
        b'{"body": "no text"}\n',
        b'{"text": null}\n',
        line(""),
        line(" ... "),
        b'{"text": "bad \xff byte ' + PLANT.encode() + b'"}\n',
        b'{"text": "half a pair \\ud83d here"}\n',
        line(PLANT)[:-1],  # the last line has no end
    ]
    (tmp_path / "a.jsonl").write_bytes(b"".join(lines))
    check, rows = scanned(store, tmp_path / "a.jsonl", TABLE)
    assert check.problems == {"torn_line": 2, "no_text": 2, "empty_document": 2, "invalid_utf8": 1}
    assert (check.n_documents, rows["i"]["n_documents"]) == (5, 2)
    assert {example["row"] for example in rows["i"]["examples"]} == {8, 10}
    assert set(check.problems) <= PROBLEMS.keys()


def test_a_file_that_breaks_off_counts_as_far_as_it_goes(store: Store, tmp_path: Path) -> None:
    folder = tmp_path / "web"
    whole = gzip.compress(b"".join(line(f"{PLANT} {os.urandom(400).hex()}") for _ in range(2000)))
    folder.mkdir()
    (folder / "torn.jsonl.gz").write_bytes(whole[: len(whole) // 2])
    (folder / "torn.parquet").write_bytes(b"PAR1 no parquet")
    (folder / "empty.jsonl.gz").write_bytes(b"")
    pq.write_table(pa.table({"body": ["x"]}), folder / "other.parquet")
    write_jsonl(folder / "good.jsonl", [PLANT])
    check, rows = scanned(store, folder, TABLE)
    assert rows["i"]["n_documents"] > 100
    assert check.problems["damaged_file"] >= 3
    (run,) = store.catalog.contamination("bench")
    assert run.problems == check.problems


def test_a_corpus_that_changes_or_goes_during_a_scan_says_so(store: Store, tmp_path: Path) -> None:
    from eval_tasks.contamination.scan import plan_scan, run_scan
    from eval_tasks.contamination.status import note

    for name in ("gone", "longer", "same-size", "good"):
        write_jsonl(tmp_path / f"web/{name}.jsonl", [PLANT])
    register_corpus(store, "web", str(tmp_path / "web"), now=NOW, take_digests=True)
    scan, _ = plan_scan(store, "web", ["bench"], TABLE.rule)
    (tmp_path / "web/gone.jsonl").unlink()
    write_jsonl(tmp_path / "web/longer.jsonl", [PLANT, PLANT])
    path = tmp_path / "web/same-size.jsonl"
    before = path.stat()
    path.write_bytes(path.read_bytes().replace(b"word0", b"other"))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    (check,) = run_scan(store, scan, now=NOW, table=TABLE)
    assert check.problems == {"changed_file": 2, "gone_file": 1}
    assert note([check], 1.0).endswith(", 3 files changed, damaged or gone")
    hits = store.scans.get(scan.scan_id, 0)
    assert hits is not None
    assert sorted(named.partition(":")[0] for named in hits.named) == ["changed_file", "changed_file", "gone_file"]


def test_a_corpus_removed_later_leaves_its_checks(store: Store, tmp_path: Path) -> None:
    path = write_jsonl(tmp_path / "web/a.jsonl", [PLANT])
    check, _ = scanned(store, tmp_path / "web", TABLE)
    path.unlink()
    assert store.catalog.contamination("bench") == [check]
    with pytest.raises(UserError, match="no file at all"):
        register_corpus(store, "web", str(tmp_path / "web"), now=NOW)


def test_a_document_of_100_megabytes(store: Store, tmp_path: Path) -> None:
    (tmp_path / "web").mkdir()
    (tmp_path / "web/big.txt").write_text("filler word " * 8_500_000 + PLANT, "utf-8")
    check, rows = scanned(store, tmp_path / "web", TABLE)
    assert check.n_documents == 1 and rows["i"]["status"] == "contaminated"
    assert rows["i"]["examples"][0]["text"] == PLANT


def test_every_format_and_compression_reads_alike(store: Store, tmp_path: Path) -> None:
    texts = ["first document", f"naïve {PLANT}", "third"]
    folder = tmp_path / "web"
    write_jsonl(folder / "a.jsonl", texts)
    write_jsonl(folder / "b.json.gz", texts, compress=True)
    data = (folder / "a.jsonl").read_bytes()
    (folder / "c.ndjson.zst").write_bytes(pa.Codec("zstd").compress(data, asbytes=True))
    pq.write_table(pa.table({"text": texts, "id": [1, 2, 3]}), folder / "d.parquet", row_group_size=1)
    pq.write_table(pa.table({"text": pa.array(texts).dictionary_encode()}), folder / "e.parquet", compression="zstd")
    (folder / "f.txt").write_text("\n\n".join(texts), "utf-8")
    check, rows = scanned(store, folder, TABLE, id_field="id")
    assert check.problems == {}
    assert (check.n_documents, rows["i"]["n_documents"]) == (16, 6)


def test_lines_are_documents_where_that_is_said(store: Store, tmp_path: Path) -> None:
    (tmp_path / "corpus").write_text(f"one\n{PLANT}\n\nthree\n", "utf-8")
    check, rows = scanned(store, tmp_path / "corpus", TABLE, format_="lines")
    assert (check.n_documents, check.problems) == (4, {"empty_document": 1})
    assert rows["i"]["examples"][0]["row"] == 2


def test_a_large_parquet_file_is_cut_between_row_groups(store: Store, tmp_path: Path) -> None:
    texts = [f"{PLANT if n % 10 == 0 else ''} {sentence(n * 100, 50)}" for n in range(100)]
    pq.write_table(pa.table({"text": texts}), tmp_path / "a.parquet", row_group_size=10)
    register_corpus(store, "web", str(tmp_path / "a.parquet"), now=NOW)
    manifest = manifest_of(store, store.catalog.corpus("web"))
    shards = cut_shards(manifest, shard_bytes=manifest.n_bytes // 4, max_shards=100)
    assert 3 <= len(shards) <= 10
    reader = CorpusReader(manifest)
    rows = [int(row) for shard in shards for piece in shard for batch in reader.documents(piece) for row in batch.rows]
    assert rows == list(range(100))
    assert len(cut_shards(manifest, shard_bytes=1, max_shards=2)) == 2
    whole = list(reader.documents(CorpusPiece(file=0)))
    assert sum(len(batch.rows) for batch in whole) == 100


def test_the_same_files_are_the_same_corpus(store: Store, tmp_path: Path) -> None:
    write_jsonl(tmp_path / "web/a.jsonl", [PLANT])
    scanned(store, tmp_path / "web", TABLE)
    before = store.catalog.corpus("web")
    assert before.n_documents == 1
    again, _ = register_corpus(store, "web", str(tmp_path / "web"), now="2027-01-01T00:00:00+00:00")
    assert again == before
    write_jsonl(tmp_path / "web/b.jsonl", ["more"])
    other, _ = register_corpus(store, "web", str(tmp_path / "web"), now="2027-01-01T00:00:00+00:00")
    assert other.index_digest != before.index_digest and other.n_documents == 0
