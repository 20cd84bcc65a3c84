"""Two registered benchmark versions -> what differs between them, and what of their scores can be compared.

The words are those of a comparison of runs: SCORE, PAIRED, PARTIAL, NONE. Reads the stored items, and no run.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from eval_tasks.compare.compatibility import compatibility
from eval_tasks.compare.items import changed_items
from eval_tasks.digests import digest_value
from eval_tasks.records import BenchmarkVersion, Item, to_json
from eval_tasks.records.verdict import Compatibility
from eval_tasks.registry.yaml_file import dump_yaml

if TYPE_CHECKING:
    from eval_tasks.store import Store

MEANING: Mapping[Compatibility, str] = {
    "SCORE": "scores and items can be compared",
    "PAIRED": "the items are the same: runs are paired by item, and absolute scores are not compared",
    "PARTIAL": "some items are the same: runs are paired on those, with their own n; absolute scores are not compared",
    "NONE": "no item is the same: nothing can be compared",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class InstrumentDifference:
    """From version A to version B. `digests`: each with whether it is the same; `settings`: other fields, (A, B).

    `template` and `scorer`: unified differences, line by line, empty when the same. Items by id, sorted; `changed` are
    those with other fields, target, stratum or cluster, `not_paired` those of them that make no pair. `shots_changed`:
    other worked examples.
    """

    a: str
    b: str
    level: Compatibility
    digests: Mapping[str, bool]
    settings: Mapping[str, tuple[Any, Any]]
    template: Sequence[str]
    scorer: Sequence[str]
    n_same: int
    added: Sequence[str] = field(default_factory=tuple)
    removed: Sequence[str] = field(default_factory=tuple)
    changed: Sequence[str] = field(default_factory=tuple)
    not_paired: Sequence[str] = field(default_factory=tuple)
    shots_changed: bool = False


_IDS_SHOWN = 10

_SETTINGS = (
    "kind", "max_tokens", "sampling", "primary_metric", "chance_level", "plausible_range", "plausible_change",
    "on_long_prompt", "decision_grade", "stratum_key", "cluster_key", "category_key", "licence", "hardware_class",
)  # fmt: skip


def difference(store: Store, a: BenchmarkVersion, b: BenchmarkVersion) -> InstrumentDifference:
    """What changes from version `a` to version `b`."""
    items_a, items_b = ({i.item_id: _content(i) for i in store.blobs.get_items(v.items_blob)} for v in (a, b))
    shared = items_a.keys() & items_b.keys()
    changed = sorted(i for i in shared if items_a[i] != items_b[i])
    level, _ = compatibility(a, b)
    not_paired = changed_items(store, a, b)
    if len(not_paired) == len(shared):
        level = "NONE"
    json_a, json_b = to_json(a), to_json(b)
    return InstrumentDifference(
        a=f"{a.name}@{a.version}",
        b=f"{b.name}@{b.version}",
        level=level,
        digests={n: getattr(a, n) == getattr(b, n) for n in ("items_digest", "template_digest", "scorer_digest")},
        settings={n: (json_a[n], json_b[n]) for n in _SETTINGS if json_a[n] != json_b[n]},
        template=_lines(_template(json_a), _template(json_b), a, b),
        scorer=_lines(json_a["scorer"], json_b["scorer"], a, b),
        n_same=len(shared) - len(changed),
        added=sorted(items_b.keys() - items_a.keys()),
        removed=sorted(items_a.keys() - items_b.keys()),
        changed=changed,
        not_paired=sorted(not_paired),
        shots_changed=_shots(store, a) != _shots(store, b),
    )


def _content(item: Item) -> str:
    return digest_value([dict(item.fields), item.target, item.stratum, item.cluster])


def _shots(store: Store, version: BenchmarkVersion) -> list[str]:
    return [_content(item) for item in store.blobs.get_items(version.few_shot_blob)] if version.few_shot_blob else []


def _template(version: Mapping[str, Any]) -> dict[str, Any]:
    """What `template_digest` covers, less the examples themselves: where their file lies moves no number."""
    shots = {k: v for k, v in version["few_shot"].items() if k != "source"} if version["few_shot"] else None
    return {**version["template"], "few_shot": shots}


def _lines(left: Any, right: Any, a: BenchmarkVersion, b: BenchmarkVersion) -> list[str]:
    if left == right:
        return []
    before, after = (dump_yaml(value).splitlines() for value in (left, right))
    name_a, name_b = (f"{version.name}@{version.version}" for version in (a, b))
    return list(difflib.unified_diff(before, after, name_a, name_b, n=1, lineterm=""))


def difference_lines(found: InstrumentDifference) -> list[str]:
    """What a person is told of a difference, line by line; long lists of items are cut."""
    lines = [f"{found.a} -> {found.b}: {found.level}: {MEANING[found.level]}"]
    lines += [f"  {name}: {'same' if same else 'differs'}" for name, same in found.digests.items()]
    counts = (
        f"{found.n_same} same, {len(found.added)} added, {len(found.removed)} removed, {len(found.changed)} changed"
    )
    lines.append(f"  items: {counts}")
    listed = {"added": found.added, "removed": found.removed, "changed": found.changed, "not paired": found.not_paired}
    for verb, ids in listed.items():
        if ids:
            more = f" and {len(ids) - _IDS_SHOWN} more" if len(ids) > _IDS_SHOWN else ""
            lines.append(f"    {verb}: {', '.join(ids[:_IDS_SHOWN])}{more}")
    if found.shots_changed:
        lines.append("  worked examples: differ")
    lines += [f"  {name}: {before} -> {after}" for name, (before, after) in found.settings.items()]
    for title, changed in (("template", found.template), ("scorer", found.scorer)):
        if changed:
            lines += [f"{title}:", *changed]
    return lines
