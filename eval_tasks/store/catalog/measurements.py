"""What was made of a run's rows: measurements, the guard's findings, comparisons and reports."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Select, case, delete, func, insert, or_, select

from eval_tasks.records import Comparison, GuardReport, Measurement, PastPairs, Selection
from eval_tasks.records.engine import MOCK_MARK
from eval_tasks.store.catalog.part import CatalogPart, decode, encode, put, unknown
from eval_tasks.store.catalog.runs import require_run
from eval_tasks.store.database import insert_of
from eval_tasks.store.moments import Moment, utc_text
from eval_tasks.store.tables import comparisons, discordances, eval_reports, guards, measurements, selections


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportRow:
    """A published report: a blob, and the run it is about.

    `format`: ``json`` or ``html``; with ``regrade-`` before it, of what another grader moved.
    """

    run_id: str
    blob_digest: str
    format: str
    created_at: str


class Measurements(CatalogPart):
    """Aggregates of runs."""

    def save_measurements(self, run_id: str, rows: Sequence[Measurement]) -> None:
        """Replace the measurements of a run, order kept. Raises UserError for a run that is not in the catalog."""
        self.change_measurements(run_id, lambda _: rows)

    def change_measurements(
        self, run_id: str, change: Callable[[list[Measurement]], Sequence[Measurement]]
    ) -> list[Measurement]:
        """Put what `change` makes of a run's measurements in their place, in one transaction; gives what stands then.

        Two steps that each add something to the same numbers undo nothing of each other. `change` may be called twice,
        and must be quick. Raises UserError for a run that is not in the catalog.
        """

        def save(connection: Connection) -> list[Measurement]:
            require_run(connection, run_id)
            stored = connection.execute(_of_run(run_id)).scalars().all()
            rows = list(change([decode(Measurement, text) for text in stored]))
            connection.execute(delete(measurements).where(measurements.c.run_id == run_id))
            if rows:
                connection.execute(insert(measurements), [_columns(run_id, n, row) for n, row in enumerate(rows)])
            return rows

        return self._database.write(save)

    def measurements(self, run_id: str) -> list[Measurement]:
        """The measurements of a run in the order they were saved; none before it was aggregated."""
        return self._find(Measurement, _of_run(run_id))

    def save_guard(self, report: GuardReport) -> None:
        """Record what the guard found in a run, in place of an earlier report."""

        def save(connection: Connection) -> None:
            require_run(connection, report.run_id)
            put(connection, guards, {"run_id": report.run_id}, {"passed": report.passed, "record": encode(report)})

        self._database.write(save)

    def guard(self, run_id: str) -> GuardReport | None:
        """The guard's report of a run, or None before it ran."""
        return self._find_one(GuardReport, select(guards.c.record).where(guards.c.run_id == run_id))

    def save_comparison(self, comparison: Comparison) -> None:
        """Record a comparison, in place of an earlier one of the same runs under the same rule."""
        key = {"comparison_id": comparison.comparison_id}
        values = {"run_a": comparison.run_a, "run_b": comparison.run_b, "record": encode(comparison)}
        seen = _discordances(comparison)

        def save(connection: Connection) -> None:
            put(connection, comparisons, key, values)
            if seen:
                statement = insert_of(connection, discordances)
                changed = {name: statement.excluded[name] for name in ("n_pairs", "n_discordant", "variance")}
                own = ["run_a", "run_b", "benchmark", "metric"]
                connection.execute(statement.on_conflict_do_update(index_elements=own, set_=changed), seen)

        self._database.write(save)

    def comparison(self, comparison_id: str) -> Comparison:
        """The comparison of that id. Raises UserError when there is none."""
        found = self.find_comparison(comparison_id)
        if found is None:
            raise unknown("comparison", comparison_id, (c.comparison_id for c in self.comparisons()))
        return found

    def find_comparison(self, comparison_id: str) -> Comparison | None:
        """The comparison of that id, or None."""
        statement = select(comparisons.c.record).where(comparisons.c.comparison_id == comparison_id)
        return self._find_one(Comparison, statement)

    def comparisons(self, run_id: str | None = None) -> list[Comparison]:
        """All comparisons, or those that a run is in, newest first."""
        statement = select(comparisons.c.record).order_by(comparisons.c.seq.desc())
        if run_id is not None:
            statement = statement.where(or_(comparisons.c.run_a == run_id, comparisons.c.run_b == run_id))
        return self._find(Comparison, statement)

    def past_pairs(self, benchmarks: Sequence[str]) -> dict[tuple[str, str], PastPairs]:
        """(benchmark, metric) -> how two runs differed on it in past comparisons; absent where there was none.

        One query of sums: no comparison is read. Mock runs, a run with itself and arms of several runs are left out.
        """
        if not benchmarks:
            return {}
        c = discordances.c
        right_or_wrong = case((c.n_discordant.is_not(None), c.n_pairs), else_=0)
        with_spread = case((c.variance.is_not(None), c.n_pairs), else_=0)
        statement = (
            select(
                c.benchmark,
                c.metric,
                func.count(c.n_discordant).label("n_comparisons"),
                func.sum(right_or_wrong).label("n_pairs"),
                func.sum(c.n_discordant).label("n_discordant"),
                func.count(c.variance).label("n_spread"),
                func.sum(with_spread).label("n_spread_pairs"),
                func.sum(c.variance * c.n_pairs).label("total"),
            )
            .where(c.benchmark.in_(sorted(set(benchmarks))))
            .group_by(c.benchmark, c.metric)
        )
        rows = self._database.read(lambda connection: connection.execute(statement).all())
        return {
            (row.benchmark, row.metric): PastPairs(
                n_comparisons=row.n_comparisons,
                n_pairs=row.n_pairs,
                n_discordant=row.n_discordant or 0,
                n_spread=row.n_spread,
                n_spread_pairs=row.n_spread_pairs,
                variance=row.total / row.n_spread_pairs if row.n_spread_pairs else None,
            )
            for row in rows
        }

    def save_selection(self, selection: Selection) -> None:
        """Record a selection with the run in whose report it is shown, in place of an earlier one of that run."""
        values = {"selection_id": selection.selection_id, "record": encode(selection)}

        def save(connection: Connection) -> None:
            require_run(connection, selection.run_id)
            put(connection, selections, {"run_id": selection.run_id}, values)

        self._database.write(save)

    def selection(self, run_id: str) -> Selection | None:
        """The selection that is shown in the report of a run, or None."""
        return self._find_one(Selection, select(selections.c.record).where(selections.c.run_id == run_id))

    def save_report(self, run_id: str, blob_digest: str, format: str, now: Moment) -> ReportRow:  # noqa: A002
        """Record a published report of a run; the same blob again changes nothing but its time."""
        row = ReportRow(run_id=run_id, blob_digest=blob_digest, format=format, created_at=utc_text(now))
        key = {"run_id": run_id, "format": format, "blob_digest": blob_digest}

        def save(connection: Connection) -> None:
            require_run(connection, run_id)
            put(connection, eval_reports, key, {"record": encode(row)})

        self._database.write(save)
        return row

    def reports(self, run_id: str) -> list[ReportRow]:
        """The reports of a run, newest first."""
        statement = select(eval_reports.c.record).where(eval_reports.c.run_id == run_id)
        rows = self._find(ReportRow, statement.order_by(eval_reports.c.seq.desc()))
        return sorted(rows, key=lambda row: row.created_at, reverse=True)


def _discordances(comparison: Comparison) -> list[dict[str, object]]:
    """How often two runs differed; nothing is learnt from rows that were made up or averaged over seeds."""
    if comparison.run_a == comparison.run_b or comparison.further_a or comparison.further_b:
        return []
    first, second = sorted((comparison.run_a, comparison.run_b))  # A against B teaches what B against A does
    return [
        {
            "run_a": first,
            "run_b": second,
            "benchmark": test.benchmark,
            "metric": test.metric,
            "n_pairs": test.n_pairs,
            "n_discordant": test.n_discordant,
            "variance": None if test.se is None else test.n_pairs * test.se**2,
        }
        for test in comparison.tests
        if not test.not_tested and test.n_pairs and MOCK_MARK not in test.notes
    ]


def _of_run(run_id: str) -> Select[Any]:
    statement = select(measurements.c.record).where(measurements.c.run_id == run_id)
    return statement.order_by(measurements.c.position)


def _columns(run_id: str, position: int, row: Measurement) -> dict[str, object]:
    return {
        "run_id": run_id,
        "position": position,
        "benchmark": row.benchmark,
        "metric": row.metric,
        "record": encode(row),
    }
