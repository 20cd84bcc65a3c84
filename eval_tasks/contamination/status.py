"""Recorded checks of a benchmark against corpora -> one status per item, and the sentence that every number carries."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime

from eval_tasks.store import ContaminationCheck, Store

NEVER_CHECKED = "never checked"

UNREAD = ("changed_file", "damaged_file", "gone_file")
"""Problems of a scan that leave part of the registered corpus unread."""


def known_statuses(
    store: Store, benchmark_id: str, corpora: Collection[str]
) -> tuple[Mapping[str, str] | None, Sequence[ContaminationCheck]]:
    """item_id -> clean | contaminated | not_checkable over all of `corpora`, and the checks it rests on.

    None unless every corpus was checked: a benchmark checked against some of them is not known to be clean, and a
    checkpoint that names no corpora has none to be checked against.
    """
    checks = store.catalog.contamination(benchmark_id, sorted(set(corpora))) if corpora else []
    if not checks or len(checks) < len(set(corpora)):
        return None, ()
    return merged_statuses([check.rows for check in checks]), checks


def merged_statuses(checks: Sequence[Mapping[str, str]]) -> dict[str, str]:
    """One status per item over checks of several corpora, each item_id -> status.

    Contaminated in any is contaminated; clean in all is clean; everything else is not_checkable.
    """
    if len(checks) == 1:
        return dict(checks[0])
    merged: dict[str, str] = {}
    for item_id in sorted({item_id for check in checks for item_id in check}):
        found = {check.get(item_id, "not_checkable") for check in checks}
        if "contaminated" in found:
            merged[item_id] = "contaminated"
        else:
            merged[item_id] = "clean" if found == {"clean"} else "not_checkable"
    return merged


def note(checks: Sequence[ContaminationCheck], share: float) -> str:
    """The rate (a fraction), corpora, time and rule in one sentence, and files that were not read as registered."""
    corpora = ", ".join(check.corpus for check in checks)
    rules = ", ".join(sorted({check.rule for check in checks}))
    at = datetime.fromisoformat(max(check.checked_at for check in checks)).isoformat(timespec="seconds")
    unread = sum(check.problems.get(kind, 0) for check in checks for kind in UNREAD)
    files = f", {unread} files changed, damaged or gone" if unread else ""
    return f"{share:.1%} of items in {corpora}, checked {at}, rule {rules}{files}"
