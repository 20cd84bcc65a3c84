"""What must not run is named before it does."""

from __future__ import annotations

import pytest

from eval_tasks.engine.validity import problem_of
from eval_tasks.records import Sampling

SAMPLING = Sampling(temperature=0.6, samples=2, reason="test")


@pytest.mark.parametrize("kind", ["choice", "loss"])
def test_what_is_scored_and_not_written_cannot_be_sampled(ask, kind: str) -> None:
    asked = {"context": 200, "n_embeddings": 259}
    request = ask(kind, (3,), continuations=((4,),), sampling=SAMPLING)
    assert problem_of(request, **asked) == "sampling_without_generation"
    assert problem_of(ask(kind, (3,), continuations=((4,),)), **asked) == ""
    assert problem_of(ask("generation", (3,), max_tokens=1, sampling=SAMPLING), **asked) == ""
