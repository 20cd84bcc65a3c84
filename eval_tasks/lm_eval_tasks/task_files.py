"""A task file of lm-eval -> its settings, with what it includes merged in, and the Python functions that it asks for.

Read as data alone: ``!function`` becomes a marker that names the function, and no other tag constructs anything.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from eval_tasks.errors import UserError
from eval_tasks.registry.yaml_file import read_mapping

_DEEPEST = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class PythonFunction:
    """A function that the file wants to be imported and run; it is neither. `folder`: where its module would be."""

    name: str
    folder: Path | None = None

    @property
    def module(self) -> Path | None:
        """The file that would be imported."""
        path, _, _ = self.name.rpartition(".")
        if self.folder is None or not re.fullmatch(r"\w+(\.\w+)*", path):
            return None
        return self.folder / f"{path.replace('.', '/')}.py"


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskFile:
    """One file. `functions`: (field, function) of every marker in `settings`, in order."""

    path: Path
    settings: Mapping[str, Any]
    functions: tuple[tuple[str, str], ...] = field(default_factory=tuple)


def read_task_file(path: Path) -> TaskFile:
    """The file at `path`. Raises UserError naming the file that is missing, not YAML, or includes itself."""
    settings = _merged(path, ())
    return TaskFile(path=path, settings=settings, functions=tuple(_functions(settings, "")))


def _merged(path: Path, above: tuple[Path, ...]) -> dict[str, Any]:
    """lm-eval's order: of several includes the first wins, and the file's own fields win over all."""
    if path.resolve() in above or len(above) > _DEEPEST:
        raise UserError(f"{above[0]}: its includes go in a circle by way of {path.name}")
    settings: dict[str, Any] = _located(read_mapping(path, _Loader), path.parent)
    includes = settings.pop("include", None) or []
    merged: dict[str, Any] = {}
    for include in reversed([includes] if isinstance(includes, str) else includes):
        found = path.parent / str(include)
        if not found.is_file():
            raise UserError(f"{path}: includes {include!r}, which is not there")
        merged |= _merged(found, (*above, path.resolve()))
    return merged | settings


def _located(value: Any, folder: Path) -> Any:
    """`value` with the folder of its file in every marker: an included file's functions are beside that file."""
    if isinstance(value, PythonFunction):
        return PythonFunction(name=value.name, folder=folder)
    if isinstance(value, dict):
        return {key: _located(part, folder) for key, part in value.items()}
    return [_located(part, folder) for part in value] if isinstance(value, list) else value


def _functions(value: Any, where: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, PythonFunction):
        yield where, value.name
    elif isinstance(value, Mapping):
        for key, part in value.items():
            yield from _functions(part, f"{where}.{key}" if where else str(key))
    elif isinstance(value, list):
        for part in value:
            yield from _functions(part, where)


_Safe: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _Loader(_Safe):  # type: ignore[misc]
    """A SafeLoader that knows one tag more; libyaml's where there is one, ten times faster on ten thousand files."""


def _function(_: Any, node: yaml.Node) -> PythonFunction:
    return PythonFunction(name=str(node.value))


_Loader.add_constructor("!function", _function)
