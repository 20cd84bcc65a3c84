"""The benchmark's own code on a tiny model, without lm-eval."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from eval_tasks.records import Request
from tests.benchmarks import engine as benchmark
from tests.benchmarks import engine_against_lm_eval as against
from tests.benchmarks import engine_alone as alone
from tests.benchmarks.engine_models import SHAPES, Shape, write_model
from tests.benchmarks.engine_rounds import Seconds, compared, in_turn
from tests.parity import shaped_tasks

SMALL = Shape(layers=2, hidden=64, heads=4, kv_heads=2, intermediate=128, vocabulary=400)


@pytest.fixture(scope="module")
def case(tmp_path_factory: pytest.TempPathFactory) -> Iterator[benchmark.Case]:
    folder = tmp_path_factory.mktemp("benchmark")
    write_model(folder / "model", SMALL, shaped_tasks.running_text(None))
    yield benchmark.Case(model=str(folder / "model"), dtype="float32", golden=None, n_items=4, rounds=1, scratch=folder)


class Echo:
    """In lm-eval's place: the values it was given, plus an error."""

    def __init__(self, answer: dict[str, Any]) -> None:
        self.answer = answer
        self.batch_sizes: list[int] = []

    def ask(self, do: str, **arguments: Any) -> dict[str, Any]:
        self.batch_sizes.append(arguments["batch_size"])
        return {**self.answer, "cpu_seconds": 1.0 / arguments["batch_size"], "wall_seconds": 1.0}


def values_of(case: benchmark.Case, requests: list[Request]) -> list[float]:
    return [logprob for response in case.engine.respond(requests) for logprob in response.logprobs]


def test_choice_runs_the_best_batch_size_in_turn_and_accepts_equal_results(case: benchmark.Case) -> None:
    requests = case.choices()
    assert len(requests) == 4
    assert all(request.prompt.count("Answer:") == 6 for request in requests)
    reference = Echo({"values": values_of(case, requests)})
    found = against.scoring(case.engine, reference, requests, rounds=2)  # type: ignore[arg-type]
    assert reference.batch_sizes == [1, 4, 4, 4]
    assert found["baseline_is"].endswith("batch size 4")
    assert found["agreement"] == {"worst_per_token": 0.0, "other_predictions": 0}
    assert found["ratio"] == pytest.approx(found["ours"] / found["baseline"], rel=0.5)


def test_other_results_than_lm_evals_end_the_benchmark(case: benchmark.Case) -> None:
    requests = case.choices()
    values = values_of(case, requests)
    values[5] -= 0.1
    with pytest.raises(AssertionError, match="log-probabilities differ by"):
        against.scoring(case.engine, Echo({"values": values}), requests, rounds=1)  # type: ignore[arg-type]


def test_stop_strings_give_outputs_of_mixed_lengths(case: benchmark.Case) -> None:
    requests = case.requests(shaped_tasks.ifeval(None, n_items=8, max_tokens=24))
    stopped = against.with_stops(case.engine, requests, mean=8)
    lengths = [response.n_output_tokens for response in case.engine.respond(stopped)]
    assert len(set(lengths)) > 2
    assert len({request.stops for request in stopped}) == 1
    texts = [response.output for response in case.engine.respond(stopped)]
    reference = Echo({"texts": [*texts[:-1], "another"]})
    with pytest.raises(AssertionError, match="1 of 8 texts differ"):
        against.generation(case.engine, reference, stopped, rounds=1)  # type: ignore[arg-type]


def test_documents_fill_one_window(case: benchmark.Case) -> None:
    requests = case.requests(shaped_tasks.documents(None, n_items=2), "always")
    assert all(request.prompt_ids == (0,) for request in requests)
    assert all(500 < len(request.continuations[0]) <= 2048 for request in requests)


def test_plain_attention_computes_what_tiles_compute(case: benchmark.Case) -> None:
    requests = case.choices()
    engine = case.engine.tuned(case.engine.tuning)
    with alone.plain_attention():
        plain = [value for response in engine.respond(requests) for value in response.logprobs]
    tiled = values_of(case, requests)
    assert plain == pytest.approx(tiled, abs=1e-4)
    assert plain != tiled


def test_contract_and_peak_give_their_figures(case: benchmark.Case, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(alone, "_PEAK_SIZE", 64)
    monkeypatch.setattr(alone, "_PREFILL_TOKENS", (40, 33))
    (contract,) = [next(benchmark.contract(case))]
    assert contract["ratio"] > 0
    (peak,) = benchmark.peak(case)
    assert peak["ratio"] == pytest.approx(peak["ours"] / peak["baseline"], rel=0.1)


def test_operations_of_a_prompt() -> None:
    shape = SHAPES["135m"]
    assert shape.n_parameters == pytest.approx(134.5e6, rel=0.01)
    assert SHAPES["25m"].n_parameters == pytest.approx(25e6, rel=0.02)
    layers = 2 * 3 * (2 * 64 * 64 + 2 * 64 * 32 + 3 * 64 * 128) * SMALL.layers
    attention = SMALL.layers * 4 * 64 * (1 + 2 + 3)
    assert alone._operations(SMALL, 3) == layers + attention + 2 * 400 * 64


def test_rounds_alternate_and_figures_are_medians() -> None:
    order: list[str] = []

    def side(name: str, seconds: list[float]) -> Any:
        left = iter(seconds)

        def run() -> Seconds:
            order.append(name)
            cpu = next(left)
            return Seconds(cpu, cpu * 2)

        return run

    found = in_turn({"a": side("a", [1.0, 2.0, 4.0]), "b": side("b", [4.0, 4.0, 4.0])}, 3)
    assert order == ["a", "b"] * 3
    figures = compared(found["a"], found["b"], 8)
    assert figures == {"ours": 4.0, "baseline": 2.0, "ratio": 2.0, "ratios": [4.0, 2.0, 1.0], "wall_ratio": 2.0}


@pytest.mark.full
def test_the_worker_process_answers_with_seconds(case: benchmark.Case, tmp_path: Path) -> None:
    (found,) = benchmark.processes(case)
    assert found["seconds_alone"] > 0
    assert found["ratio"] == pytest.approx(2 * found["seconds_alone"] / found["seconds_together"], rel=0.1)
