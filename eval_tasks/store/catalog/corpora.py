"""Training corpora, and what was found of each benchmark in them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Literal

from sqlalchemy import select

from eval_tasks.store.catalog.part import CatalogPart, encode, put, unknown
from eval_tasks.store.moments import Moment, utc_text
from eval_tasks.store.tables import contamination, corpora

ContaminationStatus = Literal["clean", "contaminated", "not_checkable"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Corpus:
    """A corpus that models were trained on, or only its name.

    `index_digest` is its manifest's, None where no files were registered; `manifest_blob` holds the manifest. Documents
    and words are those of the latest full scan.
    """

    name: str
    uri: str
    created_at: str
    index_digest: str | None = None
    n_documents: int = 0
    n_tokens: int = 0
    description: str = ""
    manifest_blob: str = ""
    n_files: int = 0
    n_bytes: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ContaminationCheck:
    """The items of one benchmark version held against one corpus under one rule.

    `corpus_digest`: the corpus as it was then, '' where not known. `details_blob`: Parquet, a row per item.
    `problems`: kind -> how many files, lines or documents of the corpus could not be read as registered.
    """

    benchmark_id: str
    corpus: str
    rule: str
    checked_at: str
    rows: Mapping[str, ContaminationStatus]
    corpus_digest: str = ""
    scan_id: str = ""
    details_blob: str = ""
    n_documents: int = 0
    problems: Mapping[str, int] = field(default_factory=dict)


class Corpora(CatalogPart):
    """Corpora, and contamination by item."""

    def save_corpus(self, corpus: Corpus) -> None:
        """Record a corpus, in place of what is recorded under its name."""
        values = {"record": encode(corpus)}
        self._database.write(lambda connection: put(connection, corpora, {"name": corpus.name}, values))

    def corpus(self, name: str) -> Corpus:
        """The corpus of that name. Raises UserError with close names."""
        found = self._find_one(Corpus, select(corpora.c.record).where(corpora.c.name == name))
        if found is None:
            raise unknown("corpus", name, (c.name for c in self.corpora()))
        return found

    def corpora(self) -> list[Corpus]:
        """All corpora, by name."""
        return self._find(Corpus, select(corpora.c.record).order_by(corpora.c.name))

    def save_contamination(
        self,
        benchmark_id: str,
        corpus: str,
        rule: str,
        rows: Mapping[str, ContaminationStatus],
        checked_at: Moment,
    ) -> None:
        """Record a check of statuses alone; see `save_check`."""
        self.save_check(
            ContaminationCheck(
                benchmark_id=benchmark_id, corpus=corpus, rule=rule, checked_at=utc_text(checked_at), rows=dict(rows)
            )
        )

    def save_check(self, check: ContaminationCheck) -> None:
        """Record a check, in place of an earlier one of the same benchmark, corpus and rule."""
        key = {"benchmark_id": check.benchmark_id, "corpus": check.corpus, "rule": check.rule}
        self._database.write(lambda connection: put(connection, contamination, key, {"record": encode(check)}))

    def contamination_check(self, benchmark_id: str, corpus: str, rule: str) -> ContaminationCheck | None:
        """The check of a benchmark against a corpus under that rule, None when there is none."""
        at = (
            (contamination.c.benchmark_id, benchmark_id),
            (contamination.c.corpus, corpus),
            (contamination.c.rule, rule),
        )
        return self._find_one(
            ContaminationCheck, select(contamination.c.record).where(*[column == value for column, value in at])
        )

    def contamination(self, benchmark_id: str, corpora: Collection[str] | None = None) -> list[ContaminationCheck]:
        """The latest check of a benchmark against each of `corpora` (None: every one), by corpus.

        A corpus that it was never checked against is not in the list.
        """
        statement = select(contamination.c.record).where(contamination.c.benchmark_id == benchmark_id)
        if corpora is not None:
            statement = statement.where(contamination.c.corpus.in_(sorted(set(corpora))))
        checks = self._find(ContaminationCheck, statement.order_by(contamination.c.corpus, contamination.c.rule))
        latest: dict[str, ContaminationCheck] = {}
        for check in checks:
            if check.corpus not in latest or check.checked_at > latest[check.corpus].checked_at:
                latest[check.corpus] = check
        return [latest[corpus] for corpus in sorted(latest)]
