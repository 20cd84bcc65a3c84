"""Each field of a task as lm-eval 0.4.9 reads it, and each refusal by the name of what it refuses."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from eval_tasks.lm_eval_tasks import Converted, Options, Refusal, TaskFile, convert
from eval_tasks.lm_eval_tasks.conversion import benchmark_name
from eval_tasks.registry import Rendering

COMMIT = "ab" * 20
QUIZ: dict[str, Any] = {
    "task": "Quiz_A",
    "dataset_path": "org/quiz",
    "dataset_name": "main",
    "output_type": "multiple_choice",
    "training_split": "train",
    "validation_split": "validation",
    "test_split": "test",
    "doc_to_text": "Question: {{question}}\nAnswer:",
    "doc_to_target": "{{labels.index(key)}}",
    "doc_to_choice": "{{texts}}",
    "metric_list": [{"metric": "acc"}, {"metric": "acc_norm"}, {"metric": "f1"}],
    "metadata": {"version": 1.0},
}
SUMS: dict[str, Any] = {
    "task": "sums",
    "dataset_path": "org/sums",
    "output_type": "generate_until",
    "test_split": "test",
    "fewshot_split": "train",
    "num_fewshot": 2,
    "doc_to_text": "question",
    "doc_to_target": "{{answer.split('### ')[-1]}}",
    "generation_kwargs": {"until": ["Q:", ""], "do_sample": False, "temperature": 0.0, "max_gen_toks": 64},
    "metric_list": [{"metric": "exact_match", "aggregation": "mean", "ignore_case": True, "regexes_to_ignore": [","]}],
}
LETTER = {"function": "regex", "regex_pattern": "([A-D])", "group_select": -1}
FIRST = {"function": "take_first"}


def converted(
    base: dict[str, Any], *functions: tuple[str, str], options: Options | None = None, **changes: Any
) -> Converted:
    settings = {key: value for key, value in {**base, **changes}.items() if value != "absent"}
    return convert(TaskFile(path=Path("task.yaml"), settings=settings, functions=functions), options or Options())


def test_a_choice_task() -> None:
    found = converted(QUIZ, options=Options(revisions={"org/quiz": COMMIT}))
    document = found.document
    assert (found.name, document["version"], document["kind"]) == ("quiz_a", "1.0", "choice")
    assert document["source"] == {"hub": "org/quiz", "revision": COMMIT, "config": "main", "split": "test"}
    assert document["item"] == {"target": "{{labels.index(key)}}"}
    assert document["prompt"] == {
        "item": "Question: {{question}}\nAnswer:",
        "choices": "{{texts}}",
        "target_delimiter": " ",
    }
    assert (document["scorer"], document["primary_metric"]) == ({"name": "choice"}, "acc")
    assert found.notes == ["left out, not ours: f1"] and "few_shot" not in document


def test_a_generation_task() -> None:
    found = converted(SUMS)
    document = found.document
    assert document["prompt"] == {
        "item": "{{ question }}",
        "target": "{% set gold = answer.split('### ')[-1] %}"
        "{{ gold[0] if gold is sequence and gold is not string else gold }}",
        "target_delimiter": " ",
        "stop": ["Q:"],
    }
    assert document["item"] == {"target": "{{answer.split('### ')[-1]}}"}
    assert document["scorer"] == {
        "name": "filtered_match",
        "parameters": {"steps": [], "ignore_case": True, "regexes_to_ignore": [","]},
    }
    assert (document["max_tokens"], document["primary_metric"]) == (64, "exact_match")
    shots = {"hub": "org/sums", "revision": None, "split": "train"}
    assert document["few_shot"] == {"k": 2, "select": "seeded", "seed": 1234, "source": shots}
    assert any(note.startswith("pin the revision of org/sums") for note in found.notes)


@pytest.mark.parametrize("flexible_first", [False, True])
def test_two_pipelines_are_strict_and_flexible(flexible_first: bool) -> None:
    pipelines = [
        {"name": "strict-match", "filter": [{"function": "regex"}, FIRST]},
        {"name": "flexible-extract", "filter": [LETTER]},
    ]
    found = converted(SUMS, filter_list=pipelines[::-1] if flexible_first else pipelines)
    parameters = found.document["scorer"]["parameters"]
    assert (parameters["strict_steps"], parameters["flexible_steps"]) == ([{"function": "regex"}, FIRST], [LETTER])
    assert "metric 'strict' is filter 'strict-match', 'flexible' is 'flexible-extract'" in found.notes


def test_loglikelihoods() -> None:
    task = {**QUIZ, "doc_to_text": "{{words[:-1] | join(' ')}}", "doc_to_target": "{{' ' + words[-1]}}"}
    word = converted(
        task,
        output_type="loglikelihood",
        metric_list=[{"metric": "perplexity", "aggregation": "perplexity"}, {"metric": "acc"}],
    )
    assert word.document["prompt"]["choices"] == ["{{' ' + words[-1]}}"]
    assert (word.document["prompt"]["target_delimiter"], word.document["primary_metric"]) == ("", "nats")
    greedy = converted(task, output_type="loglikelihood", metric_list=[{"metric": "acc"}])
    assert (greedy.document["scorer"], greedy.document["primary_metric"]) == ({"name": "continuation"}, "acc")
    text = converted(
        QUIZ, output_type="loglikelihood_rolling", doc_to_text="", doc_to_target="page", metric_list="absent"
    )
    assert (text.document["kind"], text.document["prompt"], text.document["scorer"]) == (
        "loss", {"item": "{{ page }}"}, {"name": "loss"},
    )  # fmt: skip


def test_examples_that_the_task_holds_itself() -> None:
    rows = [{"question": "1+1", "answer": "2"}]
    config = {"sampler": "first_n", "samples": rows}
    found = converted(SUMS, fewshot_split="absent", num_fewshot=1, fewshot_config=config)
    assert found.examples == rows
    assert found.document["few_shot"]["source"]["uri"] == "sums-examples.jsonl"
    assert found.document["few_shot"]["select"] == "first"


def test_the_number_of_examples_may_be_chosen() -> None:
    assert converted(QUIZ, options=Options(num_fewshot=5)).document["few_shot"]["source"]["split"] == "train"
    assert "few_shot" not in converted(SUMS, options=Options(num_fewshot=0)).document


def test_a_task_that_wants_no_examples_gets_none() -> None:
    found = converted(QUIZ, num_fewshot=0, options=Options(num_fewshot=5))
    assert "few_shot" not in found.document and "the task says 0 examples, and keeps that" in found.notes


def test_several_answers_are_references_and_an_example_shows_the_first() -> None:
    document = converted(SUMS, doc_to_target="{{answer.aliases}}").document
    row = Rendering(benchmark="sums", item_id="1", fields={"answer": {"aliases": ["two", "2"]}})
    assert document["item"]["target"] == "{{answer.aliases}}"
    assert row.text("target", document["prompt"]["target"]) == "two"
    text = Rendering(benchmark="sums", item_id="1", fields={"answer": {"aliases": "two"}})
    assert text.text("target", document["prompt"]["target"]) == "two"


@pytest.mark.parametrize("choices", [["no", "yes {x}"], {"a": "no", "b": "yes {x}"}, "{{answers}}", "answers"])
def test_a_generated_answer_may_be_one_of_choices(choices: Any) -> None:
    document = converted(SUMS, doc_to_choice=choices, doc_to_target="label").document
    row = Rendering(benchmark="sums", item_id="1", fields={"label": 1, "answers": ["no", "yes {x}"]})
    assert row.text("target", document["item"]["target"]) == "yes {x}"
    assert row.text("target", document["prompt"]["target"]) == "yes {x}"


def test_a_null_column_is_none_where_a_template_asks() -> None:
    asks = "{% if answer is not none %}{{answer}}{% else %}{{number}}{% endif %}"
    document = converted(SUMS, doc_to_text=asks, doc_to_target=asks).document
    for template in (document["prompt"]["item"], document["item"]["target"], document["prompt"]["target"]):
        for fields, text in (({"number": 3}, "3"), ({"answer": "four", "number": 3}, "four")):
            assert Rendering(benchmark="sums", item_id="1", fields=fields).text("item", template) == text


def test_a_truth_value_that_is_text_is_true_and_told() -> None:
    found = converted(SUMS, metric_list=[{"metric": "exact_match", "ignore_punctuation": 'true - "."'}])
    assert found.document["scorer"]["parameters"]["ignore_punctuation"] is True
    assert any(note.startswith("ignore_punctuation: ") for note in found.notes)


def test_sampling_is_declared_and_greedy_repeats_are_one() -> None:
    drawn = {"do_sample": True, "temperature": 0.2, "top_p": 0.9}
    assert converted(SUMS, generation_kwargs=drawn, repeats=4).document["sampling"] == {
        "temperature": 0.2, "samples": 4, "top_p": 0.9, "reason": "the task's generation_kwargs do_sample",
    }  # fmt: skip
    assert "4 greedy repeats are one: they cannot differ" in converted(SUMS, repeats=4).notes


def test_fixed_choices_are_texts_and_no_templates() -> None:
    found = converted(QUIZ, doc_to_choice={"a": "yes", "b": "{no}"}, doc_to_target="label")
    assert found.document["prompt"]["choices"] == ["yes", '{{ "{no}" }}']
    assert found.document["item"] == {"target": "label"}


def test_a_prefix_of_the_answer_ends_the_prompt() -> None:
    assert converted(SUMS, gen_prefix="The answer is").document["prompt"]["item"] == "{{ question }} The answer is"


def test_without_a_list_of_stops_a_blank_line_is_one() -> None:
    assert converted(SUMS, generation_kwargs="absent").document["prompt"]["stop"] == ["\n\n"]
    assert converted(SUMS, generation_kwargs={"until": "Q:"}).document["prompt"]["stop"] == ["Q:"]


def test_a_metric_of_theirs_that_needs_code_is_left_out() -> None:
    text = "- {metric: acc}\n- {metric: f1}"
    metrics = [*yaml.safe_load(text), {"metric": "mcc", "aggregation": "mcc"}]
    found = converted(QUIZ, ("metric_list.aggregation", "utils.f1"), metric_list=metrics)
    assert found.notes[-1] == "left out, not ours: f1, mcc"


@pytest.mark.parametrize(
    ("base", "functions", "changes", "message"),
    [
        (QUIZ, [("process_docs", "utils.process")], {}, "process_docs: needs the Python function utils.process"),
        (QUIZ, [("doc_to_text", "a.b"), ("x", "c.d")], {}, "doc_to_text: needs the Python function a.b and 1 more"),
        (QUIZ, [], {"class": "x.Task"}, "class: is a Python class"),
        (QUIZ, [], {"doc_to_image": "image"}, "doc_to_image: shows images"),
        (QUIZ, [], {"output_type": "chat"}, "output_type: 'chat' is none of multiple_choice"),
        (QUIZ, [], {"metric_list": [{"metric": "mcc"}]}, "metric_list: mcc: none of them is ours"),
        (QUIZ, [], {"doc_to_choice": [True, False]}, "holds what is no text"),
        (QUIZ, [], {"doc_to_choice": "absent"}, "doc_to_choice: is no list"),
        (QUIZ, [], {"doc_to_target": "the answer"}, "doc_to_target: 'the answer' is neither"),
        (QUIZ, [], {"test_split": None, "validation_split": None}, "test_split: names no split"),
        (QUIZ, [], {"test_split": "test[:9]"}, "is a slice of a split"),
        (QUIZ, [], {"dataset_path": "/data/quiz"}, "is neither a hub data set nor json"),
        (QUIZ, [], {"dataset_kwargs": {"streaming": True}}, "dataset_kwargs: has 'streaming'"),
        (QUIZ, [], {"doc_to_text": "{% if %}"}, "prompt.item: not a template: line 1"),
        (QUIZ, [], {"gen_prefix": "A", "target_delimiter": ""}, "gen_prefix: stands after"),
        (QUIZ, [], {"num_fewshot": 1, "fewshot_config": {"doc_to_text": "x"}}, "fewshot_config.doc_to_text: changes"),
        (QUIZ, [], {"num_fewshot": 1, "fewshot_config": {"sampler": "mine"}}, "fewshot_config.sampler: 'mine'"),
        (SUMS, [], {"filter_list": [{"name": "a", "filter": [{"function": "mine"}]}]}, "no filter 'mine'"),
        (SUMS, [], {"filter_list": [{"name": "a", "filter": [FIRST, LETTER]}]}, "regex comes after take_first"),
        (SUMS, [], {"filter_list": [{"name": "a", "filter": [{"function": "majority_vote"}]}]}, "majority_vote"),
        (SUMS, [], {"filter_list": [{"name": n, "filter": [FIRST]} for n in "abc"]}, "has 3 pipelines"),
        (SUMS, [], {"generation_kwargs": {"num_beams": 4}}, "num_beams: 4 has no counterpart"),
        (SUMS, [], {"generation_kwargs": {"until": 3}}, "generation_kwargs.until: 3 is no list"),
        (SUMS, [], {"metric_list": [{"metric": "bleu"}]}, "metric_list: bleu: none of them is ours"),
        (SUMS, [], {"metric_list": [{"metric": "exact_match", "foo": 1}]}, "exact_match takes no 'foo'"),
        (SUMS, [], {"doc_to_choice": "{% if x %}{{[x]}}{% endif %}"}, "doc_to_choice: and doc_to_target are more than"),
    ],
)  # fmt: skip
def test_refusals(
    base: dict[str, Any], functions: list[tuple[str, str]], changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(Refusal) as caught:
        converted(base, *functions, **changes)
    assert message in str(caught.value)


def test_names() -> None:
    assert benchmark_name("MMLU Pro_(a)") == "mmlu-pro_-a"
    long = benchmark_name("x" * 80)
    assert len(long) == 63 and long != benchmark_name("x" * 81)
    with pytest.raises(Refusal, match="gives no name"):
        benchmark_name("???")
