"""All shards of a plan, one after another, in this process: what pods do, without pods."""

from __future__ import annotations

import os
import socket

from eval_tasks.cli.output import cache_dir, progress_bar
from eval_tasks.records import Plan
from eval_tasks.run import run_shard
from eval_tasks.settings import Config
from eval_tasks.store import Store


def compute_here(store: Store, plan: Plan, uri: str, config: Config, *, label: str = "") -> None:
    """Compute what is left of a plan, with a progress bar for each shard; `label` stands before its number."""
    for shard in plan.shards:
        words = f"{label}shard {shard.shard + 1}/{len(plan.shards)} ({shard.group})"
        with progress_bar(words) as progress:
            run_shard(
                store,
                plan_uri=uri,
                shard=shard.shard,
                owner=f"{socket.gethostname()}:{os.getpid()}",
                cache_dir=cache_dir(),
                limits=config.limits,
                node=socket.gethostname(),
                progress=progress,
            )
