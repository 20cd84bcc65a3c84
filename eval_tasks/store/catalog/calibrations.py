"""Item-response calibrations: frozen, numbered by benchmark version."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from sqlalchemy import Connection, select

from eval_tasks.records import Calibration
from eval_tasks.store.catalog.part import CatalogPart, decode, encode, unknown
from eval_tasks.store.database import insert_of
from eval_tasks.store.tables import calibrations as table


class Calibrations(CatalogPart):
    """The calibrations of benchmark versions."""

    def save_calibration(self, calibration: Calibration) -> Calibration:
        """Record a calibration; gives what is stored. Other content is the next version, the same none."""

        def save(connection: Connection) -> Calibration:
            while True:
                where = table.c.benchmark_id == calibration.benchmark_id
                known = [
                    decode(Calibration, text)
                    for text in connection.execute(select(table.c.record).where(where)).scalars()
                ]
                same = next((k for k in known if k.calibration_id == calibration.calibration_id), None)
                if same is not None:
                    return same
                kept = replace(calibration, version=1 + max((k.version for k in known), default=0))
                values = {
                    "benchmark_id": kept.benchmark_id,
                    "version": kept.version,
                    "calibration_id": kept.calibration_id,
                    "record": encode(kept),
                }
                # Another process may have taken the version since it was looked for.
                statement = insert_of(connection, table).values(values)
                done = connection.execute(statement.on_conflict_do_nothing(index_elements=["benchmark_id", "version"]))
                if done.rowcount:
                    return kept

        return self._database.write(save)

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
