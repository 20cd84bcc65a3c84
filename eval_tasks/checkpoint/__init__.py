"""Checkpoints in storage: what landed, whether it is complete, what it is by content, and a verified local copy."""

from eval_tasks.checkpoint.coalescing import coalesce, may_start
from eval_tasks.checkpoint.config import max_context, read_config
from eval_tasks.checkpoint.conversion import Conversion, convert
from eval_tasks.checkpoint.fetching import fetch
from eval_tasks.checkpoint.ledger import Change, decide, due_for_check
from eval_tasks.checkpoint.listing import MAX_STEP, Sighting, list_landings, list_sightings
from eval_tasks.checkpoint.manifest import build_manifest
from eval_tasks.checkpoint.reasons import REASONS, Problem, Reason
from eval_tasks.checkpoint.tiers import dag_run_id, dispatches
from eval_tasks.checkpoint.validity import check_complete
from eval_tasks.checkpoint.weights import read_headers, weights_digest

__all__ = [
    "MAX_STEP",
    "REASONS",
    "Change",
    "Conversion",
    "Problem",
    "Reason",
    "Sighting",
    "build_manifest",
    "check_complete",
    "coalesce",
    "convert",
    "dag_run_id",
    "decide",
    "dispatches",
    "due_for_check",
    "fetch",
    "list_landings",
    "list_sightings",
    "max_context",
    "may_start",
    "read_config",
    "read_headers",
    "weights_digest",
]
