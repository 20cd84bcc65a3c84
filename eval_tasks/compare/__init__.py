"""Two runs, item by item -> a comparison with its verdict. delta = A - B, A the candidate and B the baseline.

Doors: `compare` for two runs of the store, `compare_files` for two plain files of scores, `compare_scores` for tables
in memory; `diagnose` and `diagnose_files` for the items that flipped, `keep_diagnoses` to keep them with a comparison.
Pairing is by item id, never by position. A run knows nothing of the other until it comes here.
"""

from eval_tasks.compare.diagnosis import diagnose, diagnose_files, keep_diagnoses
from eval_tasks.compare.files import compare_files
from eval_tasks.compare.pairing import BenchmarkArms
from eval_tasks.compare.runs import compare
from eval_tasks.compare.scores import Sides, compare_scores

__all__ = [
    "BenchmarkArms",
    "Sides",
    "compare",
    "compare_files",
    "compare_scores",
    "diagnose",
    "diagnose_files",
    "keep_diagnoses",
]
