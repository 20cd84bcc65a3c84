"""Benchmarks held against training corpora: what was found, what is known of each item, and how much is found at all.

Corpora are registered by their files (`corpus`), looked through shard by shard (`scan`) under a rule (`rule`), and what
the catalog keeps of it is read by `status`, which is all that this package loads by itself. `recall` measures how much
of what is planted is found. Numba and DuckDB are imported when a scan runs, not before.
"""

from eval_tasks.contamination.status import NEVER_CHECKED, known_statuses, note

__all__ = ["NEVER_CHECKED", "known_statuses", "note"]
