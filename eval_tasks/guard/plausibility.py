"""Range and shape checks of one benchmark in one run: a Measurement and columns go in, breaches come out."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from eval_tasks.guard.contract import Breach
from eval_tasks.records import BenchmarkVersion, Measurement

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


def check_shape(responses: pa.Table, scores: pa.Table, benchmark: BenchmarkVersion) -> list[Breach]:
    """One predicted letter for every item, all ties, too many empty or truncated outputs.

    `responses` has columns status, output, logprobs, output_truncated and, where the benchmark is sampled, samples:
    each of them is an output then. `scores` are those of the primary metric, with `extracted`.
    """
    ok = responses.filter(pc.equal(responses["status"], "ok"))
    if ok.num_rows < MIN_ITEMS_FOR_SHAPE:
        return []
    breaches = []
    if benchmark.kind == "choice":
        answers = pc.unique(scores["extracted"].drop_null())
        if len(answers) == 1:
            breaches.append(
                Breach(
                    check="constant_prediction",
                    observed=f"always {answers[0].as_py()!r}",
                    expected="more than one answer",
                )
            )
        if _all_ties(ok["logprobs"]):
            breaches.append(Breach(check="all_ties", observed="all choices tie in every item", expected="some differ"))
    if benchmark.kind == "generation":
        outputs, truncated = _outputs(ok, sampled=benchmark.sampling is not None)
        empty = pc.sum(pc.equal(pc.utf8_trim_whitespace(outputs), "")).as_py() / len(outputs)
        if empty > MAX_EMPTY_SHARE:
            breaches.append(
                Breach(check="empty_share", observed=f"{empty:.0%} empty", expected=f"at most {MAX_EMPTY_SHARE:.0%}")
            )
        cut = pc.sum(truncated).as_py() / len(outputs)
        if cut > MAX_TRUNCATED_SHARE:
            breaches.append(
                Breach(
                    check="truncated_share",
                    observed=f"{cut:.0%} cut at the token limit",
                    expected=f"at most {MAX_TRUNCATED_SHARE:.0%}",
                )
            )
    return breaches


def _outputs(ok: pa.Table, *, sampled: bool) -> tuple[pa.ChunkedArray, pa.ChunkedArray]:
    """Every output of the items, and whether it was cut at the token limit."""
    if not sampled:
        return ok["output"], ok["output_truncated"]
    samples = pc.list_flatten(ok["samples"])
    return pc.struct_field(samples, "output"), pc.equal(pc.struct_field(samples, "finish_reason"), "length")


def _all_ties(logprobs: pa.ChunkedArray) -> bool:
    """Whether the choices of every item have one and the same logprob; items with one choice cannot tell."""
    rows = [row for row in logprobs.to_pylist() if len(row) > 1]
    return bool(rows) and all(len(set(row)) == 1 for row in rows)
