"""Frozen cases per scorer -> the scorer's outputs on them -> `scorer_digest`.

`vectors/NAME.json` holds the cases (benchmark, item, response), and the outputs that the declared version gave on
them. The digest takes the outputs that the code gives now: code that changed in a way that the cases show has another
digest, and a test fails until version and file say so too.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

from eval_tasks.digests import canonical_json, digest_value
from eval_tasks.errors import DataError, UserError
from eval_tasks.reasoning import answer_of
from eval_tasks.records import (
    BenchmarkVersion,
    DataSource,
    Item,
    PromptTemplate,
    ReasoningBlock,
    Response,
    ScorerRef,
    from_json,
    to_json,
)
from eval_tasks.scoring.marking import score
from eval_tasks.scoring.registry import find_scorer, merged_parameters

_FOLDER = Path(__file__).parent / "vectors"


def scorer_digest(ref: ScorerRef) -> str:
    """Digest of the scorer's name, declared version, parameters and outputs on its frozen cases.

    With a reasoning block declared, of that rule too, and of what it makes of texts with its markers.

    Raises UserError for an unknown scorer or parameter, DataError when the scorer has no file of cases.
    """
    found = find_scorer(ref.name)
    own = _digest(found.name, found.version, canonical_json(merged_parameters(ref)).decode())
    if ref.reasoning is None:
        return own
    return digest_value([own, to_json(ref.reasoning), reasoning_outputs(ref.reasoning)])


def reasoning_outputs(block: ReasoningBlock) -> list[list[str]]:
    """[answer, reason] for texts with the block's markers in every place that matters, a blank line as the stop."""
    start, end = block.start, block.end
    texts = (
        "",
        "a",
        f"{start}a{end}b",
        f"{start}a\n\nb{end}\n\nc\n\nd",
        f"a {start}b{end} c {start}d{end} e",
        f"a{start}b",
        f"a{end}b",
        f"a\n\n{start}b{end}c",
    )
    answers = [answer_of(text, ("\n\n",), block) for text in texts]
    return [[answer.text, answer.reason] for answer in answers]


def check_scorer(benchmark: BenchmarkVersion) -> None:
    """Raise UserError unless the scorer of this release is the one that the benchmark was registered with.

    Its scores would carry the name of the other one, and two arms would seem to be scored alike.
    """
    found = scorer_digest(benchmark.scorer)
    if found != benchmark.scorer_digest:
        ref = benchmark.scorer
        raise UserError(
            f"benchmark {benchmark.name!r} version {benchmark.version!r} was registered with scorer "
            f"{ref.name}@{ref.version}+{benchmark.scorer_digest[:8]}, and this release scores as "
            f"{ref.name}@{find_scorer(ref.name).version}+{found[:8]}; register the benchmark under a new version, or "
            "use the release that registered it"
        )


@cache
def _digest(name: str, version: str, parameters: str) -> str:
    return digest_value([name, version, json.loads(parameters), vector_outputs(name, json.loads(parameters))])


def vector_outputs(name: str, parameters: dict[str, Any]) -> list[Any]:
    """What scorer `name` gives now on its frozen cases: per case a list of [metric, value, weight, status, ...]."""
    ref = ScorerRef(name=name, version=find_scorer(name).version, parameters=parameters)
    outputs = []
    for case in read_vectors(name)["cases"]:
        item = from_json(Item, {"item_id": "0", **case["item"]})
        blank = {"benchmark_id": "", "item_id": item.item_id, "status": "ok", "prompt_digest": ""}
        response = from_json(Response, {**blank, **case["response"]})
        scores = score(_benchmark(ref, case["template"]), item, response)
        outputs.append([[s.metric, s.value, s.weight, s.status, s.reason, s.extracted, s.detail] for s in scores])
    return outputs


def read_vectors(name: str) -> dict[str, Any]:
    """The frozen file of scorer `name`: `version`, `cases` and the `outputs` recorded at that version."""
    path = _FOLDER / f"{name}.json"
    try:
        content: dict[str, Any] = json.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        raise DataError(f"scorer {name!r} has no frozen cases: write {path.name} into its folder of vectors") from None
    return content


def freeze(name: str) -> None:
    """Write the outputs that scorer `name` gives now into its file.

    Raises UserError when they differ from those recorded under the same version: a changed scorer needs a new one.
    """
    content = read_vectors(name)
    version = find_scorer(name).version
    outputs = vector_outputs(name, {})
    recorded = content.get("outputs", [])
    if content.get("version") == version and recorded != outputs[: len(recorded)]:
        raise UserError(f"scorer {name!r} gives other outputs than its version {version!r} did: declare a new version")
    content = {"version": version, "cases": content["cases"], "outputs": outputs}
    (_FOLDER / f"{name}.json").write_text(json.dumps(content, indent=1, ensure_ascii=True) + "\n", "utf-8")


def _benchmark(ref: ScorerRef, template: dict[str, Any]) -> BenchmarkVersion:
    return BenchmarkVersion(
        name="vectors",
        version="",
        kind=find_scorer(ref.name).kinds[0],
        items_digest="",
        template_digest="",
        scorer_digest="",
        n_items=1,
        items_blob="",
        few_shot_blob=None,
        template=from_json(PromptTemplate, {"item": "", **template}),
        few_shot=None,
        scorer=ref,
        primary_metric="",
        licence="",
        source=DataSource(),
        created_at="",
    )
