"""Agreement sets, what graders said of them, qualifications, and which grader is in use for a benchmark."""

from __future__ import annotations

from sqlalchemy import Connection, select

from eval_tasks.errors import UserError
from eval_tasks.records.agreement import AgreementSet, GraderInUse, GraderVerdicts, Qualification
from eval_tasks.store.catalog.part import CatalogPart, decode, encode, put, record_at, unknown
from eval_tasks.store.tables import agreement_sets, grader_verdicts, graders_in_use, qualifications


class AgreementSets(CatalogPart):
    """What graders are measured by."""

    def save_agreement_set(self, made: AgreementSet) -> AgreementSet:
        """Record a set; gives the one that stands. Raises UserError when its version has other items or labels."""
        key = {"name": made.name, "version": made.version}

        def save(connection: Connection) -> AgreementSet:
            text = record_at(connection, agreement_sets, key)
            if text is None:
                put(connection, agreement_sets, key, {"set_digest": made.set_digest, "record": encode(made)})
                return made
            known = decode(AgreementSet, text)
            if known.set_digest != made.set_digest:
                raise UserError(
                    f"agreement set {made.reference!r} is there with digest {known.set_digest[:12]}, and this one has "
                    f"{made.set_digest[:12]}: other outputs or labels are another version"
                )
            return known

        return self._database.write(save)

    def agreement_set(self, reference: str) -> AgreementSet:
        """A set by NAME or NAME@VERSION; without a version, the newest. Raises UserError with close names."""
        name, _, version = reference.partition("@")
        known = [s for s in self.agreement_sets() if s.name == name]
        if not known:
            raise unknown("agreement set", name, (s.name for s in self.agreement_sets()))
        for found in reversed(known):
            if version in ("", found.version):
                return found
        raise unknown(f"version of agreement set {name!r}", version, (s.version for s in known))

    def agreement_sets(self) -> list[AgreementSet]:
        """All sets, by name, in order of registration."""
        return self._find(AgreementSet, select(agreement_sets.c.record).order_by("name", agreement_sets.c.seq))

    def save_verdicts(self, verdicts: GraderVerdicts) -> None:
        """Record what a grader said of a set. Raises UserError when the same version said something else before."""
        key = {"set_digest": verdicts.set_digest, "grader": verdicts.grader}

        def save(connection: Connection) -> None:
            text = record_at(connection, grader_verdicts, key)
            if text is None:
                put(connection, grader_verdicts, key, {"record": encode(verdicts)})
            elif decode(GraderVerdicts, text).verdicts != verdicts.verdicts:
                raise UserError(
                    f"grader {verdicts.grader!r} has other verdicts on this set: a grader whose verdicts changed is "
                    "another version"
                )

        self._database.write(save)

    def verdicts(self, set_digest: str) -> list[GraderVerdicts]:
        """Every grader's recorded verdicts on a set, in order of registration."""
        statement = select(grader_verdicts.c.record).where(grader_verdicts.c.set_digest == set_digest)
        return self._find(GraderVerdicts, statement.order_by(grader_verdicts.c.seq))

    def save_qualification(self, made: Qualification) -> Qualification:
        """Record a qualification; gives the one that stands: asked again, the first answer and its time."""
        key = {"qualification_id": made.qualification_id}

        def save(connection: Connection) -> Qualification:
            text = record_at(connection, qualifications, key)
            if text is not None:
                return decode(Qualification, text)
            put(connection, qualifications, key, {"grader": made.grader, "record": encode(made)})
            return made

        return self._database.write(save)

    def qualifications(self, grader: str | None = None) -> list[Qualification]:
        """Qualifications, of one grader or of all, in order of registration."""
        statement = select(qualifications.c.record).order_by(qualifications.c.seq)
        if grader is not None:
            statement = statement.where(qualifications.c.grader == grader)
        return self._find(Qualification, statement)

    def put_grader_in_use(self, use: GraderInUse) -> None:
        """Record that a grader stands for a benchmark from now on. What stood before stays on record."""

        def save(connection: Connection) -> None:
            newest = select(graders_in_use.c.record).where(graders_in_use.c.benchmark == use.benchmark)
            text = connection.execute(newest.order_by(graders_in_use.c.seq.desc()).limit(1)).scalar_one_or_none()
            if text is None or decode(GraderInUse, text).grader != use.grader:
                connection.execute(graders_in_use.insert().values(benchmark=use.benchmark, record=encode(use)))

        self._database.write(save)

    def grader_uses(self, benchmark: str) -> list[GraderInUse]:
        """Every grader that was ever put in use for a benchmark, oldest first."""
        statement = select(graders_in_use.c.record).where(graders_in_use.c.benchmark == benchmark)
        return self._find(GraderInUse, statement.order_by(graders_in_use.c.seq))

    def graders_in_use(self, benchmark: str | None = None) -> list[GraderInUse]:
        """The grader in use of each benchmark that has one, or of `benchmark` alone: the latest word on each."""
        uses = self._find(GraderInUse, select(graders_in_use.c.record).order_by(graders_in_use.c.seq))
        latest = {use.benchmark: use for use in uses if benchmark in (None, use.benchmark)}
        return [latest[name] for name in sorted(latest)]
