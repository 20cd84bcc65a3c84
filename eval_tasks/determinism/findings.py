"""What one night found, as it is found: sentences for a person, and a block for each difference that must not be."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from eval_tasks.blocking import difference_line, open_block
from eval_tasks.records import ComputedTwice, RowsComparison, Run
from eval_tasks.records.determinism import BlockKind

if TYPE_CHECKING:
    from eval_tasks.store import Store


@dataclass(kw_only=True)
class Findings:
    """Collects; blocks are opened at once, so that a night that dies half way has told what it knew."""

    store: Store
    run: Run
    now: str
    block_ids: list[str] = field(default_factory=list)
    sentences: list[str] = field(default_factory=list)

    def block(
        self, kind: BlockKind, reason: str, compared: RowsComparison | None = None, nodes: tuple[str, ...] = ()
    ) -> None:
        """Something that must not be."""
        block = open_block(
            self.store,
            self.run,
            kind,
            reason,
            now=self.now,
            suite_id=self.run.request.suite_id,
            first=compared.first if compared else (),
            nodes=nodes,
        )
        self.block_ids.append(block.block_id)
        self.sentences.append(f"block {block.block_id}: {reason}")
        self.sentences += [difference_line(difference) for difference in (compared.first if compared else ())]

    def computed_twice(self, found: ComputedTwice | None) -> None:
        """What items that two pods computed have shown; the block of a difference is there already."""
        if found is None or not found.n_differing:
            return
        for block in self.store.catalog.open_blocks(self.run.env_fingerprint):
            if (block.kind, block.run_id) == ("computed_twice", found.run_id):
                self.block_ids.append(block.block_id)
                self.sentences.append(f"block {block.block_id}: {block.reason}")

    def remark(self, sentence: str) -> None:
        """Something a person should know."""
        self.sentences.append(sentence)
