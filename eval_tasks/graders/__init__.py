"""Graders of stored outputs beside a benchmark's own scorer: people, judges that are models, and other scorers.

Stands above the verbs: a judging is planned, run and closed as any run is.
"""

from eval_tasks.graders.grading import environment_for, find_grader, finish_grading, plan_grading
from eval_tasks.graders.judges import register_judge
from eval_tasks.graders.labels import Label, import_labels, read_labels

__all__ = [
    "Label",
    "environment_for",
    "find_grader",
    "finish_grading",
    "import_labels",
    "plan_grading",
    "read_labels",
    "register_judge",
]
