"""`python -m tests.benchmarks.parse_time`: seconds that each DAG file takes to parse, beyond Airflow's own imports.

One process, as in a DAG processor: airflow.sdk and the KubernetesPodOperator are imported first and timed apart, then
each file of dags/ is loaded in turn. A file's own figure includes the parts of checkpoint_eval that it is the first to
import; `again` is the same file once more, what each later parse costs. One JSON line.
"""

from __future__ import annotations

import importlib
import json
import os
import runpy
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path

_REPOSITORY = Path(__file__).parents[2]
_OF_AIRFLOW = ("airflow.sdk", "airflow.providers.cncf.kubernetes.operators.pod")


def main() -> None:
    """Measure, print one JSON line."""
    sys.path[:0] = [str(_REPOSITORY), str(_REPOSITORY / "plugins")]
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as home:
        os.environ |= {"AIRFLOW_HOME": home, "AIRFLOW__CORE__LOAD_EXAMPLES": "False"}
        imports = _seconds(lambda: [importlib.import_module(name) for name in _OF_AIRFLOW])
        files = sorted((_REPOSITORY / "dags").glob("*.py"))
        first = {file.name: _seconds(lambda file=file: runpy.run_path(str(file))) for file in files}
        again = {file.name: _seconds(lambda file=file: runpy.run_path(str(file))) for file in files}
    line = {"benchmark": "parse_time", "airflow_imports_seconds": imports, "seconds": first, "again_seconds": again}
    sys.stdout.write(json.dumps(line) + "\n")


def _seconds(work: Callable[[], object]) -> float:
    begun = time.perf_counter()
    work()
    return round(time.perf_counter() - begun, 4)


if __name__ == "__main__":
    main()
