"""Tasks of lm-eval's own wheel, as they are, run by lm-eval and by us: the same requests, gold answers and scores.

One task of each family here; ``python -m tests.parity.imported_tasks`` runs one of every shape, ``--all`` all of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from eval_tasks.lm_eval_tasks import Options, convert, read_task_file
from eval_tasks.registry import BenchmarkSpec
from eval_tasks.store import Store
from tests.parity.imported_tasks import N_ROWS, differences
from tests.parity.made_rows import made_rows
from tests.parity.reference import Reference, UnavailableError, reference_python

TASKS = {
    "multiple_choice": [
        "mmlu/default/mmlu_anatomy",
        "global_mmlu/full/en/global_mmlu_full_en_anatomy",
        "arc/arc_easy",
        "piqa/piqa",
        "sciq/sciq",
        "headqa/headqa_en",
        "xnli/xnli_en",
        "blimp/adjunct_island",
        "truthfulqa/truthfulqa_mc1",
        "leaderboard/bbh_mc/boolean_expressions",
    ],
    "loglikelihood": ["lambada/lambada_openai", "lambada_cloze/lambada_openai_cloze", "arithmetic/arithmetic_2da"],
    "loglikelihood_rolling": ["pile/pile_arxiv"],
    "generate_until": [
        "gsm8k/gsm8k",
        "gsm8k/gsm8k-cot",
        "triviaqa/default",
        "nq_open/nq_open",
        "mgsm/direct/mgsm_direct_en",
        "babi/babi",
        "llama3/instruct/mmlu_es/mmlu_es_econometrics",
        "super_glue/boolq/seq2seq",
        "mmlu/generative/mmlu_anatomy",
        "mmlu/flan_cot_zeroshot/mmlu_anatomy",
        "bbh/cot_fewshot/snarks",
    ],
}
"""Files of the wheel's task folder by output type."""


@pytest.fixture(scope="module")
def reference() -> Iterator[Reference]:
    try:
        python = reference_python()
    except UnavailableError as error:
        pytest.skip(f"lm-eval's environment cannot be made here: {error}")
    with Reference(python) as running:
        yield running


@pytest.mark.full
@pytest.mark.parametrize("num_fewshot", [None, 2])
@pytest.mark.parametrize("task", [task for tasks in TASKS.values() for task in tasks])
def test_a_task_of_the_wheel_is_the_same_instrument(
    task: str, num_fewshot: int | None, reference: Reference, store: Store, tmp_path: Path
) -> None:
    path = Path(reference.ask("tasks_folder")["folder"]) / f"{task}.yaml"
    assert differences(path, num_fewshot, reference, store, tmp_path) == []


@pytest.mark.full
@pytest.mark.parametrize("change", [("Answer:", "Reply:"), ("doc_to_target: label", 'doc_to_target: "{{1 - label}}"')])
def test_a_changed_prompt_or_target_would_be_seen(
    change: tuple[str, str], reference: Reference, store: Store, tmp_path: Path
) -> None:
    """The comparison itself: our side reads a task file that says something else than theirs."""
    path = Path(reference.ask("tasks_folder")["folder"]) / "piqa/piqa.yaml"
    changed = tmp_path / "changed.yaml"
    changed.write_text(path.read_text("utf-8").replace(*change, 1), "utf-8")
    assert changed.read_text("utf-8") != path.read_text("utf-8")
    assert differences(changed, 0, reference, store, tmp_path, theirs=path)


TASK: dict[str, Any] = {
    "task": "quiz",
    "dataset_path": "org/quiz",
    "output_type": "multiple_choice",
    "test_split": "test",
    "doc_to_text": "{% if hint is not none %}{{hint}} {% endif %}{{question}}",
    "doc_to_choice": "{{choices.text}}",
    "doc_to_target": "{{choices.label.index(key)}}",
}


def test_rows_are_made_that_every_template_can_be_rendered_from(tmp_path: Path) -> None:
    import yaml

    path = tmp_path / "quiz.yaml"
    path.write_text(yaml.safe_dump(TASK), "utf-8")
    document = dict(convert(read_task_file(path), Options()).document) | {"source": {"uri": "x", "blake3": "0" * 64}}
    rows = made_rows(BenchmarkSpec.model_validate(document), N_ROWS)
    assert rows is not None and len(rows) == N_ROWS
    assert {row["hint"] is None for row in rows} == {True, False}
    assert all(row["key"] in row["choices"]["label"] for row in rows)
    assert len({row["question"] for row in rows}) == N_ROWS
