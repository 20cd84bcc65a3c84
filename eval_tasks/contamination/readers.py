"""Files of a corpus -> batches of documents. What cannot be read is counted and named, and never ends a scan."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import IO, Any

import numpy as np
import numpy.typing as npt
from blake3 import blake3

from eval_tasks.checkpoint.storage import Folder
from eval_tasks.contamination.corpus import compression_of
from eval_tasks.contamination.hashing import Ints, joined
from eval_tasks.errors import CheckpointGoneError
from eval_tasks.records import CorpusFile, CorpusManifest, CorpusPiece

BATCH_BYTES = 4 * 1024 * 1024
_MOST_ROWS = 20_000
_PIECE_BYTES = 64 * 1024
_NAMED = 3

PROBLEMS = {
    "torn_line": "lines that are no JSON object",
    "no_text": "rows without text in the text field",
    "empty_document": "documents without a word",
    "invalid_utf8": "documents with bytes that are no UTF-8 (read as spaces)",
    "damaged_file": "files that broke off: what came before was read",
    "changed_file": "files that are not what was registered (read as they are)",
    "gone_file": "files that are not there any more",
}


@dataclass(slots=True)
class Problems:
    """What went wrong, counted by the kinds of PROBLEMS; the first of each kind are named."""

    counts: Counter[str] = field(default_factory=Counter)
    named: list[str] = field(default_factory=list)

    def add(self, kind: str, where: str, detail: str = "") -> None:
        """Count one, and name it if it is among the first of its kind."""
        self.counts[kind] += 1
        if self.counts[kind] <= _NAMED:
            self.named.append(f"{kind}: {where}" + (f": {detail}" if detail else ""))


@dataclass(frozen=True, slots=True, kw_only=True)
class Documents:
    """Some documents of one file: document d is the UTF-8 of ``texts[starts[d]:stops[d]]``, row ``rows[d]`` of it."""

    file: int
    texts: npt.NDArray[np.uint8]
    starts: Ints
    stops: Ints
    rows: Ints
    ids: Any = None

    def name(self, document: int) -> str:
        """The document's own id, else its number in the file, from 1."""
        own = self.ids[document] if self.ids is not None else None
        if own is not None and not isinstance(own, str | int | float):
            own = own.as_py()
        return f"#{int(self.rows[document]) + 1}" if own is None else str(own)


class CorpusReader:
    """Reads pieces of one corpus."""

    def __init__(self, manifest: CorpusManifest) -> None:
        self._manifest = manifest
        self._folder = Folder(manifest.uri)
        self.problems = Problems()
        self._changed: set[str] = set()

    def documents(self, piece: CorpusPiece) -> Iterator[Documents]:
        """The documents of a piece, in order. Problems are added to `problems`; InfraError when storage fails."""
        file = self._manifest.files[piece.file]
        try:
            self._check(file)
            with self._folder.open(file.path) as handle:
                watched = _Watched(handle, file.blake3 is not None)
                yield from self._of_format(file, piece, watched)
                if file.blake3 is not None and file.format != "parquet" and watched.rest_digest() != file.blake3:
                    self._note_change(file.path, "other bytes than registered")
            self._check(file)
        except CheckpointGoneError:
            self.problems.add("gone_file", file.path)

    def _check(self, file: CorpusFile) -> None:
        now = self._folder.file(file.path)
        if (now.size, now.version) != (file.size, file.version):
            self._note_change(file.path, f"{now.size:,} bytes, {file.size:,} when it was registered")

    def _note_change(self, path: str, detail: str) -> None:
        if path not in self._changed:
            self._changed.add(path)
            self.problems.add("changed_file", path, detail)

    def _of_format(self, file: CorpusFile, piece: CorpusPiece, handle: _Watched) -> Iterator[Documents]:
        import pyarrow as pa

        try:
            if file.format == "parquet":
                yield from self._parquet(file, piece, handle)
                return
            stream = _uncompressed(handle, compression_of(file.path))
            if file.format == "text":
                yield from self._text(piece.file, stream)
                return
            lines = _lines(stream)
            rows = self._json_rows(file, lines) if file.format == "jsonl" else ((n, t, None) for n, t in lines)
            yield from _batched(piece.file, rows)
        except (pa.ArrowException, EOFError) as error:
            self.problems.add("damaged_file", file.path, _first_line(error))
        except OSError as error:
            if error.errno is not None:
                raise
            self.problems.add("damaged_file", file.path, _first_line(error))

    def _json_rows(
        self, file: CorpusFile, lines: Iterator[tuple[int, bytes]]
    ) -> Iterator[tuple[int, bytes, str | None]]:
        text_field, id_field = self._manifest.text_field, self._manifest.id_field
        for number, line in lines:
            where = f"{file.path} line {number + 1}"
            try:
                text = line.decode()
            except UnicodeDecodeError:
                self.problems.add("invalid_utf8", where)
                text = line.decode("utf-8", "replace")
            if not text.strip():
                continue
            try:
                row = json.loads(text)
            except (ValueError, RecursionError):
                self.problems.add("torn_line", where)
                continue
            if not isinstance(row, dict):
                self.problems.add("torn_line", where, f"a {type(row).__name__}, no object")
                continue
            found = row.get(text_field)
            if not isinstance(found, str):
                self.problems.add("no_text", where)
                continue
            own = row.get(id_field) if id_field is not None else None
            yield number, found.encode("utf-8", "replace"), None if own is None else str(own)

    def _text(self, number: int, stream: IO[bytes]) -> Iterator[Documents]:
        """The whole file as one document."""
        parts = []
        while block := stream.read(BATCH_BYTES):
            parts.append(bytes(block))
        yield from _batched(number, iter([(0, b"".join(parts), None)]))

    def _parquet(self, file: CorpusFile, piece: CorpusPiece, handle: _Watched) -> Iterator[Documents]:
        import pyarrow as pa
        import pyarrow.parquet as pq

        parquet = pq.ParquetFile(handle.handle)
        groups = range(piece.first_group, piece.last_group or parquet.metadata.num_row_groups)
        row = sum(parquet.metadata.row_group(group).num_rows for group in range(piece.first_group))
        names = [self._manifest.text_field, *([self._manifest.id_field] if self._manifest.id_field else [])]
        missing = [name for name in names if name not in parquet.schema_arrow.names]
        if self._manifest.text_field in missing:
            self.problems.add("damaged_file", file.path, f"no column {self._manifest.text_field!r}")
            return
        names = [name for name in names if name not in missing]
        for group in groups:
            meta = parquet.metadata.row_group(group)
            per_row = max(1, meta.total_byte_size // max(1, meta.num_rows))
            size = max(1, min(_MOST_ROWS, BATCH_BYTES // per_row))
            for batch in parquet.iter_batches(batch_size=size, row_groups=[group], columns=names, use_threads=False):
                column = batch.column(self._manifest.text_field)
                if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
                    column = column.cast(pa.large_string())
                if column.null_count:
                    for n in np.flatnonzero(column.is_null().to_numpy(zero_copy_only=False)).tolist():
                        self.problems.add("no_text", f"{file.path} row {row + n + 1}")
                ids = batch.column(names[1]) if len(names) > 1 else None
                yield _from_arrow(piece.file, column, row, ids)
                row += batch.num_rows


def _from_arrow(file: int, column: Any, first_row: int, ids: Any) -> Documents:
    """Documents in the column's own memory."""
    import pyarrow as pa

    wide = pa.types.is_large_string(column.type)
    _, offsets, data = column.buffers()
    places = np.frombuffer(offsets, np.int64 if wide else np.int32)[column.offset : column.offset + len(column) + 1]
    return Documents(
        file=file,
        texts=np.frombuffer(data, np.uint8) if data is not None and data.size else np.zeros(1, np.uint8),
        starts=places[:-1].astype(np.int64),
        stops=places[1:].astype(np.int64),
        rows=np.arange(first_row, first_row + len(column)),
        ids=ids,
    )


def _batched(file: int, rows: Iterator[tuple[int, bytes, str | None]]) -> Iterator[Documents]:
    """(row, text, id) -> batches of about BATCH_BYTES."""
    numbers: list[int] = []
    texts: list[bytes] = []
    ids: list[str | None] = []
    size = 0

    def batch() -> Documents:
        data, starts, stops = joined(texts)
        kept = list(ids) if any(own is not None for own in ids) else None
        return Documents(file=file, texts=data, starts=starts, stops=stops, rows=np.array(numbers, np.int64), ids=kept)

    try:
        for number, text, own in rows:
            numbers.append(number)
            texts.append(text)
            ids.append(own)
            size += len(text)
            if size >= BATCH_BYTES or len(texts) >= _MOST_ROWS:
                yield batch()
                numbers, texts, ids, size = [], [], [], 0
    except Exception:
        if texts:  # what came before the file broke off
            yield batch()
        raise
    if texts:
        yield batch()


def _lines(stream: IO[bytes]) -> Iterator[tuple[int, bytes]]:
    """(number from 0, line without its end). What comes before the stream breaks is given first."""
    number = 0
    rest: list[bytes] = []
    while True:
        try:
            block = bytes(stream.read(BATCH_BYTES))
        except Exception:
            if rest:
                yield number, b"".join(rest)
            raise
        if not block:
            break
        lines = block.split(b"\n")
        if len(lines) == 1:
            rest.append(block)
            continue
        yield number, b"".join([*rest, lines[0]])
        for line in lines[1:-1]:
            number += 1
            yield number, line
        number += 1
        rest = [lines[-1]] if lines[-1] else []
    if rest:
        yield number, b"".join(rest)


def _uncompressed(handle: _Watched, compression: str | None) -> Any:
    import pyarrow as pa

    if compression is None:
        return handle
    return _Pieces(pa.CompressedInputStream(pa.PythonFile(handle, mode="r"), compression))


class _Pieces:
    """A stream read piece by piece, so that what comes before the place where it breaks is given first."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self._error: Exception | None = None

    def read(self, size: int) -> bytes:
        """The next bytes, fewer than `size` at the end and where the stream breaks."""
        if self._error is not None:
            raise self._error
        parts: list[bytes] = []
        left = size
        while left > 0:
            try:
                piece = self._stream.read(min(left, _PIECE_BYTES))
            except Exception as error:
                if not parts:
                    raise
                self._error = error
                break
            if not piece:
                break
            parts.append(piece)
            left -= len(piece)
        return b"".join(parts)


class _Watched:
    """A binary stream that may take the digest of what it hands out."""

    def __init__(self, handle: IO[bytes], take_digest: bool) -> None:
        self.handle = handle
        self._hasher = blake3() if take_digest else None
        self.closed = False

    def read(self, size: int = -1) -> bytes:
        """The next bytes."""
        data = self.handle.read(size)
        if self._hasher is not None:
            self._hasher.update(data)
        return data

    def close(self) -> None:
        """Leave the handle to whoever opened it."""

    def readable(self) -> bool:
        """Always."""
        return True

    def rest_digest(self) -> str:
        """Digest of everything, what is left unread included."""
        while self.read(BATCH_BYTES):
            pass
        return self._hasher.hexdigest() if self._hasher is not None else ""


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:200]
