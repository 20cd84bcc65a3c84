"""Task files of lm-evaluation-harness 0.4.9 -> YAML files of benchmarks and suites. Runs none of their code."""

from eval_tasks.lm_eval_tasks.conversion import Converted, Options, convert
from eval_tasks.lm_eval_tasks.folder import Imported, Refused, import_tasks
from eval_tasks.lm_eval_tasks.scoring_parts import Refusal
from eval_tasks.lm_eval_tasks.task_files import TaskFile, read_task_file

__all__ = [
    "Converted",
    "Imported",
    "Options",
    "Refusal",
    "Refused",
    "TaskFile",
    "convert",
    "import_tasks",
    "read_task_file",
]
