"""Whether the instrument is still the one it was: nights, baselines, blocks, sentinels, and how far it moves by itself.

Stands above the verbs: a night is planned, run and graded as any evaluation is, in the same pods, and then judged.
"""

from eval_tasks.determinism.baselines import adopt
from eval_tasks.determinism.computed_again import check_again
from eval_tasks.determinism.explaining import clear, explain, mark_suspects
from eval_tasks.determinism.judging import judge_night
from eval_tasks.determinism.planning import PlannedNight, plan_night
from eval_tasks.determinism.sensitivity import sensitivity
from eval_tasks.determinism.sentinels import try_sentinels

__all__ = [
    "PlannedNight",
    "adopt",
    "check_again",
    "clear",
    "explain",
    "judge_night",
    "mark_suspects",
    "plan_night",
    "sensitivity",
    "try_sentinels",
]
