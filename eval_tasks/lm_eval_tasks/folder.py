"""A task file or a folder of them -> YAML files of benchmarks and suites, and what was refused, with reasons.

Groups and tags become suites of those of their members that became benchmarks. Needs no network: data is fetched when a
benchmark is registered, from the source that its file declares. Nothing that exists is overwritten.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from eval_tasks.digests import digest_bytes
from eval_tasks.errors import UserError
from eval_tasks.lm_eval_tasks.conversion import Converted, Options, benchmark_name, convert
from eval_tasks.lm_eval_tasks.scoring_parts import Refusal
from eval_tasks.lm_eval_tasks.task_files import TaskFile, read_task_file
from eval_tasks.registry.yaml_file import dump_yaml

_KIND_AT_MOST = 70


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """One task that is no benchmark: why, by the field of its file."""

    task: str
    path: str
    field: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """What came of an import. `suites`: name -> names of its benchmarks; `unpinned`: sources still to be pinned."""

    converted: Sequence[Converted]
    refused: Sequence[Refused]
    suites: Mapping[str, Sequence[str]]
    unpinned: Sequence[str] = field(default_factory=tuple)

    def reasons(self) -> list[tuple[int, str]]:
        """(tasks, field and kind of reason), the most frequent first."""
        counts = Counter(_kind_of(refused) for refused in self.refused)
        return [(n, what) for what, n in sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))]


def import_tasks(path: Path, out: Path | None, options: Options | None = None) -> Imported:
    """Convert the task file at `path`, or every ``*.yaml`` below it; write into `out`, or nothing when None.

    Raises UserError when there is no task, two tasks give one name, or a file to be written exists.
    """
    chosen = options or Options()
    files = sorted(path.rglob("*.yaml")) if path.is_dir() else [path]
    converted: dict[str, Converted] = {}
    refused: list[Refused] = []
    groups: dict[str, list[str]] = {}
    for file in files:
        try:
            read = read_task_file(file)
        except UserError as error:
            refused.append(Refused(task=file.stem, path=str(file), field="file", reason=str(error)))
            continue
        _collect(read, chosen, converted, refused, groups)
    if not converted and not refused:
        raise UserError(f"{path} holds no task of lm-evaluation-harness: give a task's YAML file, or a folder of them")
    suites, left_out = _suites(groups, converted)
    if out is not None:
        _write(out, converted.values(), suites, left_out)
    unpinned = sorted({_unpinned(source) for c in converted.values() for source in _sources(c)} - {""})
    return Imported(converted=list(converted.values()), refused=refused, suites=suites, unpinned=unpinned)


def _collect(
    file: TaskFile,
    options: Options,
    converted: dict[str, Converted],
    refused: list[Refused],
    groups: dict[str, list[str]],
) -> None:
    task = file.settings.get("task")
    if isinstance(task, list):
        members = groups.setdefault(str(file.settings.get("group", file.path.stem)), [])
        members += [_member(m) for m in task]
        _inner_groups(task, groups)
        return
    if not isinstance(task, str):
        return
    for key in ("tag", "group"):
        tags = file.settings.get(key) or []
        for tag in [tags] if isinstance(tags, str) else tags:
            groups.setdefault(str(tag), []).append(task)
    try:
        found = convert(file, options)
        if found.name in converted:
            raise Refusal("task", f"has the name {found.name!r} that {converted[found.name].task!r} has too")
        converted[found.name] = _with_local_pin(found, file.path.parent)
    except Refusal as refusal:
        refused.append(Refused(task=task, path=str(file.path), field=refusal.field, reason=refusal.reason))


def _member(member: Any) -> str:
    """What a group's list names; a task that the group changes (another num_fewshot) is another task, and not there."""
    if not isinstance(member, Mapping):
        return str(member)
    if "group" in member:
        return str(member["group"])
    changed = sorted(set(member) - {"task", "task_alias"})
    return f"{member.get('task')} (changed: {', '.join(changed)})" if changed else str(member.get("task"))


def _inner_groups(members: Iterable[Any], groups: dict[str, list[str]]) -> None:
    """Groups that a group's file defines within itself."""
    for member in members:
        if isinstance(member, Mapping) and isinstance(member.get("group"), str):
            inner = member.get("task") or []
            groups.setdefault(member["group"], []).extend(_member(m) for m in inner)
            _inner_groups(inner, groups)


def _suites(
    groups: Mapping[str, Sequence[str]], converted: Mapping[str, Converted]
) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    """Each group's benchmarks, groups within it resolved, and its members that are none; without any it is no suite."""
    by_task = {c.task: c.name for c in converted.values()}

    def members(group: str, above: frozenset[str]) -> list[str]:
        found: list[str] = []
        for member in groups[group]:
            if member in groups and member not in by_task:
                found += members(member, above | {member}) if member not in above else []
            else:
                found.append(member)
        return list(dict.fromkeys(found))

    suites, left_out = {}, {}
    for group in sorted(groups):
        try:
            name = benchmark_name(group)
        except Refusal:
            continue
        found = members(group, frozenset({group}))
        if kept := [by_task[member] for member in found if member in by_task]:
            suites[name], left_out[name] = kept, [member for member in found if member not in by_task]
    return suites, left_out


def _with_local_pin(converted: Converted, folder: Path) -> Converted:
    """A file that lies there is pinned by its digest."""
    source = converted.document["source"]
    if "uri" not in source:
        return converted
    file = folder / source["uri"]
    if not file.is_file():
        note = f"pin the blake3 of {source['uri']}"
        return replace(converted, notes=[*converted.notes, note])
    pinned = {**source, "uri": str(file.resolve()), "blake3": digest_bytes(file.read_bytes())}
    return replace(converted, document={**converted.document, "source": pinned})


def _sources(converted: Converted) -> list[Mapping[str, Any]]:
    few_shot = converted.document.get("few_shot", {})
    return [converted.document["source"], *([few_shot["source"]] if "source" in few_shot else [])]


def _unpinned(source: Mapping[str, Any]) -> str:
    if "hub" in source:
        return str(source["hub"]) if source.get("revision") is None else ""
    return ""


def _write(
    out: Path,
    converted: Iterable[Converted],
    suites: Mapping[str, Sequence[str]],
    left_out: Mapping[str, Sequence[str]],
) -> None:
    files: dict[Path, str] = {}
    versions: dict[str, str] = {}
    for benchmark in converted:
        document = dict(benchmark.document)
        versions[benchmark.name] = str(document["version"])
        if benchmark.examples:
            rows = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in benchmark.examples)
            few_shot = document["few_shot"]
            source = {**few_shot["source"], "blake3": digest_bytes(rows.encode())}
            document["few_shot"] = {**few_shot, "source": source}
            files[out / source["uri"]] = rows
        notes = "".join(f"# {note}\n" for note in benchmark.notes)
        files[out / f"{benchmark.name}.yaml"] = notes + dump_yaml(document)
    for name, members in suites.items():
        entries = [{"name": member, "version": versions[member]} for member in members]
        suite = {"name": name, "version": "1", "tier": "selection", "benchmarks": entries}
        note = f"# left out, no benchmarks: {', '.join(left_out[name])}\n" if left_out[name] else ""
        files[out / f"{name}.suite.yaml"] = note + dump_yaml(suite)
    for path in files:
        if path.exists():
            raise UserError(f"{path} exists, and nothing is overwritten; give another folder with --out")
    out.mkdir(parents=True, exist_ok=True)
    for path, text in files.items():
        path.write_text(text, "utf-8")


def _kind_of(refused: Refused) -> str:
    """The field, and what kind of reason: names of single functions, tasks and values are left out."""
    if refused.reason.startswith("needs the Python function"):
        return f"{refused.field}: a Python function"
    if refused.field == "metric_list":
        return f"metric_list: none of its metrics is ours ({refused.reason.partition(':')[0]})"
    if refused.field == "task":
        return "task: another task has its name"
    return f"{refused.field}: {refused.reason}" if len(refused.reason) < _KIND_AT_MOST else refused.field
