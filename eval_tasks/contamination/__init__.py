"""What is known of benchmark items in training corpora: reads recorded checks, and makes none."""

from eval_tasks.contamination.status import NEVER_CHECKED, known_statuses, note

__all__ = ["NEVER_CHECKED", "known_statuses", "note"]
