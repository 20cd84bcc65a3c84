"""`contamination`: corpora, scans of them for the items of benchmarks, and what was found."""

from __future__ import annotations

import json
import logging
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from io import BytesIO
from itertools import islice
from typing import Any

import click

from eval_tasks.cli.output import json_option, opened, print_json, print_table, progress_bar
from eval_tasks.contamination.corpus import manifest_of, register_corpus, unknown_endings
from eval_tasks.contamination.items import item_texts
from eval_tasks.contamination.recall import measure_recall
from eval_tasks.contamination.rule import Rule, rule_from
from eval_tasks.contamination.scan import load_scan, pending, plan_scan, run_scan, scan_shard
from eval_tasks.errors import UserError, did_you_mean
from eval_tasks.records import BenchmarkVersion, CorpusFormat, CorpusPiece
from eval_tasks.settings import Settings, load_config
from eval_tasks.store import ContaminationCheck, Store

_corpus_option = click.option("--corpus", "corpora", multiple=True, help="Only this one. Repeatable.")
_SHOWN = 20


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _rule() -> Rule:
    return rule_from(load_config(Settings().config).contamination)


@click.group("contamination")
def contamination_group() -> None:
    """Hold benchmarks against training corpora."""


@contamination_group.command("register")
@click.argument("name")
@click.argument("uri")
@click.option("--format", "format_", type=click.Choice(["jsonl", "parquet", "text", "lines"]), default=None)
@click.option("--text-field", default="text", show_default=True, help="Key or column of the text.")
@click.option("--id-field", default=None, help="Key or column of a document's id; without one rows are numbered.")
@click.option("--description", default="")
@click.option("--digests", is_flag=True, help="Read every byte once, so that a change that keeps size and time shows.")
@json_option
def contamination_register(
    name: str,
    uri: str,
    format_: CorpusFormat | None,
    text_field: str,
    id_field: str | None,
    description: str,
    digests: bool,
    as_json: bool,
) -> None:
    """Register the files at URI (a folder or one file) as corpus NAME.

    Formats go by the files' endings; `lines` is text with one document a line, `text` one document a file. NAME is what
    training runs list under `corpora`.
    """
    corpus, left_out = register_corpus(
        opened(),
        name,
        uri,
        now=_now(),
        format_=format_,
        text_field=text_field,
        id_field=id_field,
        description=description,
        take_digests=digests,
    )
    if as_json:
        print_json(asdict(corpus) | {"left_out": list(left_out)})
        return
    click.echo(f"{corpus.name}: {corpus.n_files} files, {corpus.n_bytes:,} bytes, digest {corpus.index_digest}")
    if left_out:
        click.echo(f"left out {len(left_out)} files of other kinds: {unknown_endings(left_out)}")


@contamination_group.command("scan")
@_corpus_option
@click.option("--benchmark", "benchmarks", multiple=True, help="Only this one, NAME or NAME@VERSION. Repeatable.")
@click.option("--plan-only", is_flag=True, help="Scan nothing here: print the plans and their numbers of shards.")
@json_option
def contamination_scan(corpora: tuple[str, ...], benchmarks: tuple[str, ...], plan_only: bool, as_json: bool) -> None:
    """Hold every benchmark against every corpus that it was not checked with.

    What was checked under the same rule, with the same files, is not scanned again; a scan that was stopped goes on
    where it was.
    """
    store, rule = opened(), _rule()
    policy = load_config(Settings().config).contamination
    plans = [
        plan_scan(store, corpus, ids, rule, shard_bytes=policy.shard_bytes)
        for corpus, ids in pending(store, rule, corpora=corpora, benchmarks=benchmarks)
    ]
    if plan_only:
        rows = [
            {"corpus": scan.corpus, "benchmarks": len(scan.benchmark_ids), "shards": len(scan.shards), "plan": uri}
            for scan, uri in plans
        ]
        if as_json:
            print_json(rows)
            return
        print_table("scans to be made", ("corpus", "benchmarks", "shards", "plan"), [tuple(r.values()) for r in rows])
        return
    checks: list[ContaminationCheck] = []
    for scan, _ in plans:
        with progress_bar(f"corpus {scan.corpus}") as progress:
            checks += run_scan(store, scan, now=_now(), progress=progress)
    if not plans and not as_json:
        click.echo("nothing to scan: everything registered was checked under this rule")
        return
    _print_checks(store, checks, as_json)


@contamination_group.command("scan-shard")
@click.option("--scan", "uri", required=True, help="The plan's URI, as `scan --plan-only` printed it.")
@click.option("--shard", type=int, required=True)
@json_option
def contamination_scan_shard(uri: str, shard: int, as_json: bool) -> None:
    """Scan one shard of a plan. What a pod runs; a shard that is done is not read again."""
    logging.getLogger("eval_tasks").setLevel(logging.INFO)
    store = opened()
    hits = scan_shard(store, load_scan(store, uri), shard)
    if as_json:
        print_json(asdict(hits))
        return
    click.echo(
        f"shard {shard} of scan {hits.scan_id}: {hits.n_documents:,} documents, {hits.n_words:,} words, "
        f"{hits.n_bytes:,} bytes of text" + _problems(hits.problems)
    )
    for named in hits.named:
        click.echo(f"  {named}")


@contamination_group.command("check")
@click.argument("benchmark")
@_corpus_option
@json_option
def contamination_check(benchmark: str, corpora: tuple[str, ...], as_json: bool) -> None:
    """Hold BENCHMARK (NAME or NAME@VERSION) against every registered corpus, and say what is found.

    Only corpora that it was not checked with are scanned.
    """
    store, rule = opened(), _rule()
    version = _benchmark(store, benchmark)
    for corpus, ids in pending(store, rule, corpora=corpora, benchmarks=[f"{version.name}@{version.version}"]):
        scan, _ = plan_scan(store, corpus, ids, rule)
        with progress_bar(f"corpus {corpus}") as progress:
            run_scan(store, scan, now=_now(), progress=progress)
    checks = [
        check for check in store.catalog.contamination(version.benchmark_id, corpora or None) if check.rule == rule.name
    ]
    if not checks:
        raise UserError("no corpus is registered; register one: python -m eval_tasks contamination register NAME URI")
    _print_checks(store, checks, as_json)


@contamination_group.command("show")
@click.argument("benchmark", required=False)
@_corpus_option
@click.option("--item", "item_id", default=None, help="All that is known of this item.")
@click.option("--all", "every", is_flag=True, help="Items that are clean, too.")
@json_option
def contamination_show(
    benchmark: str | None, corpora: tuple[str, ...], item_id: str | None, every: bool, as_json: bool
) -> None:
    """Show corpora and what was checked when; with BENCHMARK its items, and where their text was found."""
    store = opened()
    if benchmark is None:
        _show_catalog(store, as_json)
        return
    version = _benchmark(store, benchmark)
    checks = store.catalog.contamination(version.benchmark_id, corpora or None)
    if not checks:
        raise UserError(
            f"{version.name}@{version.version} was never checked"
            + (f" with {', '.join(corpora)}" if corpora else "")
            + f"; check it: python -m eval_tasks contamination check {version.name}"
        )
    rows = [row | {"corpus": check.corpus, "rule": check.rule} for check in checks for row in _details(store, check)]
    if item_id is not None:
        known = {row["item_id"] for row in rows}
        if known and item_id not in known:
            raise UserError(f"{version.name} has no item {item_id!r}; {did_you_mean(item_id, known)}")
        rows = [row for row in rows if row["item_id"] == item_id]
    elif not every:
        rows = [row for row in rows if row["status"] == "contaminated" or row["longest_words"] or row["whole_question"]]
    if as_json:
        print_json(rows)
        return
    _print_items(version, rows, full=item_id is not None)


@contamination_group.command("recall")
@click.option("--benchmark", required=True, help="Whose items are planted.")
@click.option("--corpus", required=True, help="In whose documents.")
@click.option("--documents", "n_documents", type=click.IntRange(min=1), default=1000, show_default=True)
@click.option("--items", "n_items", type=click.IntRange(min=8), default=2000, show_default=True)
@json_option
def contamination_recall(benchmark: str, corpus: str, n_documents: int, n_items: int, as_json: bool) -> None:
    """Plant items in a sample of a corpus in known ways, and say what share is found.

    Nothing is written. Items are planted whole, halved, edited, with other punctuation, wrapped and in upper case; some
    are not planted, and must not be found.
    """
    store, rule = opened(), _rule()
    version = _benchmark(store, benchmark)
    items = item_texts(version, islice(store.blobs.iter_items(version.items_blob), n_items))
    measured = measure_recall(rule, items, _sample(store, corpus, n_documents))
    if as_json:
        print_json({"rule": rule.name, "recall": [asdict(each) for each in measured]})
        return
    grams = rule.grams
    print_table(
        f"recall under rule {rule.name}",
        (
            "planted",
            "items",
            *(f"found at n={n}" for n in grams),
            *(f"mean share, n={n}" for n in grams),
            "contaminated",
        ),
        [
            (
                each.kind,
                each.n_items,
                *(f"{each.found[n] / each.n_items:.1%}" for n in grams),
                *("-" if each.mean_share[n] is None else f"{each.mean_share[n]:.2f}" for n in grams),
                f"{each.n_contaminated / each.n_items:.1%}",
            )
            for each in measured
        ],
    )


def _sample(store: Store, name: str, n_documents: int) -> list[str]:
    """The first documents of a corpus, over its files in turn."""
    from eval_tasks.contamination.readers import CorpusReader

    manifest = manifest_of(store, store.catalog.corpus(name))
    reader = CorpusReader(manifest)
    texts: list[str] = []
    per_file = -(-n_documents // len(manifest.files))
    for number in range(len(manifest.files)):
        left = min(per_file, n_documents - len(texts))
        for batch in reader.documents(CorpusPiece(file=number)):
            for start, stop in list(zip(batch.starts.tolist(), batch.stops.tolist(), strict=True))[:left]:
                texts.append(batch.texts[start:stop].tobytes().decode("utf-8", "replace"))
            left = min(per_file, n_documents - len(texts)) if len(batch.starts) < left else 0
            if left <= 0:
                break
    return texts


def _benchmark(store: Store, name: str) -> BenchmarkVersion:
    base, _, version = name.partition("@")
    return store.catalog.benchmark(base, version or None)


def _details(store: Store, check: ContaminationCheck) -> list[dict[str, Any]]:
    """A check's rows; one that was recorded by status alone has no more to say."""
    if not check.details_blob:
        return [
            {"item_id": item_id, "status": status, "longest_words": 0, "whole_question": False, "examples": []}
            for item_id, status in check.rows.items()
        ]
    import pyarrow.parquet as pq

    rows = pq.read_table(BytesIO(store.blobs.get(check.details_blob))).to_pylist()
    return [_readable(row) for row in rows]


def _readable(row: dict[str, Any]) -> dict[str, Any]:
    """Shares by n, None where a section has no n-gram, and examples as they were."""
    shares = {
        f"{section}_share": {
            str(n): None if math.isnan(share) else share
            for n, share in zip(row["n"], row[f"{section}_share"], strict=True)
        }
        for section in ("question", "choices", "answer")
    }
    kept = {name: value for name, value in row.items() if name not in ("n", *shares)}
    return kept | shares | {"examples": json.loads(row["examples"])}


def _print_checks(store: Store, checks: Sequence[ContaminationCheck], as_json: bool) -> None:
    names = {b.benchmark_id: f"{b.name}@{b.version}" for b in store.catalog.benchmarks()}
    if as_json:
        print_json([_check_json(names, check) for check in checks])
        return
    rows = []
    for check in checks:
        counts = Counter(check.rows.values())
        n, found = counts["clean"] + counts["contaminated"], counts["contaminated"]
        rows.append(
            (
                names.get(check.benchmark_id, check.benchmark_id[:12]),
                check.corpus,
                f"{found:,} of {n:,}" + (f" ({found / n:.1%})" if n else ""),
                f"{counts['not_checkable']:,}",
                check.checked_at[:10],
                _problems(check.problems).lstrip("; ") or None,
            )
        )
    columns = ("benchmark", "corpus", "contaminated", "not checkable", "checked", "problems")
    rules = sorted({check.rule for check in checks})
    print_table(f"contamination, rule {'; '.join(rules)}", columns, rows)


def _check_json(names: Mapping[str, str], check: ContaminationCheck) -> dict[str, Any]:
    counts = Counter(check.rows.values())
    record = {name: value for name, value in asdict(check).items() if name != "rows"}
    return record | {"benchmark": names.get(check.benchmark_id, ""), "counts": dict(sorted(counts.items()))}


def _problems(problems: Mapping[str, int]) -> str:
    return "".join(f"; {n:,} {kind}" for kind, n in sorted(problems.items()))


def _show_catalog(store: Store, as_json: bool) -> None:
    corpora, benchmarks = store.catalog.corpora(), store.catalog.benchmarks()
    checks = [check for b in benchmarks for check in store.catalog.contamination(b.benchmark_id)]
    if as_json:
        names = {b.benchmark_id: f"{b.name}@{b.version}" for b in benchmarks}
        print_json({"corpora": [asdict(c) for c in corpora], "checks": [_check_json(names, c) for c in checks]})
        return
    print_table(
        "corpora",
        ("name", "files", "bytes", "documents", "words", "since (UTC)", "uri"),
        [
            (c.name, c.n_files, f"{c.n_bytes:,}", c.n_documents or None, c.n_tokens or None, c.created_at[:19], c.uri)
            for c in corpora
        ],
    )
    if checks:
        _print_checks(store, checks, as_json=False)
    found = {(check.benchmark_id, check.corpus) for check in checks}
    never = [
        (f"{b.name}@{b.version}", c.name) for b in benchmarks for c in corpora if (b.benchmark_id, c.name) not in found
    ]
    if never:
        print_table("never checked", ("benchmark", "corpus"), never)


def _print_items(version: BenchmarkVersion, rows: Sequence[dict[str, Any]], *, full: bool) -> None:
    grams = "/".join(sorted({n for row in rows for n in row.get("question_share", {})}, key=int))
    print_table(
        f"{version.name}@{version.version}: shares of n-grams at n = {grams}; * the whole question is in a document",
        ("item", "corpus", "status", "question", "choices", "answer", "longest", "documents", "answer near"),
        [
            (
                row["item_id"],
                row["corpus"],
                row["status"] + ("*" if row["whole_question"] else ""),
                *(_shares(row.get(f"{section}_share")) for section in ("question", "choices", "answer")),
                row["longest_words"] or None,
                row.get("n_documents"),
                row.get("n_answer_near"),
            )
            for row in (rows if full else rows[:_SHOWN])
        ],
    )
    if not full:
        if len(rows) > _SHOWN:
            click.echo(f"and {len(rows) - _SHOWN} more; --json prints all, --item ID one with what was found")
        return
    for row in rows:
        for example in row["examples"]:
            near = ", its answer near" if example["answer_near"] else ""
            click.echo(
                f"\n{row['corpus']}: {example['section']}, {example['words']} words{near}, in {example['file']} row "
                f"{example['row']} ({example['document']}):\n  {example['text']}"
            )


def _shares(shares: Mapping[str, float | None] | None) -> str | None:
    """`1.00/0.57`, in the order of n; `-` where there is no n-gram, nothing for a section without any."""
    if not shares or all(share is None for share in shares.values()):
        return None
    return "/".join("-" if share is None else f"{share:.2f}" for share in shares.values())


COMMANDS = (contamination_group,)
