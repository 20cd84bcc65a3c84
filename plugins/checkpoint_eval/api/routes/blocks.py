"""Blocks: what holds evaluation, and a person's explanation of it."""

from __future__ import annotations

from http import HTTPStatus

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, Field

from checkpoint_eval.api.access import OPERATE, READ, User
from checkpoint_eval.api.archive import Archive, now
from checkpoint_eval.api.problems import documented
from eval_tasks.determinism import explain
from eval_tasks.records.determinism import Block, BlockOutcome

router = APIRouter(tags=["blocks"])


class BlockDetail(BaseModel):
    """A block, and the runs that it puts in doubt."""

    block: Block
    suspects: list[str]


class Explanation(BaseModel):
    """Why rows changed, and what follows."""

    model_config = ConfigDict(extra="forbid")

    outcome: BlockOutcome
    reason: str = Field(min_length=1, max_length=20_000)


@router.get("/blocks", dependencies=READ, responses=documented())
def blocks(store: Archive, explained: bool = False) -> list[Block]:
    """Open blocks, oldest first; with `explained`, all."""
    return store.catalog.blocks() if explained else store.catalog.open_blocks()


@router.get("/blocks/{block_id}", dependencies=READ, responses=documented(HTTPStatus.NOT_FOUND, HTTPStatus.BAD_REQUEST))
def block(store: Archive, block_id: str) -> BlockDetail:
    """One block: the first differing items with both values, and the runs in doubt."""
    found = store.catalog.block(block_id)
    return BlockDetail(block=found, suspects=[run.run_id for run in store.catalog.suspects(found)])


@router.post(
    "/blocks/{block_id}/explain",
    dependencies=OPERATE,
    responses=documented(HTTPStatus.NOT_FOUND, HTTPStatus.BAD_REQUEST),
)
def explain_block(store: Archive, user: User, block_id: str, explanation: Explanation) -> Block:
    """Lift a block, in the caller's name. Of two people one wins, and the other is told."""
    return explain(
        store, block_id, by=user.get_name(), reason=explanation.reason, outcome=explanation.outcome, now=now()
    )
