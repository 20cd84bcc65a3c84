"""Two runs, item by item -> a comparison with its verdict. delta = A - B, A the candidate and B the baseline.

Doors: `compare` for two runs of the store, `compare_files` for two plain files of scores, `compare_scores` for tables
in memory; `diagnose`, `diagnose_files` and (for two graders of one run) `diagnose_graders` for the items that flipped,
`keep_diagnoses` to keep them with a comparison.
Pairing is by item id, never by position. A run knows nothing of the other until it comes here.
"""

from eval_tasks.compare.diagnosis import diagnose, diagnose_files, diagnose_graders, keep_diagnoses
from eval_tasks.compare.files import compare_files
from eval_tasks.compare.pairing import BenchmarkArms
from eval_tasks.compare.runs import compare, label_of
from eval_tasks.compare.scores import Sides, compare_scores

__all__ = [
    "BenchmarkArms",
    "Sides",
    "compare",
    "compare_files",
    "compare_scores",
    "diagnose",
    "diagnose_files",
    "diagnose_graders",
    "keep_diagnoses",
    "label_of",
]
