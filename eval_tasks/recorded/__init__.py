"""Responses that were recorded elsewhere -> a run of the store, marked as imported. Claims nothing of how they came.

One module per format gives `RecordedRow`s; `joining` finds their items; `importing` makes the run.
"""

from eval_tasks.recorded.importing import ImportReport, import_run
from eval_tasks.recorded.rows import RecordedRow

__all__ = ["ImportReport", "RecordedRow", "import_run"]
