"""Scores of sampled items: the mean of each metric, pass@k, and reasoning that no scorer sees."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace
from typing import Any

import pytest

from eval_tasks.errors import DataError, UserError
from eval_tasks.records import (
    BenchmarkVersion,
    Item,
    PromptTemplate,
    ReasoningBlock,
    Response,
    Sample,
    Sampling,
    Score,
    ScorerRef,
)
from eval_tasks.scoring import metric_of, metrics_of, score, scorer_digest
from eval_tasks.scoring.samples import pass_at_k
from tests.store import samples

SAMPLING = Sampling(temperature=0.6, samples=4, pass_at=(1, 2, 4), reason="test")
THINK = ReasoningBlock(name="think", start="<think>", end="</think>")


def benchmark(scorer: str = "gsm8k", reasoning: ReasoningBlock | None = None, **changes: Any) -> BenchmarkVersion:
    fields: dict[str, Any] = {
        "kind": "generation",
        "template": PromptTemplate(item="{{ question }}", stop=("\n\n",)),
        "scorer": ScorerRef(name=scorer, version="1", reasoning=reasoning),
        "sampling": SAMPLING,
    }
    return samples.benchmark(**{**fields, **changes})


def sampled(*outputs: str, **changes: Any) -> Response:
    drawn = tuple(Sample(output=o, output_ids=(1,), finish_reason="eos", token_logprobs=(-1.0,)) for o in outputs)
    return samples.response("i", samples=drawn, logprobs=(), token_logprobs=(), **changes)


def scores(benchmark: BenchmarkVersion, response: Response, target: Any = "#### 18") -> dict[str, Score]:
    item = Item(item_id="i", fields={}, target=target, stratum="s", cluster="c")
    return {found.metric: found for found in score(benchmark, item, response)}


@pytest.mark.parametrize("n", range(1, 7))
def test_pass_at_k_is_the_share_of_subsets_with_a_right_one(n: int) -> None:
    for c, k in itertools.product(range(n + 1), range(1, n + 1)):
        subsets = list(itertools.combinations([1] * c + [0] * (n - c), k))
        assert pass_at_k(n, c, k) == sum(map(max, subsets)) / len(subsets)


def test_pass_at_k_is_exact_where_products_of_floats_are_not() -> None:
    assert pass_at_k(1000, 1, 999) == 0.999
    assert pass_at_k(200, 3, 100) == 1 - 161700 / 1313400
    assert (pass_at_k(5, 0, 5), pass_at_k(5, 1, 5)) == (0.0, 1.0)


@pytest.mark.parametrize(("n", "c", "k"), [(3, 1, 4), (3, 1, 0), (3, 4, 1), (3, -1, 1)])
def test_what_is_not_known_is_refused(n: int, c: int, k: int) -> None:
    with pytest.raises(UserError, match="samples"):
        pass_at_k(n, c, k)


def test_an_item_s_value_is_the_mean_over_its_samples() -> None:
    found = scores(benchmark(), sampled("#### 18", "#### 19", "so 18", "none"))
    assert {m: s.value for m, s in found.items() if "pass" not in m} == {
        "flexible": 0.5,
        "strict": 0.25,
        "numeric": 0.5,
        "boxed": 0.5,
    }
    assert found["strict"].sample_values == (1.0, 0.0, 0.0, 0.0)
    assert json.loads(found["strict"].extracted or "") == ["18", "19", None, None]
    assert json.loads(found["strict"].detail) == ["", "", "no digit", "no digit"]
    assert (found["strict"].stratum, found["strict"].cluster, found["strict"].status) == ("s", "c", "ok")
    passes = {k: found[f"strict_pass@{k}"] for k in (1, 2, 4)}
    assert {k: s.value for k, s in passes.items()} == {1: 0.25, 2: 0.5, 4: 1.0}
    assert all(s.sample_values == () for s in passes.values())


def test_pooled_and_continuous_metrics_have_a_mean_and_no_pass_at_k() -> None:
    item = Item(item_id="i", fields={"instruction_id_list": ["punctuation:no_comma"] * 2, "kwargs": [{}, {}]})
    found = {s.metric: s for s in score(benchmark("ifeval"), item, sampled("a", "a, b", "c", ""))}
    assert (found["inst_strict"].value, found["inst_strict"].weight) == (0.5, 2.0)
    assert "prompt_strict_pass@2" in found
    assert not any(m.startswith("inst_") and "pass" in m for m in found)


def test_an_item_that_a_rule_excludes_is_excluded_from_pass_at_k_too() -> None:
    item = Item(item_id="i", fields={"instruction_id_list": ["language:response_language"], "kwargs": [{}]})
    found = score(benchmark("ifeval"), item, sampled("a", "b", "c", "d"))
    assert {(s.status, s.value) for s in found} == {("excluded", None)}
    assert {s.metric for s in found} == set(metrics_of("ifeval", SAMPLING))


@pytest.mark.parametrize(("status", "value"), [("invalid", 0.0), ("missing", None)])
def test_an_item_without_outputs_has_a_row_of_every_metric(status: Any, value: float | None) -> None:
    found = scores(benchmark(), samples.response("i", status=status, reason="why", logprobs=()))
    assert found.keys() == metrics_of("gsm8k", SAMPLING).keys()
    assert {(s.status, s.value, s.reason) for s in found.values()} == {(status, value, "why")}


def test_rows_with_another_number_of_samples_are_not_scored() -> None:
    with pytest.raises(DataError, match="has 3 samples, not 4"):
        scores(benchmark(), sampled("a", "b", "c"))
    with pytest.raises(DataError, match="has 0 samples, not 4"):
        scores(benchmark(), samples.response("i", output="#### 18"))
    with pytest.raises(DataError, match="declares no sampling"):
        scores(benchmark(sampling=None), sampled("a", "b", "c", "d"))


def test_what_metrics_mean_under_sampling() -> None:
    infos = metrics_of("gsm8k", SAMPLING)
    assert [m for m in infos if m.startswith("strict")] == ["strict", "strict_pass@1", "strict_pass@2", "strict_pass@4"]
    assert {m: infos[m].binary for m in infos if m.startswith("strict")} == {
        "strict": False,
        "strict_pass@1": False,
        "strict_pass@2": False,
        "strict_pass@4": True,
    }
    assert metrics_of("gsm8k", replace(SAMPLING, samples=1, pass_at=()))["strict"].binary
    with pytest.raises(UserError, match="no metric 'strict_pass@3'; close: 'strict_pass@"):
        metric_of(benchmark(), "strict_pass@3")
    with pytest.raises(UserError, match="no metric 'strict_pass@2'; close: 'strict'"):
        metric_of(benchmark(sampling=None), "strict_pass@2")


def test_no_scorer_sees_reasoning_and_stops_count_outside_it() -> None:
    think = benchmark(reasoning=THINK, sampling=None)
    output = "<think>maybe 17\n\nno, 18?</think>\n\n#### 18\n\nQuestion: 5"
    found = scores(think, samples.response("i", output=output))
    assert {m: s.value for m, s in found.items()} == {"flexible": 1.0, "strict": 1.0, "numeric": 1.0, "boxed": 1.0}
    assert scores(benchmark(sampling=None), samples.response("i", output=output))["flexible"].value == 0.0


def test_reasoning_that_never_ends_is_an_empty_answer_with_a_reason() -> None:
    (one,) = {
        s.reason
        for s in scores(benchmark(reasoning=THINK, sampling=None), samples.response("i", output="<think>18")).values()
    }
    assert one == "reasoning block 'think' was never closed: no answer"
    drawn = sampled("<think>18", "<think></think>18", "18 <think>", "18")
    strict = scores(benchmark(reasoning=THINK), drawn)["flexible"]
    assert strict.sample_values == (0.0, 1.0, 0.0, 1.0)
    assert (strict.status, strict.reason) == ("ok", f"2 of 4 samples: {one}")


def test_the_reasoning_rule_is_part_of_the_scorer() -> None:
    plain = ScorerRef(name="gsm8k", version="1")
    rules = [None, THINK, *(replace(THINK, **c) for c in ({"name": "r"}, {"start": "<t>"}, {"begins_open": True}))]
    assert len({scorer_digest(replace(plain, reasoning=rule)) for rule in rules}) == len(rules)


def test_code_that_strips_otherwise_is_another_scorer(monkeypatch: pytest.MonkeyPatch) -> None:
    from eval_tasks.reasoning import Answer
    from eval_tasks.scoring import vector_file

    ref = ScorerRef(name="gsm8k", version="1", reasoning=THINK)
    before = scorer_digest(ref)
    unclosed = "reasoning block 'think' was never closed: no answer"
    assert vector_file.reasoning_outputs(THINK) == [
        ["", ""],
        ["a", ""],
        ["b", ""],
        ["c", ""],
        ["a c e", ""],
        ["", unclosed],
        ["a</think>b", "'</think>' closes no block: what stands before it is taken for answer (see begins_open)"],
        ["a", ""],
    ]
    monkeypatch.setattr(vector_file, "answer_of", lambda text, stops, block: Answer(text=text.strip()))
    assert scorer_digest(ref) != before
