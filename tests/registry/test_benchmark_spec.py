from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from eval_tasks.errors import UserError
from eval_tasks.records import DataSource, FewShot, ReasoningBlock, Sampling
from eval_tasks.registry import load_benchmark_file

DIGEST = "ab" * 32
COMMIT = "cd" * 20


def _spec(**changes: Any) -> dict[str, Any]:
    spec: dict[str, Any] = {
        "name": "toy",
        "version": "1",
        "kind": "choice",
        "licence": "Apache-2.0",
        "source": {"uri": "toy.parquet", "blake3": DIGEST, "format": "parquet"},
        "item": {"id": "item_id", "target": "answer"},
        "prompt": {"item": "Q: {{ question }}", "choices": ["A", "B"]},
        "scorer": {"name": "choice"},
        "primary_metric": "acc",
    }
    return {**spec, **changes}


SAMPLING = {"temperature": 0.6, "samples": 8, "reason": "its makers rule out greedy decoding"}
THINK = {"name": "think", "start": "<think>", "end": "</think>"}


def _generated(**changes: Any) -> dict[str, Any]:
    spec = _spec(kind="generation", prompt={"item": "Q: {{ question }}", "stop": ["\n\n"]}, scorer={"name": "gsm8k"})
    return {**spec, **changes}


def _write(path: Path, spec: object) -> Path:
    path.write_text(yaml.safe_dump(spec, sort_keys=False), "utf-8")
    return path


def test_a_whole_file(tmp_path: Path) -> None:
    few_shot = {"k": 3, "source": {"hub": "org/name", "revision": COMMIT, "config": "main", "split": "dev"}}
    prompt = {"item": "{{ q }}\n", "choices": "options", "stop": ["\n\n"], "chat": "always"}
    path = _write(tmp_path / "toy.yaml", _spec(few_shot=few_shot, prompt=prompt, plausible_range={"acc": [0, 1]}))
    spec = load_benchmark_file(path)
    assert spec.item.id_columns == ("item_id",)
    assert spec.prompt.record().choices == "options"
    assert spec.prompt.record().stop == ("\n\n",)
    assert spec.few_shot is not None
    hub = DataSource(hub="org/name", revision=COMMIT, config="main", split="dev", blake3="x")
    assert spec.few_shot.record("x") == FewShot(k=3, source=hub)
    assert spec.source.record("ignored").blake3 == DIGEST


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"licence": 3}, r"licence: must be text: put it in quotes \(got 3\)"),
        ({"version": 1.0}, r"version: .*\(got 1\.0\)"),
        ({"primry_metric": "acc"}, "primry_metric: unknown field; close: 'primary_metric'"),
        ({"kind": "chioce"}, "kind: .*'choice'"),
        ({"max_tokens": "64"}, "max_tokens: .*integer"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"decision_grade": "yes"}, "decision_grade: .*boolean"),
        (
            {"prompt": {"item": "x", "choices": ["A"], "stop": "Question:"}},
            "prompt.stop: stop strings are a list.*'Question:'",
        ),
        ({"prompt": {"item": "x", "choices": ["A"], "stop": [""]}}, r"prompt\.stop\.0"),
        (
            {"prompt": {"item": "x", "choices": ["A"], "chioces": "b"}},
            "unknown field; close: 'choices'",
        ),
        ({"prompt": {"item": "x", "choices": [True, False]}}, r"prompt\.choices"),
        ({"prompt": {"item": "{% if %}", "choices": ["A"]}}, r"prompt\.item: .*line 1"),
        ({"prompt": {"choices": ["A"]}}, r"prompt\.item: required, and absent"),
        ({"prompt": {"item": "x"}}, "'choice' needs prompt.choices"),
        ({"item": {"id": "item_id"}}, "needs item.target"),
        ({"item": {"target": "a", "categories": {"x": ["y"]}}}, "name it in 'category'"),
        ({"item": {"target": "a", "category": "c", "categories": {"x": ["y"], "z": ["y"]}}}, "'y' is in more than one"),
        ({"kind": "generation"}, "belongs to kind 'choice'"),
        ({"kind": "loss", "prompt": {"item": "x"}, "few_shot": {"k": 1}}, "the text of prompt.item alone"),
        ({"kind": "loss", "prompt": {"item": "x", "stop": ["a"]}}, "the text of prompt.item alone"),
        ({"kind": "generation", "prompt": {"item": "x"}, "few_shot": {"k": 1}}, "needs prompt.target"),
        ({"few_shot": {"k": 0}}, r"few_shot\.k"),
        ({"source": {"uri": "a"}}, "needs the 'blake3'"),
        ({"source": {"uri": "a", "blake3": "12"}}, r"source\.blake3"),
        ({"source": {}}, "exactly one of 'uri' and 'hub'"),
        ({"source": {"hub": "org/name", "revision": "main", "split": "test"}}, r"source\.revision"),
        ({"source": {"hub": "org/name", "split": "test"}}, "needs its 'revision'"),
        ({"source": {"uri": "a", "blake3": DIGEST, "split": "test"}}, "go with 'hub'"),
        ({"chance_level": 25}, "chance_level"),
        ({"plausible_range": {"acc": [1, 0]}}, "low end"),
        ({"plausible_range": {"acc": [1]}}, r"plausible_range\.acc"),
        ({"name": "Toy Set"}, "name"),
        ({"sampling": SAMPLING}, "sampling belongs to kind 'generation', not to 'choice'"),
        ({"scorer": {"name": "choice", "reasoning": THINK}}, r"scorer\.reasoning belongs to kind 'generation'"),
    ],
)
def test_wrong_input_is_named(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message) as error:
        load_benchmark_file(_write(tmp_path / "toy.yaml", _spec(**changes)))
    assert "toy.yaml" in str(error.value)


def test_sampling_and_reasoning_are_declared(tmp_path: Path) -> None:
    scorer = {"name": "gsm8k", "reasoning": {**THINK, "begins_open": True}}
    sampling = {**SAMPLING, "temperature": 1, "top_p": 0.95, "top_k": 20, "pass_at": [8, 1]}
    spec = load_benchmark_file(_write(tmp_path / "toy.yaml", _generated(sampling=sampling, scorer=scorer)))
    assert spec.sampling is not None and spec.scorer.reasoning is not None
    reason = SAMPLING["reason"]
    assert spec.sampling.record() == Sampling(
        temperature=1.0, samples=8, reason=reason, top_p=0.95, top_k=20, pass_at=(1, 8)
    )
    assert spec.scorer.reasoning.record() == ReasoningBlock(**THINK, begins_open=True)
    assert load_benchmark_file(_write(tmp_path / "toy.yaml", _generated())).sampling is None


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"temperature": 0}, r"sampling\.temperature: .*0 is greedy, which is what a benchmark without 'sampling' is"),
        ({"temperature": -1.0}, r"sampling\.temperature"),
        ({"temperature": float("inf")}, r"sampling\.temperature"),
        ({"temperature": "hot"}, r"sampling\.temperature"),
        ({"samples": 0}, r"sampling\.samples"),
        ({"samples": True}, r"sampling\.samples"),
        ({"reason": " "}, "reason is blank"),
        ({"top_p": 0.0}, r"sampling\.top_p"),
        ({"top_p": 1.1}, r"sampling\.top_p"),
        ({"top_k": -1}, r"sampling\.top_k"),
        ({"min_p": 1.0}, r"sampling\.min_p"),
        ({"pass_at": [1, 9]}, "pass@9 needs at least 9 samples per item, not 8"),
        ({"pass_at": [2, 2]}, "a k twice"),
        ({"pass_at": [0]}, r"sampling\.pass_at"),
        ({"temprature": 1.0}, "temprature: unknown field; close: 'temperature'"),
    ],
)
def test_wrong_sampling_is_named(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        load_benchmark_file(_write(tmp_path / "toy.yaml", _generated(sampling={**SAMPLING, **changes})))


@pytest.mark.parametrize("missing", ["temperature", "samples", "reason"])
def test_sampling_says_how_hot_how_often_and_why(tmp_path: Path, missing: str) -> None:
    sampling = {name: value for name, value in SAMPLING.items() if name != missing}
    with pytest.raises(UserError, match=rf"sampling\.{missing}: required, and absent"):
        load_benchmark_file(_write(tmp_path / "toy.yaml", _generated(sampling=sampling)))


@pytest.mark.parametrize("changes", [{"temperature": 0.6}, {"prompt": {"item": "x", "do_sample": True}}])
def test_sampling_that_is_not_declared_is_refused_with_the_way_to_declare_it(
    tmp_path: Path, changes: dict[str, Any]
) -> None:
    declared = r"unknown field; scored generation is greedy, but .* sampling: \{temperature: \.\.\., samples: "
    with pytest.raises(UserError, match=declared):
        load_benchmark_file(_write(tmp_path / "toy.yaml", _generated(**changes)))


@pytest.mark.parametrize("stop", ["<think>", "</think>", "<", "</think>\n"])
def test_a_stop_that_is_part_of_a_reasoning_marker_is_refused(tmp_path: Path, stop: str) -> None:
    scorer = {"name": "gsm8k", "reasoning": THINK}
    spec = _generated(scorer=scorer, prompt={"item": "x", "stop": [stop]})
    with pytest.raises(UserError, match="hold one another"):
        load_benchmark_file(_write(tmp_path / "toy.yaml", spec))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("name: a\nname: b\n", "'name' stands twice"),
        ("prompt: {item: a, item: b}\n", "'item' stands twice"),
        ("name: [", "not readable as YAML"),
        ("- a\n", "mapping of fields, not list"),
        ("", "mapping of fields, and is empty"),
        ("name: !!python/object/apply:os.getcwd []\n", "not readable as YAML"),
    ],
)
def test_unreadable_yaml(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "toy.yaml"
    path.write_text(text, "utf-8")
    with pytest.raises(UserError, match=message):
        load_benchmark_file(path)


def test_missing_file_and_bad_bytes(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"cannot read .*toy\.yaml"):
        load_benchmark_file(tmp_path / "toy.yaml")
    (tmp_path / "toy.yaml").write_bytes(b"name: \xff")
    with pytest.raises(UserError, match="not readable as YAML"):
        load_benchmark_file(tmp_path / "toy.yaml")
