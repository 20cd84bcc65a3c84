"""Whether the instrument is still the one it was: environments, nights, baselines, blocks and their explanation."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter
from fastapi import Form as FormField
from fastapi.responses import RedirectResponse, Response

from checkpoint_eval.api.access import OPERATE, READ
from checkpoint_eval.api.archive import Archive, now
from checkpoint_eval.block_operator import outcomes_of
from checkpoint_eval.pages.page import Field, Form, Page, Section, html, line, link, listing, moment, url
from checkpoint_eval.pages.routes.runs import runs_table
from checkpoint_eval.pages.viewer import Visitor
from eval_tasks.blocking import block_lines
from eval_tasks.determinism import explain
from eval_tasks.records import Block
from eval_tasks.records.determinism import BlockOutcome
from eval_tasks.settings import Settings, load_config
from eval_tasks.store import Store

router = APIRouter()

_NIGHTS = 30


@router.get("/determinism", dependencies=READ)
def determinism(store: Archive, viewer: Visitor) -> str:
    """Blocks, the last nights, baselines and environments."""
    blocks = store.catalog.blocks()
    alarms = tuple(
        f"{b.environment or b.fingerprint[:12]} is blocked: {b.reason}" for b in blocks if b.explained_at is None
    )
    sections = (
        listing(
            "blocks",
            "Blocks, newest first",
            {"Block": "code", "Kind": "", "Environment": "", "Opened": "", "Reason": "", "Explained by": ""},
            [_block_row(b) for b in reversed(blocks)],
            title="Blocks",
            empty="Nothing was ever blocked.",
        ),
        _nights(store),
        _baselines(store),
        _environments(store),
    )
    return html(Page(title="Determinism", here="determinism", alarms=alarms, sections=sections), viewer)


def _nights(store: Store) -> Section:
    columns = {"Night": "", "Environment": "", "Status": "", "Items, twice": "number"}
    columns |= {"Device-seconds": "number", "Found": ""}
    rows = [
        (n.night, n.environment, n.status, f"{n.n_items:,}", f"{n.device_seconds:,.0f}", "; ".join(n.findings) or "–")
        for n in store.catalog.nights(limit=_NIGHTS)
    ]
    empty = "No night was run: configure a fixed suite under `determinism`."
    return listing("nights", f"The last {_NIGHTS} nights", columns, rows, title="Nights", empty=empty)


def _baselines(store: Store) -> Section:
    columns = {"Environment": "", "Fingerprint": "code", "Status": "", "Decided by": "", "At": "", "Run": "code"}
    rows = [
        (
            b.environment or "–",
            b.env_fingerprint[:12],
            b.status,
            b.decided_by or "–",
            moment(b.recorded_at),
            link(b.run_id[:12], f"runs/{b.run_id}"),
        )
        for b in store.catalog.baselines()
    ]
    empty = "No baseline yet: the first night's rows become one."
    return listing("baselines", "Whose rows stand", columns, rows, title="Baselines", empty=empty)


def _environments(store: Store) -> Section:
    columns = {"Environment": "", "State": "", "Device": "", "Dtype": "", "Fingerprints reported, latest first": "code"}
    rows = [
        (
            e.name,
            "live" if e.live else "retired",
            e.device,
            e.dtype,
            ", ".join(f[:12] for f in store.catalog.fingerprints_of(e.name)) or "none yet",
        )
        for e in load_config(Settings().config).environments
    ]
    return listing("environments", "Configured environments", columns, rows, title="Environments")


def _block_row(block: Block) -> tuple[str, ...]:
    said = f"{block.explained_by}: {block.outcome}" if block.explained_at else "nobody: evaluation waits"
    return (
        link(block.block_id[:12], f"blocks/{block.block_id}"),
        block.kind,
        block.environment or "–",
        moment(block.opened_at),
        block.reason,
        said,
    )


@router.get("/blocks/{block_id}", dependencies=READ)
def block(store: Archive, viewer: Visitor, block_id: str) -> str:
    """One block: what differs, what it holds and doubts, and the form that explains it."""
    found = store.catalog.block(block_id)
    differences = [(d.benchmark, d.item_id, d.field, d.a, d.b) for d in found.first]
    form = Form(
        action=f"blocks/{found.block_id}/explain",
        name="explain",
        submit="Explain",
        right="operate",
        fields=(
            Field(name="outcome", label="Outcome", options=tuple((o, o) for o in outcomes_of(found)), required=True),
            Field(
                name="reason",
                label="Reason",
                rows=4,
                required=True,
                hint="What happened, so that somebody can check it in a year.",
            ),
        ),
    )
    said = (
        (
            line(
                "{}, {}: {}: {}",
                found.explained_by or "nobody",
                moment(found.explained_at),
                found.outcome or "no outcome",
                found.explanation or "",
            ),
        )
        if found.explained_at
        else ()
    )
    page = Page(
        title=f"Block {found.block_id[:12]}",
        here="determinism",
        crumbs=(("determinism", "Determinism"),),
        lead=(line("{}, opened {}", found.kind, moment(found.opened_at)),),
        verdict=said,
        alarms=() if said else ("Evaluation waits in this environment until a person says what happened.",),
        sections=(
            Section(title="What is known", name="known", notes=tuple(block_lines(found))),
            listing(
                "differences",
                "Both values",
                {"Benchmark": "", "Item": "code", "Field": "code", "Before": "code", "Now": "code"},
                differences,
                title="First differing items",
                empty="No item is named.",
            ),
            Section(
                title="Runs in doubt",
                name="suspects",
                tables=(runs_table("suspects", "Runs that this block puts in doubt", store.catalog.suspects(found)),),
                empty="No run is in doubt.",
            ),
            *(() if said else (Section(title="Explain it", name="explain", forms=(form,)),)),
        ),
    )
    return html(page, viewer)


@router.post("/blocks/{block_id}/explain", dependencies=OPERATE)
def explain_block(
    store: Archive,
    viewer: Visitor,
    block_id: str,
    outcome: Annotated[BlockOutcome, FormField()],
    reason: Annotated[str, FormField(min_length=1, max_length=20_000)],
) -> Response:
    """Lift a block, in the caller's name. Of two people one wins, and the other is told."""
    explain(store, block_id, by=viewer.name, reason=reason, outcome=outcome, now=now())
    return RedirectResponse(url(f"blocks/{block_id}"), 303)
