"""Range and shape checks of one benchmark in one run: a Measurement and columns go in, breaches come out."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa
import pyarrow.compute as pc

from eval_tasks.guard.contract import Breach
from eval_tasks.records import BenchmarkVersion, Measurement
from eval_tasks.scoring.marking import seen_of

MAX_INVALID_SHARE = 0.0
MAX_EMPTY_SHARE = 0.5
MAX_TRUNCATED_SHARE = 0.5
# Fewer answers than this may well be alike by chance.
MIN_ITEMS_FOR_SHAPE = 20

CHECKS = ("plausible_range", "invalid_share", "constant_prediction", "all_ties", "empty_share", "truncated_share")


def check_measurement(measurement: Measurement, benchmark: BenchmarkVersion) -> list[Breach]:
    """The plausible range (inclusive), and the share of invalid items."""
    breaches = []
    declared = benchmark.plausible_range.get(measurement.metric)
    if declared is not None and measurement.score is not None:
        low, high = declared
        if not low <= measurement.score <= high:
            breaches.append(
                Breach(check="plausible_range", observed=f"{measurement.score:.4f}", expected=f"{low:g} to {high:g}")
            )
    # Of all that were attempted: an invalid item of a loss has no value, so that `n` may be 0 when all are invalid.
    if measurement.primary and measurement.n_invalid > MAX_INVALID_SHARE * measurement.n_attempted:
        breaches.append(
            Breach(
                check="invalid_share",
                observed=f"{measurement.n_invalid} of {measurement.n_attempted} items invalid",
                expected=f"at most {MAX_INVALID_SHARE:.0%}",
            )
        )
    return breaches


def check_shape(parts: Iterable[pa.Table], extracted: pa.ChunkedArray, benchmark: BenchmarkVersion) -> list[Breach]:
    """One predicted letter for every item, all ties, too many empty or truncated outputs.

    `parts` are pieces of the responses, with the columns `shape_columns` names; an item that is sampled has as many
    outputs as samples. `extracted`: what the scorer took for answers.
    """
    if benchmark.kind == "choice":
        return _choices(parts, extracted)
    if benchmark.kind == "generation":
        return _outputs(parts, benchmark)
    return []


def shape_columns(benchmark: BenchmarkVersion) -> list[str]:
    """The columns of the responses that `check_shape` reads; none for a kind that has no shape."""
    if benchmark.kind == "choice":
        return ["status", "logprobs"]
    if benchmark.kind != "generation":
        return []
    return ["status", "samples"] if benchmark.sampling is not None else ["status", "output", "output_truncated"]


def _choices(parts: Iterable[pa.Table], extracted: pa.ChunkedArray) -> list[Breach]:
    n_ok, tied = 0, None
    for part in parts:
        ok = part.filter(pc.equal(part["status"], "ok"))
        n_ok += ok.num_rows
        tied = tied if tied is False else _all_tied(ok["logprobs"], tied)
    if n_ok < MIN_ITEMS_FOR_SHAPE:
        return []
    breaches = []
    answers = pc.unique(extracted.drop_null())
    if len(answers) == 1:
        observed = f"always {answers[0].as_py()!r}"
        breaches.append(Breach(check="constant_prediction", observed=observed, expected="more than one answer"))
    if tied:
        breaches.append(Breach(check="all_ties", observed="all choices tie in every item", expected="some differ"))
    return breaches


def _outputs(parts: Iterable[pa.Table], benchmark: BenchmarkVersion) -> list[Breach]:
    """Empty is what is empty to the scorer: after stop strings and reasoning blocks were taken out."""
    n_ok = n_outputs = n_empty = n_reasoning = n_cut = 0
    for part in parts:
        ok = part.filter(pc.equal(part["status"], "ok"))
        n_ok += ok.num_rows
        outputs, truncated = _texts(ok, sampled=benchmark.sampling is not None)
        n_outputs += len(outputs)
        n_cut += pc.sum(truncated).as_py() or 0
        for output in outputs.to_pylist():
            if not seen_of(benchmark, output).text.strip():
                n_empty += 1
                n_reasoning += bool(output.strip()) and benchmark.scorer.reasoning is not None
    if n_ok < MIN_ITEMS_FOR_SHAPE:
        return []
    breaches = []
    if n_empty > MAX_EMPTY_SHARE * n_outputs:
        within = f", {n_reasoning / n_outputs:.0%} with reasoning and no answer" if n_reasoning else ""
        observed = f"{n_empty / n_outputs:.0%} empty{within}"
        breaches.append(Breach(check="empty_share", observed=observed, expected=f"at most {MAX_EMPTY_SHARE:.0%}"))
    if n_cut > MAX_TRUNCATED_SHARE * n_outputs:
        observed = f"{n_cut / n_outputs:.0%} cut at the token limit"
        breaches.append(
            Breach(check="truncated_share", observed=observed, expected=f"at most {MAX_TRUNCATED_SHARE:.0%}")
        )
    return breaches


def _texts(ok: pa.Table, *, sampled: bool) -> tuple[pa.ChunkedArray, pa.ChunkedArray]:
    """Every output of the items, and whether it was cut at the token limit."""
    if not sampled:
        return ok["output"], ok["output_truncated"]
    samples = pc.list_flatten(ok["samples"])
    return pc.struct_field(samples, "output"), pc.equal(pc.struct_field(samples, "finish_reason"), "length")


def _all_tied(logprobs: pa.ChunkedArray, before: bool | None) -> bool | None:
    """Whether the choices of every item so far have one and the same logprob; None: no item could tell."""
    rows = [row for row in logprobs.to_pylist() if len(row) > 1]
    return all(len(set(row)) == 1 for row in rows) if rows else before
