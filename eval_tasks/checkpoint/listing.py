"""A training run's storage -> its landings, in numeric step order. Reads listings only, never a file.

A landing is one version of one step's folder: the files in it that can change a number, with sizes and etags or
modification times. Logs, optimizer states, markers, hidden and temporary files make no new landing.
"""

from __future__ import annotations

import logging
import re
from dataclasses import dataclass
from typing import Protocol

from eval_tasks.checkpoint.files import is_temporary, moves_numbers
from eval_tasks.checkpoint.storage import Folder
from eval_tasks.errors import UserError
from eval_tasks.records import Landing

MAX_STEP = 2**53 - 1  # the largest whole number that canonical JSON holds, and so a digest

_log = logging.getLogger(__name__)


class WatchedRun(Protocol):
    """What a listing needs to know of a training run (`settings.TrainingRun` has it)."""

    @property
    def name(self) -> str: ...  # noqa: D102

    @property
    def uri(self) -> str: ...  # noqa: D102

    @property
    def pattern(self) -> str: ...  # noqa: D102

    @property
    def marker(self) -> str | None: ...  # noqa: D102

    @property
    def promote_marker(self) -> str: ...  # noqa: D102


@dataclass(frozen=True, slots=True, kw_only=True)
class Sighting:
    """A landing as it lies there now. `marked`: the configured marker is there, or none is configured."""

    landing: Landing
    marked: bool
    promoted: bool


def list_landings(training_run: WatchedRun) -> list[Landing]:
    """Every step's folder under the training run's URI, by (step, URI). An absent root has none.

    Raises InfraError when storage cannot be listed.
    """
    return [sighting.landing for sighting in list_sightings(training_run)]


def list_sightings(training_run: WatchedRun) -> list[Sighting]:
    """`list_landings`, with what the markers in each folder say. UserError: a pattern that finds no number."""
    pattern = re.compile(training_run.pattern)
    sightings = []
    for name, (uri, files) in Folder(training_run.uri).subfolders().items():
        match = pattern.search(name)
        if match is None or is_temporary(name):
            continue
        listing = tuple(
            (file.path, file.size, file.version)
            for file in sorted(files.values(), key=lambda file: file.path)
            if moves_numbers(file.path)
        )
        step = _step(training_run, name, match["step"])
        if step is None:
            continue
        landing = Landing(training_run=training_run.name, step=step, uri=uri, listing=listing)
        sightings.append(
            Sighting(
                landing=landing,
                marked=training_run.marker is None or training_run.marker in files,
                promoted=training_run.promote_marker in files,
            )
        )
    return sorted(sightings, key=lambda sighting: (sighting.landing.step, sighting.landing.uri))


def _step(training_run: WatchedRun, name: str, digits: str | None) -> int | None:
    """The step that a folder's name says; None for a number that is none of a step, such as a long time stamp."""
    if not (digits and digits.isdecimal()):
        raise UserError(
            f"training run {training_run.name!r}: pattern {training_run.pattern!r} finds step {digits!r} in {name!r}; "
            "its group 'step' must match digits and nothing else, such as (?P<step>\\d+)"
        )
    if int(digits) > MAX_STEP:
        _log.warning("training run %s: %s is left out: no step is above %d", training_run.name, name, MAX_STEP)
        return None
    return int(digits)
