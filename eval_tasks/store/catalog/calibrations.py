"""Item-response calibrations: frozen, numbered by benchmark version."""

from __future__ import annotations

from collections.abc import Collection

from sqlalchemy import select

from eval_tasks.records import Calibration
from eval_tasks.store.catalog.part import CatalogPart, put_next_version, unknown
from eval_tasks.store.tables import calibrations as table


class Calibrations(CatalogPart):
    """The calibrations of benchmark versions."""

    def save_calibration(self, calibration: Calibration) -> Calibration:
        """Record a calibration; gives what is stored. Other content is the next version, the same none."""
        return self._database.write(
            lambda connection: put_next_version(
                connection, table, calibration, key="benchmark_id", identity="calibration_id"
            )
        )

    def calibrations(self, benchmark_ids: Collection[str] | None = None) -> list[Calibration]:
        """All calibrations, or those of some benchmark versions, newest version first."""
        statement = select(table.c.record).order_by(table.c.benchmark_id, table.c.version.desc())
        if benchmark_ids is not None:
            statement = statement.where(table.c.benchmark_id.in_(sorted(benchmark_ids)))
        return self._find(Calibration, statement)

    def calibration(self, benchmark_id: str, version: int | None = None) -> Calibration:
        """A calibration of a benchmark version; without `version`, the newest. Raises UserError for none."""
        known = self.calibrations([benchmark_id])
        for found in known:
            if version in (None, found.version):
                return found
        raise unknown("calibration", f"{benchmark_id[:12]}/{version or 'any'}", (k.reference for k in known))
