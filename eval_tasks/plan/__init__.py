"""Checkpoint and suite -> the plan of a run: which items in which batches in which shards."""

from eval_tasks.plan.endpoint import about_tokens, plan_endpoint
from eval_tasks.plan.planning import plan, plan_uri
from eval_tasks.plan.selection import choose_items

__all__ = ["about_tokens", "choose_items", "plan", "plan_endpoint", "plan_uri"]
