"""Run by lm-eval 0.4.9's own interpreter: its scorers over a file of rows, and what that cost, as JSON.

Knows nothing of ours. Documents and instances are made before the clock starts, as ours are.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "parity"))
IGNORED = [",", r"\$", r"(?s).*#### ", r"\.$"]
STRICT = ["regex", {"regex_pattern": r"#### (\-?[0-9\.\,]+)"}]
FLEXIBLE = ["regex", {"group_select": -1, "regex_pattern": r"(-?[$0-9.,]{2,})|(-?[0-9]+)"}]


def main() -> None:
    """Arguments: the scorer's name, and the file of rows."""
    scorer, path = sys.argv[1:]
    rows = [json.loads(line) for line in Path(path).read_text("utf-8").splitlines()]
    work = {"ifeval": ifeval, "gsm8k": gsm8k, "exact_match": exact_match}[scorer](rows)
    wall, cpu = time.perf_counter(), time.process_time()
    found = work()
    line = {"found": found, "seconds": time.perf_counter() - wall, "cpu_seconds": time.process_time() - cpu}
    sys.stdout.write(json.dumps(line) + "\n")


def ifeval(rows: list[dict[str, Any]]) -> Any:
    """Its task's process_results, prompt by prompt."""
    from lm_eval_worker import write_punkt

    os.environ["NLTK_DATA"] = str(write_punkt(Path(tempfile.mkdtemp()) / "nltk_data"))
    from lm_eval.tasks.ifeval.utils import process_results

    def work() -> dict[str, float]:
        found: Counter[str] = Counter()
        for row in rows:
            marks = process_results(row, [row["output"]])
            for name in ("prompt_level_strict_acc", "prompt_level_loose_acc"):
                found[name] += marks[name]
            for name in ("inst_level_strict_acc", "inst_level_loose_acc"):
                found[name] += sum(marks[name])
        return dict(found)

    return work


def gsm8k(rows: list[dict[str, Any]]) -> Any:
    """Its two pipelines of filters, and its exact match for each document."""
    from lm_eval.api.instance import Instance
    from lm_eval.api.metrics import exact_match_hf_evaluate
    from lm_eval.filters import build_filter_ensemble

    pipelines = {
        name: build_filter_ensemble(name, [step, ["take_first", None]])
        for name, step in (("strict", STRICT), ("flexible", FLEXIBLE))
    }
    instances = [
        Instance(request_type="generate_until", doc=row, arguments=("", {}), idx=0, resps=[row["output"]])
        for row in rows
    ]

    def work() -> dict[str, float]:
        found: Counter[str] = Counter()
        for name, pipeline in pipelines.items():
            pipeline.apply(instances)
            for instance in instances:
                result = exact_match_hf_evaluate(
                    predictions=[instance.filtered_resps[name]],
                    references=[instance.doc["answer"]],
                    regexes_to_ignore=IGNORED,
                    ignore_case=True,
                )
                found[name] += float(result["exact_match"])
        return dict(found)

    return work


def exact_match(rows: list[dict[str, Any]]) -> Any:
    """Its exact match for each document."""
    from lm_eval.api.metrics import exact_match_hf_evaluate

    def work() -> dict[str, float]:
        results = (
            exact_match_hf_evaluate(predictions=[row["output"].strip()], references=[row["answer"]]) for row in rows
        )
        return {"exact_match": float(sum(result["exact_match"] for result in results))}

    return work


if __name__ == "__main__":
    main()
