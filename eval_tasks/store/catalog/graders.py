"""Graders by name and version, and whether they are qualified."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from sqlalchemy import Connection, select

from eval_tasks.errors import UserError
from eval_tasks.records import Judge
from eval_tasks.store.catalog.part import CatalogPart, decode, encode, put, record_at, unknown
from eval_tasks.store.tables import graders as table


@dataclass(frozen=True, slots=True, kw_only=True)
class Grader:
    """One version of a grader. `digest` is of all that its outputs depend on; `agreement`: its qualification.

    `judge`: what a model grader is made of, None for the others.
    """

    name: str
    version: str
    kind: Literal["scorer", "model", "human"]
    digest: str
    created_at: str
    adopted: bool = False
    agreement: Mapping[str, Any] = field(default_factory=dict)
    description: str = ""
    judge: Judge | None = None

    @property
    def grader(self) -> str:
        """The name that score sets carry: name and version, of a scorer or judge with the head of its digest."""
        by_content = self.kind == "scorer" or self.judge is not None
        return f"{self.name}@{self.version}" + (f"+{self.digest[:8]}" if by_content else "")

    @property
    def reproducible(self) -> bool:
        """Whether the same outputs get the same scores again; people and endpoints promise no such thing."""
        return self.kind != "human" and (self.judge is None or self.judge.reproducible)


class Graders(CatalogPart):
    """The graders of the catalog."""

    def save_grader(self, grader: Grader) -> None:
        """Record a grader, or what is now known of it. Raises UserError when its version has another digest."""
        key = {"name": grader.name, "version": grader.version}

        def save(connection: Connection) -> None:
            text = record_at(connection, table, key)
            if text is not None and decode(Grader, text).digest != grader.digest:
                raise UserError(
                    f"grader '{grader.name}@{grader.version}' is registered with digest {decode(Grader, text).digest}, "
                    f"and this one has {grader.digest}; choose a new version"
                )
            put(connection, table, key, {"record": encode(grader)})

        self._database.write(save)

    def grader(self, name: str, version: str | None = None) -> Grader:
        """A grader by name; without `version`, the newest registered. Raises UserError with close names."""
        known = [grader for grader in self.graders() if grader.name == name]
        if not known:
            raise unknown("grader", name, (g.name for g in self.graders()))
        for grader in reversed(known):
            if version in (None, grader.version):
                return grader
        raise unknown(f"version of grader {name!r}", str(version), (g.version for g in known))

    def grader_named(self, reference: str) -> Grader | None:
        """The grader whose score sets carry that name, None when none is registered under it."""
        return next((grader for grader in self.graders() if grader.grader == reference), None)

    def graders(self) -> list[Grader]:
        """All graders, by name, in order of registration."""
        return self._find(Grader, select(table.c.record).order_by(table.c.name, table.c.seq))
