"""A YAML file and a pydantic model in, a checked model out. Knows no benchmark.

Safe YAML only (no object construction), and a key written twice is an error: plain YAML keeps the last one silently.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, ConfigDict, ValidationError

from eval_tasks.errors import UserError
from eval_tasks.settings import explain_validation

NAME = r"^[a-z0-9]([a-z0-9._-]{0,61}[a-z0-9])?$"
"""What a benchmark, suite or rule may be called: it becomes a label, a column and a file name."""


class Section(BaseModel):
    """Text from people: unknown fields and wrong types are errors (no '3' for 3, no true for 'yes')."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


S = TypeVar("S", bound=Section)


def read_mapping(path: Path, loader: type[yaml.SafeLoader]) -> dict[str, Any]:
    """The mapping that a YAML file holds, as `loader` reads it. Raises UserError naming the file."""
    try:
        raw = yaml.load(path.read_text("utf-8"), Loader=loader)  # noqa: S506 - a SafeLoader
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror or error}; give the path of a YAML file") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise UserError(f"{path} is not readable as YAML: {error}") from error
    if not isinstance(raw, dict):
        found = "and is empty" if raw is None else f"not {type(raw).__name__}"
        raise UserError(f"{path} must hold a mapping of fields, {found}")
    return raw


def load_yaml(path: Path, model: type[S]) -> S:
    """The file's content as a `model`. Raises UserError naming file, field, value and close names."""
    raw = read_mapping(path, _UniqueKeyLoader)
    try:
        return model.model_validate(raw)
    except ValidationError as error:
        raise UserError(explain_validation(str(path), error, model)) from error


def dump_yaml(value: Any) -> str:
    """As YAML for people: fields in their order, text of several lines as a block."""
    return yaml.dump(value, Dumper=_BlockDumper, sort_keys=False, allow_unicode=True, width=10_000)


class _BlockDumper(yaml.SafeDumper):
    """SafeDumper that shows line breaks as line breaks, and repeats a value where it stands twice."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002
        return True


_BlockDumper.add_representer(
    str,
    lambda dumper, text: dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None),
)


class _UniqueKeyLoader(yaml.SafeLoader):
    """SafeLoader that refuses a mapping with the same key twice."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen = set()
        for key_node, _ in node.value:
            key = key_node.value
            if isinstance(key, str) and key != "<<":
                if key in seen:
                    raise yaml.constructor.ConstructorError(
                        None, None, f"the key {key!r} stands twice in one mapping", key_node.start_mark
                    )
                seen.add(key)
        return super().construct_mapping(node, deep)
