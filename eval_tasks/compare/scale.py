"""The scale of a seed study and of the checkpoints compared -> do they differ, and in what?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from eval_tasks.compare.sentence import magnitude
from eval_tasks.records import Run, Scale

if TYPE_CHECKING:
    from eval_tasks.store import Store

SAME_FACTOR = 1.25
"""Sizes and lengths of training that lie within this factor of each other count as the same scale."""


def scales_of(store: Store, runs: Sequence[Run]) -> list[Scale]:
    """How large each run's model is and at which step; rows without a checkpoint say neither."""
    known: dict[str, int | None] = {}
    for run in runs:
        checkpoint_id = run.request.checkpoint_id
        if checkpoint_id and checkpoint_id not in known:
            known[checkpoint_id] = store.catalog.checkpoint(checkpoint_id).n_parameters
    return [Scale(parameters=known.get(run.request.checkpoint_id), step=run.step or None) for run in runs]


def scale_difference(study: Scale, compared: Sequence[Scale]) -> str:
    """Why the study speaks of another scale, in words; '' when all that it states is the same in every run compared.

    What is not known of a run is not taken to be the same.
    """
    if study.parameters is None:
        return "the study does not say how large its models are"
    stated = [("parameters", study.parameters, [s.parameters for s in compared])]
    if study.tokens is not None and all(s.tokens is not None for s in compared):
        stated.append(("tokens", study.tokens, [s.tokens for s in compared]))
    elif study.step is not None:
        stated.append(("steps", study.step, [s.step for s in compared]))
    elif study.tokens is not None:
        return f"the study is of {magnitude(study.tokens)} tokens, and for how many these were trained is not known"
    for name, of_study, found in stated:
        for value in found:
            if value is None:
                return f"the {name} of what is compared are not known"
            if not 1 / SAME_FACTOR <= value / of_study <= SAME_FACTOR:
                return f"the study is of {magnitude(of_study)} {name}, and what is compared of {magnitude(value)}"
    return ""


def words(scale: Scale) -> str:
    """A scale as reports write it: ``1.2B parameters, 300B tokens``."""
    known = (("parameters", scale.parameters), ("tokens", scale.tokens), ("steps", scale.step))
    return ", ".join(f"{magnitude(n)} {name}" for name, n in known if n is not None) or "scale not stated"
