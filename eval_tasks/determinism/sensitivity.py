"""One checkpoint on one suite under choices that should not matter: how far the instrument itself moves its scores.

Choice order, the draw of worked examples, dtype, and templates that are registered for the same items. Runs here, in
one process, and stores one record; nothing of it is a run, a baseline or a part of the engine's variance.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Literal

import numpy as np

from eval_tasks.checkpoint import max_context, read_config
from eval_tasks.digests import digest_value
from eval_tasks.environment import describe_environment, harness_version
from eval_tasks.errors import UserError
from eval_tasks.plan.selection import choose_items
from eval_tasks.prompts import PromptBuilder
from eval_tasks.records import (
    BenchmarkVersion,
    Checkpoint,
    EngineConfig,
    Item,
    Score,
    Sensitivity,
    SensitivityShift,
    SuiteEntry,
)
from eval_tasks.records.sensitivity import Varied
from eval_tasks.registry import Rendering, render_choices
from eval_tasks.scoring import metric_of, score
from eval_tasks.stats.paired import PairedEstimate, paired_binary, paired_continuous
from eval_tasks.tokenization import Tokenizer, load_tokenizer

if TYPE_CHECKING:
    from eval_tasks.engine import Engine
    from eval_tasks.store import Store

Progress = Callable[[int, int], None]
Dtype = Literal["float32", "bfloat16", "float16"]

_DTYPES: dict[str, tuple[Dtype, ...]] = {
    "cpu": ("float32", "bfloat16"),
    "cuda": ("float32", "bfloat16", "float16"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Instrument:
    """A benchmark as it is asked: its version, items and worked examples."""

    benchmark: BenchmarkVersion
    items: tuple[Item, ...]
    shots: tuple[Item, ...]


def sensitivity(
    store: Store,
    *,
    checkpoint: Checkpoint,
    folder: Path,
    suite: str,
    engine: EngineConfig,
    n_draws: int = 2,
    seed: int = 0,
    progress: Progress | None = None,
    now: str,
) -> Sensitivity:
    """Measure and keep it. `folder`: the checkpoint's verified copy; `n_draws`: choice orders and draws of examples.

    Raises UserError for a mock engine, an unknown suite, or no draws.
    """
    if engine.is_mock:
        raise UserError("a mock engine makes its answers up: there is nothing to be sensitive; name a real environment")
    if not 1 <= n_draws <= 100:
        raise UserError(f"{n_draws} draws; give from 1 to 100")
    name, _, version = suite.partition("@")
    chosen = store.catalog.suite(name, version or None)
    instruments = [_instrument(store, entry) for entry in chosen.entries]
    study = _Study(folder, engine, progress)
    variants, not_varied = _variants(store, instruments, n_draws, seed)
    others = [dtype for dtype in _DTYPES[engine.device] if dtype != engine.dtype]
    study.n_items_left = sum(len(i.items) for i in instruments) * (1 + len(others)) + sum(
        len(variant.items) for _, _, _, variant in variants
    )
    base = {i.benchmark.name: study.scores(i) for i in instruments}
    shifts = [
        _shift(i, base[i.benchmark.name], study.scores(variant), varied, label)
        for i, varied, label, variant in variants
    ]
    for dtype in others:
        study.load(replace(engine, dtype=dtype))
        shifts += [_shift(i, base[i.benchmark.name], study.scores(i), "dtype", dtype) for i in instruments]
    record = Sensitivity(
        checkpoint_id=checkpoint.checkpoint_id,
        checkpoint_uri=checkpoint.uri,
        suite=f"{chosen.name}@{chosen.version}",
        suite_id=chosen.suite_id,
        engine_digest=engine.engine_digest,
        env_fingerprint=store.catalog.save_environment(describe_environment(engine)),
        harness_version=harness_version(),
        seed=seed,
        n_items=sum(len(i.items) for i in instruments),
        recorded_at=now,
        shifts=tuple(shifts),
        not_varied=tuple(not_varied),
    )
    store.catalog.save_sensitivity(record)
    return record


class _Study:
    """A loaded engine, and how far the work is."""

    def __init__(self, folder: Path, engine: EngineConfig, progress: Progress | None) -> None:
        self._folder = folder
        self._progress = progress
        self._done = 0
        self.n_items_left = 0
        self._tokenizer: Tokenizer = load_tokenizer(folder)
        self._config = engine
        self._engine: Engine | None = None

    def load(self, config: EngineConfig) -> None:
        """Another engine from here on; the one before is let go first, so that only one model is in memory."""
        self._engine = None
        self._config = config

    def scores(self, instrument: _Instrument) -> list[Score]:
        """The primary metric of every item, in item order."""
        from eval_tasks.engine import load_engine

        if self._engine is None:
            self._engine = load_engine(self._folder, self._config)
        benchmark, config = instrument.benchmark, self._config
        limit = max_context(read_config(self._folder))
        context = min(limit, config.max_context or limit)
        builder = PromptBuilder(benchmark, instrument.shots, self._tokenizer, config, context)
        found: list[Score] = []
        for start in range(0, len(instrument.items), config.batch_size):
            batch = instrument.items[start : start + config.batch_size]
            for item, response in zip(batch, self._engine.respond(builder.requests(batch)), strict=True):
                found += [s for s in score(benchmark, item, response) if s.metric == benchmark.primary_metric]
            self._done += len(batch)
            if self._progress:
                self._progress(self._done, self.n_items_left)
        return found


def _instrument(store: Store, entry: SuiteEntry) -> _Instrument:
    benchmark = store.catalog.benchmark_by_id(entry.benchmark_id)
    items = choose_items(store.blobs.get_items(benchmark.items_blob), entry.n_items, entry.seed)
    shots = store.blobs.get_items(benchmark.few_shot_blob) if benchmark.few_shot_blob else []
    return _Instrument(benchmark=benchmark, items=tuple(items), shots=tuple(shots))


Variant = tuple[_Instrument, Varied, str, _Instrument]


def _variants(
    store: Store, instruments: Sequence[_Instrument], n_draws: int, seed: int
) -> tuple[list[Variant], list[str]]:
    """(instrument, what is varied, which variant, the instrument so varied), and what could not be varied."""
    variants: list[Variant] = []
    not_varied: list[str] = []
    for instrument in instruments:
        name = instrument.benchmark.name
        for varied, make in (("choice_order", _choice_orders), ("few_shot_draw", _draws)):
            try:
                made = list(make(instrument, n_draws, seed))
            except UserError as error:
                not_varied.append(f"{varied}: {name}: {error}")
                continue
            variants += [(instrument, varied, label, variant) for label, variant in made]  # type: ignore[misc]
        templates = list(_templates(store, instrument))
        variants += [(instrument, "template", label, variant) for label, variant in templates]
        if not templates:
            not_varied.append(f"template: {name}: no other registered version asks about the same items")
    return variants, not_varied


def _choice_orders(instrument: _Instrument, n_draws: int, seed: int) -> Iterator[tuple[str, _Instrument]]:
    """Choices of every item, and of every worked example, in other orders, the gold answer with them."""
    if instrument.benchmark.kind != "choice":
        raise UserError(f"kind {instrument.benchmark.kind} has no choices")
    column = _choices_column(instrument)
    named = frozenset(re.findall(r"\w+", instrument.benchmark.template.target))
    for draw in range(n_draws):
        yield (
            f"order {seed + draw}",
            replace(
                instrument,
                items=tuple(_reordered(item, column, named, seed + draw) for item in instrument.items),
                shots=tuple(_reordered(shot, column, named, seed + draw) for shot in instrument.shots),
            ),
        )


def _choices_column(instrument: _Instrument) -> str:
    """The field that holds an item's choices. Raises UserError when the items do not say which it is."""
    template, item = instrument.benchmark.template, instrument.items[0]
    if isinstance(template.choices, str):
        named = [name for name, value in item.fields.items() if isinstance(value, list) and name in template.choices]
    else:
        rendering = Rendering(benchmark=instrument.benchmark.name, item_id=item.item_id, fields=item.fields)
        n = len(render_choices(template.choices, rendering))
        named = [name for name, value in item.fields.items() if isinstance(value, list) and len(value) == n]
    if len(named) != 1:
        raise UserError(f"{len(named)} fields of its items may hold the choices: {', '.join(named) or 'none does'}")
    return named[0]


def _reordered(item: Item, column: str, in_target: Collection[str], seed: int) -> Item:
    """The order follows from the item's content, so that an example that is the item itself is still known for it.

    `in_target`: names in the template of a worked example's answer; the gold index among them moves too.
    """
    choices = list(item.fields[column])
    order = list(range(len(choices)))
    Random(f"{seed} {digest_value(dict(item.fields))}").shuffle(order)  # noqa: S311 - an order, no secret
    gold = item.target if isinstance(item.target, list | tuple) else [item.target]
    moved = [order.index(index) for index in gold]
    fields = {**item.fields, column: [choices[index] for index in order]}
    fields |= {name: moved[0] for name in in_target if name in fields and fields[name] == item.target}
    return replace(item, fields=fields, target=moved if isinstance(item.target, list | tuple) else moved[0])


def _draws(instrument: _Instrument, n_draws: int, seed: int) -> Iterator[tuple[str, _Instrument]]:
    """Other worked examples."""
    few_shot = instrument.benchmark.few_shot
    if few_shot is None:
        raise UserError("it has no worked examples")
    if few_shot.match is None and len(instrument.shots) <= few_shot.k:
        raise UserError(f"its {few_shot.k} worked examples are all there are")
    for draw in range(n_draws):
        other = replace(few_shot, select="seeded", seed=few_shot.seed + 1 + seed + draw)
        yield (
            f"seed {other.seed}",
            replace(instrument, benchmark=replace(instrument.benchmark, few_shot=other)),
        )


def _templates(store: Store, instrument: _Instrument) -> Iterator[tuple[str, _Instrument]]:
    """The newest registered version of each other template for the same items, metric and kind."""
    own = instrument.benchmark
    seen = {own.template_digest}
    for other in store.catalog.benchmarks():
        alike = (other.items_digest, other.kind, other.primary_metric) == (
            own.items_digest,
            own.kind,
            own.primary_metric,
        )
        if alike and other.template_digest not in seen:
            seen.add(other.template_digest)
            shots = store.blobs.get_items(other.few_shot_blob) if other.few_shot_blob else []
            wanted = {item.item_id for item in instrument.items}
            items = tuple(store.blobs.get_items(other.items_blob, wanted))
            label = f"{other.name}@{other.version}"
            yield label, _Instrument(benchmark=other, items=items, shots=tuple(shots))


def _shift(
    instrument: _Instrument, base: Sequence[Score], other: Sequence[Score], varied: Varied, variant: str
) -> SensitivityShift:
    """Paired by item over the items that count under both. Raises UserError when none does."""
    benchmark = instrument.benchmark
    info = metric_of(benchmark, benchmark.primary_metric)
    before = {s.item_id: s for s in base if s.value is not None}
    pairs = [(s, before[s.item_id]) for s in other if s.value is not None and s.item_id in before]
    if not pairs:
        raise UserError(f"{benchmark.name}, {varied} {variant}: no item has a score both ways")
    a, b = (np.array([pair[k].value for pair in pairs], dtype=np.float64) for k in (0, 1))
    weights = [np.array([pair[k].weight for pair in pairs], dtype=np.float64) for k in (0, 1)]
    pooled = info.summary == "pooled" and any(np.ptp(w) > 0 for w in weights)
    paired: PairedEstimate
    if info.binary and not pooled and benchmark.sampling is None:
        paired = paired_binary(a, b)
    else:
        paired = paired_continuous(a, b, None, (weights[0], weights[1]) if pooled else None)
    return SensitivityShift(
        benchmark=benchmark.name,
        metric=benchmark.primary_metric,
        varied=varied,
        variant=variant,
        n=paired.n,
        score=paired.score_a,
        delta=paired.delta,
        se=paired.se,
        n_flipped=int(np.count_nonzero(a != b)),
        unit=info.unit,
    )
