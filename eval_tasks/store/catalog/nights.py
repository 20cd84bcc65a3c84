"""What the nights found, what sentinels and second computations said, and how far an instrument moves."""

from __future__ import annotations

from sqlalchemy import select

from eval_tasks.records import ComputedTwice, Night, Sensitivity, SentinelReport
from eval_tasks.store.catalog.part import CatalogPart, encode, put, unknown
from eval_tasks.store.tables import computed_twice, nights, sensitivities, sentinel_reports


class Nights(CatalogPart):
    """Nights by name and environment; reports on runs by run."""

    def save_night(self, night: Night) -> None:
        """Record what a night found in an environment, in place of what it found before."""
        key = {"night": night.night, "environment": night.environment}
        values = {
            "env_fingerprint": night.env_fingerprint,
            "status": night.status,
            "recorded_at": night.recorded_at,
            "record": encode(night),
        }
        self._database.write(lambda connection: put(connection, nights, key, values))

    def nights(
        self,
        *,
        environment: str | None = None,
        fingerprint: str | None = None,
        statuses: tuple[str, ...] = (),
        limit: int | None = None,
    ) -> list[Night]:
        """The nights that fit every filter, newest first."""
        statement = select(nights.c.record).order_by(nights.c.recorded_at.desc(), nights.c.seq.desc())
        if environment is not None:
            statement = statement.where(nights.c.environment == environment)
        if fingerprint is not None:
            statement = statement.where(nights.c.env_fingerprint == fingerprint)
        if statuses:
            statement = statement.where(nights.c.status.in_(statuses))
        return self._find(Night, statement.limit(limit) if limit is not None else statement)

    def good_until(self, fingerprint: str) -> str:
        """When rows of a fingerprint were last known to be good; '' for never."""
        found = self.nights(fingerprint=fingerprint, statuses=("good", "adopted"), limit=1)
        return found[0].good_at if found else ""

    def save_sentinels(self, report: SentinelReport) -> None:
        """Record what the sentinels of a night's run said, in place of an earlier try."""
        values = {"record": encode(report)}
        self._database.write(lambda c: put(c, sentinel_reports, {"run_id": report.run_id}, values))

    def sentinels(self, run_id: str) -> SentinelReport | None:
        """What the sentinels beside a run said, or None where they did not run."""
        statement = select(sentinel_reports.c.record).where(sentinel_reports.c.run_id == run_id)
        return self._find_one(SentinelReport, statement)

    def save_computed_twice(self, found: ComputedTwice) -> None:
        """Record what became of the items of a run that were computed twice."""
        values = {"n_differing": found.n_differing, "record": encode(found)}
        self._database.write(lambda c: put(c, computed_twice, {"run_id": found.run_id}, values))

    def computed_twice(self, run_id: str) -> ComputedTwice | None:
        """What became of the items of a run that were computed twice, or None before it was graded."""
        statement = select(computed_twice.c.record).where(computed_twice.c.run_id == run_id)
        return self._find_one(ComputedTwice, statement)

    def save_sensitivity(self, study: Sensitivity) -> None:
        """Record a sensitivity study; the same again changes nothing."""
        values = {"record": encode(study)}
        self._database.write(lambda c: put(c, sensitivities, {"study_id": study.study_id}, values))

    def sensitivity(self, study_id: str) -> Sensitivity:
        """The study whose id begins so. Raises UserError when there is not exactly one."""
        known = self.sensitivities()
        found = [study for study in known if study.study_id.startswith(study_id)]
        if len(found) != 1:
            raise unknown("sensitivity study", study_id, (study.study_id for study in known))
        return found[0]

    def sensitivities(self) -> list[Sensitivity]:
        """All sensitivity studies, newest first."""
        return self._find(Sensitivity, select(sensitivities.c.record).order_by(sensitivities.c.seq.desc()))
