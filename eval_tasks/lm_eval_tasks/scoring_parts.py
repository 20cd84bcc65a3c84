"""What of a benchmark depends on a task's output type: item, prompt, scorer, metrics, stops. Reads no file."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from eval_tasks.errors import UserError
from eval_tasks.lm_eval_tasks.task_files import PythonFunction
from eval_tasks.registry import is_template
from eval_tasks.scoring.filters import MATCH_PARAMETERS, check_patterns, check_steps

Task = Mapping[str, Any]
Part = dict[str, Any]

_COLUMN = re.compile(r"[A-Za-z_]\w*")
_EXPRESSION = re.compile(r"\{\{(?P<expression>[^{}]*)\}\}")
_IS_NONE = re.compile(r"\b([A-Za-z_]\w*) is (?:not )?none\b")
_LENGTHS = ("max_gen_toks", "max_new_tokens")
_NO_OP = {"num_beams": 1}


class Refusal(Exception):  # noqa: N818 - an outcome of a conversion, not an error
    """Why a task is no benchmark: the field, and what about it."""

    def __init__(self, field: str, reason: str) -> None:
        super().__init__(f"{field}: {reason}")
        self.field = field
        self.reason = reason


def choice_part(task: Task, notes: list[str]) -> Part:
    """multiple_choice: acc and acc_norm."""
    metrics = _known_metrics(task, ("acc", "acc_norm"), ("acc", "acc_norm"), notes)
    choices = task.get("doc_to_choice")
    if isinstance(choices, Mapping):
        choices = list(choices.values())
    if not isinstance(choices, str | list):
        raise Refusal("doc_to_choice", "is no list of texts, column or template")
    if isinstance(choices, list) and not all(isinstance(choice, str) for choice in choices):
        raise Refusal("doc_to_choice", f"{choices!r} holds what is no text; quote it")
    prompt = _prompt(task, notes)
    prompt["choices"] = [_literally(choice) for choice in choices] if isinstance(choices, list) else choices
    return {
        "kind": "choice",
        "item": {"target": _target(task)},
        "prompt": prompt,
        "scorer": {"name": "choice"},
        "primary_metric": metrics[0],
        "plausible_range": {metric: [0.0, 1.0] for metric in metrics},
    }


def generation_part(task: Task, notes: list[str]) -> Part:
    """generate_until: exact match of what one or two filter pipelines leave."""
    _known_metrics(task, ("exact_match",), ("exact_match",), notes)
    scorer, primary = _pipelines(task, _match_parameters(task, notes), notes)
    prompt = _prompt(task, notes)
    target = _gold_text(task)
    prompt["target"] = _as_template(target)
    return {
        "kind": "generation",
        "item": {"target": target},
        "prompt": prompt,
        "scorer": scorer,
        "primary_metric": primary,
        **_generation(task, prompt, notes),
    }


def likelihood_part(task: Task, notes: list[str]) -> Part:
    """loglikelihood: a choice with one choice: its negative log-probability, and whether greedy decoding writes it."""
    metrics = _known_metrics(task, ("perplexity", "acc"), ("perplexity", "acc"), notes)
    if "perplexity" in metrics:
        notes.append("perplexity is the exponential of the mean of 'nats'")
    prompt = _prompt(task, notes)
    text = _as_template(_target(task))
    delimiter = prompt.pop("target_delimiter")
    prompt |= {"choices": [text], "target": _literally(delimiter) + text, "target_delimiter": ""}
    return {
        "kind": "choice",
        "item": {"target": "{{ 0 }}"},
        "prompt": prompt,
        "scorer": {"name": "continuation"},
        "primary_metric": "nats" if metrics[0] == "perplexity" else "acc",
    }


def loss_part(task: Task, notes: list[str]) -> Part:
    """loglikelihood_rolling: the loss of the whole text."""
    defaults = ("word_perplexity", "byte_perplexity", "bits_per_byte")
    _known_metrics(task, ("bits_per_byte", "byte_perplexity"), defaults, notes)
    notes.append("a text beyond the context is cut, and lm-eval rolls over it; byte_perplexity is 2 ** bits_per_byte")
    return {
        "kind": "loss",
        "item": {},
        "prompt": {"item": _as_template(_target(task))},
        "scorer": {"name": "loss"},
        "primary_metric": "bits_per_byte",
    }


def _prompt(task: Task, notes: list[str]) -> Part:
    """item, description and delimiters; of a chat or BOS the task files say nothing."""
    text = task.get("doc_to_text")
    if not isinstance(text, str):
        raise Refusal("doc_to_text", f"{text!r} is no template")
    item = _null_as_none("{{ " + text + " }}" if _COLUMN.fullmatch(text) else text)
    if task.get("output_type") == "multiple_choice" and re.fullmatch(r"\s*\{\{\s*\d+\s*\}\}\s*", item):
        raise Refusal("doc_to_text", "puts the choices into the prompt")
    delimiter = str(task.get("target_delimiter", " "))
    if prefix := task.get("gen_prefix"):
        if delimiter != " " or not isinstance(prefix, str):
            raise Refusal("gen_prefix", f"stands after the delimiter {delimiter!r}; only one space has a counterpart")
        item += delimiter + prefix
        notes.append("gen_prefix is the end of the prompt")
    prompt: Part = {"item": item, "target_delimiter": delimiter}
    if task.get("description"):
        prompt["description"] = str(task["description"])
    if (shots := task.get("fewshot_delimiter", "\n\n")) != "\n\n":
        prompt["few_shot_delimiter"] = str(shots)
    return prompt


def _target(task: Task) -> str:
    target = task.get("doc_to_target")
    if isinstance(target, int) and not isinstance(target, bool):
        return "{{ " + str(target) + " }}"
    if not isinstance(target, str) or not target.strip():
        raise Refusal("doc_to_target", f"{target!r} is neither a template nor a column")
    if not is_template(target) and not _COLUMN.fullmatch(target):
        raise Refusal("doc_to_target", f"{target!r} is neither a template nor a column")
    return _null_as_none(target)


def _gold_text(task: Task) -> str:
    """The target of generate_until: the text that is wanted; with choices, doc_to_target gives the number of one."""
    choices, target = task.get("doc_to_choice"), _target(task)
    if not choices:
        return target
    number = _EXPRESSION.fullmatch(_as_template(target))
    listed = list(choices.values()) if isinstance(choices, Mapping) else choices
    texts = _EXPRESSION.fullmatch(_as_template(listed)) if isinstance(listed, str) else None
    if number is None or not (texts or isinstance(listed, list)):
        raise Refusal("doc_to_choice", "and doc_to_target are more than one expression each: name the gold text itself")
    texts_of = texts["expression"] if texts else json.dumps([str(choice) for choice in listed], ensure_ascii=False)
    return "{{ (" + texts_of + ")[" + number["expression"].strip() + "] }}"


def _as_template(target: str) -> str:
    return target if is_template(target) else "{{ " + target + " }}"


def shown_answer(target: str) -> str:
    """The template of a worked example's answer: the first one where there are several, as lm-eval shows it."""
    one = _EXPRESSION.fullmatch(target)
    if one is None:
        return target
    return (
        "{% set gold = " + one["expression"] + " %}{{ gold[0] if gold is sequence and gold is not string else gold }}"
    )


def _null_as_none(template: str) -> str:
    """A null column is absent here; where a template asks whether a name is none, an absent one is none."""
    asked = dict.fromkeys(_IS_NONE.findall(template))
    return "".join("{% set " + name + " = " + name + " | default(none) %}" for name in asked) + template


def _known_metrics(task: Task, known: Sequence[str], default: Sequence[str], notes: list[str]) -> list[str]:
    """Those of the task's metrics that are ours, in its order. Raises Refusal when none is."""
    listed: list[dict[str, Any]] = task.get("metric_list") or [{"metric": metric} for metric in default]
    ours: list[str] = []
    others: list[str] = []
    for entry in listed:
        metric, aggregation = entry.get("metric"), entry.get("aggregation", "mean")
        if isinstance(metric, PythonFunction) or isinstance(aggregation, PythonFunction):
            others.append(f"{getattr(metric, 'name', metric)} (a Python function)")
        elif metric not in known or aggregation not in _AGGREGATIONS:
            others.append(str(metric))
        else:
            ours.append(str(metric))
    if not ours:
        raise Refusal("metric_list", f"{', '.join(others)}: none of them is ours ({', '.join(known)})")
    if others:
        notes.append(f"left out, not ours: {', '.join(others)}")
    return ours


_AGGREGATIONS = ("mean", "perplexity", "weighted_perplexity", "bits_per_byte")


def _match_parameters(task: Task, notes: list[str]) -> Part:
    """How exact_match is asked to put texts into one form."""
    listed: list[dict[str, Any]] = task.get("metric_list") or []
    entry = next((entry for entry in listed if entry.get("metric") == "exact_match"), {})
    given = {k: v for k, v in entry.items() if k not in ("metric", "aggregation", "higher_is_better", "hf_evaluate")}
    if unknown := sorted(set(given) - set(MATCH_PARAMETERS)):
        raise Refusal("metric_list", f"exact_match takes no {unknown[0]!r} here")
    parameters = {name: given[name] for name in MATCH_PARAMETERS if given.get(name)}
    for name, value in parameters.items():
        if isinstance(MATCH_PARAMETERS[name], bool) and not isinstance(value, bool):
            parameters[name] = True
            notes.append(f"{name}: {value!r} is no truth value; lm-eval takes it for true, and so does this")
    _refusing("metric_list", lambda: check_patterns("regexes_to_ignore", parameters.get("regexes_to_ignore", [])))
    return parameters


def _pipelines(task: Task, parameters: Part, notes: list[str]) -> tuple[Part, str]:
    """(scorer, its primary metric): one pipeline, or two of which a 'flexible' one is the flexible."""
    pipelines = task.get("filter_list") or []
    steps = [_steps(pipeline) for pipeline in pipelines]
    names = [str(pipeline.get("name")) for pipeline in pipelines]
    if len(steps) > 2:
        raise Refusal("filter_list", f"has {len(steps)} pipelines ({', '.join(names)}); two can be scored at once")
    if len(steps) < 2:
        return {"name": "filtered_match", "parameters": {"steps": [*steps, []][0], **parameters}}, "exact_match"
    strict, flexible = (1, 0) if names[0].startswith("flexible") else (0, 1)
    notes.append(f"metric 'strict' is filter {names[strict]!r}, 'flexible' is {names[flexible]!r}")
    both = {"strict_steps": steps[strict], "flexible_steps": steps[flexible]}
    return {"name": "strict_flexible", "parameters": {**both, **parameters}}, "strict"


def _steps(pipeline: Mapping[str, Any]) -> list[Part]:
    steps = [{k: v for k, v in step.items() if v is not None} for step in pipeline.get("filter") or ()]
    taken = [step.get("function") for step in steps].index("take_first") if _takes_first(steps) else len(steps)
    if taken < len(steps) - 1:
        raise Refusal("filter_list", f"{steps[taken + 1].get('function')} comes after take_first, and sees characters")
    for step in steps:
        if step.get("function") in ("take_first_k", "majority_vote"):
            raise Refusal("filter_list", f"{step['function']} chooses among repeats, which are samples here")
    _refusing("filter_list", lambda: check_steps("filter", steps))
    return steps


def _takes_first(steps: Sequence[Mapping[str, Any]]) -> bool:
    return any(step.get("function") == "take_first" for step in steps)


def _refusing(field: str, check: Callable[[], None]) -> None:
    try:
        check()
    except UserError as error:
        raise Refusal(field, str(error)) from error


def _generation(task: Task, prompt: Part, notes: list[str]) -> Part:
    """max_tokens, stop strings and declared sampling."""
    kwargs = dict(task.get("generation_kwargs") or {})
    until = kwargs.pop("until", [str(task.get("fewshot_delimiter", "\n\n"))])
    stops = [until] if isinstance(until, str) else until or []
    if not isinstance(stops, list) or not all(isinstance(stop, str) for stop in stops):
        raise Refusal("generation_kwargs.until", f"{until!r} is no list of texts")
    prompt["stop"] = [stop for stop in dict.fromkeys(stops) if stop]
    lengths = [kwargs.pop(name) for name in _LENGTHS if name in kwargs]
    sampled = bool(kwargs.pop("do_sample", False))
    draw = {name: kwargs.pop(name) for name in ("temperature", "top_p", "top_k", "min_p") if name in kwargs}
    for name, value in kwargs.items():
        if _NO_OP.get(name) != value:
            raise Refusal("generation_kwargs", f"{name}: {value!r} has no counterpart")
    part: Part = {"max_tokens": int(lengths[-1]) if lengths else 256}
    repeats = int(task.get("repeats") or 1)
    if sampled:
        part["sampling"] = _sampling(draw, repeats)
        notes.append("sampled: every repeat is kept and scored; lm-eval's take_first keeps one")
    elif repeats > 1:
        notes.append(f"{repeats} greedy repeats are one: they cannot differ")
    return part


def _sampling(draw: Mapping[str, Any], repeats: int) -> Part:
    temperature = float(draw.get("temperature", 1.0))
    if temperature <= 0:
        raise Refusal("generation_kwargs", "do_sample with a temperature of 0 is neither greedy nor a draw")
    numbers: Part = {"temperature": temperature, "samples": repeats, "reason": "the task's generation_kwargs do_sample"}
    for name in ("top_p", "min_p"):
        if name in draw:
            numbers[name] = float(draw[name])
    return numbers | ({"top_k": int(draw["top_k"])} if "top_k" in draw else {})


def _literally(text: str) -> str:
    """A text as a template that gives it back."""
    return "{{ " + json.dumps(text, ensure_ascii=False) + " }}" if "{" in text else text
