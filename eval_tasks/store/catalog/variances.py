"""What was measured of noise: seed studies, and one checkpoint evaluated twice."""

from __future__ import annotations

from sqlalchemy import and_, or_, select

from eval_tasks.records import RerunComparison, SeedStudy
from eval_tasks.store.catalog.part import CatalogPart, encode, put, put_next_version, unknown
from eval_tasks.store.tables import reruns, seed_studies


class Variances(CatalogPart):
    """Seed studies by name and version; reruns by the environments they ran in."""

    def save_seed_study(self, study: SeedStudy) -> SeedStudy:
        """Record a study; gives what is stored. Other content under its name is its next version, the same none."""
        return self._database.write(
            lambda connection: put_next_version(connection, seed_studies, study, key="name", identity="study_id")
        )

    def seed_study(self, name: str, version: int | None = None) -> SeedStudy:
        """A study by name; without `version`, the newest. Raises UserError with close names."""
        known = [study for study in self.seed_studies() if study.name == name]
        if not known:
            raise unknown("seed study", name, (study.name for study in self.seed_studies()))
        for study in reversed(known):
            if version in (None, study.version):
                return study
        raise unknown(f"version of seed study {name!r}", str(version), (str(study.version) for study in known))

    def seed_studies(self) -> list[SeedStudy]:
        """All versions of all studies, by name and version."""
        statement = select(seed_studies.c.record).order_by(seed_studies.c.name, seed_studies.c.version)
        return self._find(SeedStudy, statement)

    def save_rerun(self, rerun: RerunComparison) -> None:
        """Record a rerun; the same measurement again changes nothing."""
        values = {"env_a": rerun.env_a, "env_b": rerun.env_b, "record": encode(rerun)}
        self._database.write(lambda connection: put(connection, reruns, {"rerun_id": rerun.rerun_id}, values))

    def reruns(self, environments: tuple[str, str] | None = None) -> list[RerunComparison]:
        """All reruns, or those between two fingerprints (in either order; twice the same: within it), oldest first."""
        statement = select(reruns.c.record).order_by(reruns.c.seq)
        if environments is not None:
            a, b = environments
            here, there = and_(reruns.c.env_a == a, reruns.c.env_b == b), and_(reruns.c.env_a == b, reruns.c.env_b == a)
            statement = statement.where(or_(here, there))
        return sorted(self._find(RerunComparison, statement), key=lambda rerun: rerun.measured_at)
