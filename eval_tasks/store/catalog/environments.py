"""Environments by fingerprint, under which names they were seen, and the baselines adopted in them."""

from __future__ import annotations

from sqlalchemy import Connection, select

from eval_tasks.errors import UserError
from eval_tasks.records import Baseline, Environment
from eval_tasks.records.determinism import BaselineStatus
from eval_tasks.store.catalog.part import CatalogPart, encode, put, unknown
from eval_tasks.store.database import insert_of
from eval_tasks.store.moments import Moment, utc_text
from eval_tasks.store.tables import baselines, environments, sightings


class Environments(CatalogPart):
    """Where runs ran, and whether they may."""

    def save_environment(self, environment: Environment) -> str:
        """Record an environment; gives its fingerprint."""
        fingerprint = environment.env_fingerprint
        values = {"record": encode(environment)}
        self._database.write(lambda connection: put(connection, environments, {"env_fingerprint": fingerprint}, values))
        return fingerprint

    def environment(self, fingerprint: str) -> Environment:
        """The environment of that fingerprint. Raises UserError when there is none."""
        statement = select(environments.c.record).where(environments.c.env_fingerprint == fingerprint)
        found = self._find_one(Environment, statement)
        if found is None:
            raise unknown("environment", fingerprint, (e.env_fingerprint for e in self.environments()))
        return found

    def find_environment(self, reference: str) -> Environment:
        """The environment whose fingerprint begins so, or that an environment of that name reported last.

        Raises UserError for none, or several.
        """
        known = {e.env_fingerprint: e for e in self.environments()}
        seen = self.fingerprints_of(reference)
        begins = [fingerprint for fingerprint in known if fingerprint.startswith(reference)] if reference else []
        found = seen[:1] or begins
        if len(found) > 1:
            raise UserError(
                f"{reference!r} is the beginning of several fingerprints: {', '.join(found[:5])}; give more"
            )
        if not found:
            raise unknown("environment", reference, known)
        return known[found[0]]

    def environments(self) -> list[Environment]:
        """All environments in the order they were first seen."""
        return self._find(Environment, select(environments.c.record).order_by(environments.c.seq))

    def see_environment(self, name: str, fingerprint: str, now: Moment) -> None:
        """Note that a pod of the environment of that name has reported `fingerprint`."""
        at = utc_text(now)

        def see(connection: Connection) -> None:
            key = {"environment": name, "env_fingerprint": fingerprint}
            statement = insert_of(connection, sightings).values(**key, first_seen=at, last_seen=at)
            later = {"last_seen": at}
            connection.execute(statement.on_conflict_do_update(index_elements=list(key), set_=later))

        self._database.write(see)

    def fingerprints_of(self, name: str) -> list[str]:
        """The fingerprints that pods of an environment have reported, the one seen last first."""
        statement = select(sightings.c.env_fingerprint).where(sightings.c.environment == name)
        ordered = statement.order_by(sightings.c.last_seen.desc(), sightings.c.first_seen.desc())
        return self._database.read(lambda connection: list(connection.execute(ordered).scalars()))

    def names_of(self, fingerprint: str) -> list[str]:
        """The names under which a fingerprint was seen, sorted."""
        statement = select(sightings.c.environment).where(sightings.c.env_fingerprint == fingerprint)
        return self._database.read(lambda c: sorted(c.execute(statement).scalars()))

    def save_baseline(self, baseline: Baseline) -> None:
        """Record the baseline of an environment on a suite, in place of an earlier one."""
        key = {"env_fingerprint": baseline.env_fingerprint, "suite_id": baseline.suite_id}
        values = {"status": baseline.status, "record": encode(baseline)}
        self._database.write(lambda connection: put(connection, baselines, key, values))

    def baseline(self, fingerprint: str, suite_id: str) -> Baseline | None:
        """The baseline of an environment on a suite, or None for an environment that has none yet."""
        where = (baselines.c.env_fingerprint == fingerprint, baselines.c.suite_id == suite_id)
        return self._find_one(Baseline, select(baselines.c.record).where(*where))

    def baselines(self, suite_id: str | None = None, status: BaselineStatus | None = None) -> list[Baseline]:
        """The baselines that fit, the one recorded last first."""
        statement = select(baselines.c.record).order_by(baselines.c.seq)
        if suite_id is not None:
            statement = statement.where(baselines.c.suite_id == suite_id)
        if status is not None:
            statement = statement.where(baselines.c.status == status)
        return sorted(self._find(Baseline, statement), key=lambda baseline: baseline.recorded_at, reverse=True)
