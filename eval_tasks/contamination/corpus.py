"""A corpus URI -> its manifest, its entry in the catalog, and the shards it is scanned in. Reads no document."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import replace

from eval_tasks.checkpoint.files import is_temporary
from eval_tasks.checkpoint.storage import Folder, StoredFile
from eval_tasks.digests import digest_stream
from eval_tasks.errors import CheckpointGoneError, UserError
from eval_tasks.records import CorpusFile, CorpusFormat, CorpusManifest, CorpusPiece, from_json, to_json
from eval_tasks.store import Corpus, Store
from eval_tasks.store.moments import Moment, utc_text

COMPRESSIONS = {".gz": "gzip", ".zst": "zstd"}
_FORMATS: dict[str, CorpusFormat] = {
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
    ".parquet": "parquet",
    ".txt": "text",
    ".text": "text",
}


def register_corpus(
    store: Store,
    name: str,
    uri: str,
    *,
    now: Moment,
    format_: CorpusFormat | None = None,
    text_field: str = "text",
    id_field: str | None = None,
    description: str = "",
    take_digests: bool = False,
) -> tuple[Corpus, tuple[str, ...]]:
    """List a corpus and record it; gives it, and the files left out of it. The same files again change nothing.

    format_: read every file so, whatever its name ends in. take_digests: read all bytes once, so that a scan notices a
    change that keeps size and time. Raises UserError when there is no file of a known format.
    """
    if not name or name != name.strip() or "/" in name:
        raise UserError(f"a corpus needs a name without slashes or outer blanks, not {name!r}")
    listed, root = _listed(uri)
    files: list[CorpusFile] = []
    left_out: list[str] = []
    for file in listed:
        kind = format_ or _format_of(file.path)
        if kind is None or is_temporary(file.path.rsplit("/", 1)[-1]):
            left_out.append(file.path)
            continue
        digest = _digest(root, file) if take_digests else None
        files.append(CorpusFile(path=file.path, size=file.size, version=file.version, format=kind, blake3=digest))
    if not files:
        found = f"{len(left_out)} others, such as {left_out[0]}" if left_out else "no file at all"
        raise UserError(
            f"corpus {name!r}: {uri} has no file that ends in {', '.join(_FORMATS)} (plain, .gz or .zst), but {found}; "
            "say how they are to be read with --format"
        )
    manifest = CorpusManifest(uri=root.uri, files=tuple(files), text_field=text_field, id_field=id_field)
    known = {corpus.name: corpus for corpus in store.catalog.corpora()}.get(name)
    corpus = Corpus(
        name=name,
        uri=uri,
        created_at=utc_text(now),
        index_digest=manifest.digest,
        description=description,
        manifest_blob=store.blobs.put_json(to_json(manifest)),
        n_files=len(files),
        n_bytes=manifest.n_bytes,
    )
    if known is not None and known.index_digest == corpus.index_digest:
        corpus = replace(corpus, created_at=known.created_at, n_documents=known.n_documents, n_tokens=known.n_tokens)
    store.catalog.save_corpus(corpus)
    return corpus, tuple(left_out)


def manifest_of(store: Store, corpus: Corpus) -> CorpusManifest:
    """The manifest of a registered corpus. Raises UserError for one that was entered without files."""
    if not corpus.manifest_blob:
        raise UserError(
            f"corpus {corpus.name!r} is known by name only; register its files: "
            f"python -m eval_tasks contamination register {corpus.name} URI"
        )
    return from_json(CorpusManifest, store.blobs.get_json(corpus.manifest_blob))


def cut_shards(manifest: CorpusManifest, *, shard_bytes: int, max_shards: int) -> tuple[tuple[CorpusPiece, ...], ...]:
    """Shards of about `shard_bytes` of stored bytes, in the manifest's order, at most `max_shards`.

    A Parquet file larger than a shard is cut between row groups; another one cannot be cut and is a shard.
    """
    target = max(shard_bytes, -(-manifest.n_bytes // max_shards))
    pieces: list[tuple[CorpusPiece, int]] = []
    for number, file in enumerate(manifest.files):
        cut = _cut_parquet(manifest, number, target) if file.format == "parquet" and file.size > target else None
        pieces += cut or [(CorpusPiece(file=number), file.size)]
    shards: list[list[CorpusPiece]] = [[]]
    size = 0
    for piece, n_bytes in pieces:
        if shards[-1] and size + n_bytes > target and len(shards) < max_shards:
            shards.append([])
            size = 0
        shards[-1].append(piece)
        size += n_bytes
    return tuple(tuple(shard) for shard in shards)


def _cut_parquet(manifest: CorpusManifest, number: int, target: int) -> list[tuple[CorpusPiece, int]] | None:
    """Runs of row groups of about `target` bytes; None where the file's footer cannot be read, which a scan names."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    file = manifest.files[number]
    try:
        with Folder(manifest.uri).open(file.path) as handle:
            footer = pq.ParquetFile(handle).metadata
            sizes = [footer.row_group(group).total_byte_size for group in range(footer.num_row_groups)]
    except (pa.ArrowException, CheckpointGoneError):
        return None
    share = file.size / max(1, sum(sizes))
    pieces, first, size = [], 0, 0.0
    for group, n_bytes in enumerate(sizes):
        if size and size + n_bytes * share > target:
            pieces.append((CorpusPiece(file=number, first_group=first, last_group=group), round(size)))
            first, size = group, 0.0
        size += n_bytes * share
    return [*pieces, (CorpusPiece(file=number, first_group=first, last_group=len(sizes)), round(size))]


def compression_of(path: str) -> str | None:
    """The compression that a file's name says."""
    return next((kind for ending, kind in COMPRESSIONS.items() if path.endswith(ending)), None)


def unknown_endings(paths: Collection[str]) -> str:
    """What the names of files that were left out end in, with how many of each."""
    endings = Counter("." + path.rsplit("/", 1)[-1].rpartition(".")[2] for path in paths)
    return ", ".join(f"{ending} ({n})" for ending, n in sorted(endings.items()))


def _listed(uri: str) -> tuple[list[StoredFile], Folder]:
    """The files at a URI, which is a folder or one file, and the folder that their paths are relative to."""
    folder = Folder(uri)
    try:
        files = list(folder.tree().values())
        if [file.path for file in files] != [""]:
            return files, folder
    except CheckpointGoneError:
        pass
    parent, _, name = uri.rstrip("/").rpartition("/")
    try:
        root = Folder(parent or ".")
        return [root.file(name)], root
    except CheckpointGoneError as error:
        raise UserError(f"there is neither a folder nor a file at {uri}; check the URI") from error


def _format_of(path: str) -> CorpusFormat | None:
    plain = path
    for ending in COMPRESSIONS:
        plain = plain.removesuffix(ending)
    return next((kind for ending, kind in _FORMATS.items() if plain.endswith(ending)), None)


def _digest(root: Folder, file: StoredFile) -> str:
    with root.open(file.path) as handle:
        return digest_stream(handle)[0]
