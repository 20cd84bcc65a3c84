"""Graders of stored outputs beside a benchmark's own scorer: people, judges that are models, and other scorers.

Stands above the verbs: a judging is planned, run and closed as any run is. A window of stored runs is regraded run by
run: `runs_in` and `gradings` say what there is to do, `moved_scores` what came of it.
"""

from eval_tasks.graders.grading import environment_for, find_grader, finish_grading, plan_grading
from eval_tasks.graders.judges import register_judge
from eval_tasks.graders.labels import Label, import_labels, read_labels
from eval_tasks.graders.moves import keep_moves, moved_scores
from eval_tasks.graders.window import OWN, Cost, Grading, Window, contains, forecast, gradings, moment, runs_in

__all__ = [
    "OWN",
    "Cost",
    "Grading",
    "Label",
    "Window",
    "contains",
    "environment_for",
    "find_grader",
    "finish_grading",
    "forecast",
    "gradings",
    "import_labels",
    "keep_moves",
    "moment",
    "moved_scores",
    "plan_grading",
    "read_labels",
    "register_judge",
    "runs_in",
]
