"""A training run over its steps: the measurements of each, and what each look at its health found."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import Connection, select

from eval_tasks.records import HealthLook, Measurement
from eval_tasks.store.catalog.part import CatalogPart, decode, encode, put
from eval_tasks.store.catalog.runs import require_run
from eval_tasks.store.tables import health_looks as table
from eval_tasks.store.tables import measurements, runs


@dataclass(frozen=True, slots=True, kw_only=True)
class SeriesPoint:
    """One measurement of a training run, with the checkpoint it is of."""

    step: int
    run_id: str
    checkpoint_id: str
    suite: str
    measurement: Measurement


class Health(CatalogPart):
    """Training runs over their steps."""

    def series(
        self,
        training_run: str,
        benchmark: str,
        metric: str,
        *,
        tier: str | None = None,
        suite: str | None = None,
        before_step: int | None = None,
    ) -> list[SeriesPoint]:
        """One metric in every closed run of a training run, by step and then as they were registered."""
        where = [
            runs.c.training_run == training_run,
            runs.c.status == "closed",
            measurements.c.benchmark == benchmark,
            measurements.c.metric == metric,
        ]
        where += [runs.c.tier == tier] if tier is not None else []
        where += [runs.c.suite == suite] if suite is not None else []
        where += [runs.c.step < before_step] if before_step is not None else []
        columns = (runs.c.step, runs.c.run_id, runs.c.checkpoint_id, runs.c.suite, measurements.c.record)
        joined = runs.join(measurements, measurements.c.run_id == runs.c.run_id)
        statement = select(*columns).select_from(joined).where(*where).order_by(runs.c.step, runs.c.seq)
        rows = self._database.read(lambda connection: connection.execute(statement).all())
        return [
            SeriesPoint(
                step=row.step,
                run_id=row.run_id,
                checkpoint_id=row.checkpoint_id,
                suite=row.suite,
                measurement=decode(Measurement, row.record),
            )
            for row in rows
        ]

    def save_health(self, look: HealthLook) -> None:
        """Record what a look found, in place of an earlier record of the same run."""
        values = {"training_run": look.training_run, "step": look.step, "record": encode(look)}

        def save(connection: Connection) -> None:
            require_run(connection, look.run_id)
            put(connection, table, {"run_id": look.run_id}, values)

        self._database.write(save)

    def health(self, run_id: str) -> HealthLook | None:
        """What the look at that run found, or None before it was taken."""
        return self._find_one(HealthLook, select(table.c.record).where(table.c.run_id == run_id))

    def health_before(self, training_run: str, step: int) -> HealthLook | None:
        """The look at the nearest lower step of a training run."""
        where = [table.c.training_run == training_run, table.c.step < step]
        return self._find_one(HealthLook, select(table.c.record).where(*where).order_by(table.c.step.desc()))

    def health_looks(self, training_run: str) -> list[HealthLook]:
        """Every look at a training run, by step."""
        statement = select(table.c.record).where(table.c.training_run == training_run)
        return self._find(HealthLook, statement.order_by(table.c.step, table.c.run_id))
