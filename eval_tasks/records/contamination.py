"""Training corpora as they were registered, and scans of them for the items of benchmarks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from eval_tasks.digests import digest_value, short_id
from eval_tasks.records.codec import to_json

CorpusFormat = Literal["jsonl", "parquet", "text", "lines"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CorpusFile:
    """One file of a corpus. `version`: its etag or modification time; `blake3` of its bytes, None when not taken."""

    path: str
    size: int
    version: str
    format: CorpusFormat
    blake3: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CorpusManifest:
    """What a corpus consists of. `text_field` and `id_field` name columns or keys; without ids rows are numbered."""

    uri: str
    files: tuple[CorpusFile, ...]
    text_field: str = "text"
    id_field: str | None = None

    @property
    def digest(self) -> str:
        """Digest of the files and of how they are read; not of where they lie."""
        files = [[f.path, f.size, f.blake3 or f.version, f.format] for f in self.files]
        return digest_value([files, self.text_field, self.id_field])

    @property
    def n_bytes(self) -> int:
        """Size of all files as they lie there."""
        return sum(file.size for file in self.files)


@dataclass(frozen=True, slots=True, kw_only=True)
class CorpusPiece:
    """A file of a manifest, by its number; of Parquet row groups [first_group, last_group), 0 and None for all."""

    file: int
    first_group: int = 0
    last_group: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Scan:
    """Some benchmarks to be looked for in one corpus, shard by shard. `rule` is the rule's parameters, as JSON."""

    corpus: str
    corpus_digest: str
    manifest_blob: str
    benchmark_ids: tuple[str, ...]
    rule: Mapping[str, object]
    shards: tuple[tuple[CorpusPiece, ...], ...]

    @property
    def scan_id(self) -> str:
        """The same question to the same files, cut alike, is the same scan."""
        return short_id(digest_value(to_json(self)))


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardHits:
    """What one shard of a scan holds. `table_digest` names the match table that segment numbers belong to.

    `problems`: kind -> how many; `named` the first few of each, in words. The three blobs are Parquet.
    """

    scan_id: str
    shard: int
    table_digest: str
    runs_blob: str
    segments_blob: str
    examples_blob: str
    n_documents: int
    n_words: int
    n_bytes: int
    problems: Mapping[str, int] = field(default_factory=dict)
    named: tuple[str, ...] = ()
