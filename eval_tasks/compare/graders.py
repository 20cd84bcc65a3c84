"""The grader that scored both arms of a benchmark -> what a comparison's reader must know of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from eval_tasks.store import Store


class GradersOnRecord:
    """What the catalog has of graders, read once for a comparison of many benchmarks."""

    def __init__(self, store: Store) -> None:
        catalog = store.catalog
        self._graders = {grader.grader: grader for grader in catalog.graders()}
        self._in_use = {use.benchmark: use for use in catalog.graders_in_use()}
        self._qualifications = catalog.qualifications()
        sets = catalog.agreement_sets() if self._qualifications else []
        self._speaks_for = {s.reference: s.benchmark for s in sets}

    def notes(self, reference: str, benchmark: str) -> tuple[str, ...]:
        """That the grader was qualified for a benchmark, refused or only put in use, who is in use instead, and more.

        Nothing on a benchmark's own scorer, which is code with a version, nor on people, who are what a grader is held
        against, unless something is on record of them.
        """
        notes = []
        grader, in_use = self._graders.get(reference), self._in_use.get(benchmark)
        if grader is not None and grader.kind == "model" and not grader.reproducible:
            notes.append(f"{reference} is NOT REPRODUCIBLE: its verdicts are replies of an endpoint")
        tried = [
            q
            for q in self._qualifications
            if q.grader == reference and self._speaks_for.get(q.agreement_set) in ("", benchmark)
        ]
        adopted = next((q for q in reversed(tried) if q.adopted), None)
        if adopted is not None:
            notes.append(
                f"{reference} is qualified: not inferior to {adopted.against} on {adopted.agreement_set} by "
                f"{100 * adopted.margin:g} points in any category ({adopted.qualified_at})"
            )
        elif tried:
            notes.append(f"{reference} is NOT QUALIFIED: {tried[-1].reason} ({tried[-1].agreement_set})")
        elif in_use is not None and in_use.grader == reference:
            notes.append(
                f"{reference} is in use by a person's word and not qualified: {in_use.reason} ({in_use.since})"
            )
        elif grader is not None and grader.kind == "model":
            notes.append(f"{reference} is not qualified: it was never held against people's labels for this benchmark")
        if in_use is not None and in_use.grader != reference:
            notes.append(f"the grader in use for {benchmark} is {in_use.grader}, not {reference}")
        return tuple(notes)
