"""A scan's plan, its shards and its end: benchmarks are looked for in a registered corpus, and the catalog says so.

The same shard again gives the same hits, so that a retry or a second pod changes nothing. Statuses are recorded when
every shard is done, never before.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from eval_tasks.contamination.corpus import cut_shards, manifest_of
from eval_tasks.contamination.items import item_texts
from eval_tasks.contamination.rule import Rule, checked_rule
from eval_tasks.contamination.table import MatchTable, build_table
from eval_tasks.errors import DataError, UserError
from eval_tasks.records import BenchmarkVersion, CorpusManifest, Scan, ShardHits, from_json, to_json
from eval_tasks.store import ContaminationCheck, Store
from eval_tasks.store.moments import Moment, utc_text

SHARD_BYTES = 4 * 1024**3
MAX_SHARDS = 1024

Progress = Callable[[int, int], None]


def pending(
    store: Store, rule: Rule, *, corpora: Sequence[str] = (), benchmarks: Sequence[str] = ()
) -> list[tuple[str, tuple[str, ...]]]:
    """(corpus, benchmark_ids) that were not checked under `rule` with the corpus as it is registered now.

    corpora, benchmarks: only these (names; a benchmark also as NAME@VERSION); none means every registered one. Raises
    UserError for a name that is not known, and for a corpus that is known by name only when it is asked for.
    """
    versions = _versions(store, benchmarks)
    chosen = [store.catalog.corpus(name) for name in corpora] if corpora else store.catalog.corpora()
    found = []
    for corpus in chosen:
        if not corpus.manifest_blob:
            if corpora:
                manifest_of(store, corpus)
            continue
        ids = []
        for version in versions:
            check = store.catalog.contamination_check(version.benchmark_id, corpus.name, rule.name)
            if check is None or check.corpus_digest != corpus.index_digest:
                ids.append(version.benchmark_id)
        if ids:
            found.append((corpus.name, tuple(dict.fromkeys(ids))))
    return found


def plan_scan(
    store: Store,
    corpus: str,
    benchmark_ids: Sequence[str],
    rule: Rule,
    *,
    shard_bytes: int = SHARD_BYTES,
    max_shards: int = MAX_SHARDS,
) -> tuple[Scan, str]:
    """A scan of a corpus for some benchmark versions, and the URI of its plan."""
    checked_rule(rule)
    if not benchmark_ids:
        raise UserError(f"no benchmark to look for in corpus {corpus!r}; register one: python -m eval_tasks benchmarks")
    entry = store.catalog.corpus(corpus)
    manifest = manifest_of(store, entry)
    scan = Scan(
        corpus=entry.name,
        corpus_digest=manifest.digest,
        manifest_blob=entry.manifest_blob,
        benchmark_ids=tuple(sorted(set(benchmark_ids))),
        rule=to_json(rule),
        shards=cut_shards(manifest, shard_bytes=shard_bytes, max_shards=max_shards),
    )
    return scan, store.blobs.uri(store.blobs.put_json(to_json(scan)))


def load_scan(store: Store, reference: str) -> Scan:
    """The scan whose plan has that URI or digest. Raises UserError for no such plan."""
    digest = store.blobs.digest_of(reference)
    if not store.blobs.exists(digest):
        raise UserError(f"no scan plan {reference!r} in this store; `contamination scan --plan-only` prints the URI")
    return from_json(Scan, store.blobs.get_json(digest))


def rule_of(scan: Scan) -> Rule:
    """The rule of a scan. Raises UserError when it was planned with other text rules than this process has."""
    rule = from_json(Rule, scan.rule)
    if rule.text != Rule().text:
        raise UserError(
            f"the scan was planned under text rule {rule.text!r}, and this process has {Rule().text!r}: its Python has "
            "other Unicode tables; run the planner and the pods in one image"
        )
    return rule


def match_table(store: Store, scan: Scan) -> MatchTable:
    """The match table of a scan's benchmarks."""
    versions = [store.catalog.benchmark_by_id(benchmark_id) for benchmark_id in scan.benchmark_ids]
    return build_table(
        rule_of(scan),
        [(v.benchmark_id, item_texts(v, store.blobs.iter_items(v.items_blob))) for v in versions],
    )


def scan_shard(store: Store, scan: Scan, shard: int, *, table: MatchTable | None = None) -> ShardHits:
    """Look through one shard; one that is done is not read again. Raises UserError for no such shard.

    table: the scan's match table where it is built already.
    """
    from eval_tasks.contamination.finding import Findings
    from eval_tasks.contamination.forms import EXAMPLES, RUNS, SEGMENTS
    from eval_tasks.contamination.readers import CorpusReader

    if not 0 <= shard < len(scan.shards):
        raise UserError(f"scan {scan.scan_id} has shards 0 to {len(scan.shards) - 1}, and no {shard}")
    done = store.scans.get(scan.scan_id, shard)
    if done is not None:
        return done
    table = table or match_table(store, scan)
    reader = CorpusReader(from_json(CorpusManifest, store.blobs.get_json(scan.manifest_blob)))
    findings = Findings(table)
    for piece in scan.shards[shard]:
        for documents in reader.documents(piece):
            findings.add(documents)
    problems = reader.problems.counts
    problems["empty_document"] += findings.n_empty
    problems["invalid_utf8"] += findings.n_invalid
    hits = ShardHits(
        scan_id=scan.scan_id,
        shard=shard,
        table_digest=table.digest,
        n_documents=findings.n_documents,
        n_words=findings.n_words,
        n_bytes=findings.n_bytes,
        problems={kind: n for kind, n in sorted(problems.items()) if n},
        named=tuple(reader.problems.named),
        runs_blob=store.blobs.put(RUNS.to_bytes(findings.runs())),
        segments_blob=store.blobs.put(SEGMENTS.to_bytes(findings.segments())),
        examples_blob=store.blobs.put(EXAMPLES.to_bytes(findings.examples())),
    )
    store.scans.put(hits)
    return hits


def close_scan(store: Store, scan: Scan, *, now: Moment, table: MatchTable | None = None) -> list[ContaminationCheck]:
    """Record one check per benchmark, from the hits of every shard.

    Raises DataError naming the shards that are not done, and when shards used another match table than this one.
    """
    from eval_tasks.contamination.forms import ITEMS
    from eval_tasks.contamination.reduce import read_found, reduce_found

    missing = sorted(set(range(len(scan.shards))) - store.scans.done(scan.scan_id))
    if missing:
        shown = ", ".join(map(str, missing[:5])) + (" ..." if len(missing) > 5 else "")
        raise DataError(
            f"scan {scan.scan_id} of corpus {scan.corpus!r}: {len(missing)} of {len(scan.shards)} shards are not done "
            f"({shown}); run them, then close it again"
        )
    table = table or match_table(store, scan)
    hits = [each for n in range(len(scan.shards)) if (each := store.scans.get(scan.scan_id, n)) is not None]
    for each in hits:
        if each.table_digest != table.digest:
            raise DataError(
                f"scan {scan.scan_id}, shard {each.shard}: its hits belong to another match table; the code that "
                "reads benchmark items changed during the scan: remove its file under scans/ and scan it anew"
            )
    manifest = from_json(CorpusManifest, store.blobs.get_json(scan.manifest_blob))
    problems: dict[str, int] = {}
    for each in hits:
        for kind, n in each.problems.items():
            problems[kind] = problems.get(kind, 0) + n
    n_documents = sum(each.n_documents for each in hits)
    checks = []
    found = [read_found(store, each) for each in hits]
    for benchmark_id, rows in reduce_found(table, manifest, found).items():
        check = ContaminationCheck(
            benchmark_id=benchmark_id,
            corpus=scan.corpus,
            rule=table.rule.name,
            checked_at=utc_text(now),
            rows=dict(zip(rows["item_id"], rows["status"], strict=True)),
            corpus_digest=scan.corpus_digest,
            scan_id=scan.scan_id,
            details_blob=store.blobs.put(ITEMS.to_bytes(ITEMS.table(rows))),
            n_documents=n_documents,
            problems=dict(sorted(problems.items())),
        )
        store.catalog.save_check(check)
        checks.append(check)
    _record_size(store, scan, n_documents, sum(each.n_words for each in hits))
    return checks


def run_scan(
    store: Store,
    scan: Scan,
    *,
    now: Moment,
    table: MatchTable | None = None,
    progress: Progress = lambda _done, _total: None,
) -> list[ContaminationCheck]:
    """Every shard of a scan in this process, then its end."""
    table = table or match_table(store, scan)
    for shard in range(len(scan.shards)):
        progress(shard, len(scan.shards))
        scan_shard(store, scan, shard, table=table)
    progress(len(scan.shards), len(scan.shards))
    return close_scan(store, scan, now=now, table=table)


def _record_size(store: Store, scan: Scan, n_documents: int, n_words: int) -> None:
    corpus = store.catalog.corpus(scan.corpus)
    if corpus.index_digest == scan.corpus_digest:
        store.catalog.save_corpus(replace(corpus, n_documents=n_documents, n_tokens=n_words))


def _versions(store: Store, names: Sequence[str]) -> list[BenchmarkVersion]:
    every = store.catalog.benchmarks()
    if not names:
        return every
    chosen: list[BenchmarkVersion] = []
    for name in names:
        base, _, version = name.partition("@")
        chosen.append(store.catalog.benchmark(base, version or None))
    return chosen
