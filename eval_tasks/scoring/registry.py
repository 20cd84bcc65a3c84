"""Names -> scorers: what is registered, with its declared version, metrics and parameters. Scores nothing itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from eval_tasks.errors import UserError, did_you_mean
from eval_tasks.records import Item, PromptTemplate, Response, ScorerRef
from eval_tasks.records.benchmark import Kind
from eval_tasks.records.item import Status
from eval_tasks.registry.templates import Rendering


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricInfo:
    """What a metric's numbers mean.

    `binary`: every item's value is 0 or 1. `summary`: ``mean`` over items, or ``pooled`` by the items' weights.
    """

    higher_is_better: bool = True
    unit: str = "fraction"
    binary: bool = True
    summary: Literal["mean", "pooled"] = "mean"


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One item with its response, as a scorer function sees it.

    `rendering` renders the item's parts of the prompt. `output` is the response's text, cut at the benchmark's stop
    strings, without its reasoning, free of lone surrogates; of a sampled item, one sample's. `parameters` has a value
    for every parameter that the scorer declares.
    """

    item: Item
    response: Response
    template: PromptTemplate
    rendering: Rendering
    parameters: Mapping[str, Any]
    output: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """What a scorer function found for one metric; the fields are those of `Score`."""

    metric: str
    value: float | None
    weight: float = 1.0
    status: Status = "ok"
    reason: str = ""
    extracted: str | None = None
    detail: str = ""
    sample_values: tuple[float, ...] = ()


class Unscoreable(Exception):  # noqa: N818 - an outcome of an item, not an error
    """Raised by a scorer function for a response that has no score: the item is ``invalid``, with this reason."""


class Excluded(Exception):  # noqa: N818 - an outcome of an item, not an error
    """Raised by `weigh` for an item that a declared rule leaves out, whatever the response, with this reason."""


ScorerFunction = Callable[[Case], Sequence[Mark]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scorer:
    """A registered scorer. `metrics` in order, the first is the default primary metric; `parameters` are defaults.

    `weigh` gives the metrics' weights from the item alone, so that an invalid response weighs what a valid one would.
    `check_items` refuses items that the scorer cannot score, `check_parameters` values that a type does not rule out.
    """

    name: str
    version: str
    kinds: tuple[Kind, ...]
    metrics: Mapping[str, MetricInfo]
    function: ScorerFunction
    parameters: Mapping[str, Any] = field(default_factory=dict)
    weigh: Callable[[Item], Mapping[str, float]] | None = None
    check_items: Callable[[Sequence[Item]], None] | None = None
    check_parameters: Callable[[Mapping[str, Any]], None] | None = None


_SCORERS: dict[str, Scorer] = {}


def scorer(
    name: str,
    *,
    version: str,
    kinds: Sequence[Kind],
    metrics: Mapping[str, MetricInfo],
    parameters: Mapping[str, Any] | None = None,
    weigh: Callable[[Item], Mapping[str, float]] | None = None,
    check_items: Callable[[Sequence[Item]], None] | None = None,
    check_parameters: Callable[[Mapping[str, Any]], None] | None = None,
) -> Callable[[ScorerFunction], ScorerFunction]:
    """Register the decorated function as scorer `name`. Raises UserError when the name is taken."""

    def register(function: ScorerFunction) -> ScorerFunction:
        if name in _SCORERS:
            raise UserError(f"scorer {name!r} is registered twice: give one of them another name")
        _SCORERS[name] = Scorer(
            name=name,
            version=version,
            kinds=tuple(kinds),
            metrics=dict(metrics),
            function=function,
            parameters=dict(parameters or {}),
            weigh=weigh,
            check_items=check_items,
            check_parameters=check_parameters,
        )
        return function

    return register


def find_scorer(name: str) -> Scorer:
    """The scorer of that name. Raises UserError with close names."""
    if name not in _SCORERS:
        raise UserError(f"no scorer {name!r}; {did_you_mean(name, _SCORERS)}")
    return _SCORERS[name]


def scorer_names() -> list[str]:
    """All registered scorers, sorted."""
    return sorted(_SCORERS)


def scorer_version(name: str) -> str:
    """The version that scorer `name` declares."""
    return find_scorer(name).version


def scorer_metrics(name: str) -> list[str]:
    """The metrics of scorer `name`, in its order."""
    return list(find_scorer(name).metrics)


def primary_metric(name: str) -> str:
    """The metric that stands for scorer `name` where a benchmark names none: its first."""
    return scorer_metrics(name)[0]


def metric_info(scorer: str, metric: str) -> MetricInfo:
    """What `metric` of `scorer` means. Raises UserError with close names."""
    metrics = find_scorer(scorer).metrics
    if metric not in metrics:
        raise UserError(f"scorer {scorer!r} has no metric {metric!r}; {did_you_mean(metric, metrics)}")
    return metrics[metric]


def validate_scorer(ref: ScorerRef, kind: Kind) -> None:
    """Raise UserError unless the referenced scorer exists in that version, fits the kind and takes the parameters."""
    found = find_scorer(ref.name)
    if ref.version != found.version:
        raise UserError(
            f"scorer {ref.name!r} has version {found.version!r} here, not {ref.version!r}: "
            "register the benchmark again to use this one"
        )
    if kind not in found.kinds:
        raise UserError(f"scorer {ref.name!r} scores {' and '.join(found.kinds)} benchmarks, not kind {kind!r}")
    parameters = merged_parameters(ref)
    if found.check_parameters:
        found.check_parameters(parameters)


def merged_parameters(ref: ScorerRef) -> dict[str, Any]:
    """The scorer's parameters, defaults filled in, numbers of the default's type: 1 and 1.0 are one number.

    Raises UserError for an unknown name or another type.
    """
    found = find_scorer(ref.name)
    given: dict[str, Any] = {}
    for name, value in ref.parameters.items():
        if name not in found.parameters:
            raise UserError(f"scorer {ref.name!r} has no parameter {name!r}; {did_you_mean(name, found.parameters)}")
        default = found.parameters[name]
        given[name] = _of_type(value, type(default))
        if type(given[name]) is not type(default):
            raise UserError(
                f"parameter {name!r} of scorer {ref.name!r} is {value!r}: it takes {type(default).__name__}, "
                f"such as {default!r}"
            )
    return {**found.parameters, **given}


def _of_type(value: Any, wanted: type) -> Any:
    """A number as `wanted` has it where that loses nothing; canonical JSON, and people, write 1.0 as 1."""
    if wanted is float and type(value) is int and abs(value) <= 2**53:
        return float(value)
    if wanted is int and type(value) is float and value.is_integer():
        return int(value)
    return value
