"""A request in, the reason why it must not run out, or nothing; and the row of one that must not. Knows no torch."""

from __future__ import annotations

from eval_tasks.records import Request, Response


def problem_of(request: Request, *, context: int, n_embeddings: int) -> str:
    """The reason that makes `request` invalid, '' when it can run.

    `context` is in tokens. A scored sequence may be one token longer: its last token is only predicted, never read.
    """
    if request.problem:
        return request.problem
    if not request.prompt_ids:
        return "empty_prompt"
    if request.sampling is not None and request.kind != "generation":
        return "sampling_without_generation"
    if request.kind == "generation":
        if request.max_tokens < 1:
            return "no_output_allowed"
        if len(request.prompt_ids) >= context:
            return "prompt_too_long"
    else:
        if not request.continuations or not all(request.continuations):
            return "empty_continuation"
        if request.kind == "loss" and len(request.continuations) != 1:
            return "several_continuations"
        if len(request.prompt_ids) + max(map(len, request.continuations)) > context + 1:
            return "prompt_too_long"
    ids = (request.prompt_ids, *request.continuations)
    if max(map(max, ids)) >= n_embeddings or min(map(min, ids)) < 0:
        return "token_id_out_of_range"
    return ""


def invalid_response(request: Request, reason: str) -> Response:
    """The row of a request that was not run."""
    return Response(
        benchmark_id=request.benchmark_id,
        item_id=request.item_id,
        status="invalid",
        reason=reason,
        prompt_digest=request.prompt_digest,
        n_prompt_tokens=len(request.prompt_ids),
        n_output_tokens=sum(map(len, request.continuations)),
        prompt_truncated=request.prompt_truncated,
    )
