"""IFEval scoring: a response against the verifiable instructions of its prompt, lm-eval 0.4.9's convention.

`prompt_*` is 1 when all instructions are followed, `inst_*` is the share followed, weighted by their number, so that
pooling gives the accuracy over all instructions of all prompts. Loose tries eight variants of the text (asterisks
dropped, first or last line dropped) and so is never below strict. Instructions that need a language detector are
skipped: a prompt is scored on the rest of its instructions, and is ``excluded`` when there is no rest. `detail` is the
JSON list of verdicts in the prompt's order, null where skipped.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from typing import Any

from eval_tasks import __version__
from eval_tasks.errors import UserError
from eval_tasks.records import Item
from eval_tasks.scoring.instructions import Instruction, bind, is_skipped
from eval_tasks.scoring.registry import Case, Excluded, Mark, MetricInfo, scorer

_LOG = logging.getLogger(__name__)


def check_items(items: Sequence[Item]) -> None:
    """Validate every item's instructions; one warning says how many need a language detector and are skipped."""
    n_skipped = sum(1 for item in items for found in instructions_of(item) if found is None)
    if n_skipped:
        release = ".".join(__version__.split(".")[:2])
        _LOG.warning("IFEval: skipping %d language-detection constraints (unsupported in v%s)", n_skipped, release)


def weigh(item: Item) -> Mapping[str, float]:
    """Prompts weigh 1, instruction accuracy the number of instructions that are not skipped; without one: Excluded."""
    n = sum(1 for found in instructions_of(item) if found is not None)
    if not n:
        raise Excluded("all its instructions need language detection, which is not supported")
    return {"prompt_strict": 1.0, "prompt_loose": 1.0, "inst_strict": float(n), "inst_loose": float(n)}


@scorer(
    "ifeval",
    version="1",
    kinds=("generation",),
    metrics={
        "prompt_strict": MetricInfo(),
        "prompt_loose": MetricInfo(),
        "inst_strict": MetricInfo(binary=False, summary="pooled"),
        "inst_loose": MetricInfo(binary=False, summary="pooled"),
    },
    weigh=weigh,
    check_items=check_items,
)
def ifeval(case: Case) -> list[Mark]:
    """prompt and instruction level, strict and loose."""
    instructions = instructions_of(case.item)
    variants = loose_variants(case.output)
    strict = [found.followed(case.output) if found else None for found in instructions]
    loose = [any(map(found.followed, variants)) if found else None for found in instructions]
    (prompt_strict, inst_strict), (prompt_loose, inst_loose) = _marks("strict", strict), _marks("loose", loose)
    return [prompt_strict, prompt_loose, inst_strict, inst_loose]


def instructions_of(item: Item) -> list[Instruction | None]:
    """The item's instructions in order, None for those that are skipped. Raises UserError naming the item."""
    ids = item.fields.get("instruction_id_list")
    kwargs = item.fields.get("kwargs")
    if isinstance(kwargs, str):
        kwargs = _parsed(item, kwargs)
    if not isinstance(ids, list | tuple) or not ids or not all(isinstance(name, str) for name in ids):
        raise UserError(f"item {item.item_id!r}: instruction_id_list must be a list of ids, not {ids!r}")
    wanted = (dict, type(None))
    if (
        not isinstance(kwargs, list | tuple)
        or len(kwargs) != len(ids)
        or not all(isinstance(k, wanted) for k in kwargs)
    ):
        raise UserError(f"item {item.item_id!r}: kwargs must be a list of {len(ids)} mappings, one per instruction")
    try:
        return [
            None if is_skipped(name) else bind(name, arguments or {})
            for name, arguments in zip(ids, kwargs, strict=True)
        ]
    except UserError as error:
        raise UserError(f"item {item.item_id!r}: {error}") from error


def loose_variants(text: str) -> list[str]:
    """The text itself, without its first, last, and first and last line, and all four without asterisks."""
    lines = text.split("\n")
    variants = [text, "\n".join(lines[1:]).strip(), "\n".join(lines[:-1]).strip(), "\n".join(lines[1:-1]).strip()]
    return list(dict.fromkeys([*variants, *(variant.replace("*", "") for variant in variants)]))


def _marks(level: str, verdicts: Sequence[bool | None]) -> tuple[Mark, Mark]:
    judged = [verdict for verdict in verdicts if verdict is not None]
    detail = json.dumps(verdicts)
    share = sum(judged) / len(judged)
    return (
        Mark(metric=f"prompt_{level}", value=float(all(judged)), detail=detail),
        Mark(metric=f"inst_{level}", value=share, weight=float(len(judged)), detail=detail),
    )


def _parsed(item: Item, kwargs: str) -> Any:
    try:
        return json.loads(kwargs)
    except ValueError as error:
        raise UserError(f"item {item.item_id!r}: kwargs is not JSON: {error}") from error
