"""The sentinels have every shape that has broken an engine, fit their context, and are the same each time."""

from __future__ import annotations

import pytest

from eval_tasks.engine.sentinels import LENGTHS, sentinel_requests
from eval_tasks.engine.validity import problem_of


def test_they_have_all_shapes_and_are_the_same_again() -> None:
    requests = sentinel_requests(259, 512)
    assert requests == sentinel_requests(259, 512)
    assert requests != sentinel_requests(259, 512, seed=1)
    assert [r.item_id for r in requests] == [r.item_id for r in sentinel_requests(259, 512, seed=1)]
    lengths = {(r.kind, len(r.prompt_ids)) for r in requests}
    assert lengths >= {(kind, n) for kind in ("choice", "generation") for n in (*LENGTHS, 511)}
    assert {len(r.continuations[0]) + 1 for r in requests if r.kind == "loss"} >= {*LENGTHS[1:], 200, 400, 511, 513}
    assert {len(c) for r in requests if r.kind == "choice" for c in r.continuations} >= {1, 2, 3, 4}
    assert len({r.item_id for r in requests}) == len(requests) == 206
    assert [len(r.prompt_ids) for r in requests if r.sampling is not None] == [1, 5, 33, 64, 129]


def test_preambles_are_shared_and_one_goes_on_where_another_ends() -> None:
    by_id = {r.item_id: r.prompt_ids for r in sentinel_requests(259, 512)}
    shared = by_id["preamble-0"][:130]
    others = [ids for name, ids in by_id.items() if name.startswith("preamble")]
    assert len(others) == 32
    assert all(ids[:130] == shared for ids in others)
    assert by_id["preamble-and-more-0"][:200] == by_id["preamble-and-more-7"][:200] != by_id["preamble-0"][:200]


@pytest.mark.parametrize("context", [8, 34, 40, 200, 512, 4096])
def test_all_but_three_can_run_up_to_the_last_position(context: int) -> None:
    requests = sentinel_requests(259, context)
    problems = {r.item_id: problem_of(r, context=context, n_embeddings=259) for r in requests}
    assert {name: problem for name, problem in problems.items() if problem} == {
        "invalid-no-prompt": "empty_prompt",
        "invalid-empty-choice": "empty_continuation",
        "invalid-too-long": "prompt_too_long",
    }
    assert len(problems) == len(requests)
    scored = [len(r.prompt_ids) + max(map(len, r.continuations)) for r in requests if r.continuations]
    assert max(scored) == context + 1
