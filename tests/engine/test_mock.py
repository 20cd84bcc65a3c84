"""The mock engine: answers of the seed and the item alone, as often right as was asked for."""

from __future__ import annotations

import pytest

from eval_tasks.engine import MockEngine
from eval_tasks.records import EngineConfig, EngineTuning, Request, Response, Sampling
from eval_tasks.records.engine import MOCK_MARK
from eval_tasks.tokenization import Tokenizer, load_tokenizer
from tests.parity.tiny_model import write_model

N = 400


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Tokenizer:
    return load_tokenizer(write_model(tmp_path_factory.mktemp("model")))


def engine(tokenizer: Tokenizer, *, accuracy: float = 0.7, seed: int = 0, target: object = 2) -> MockEngine:
    config = EngineConfig(mock_accuracy=accuracy)
    return MockEngine(config, EngineTuning(), tokenizer, context=64, seed=seed, target_of=lambda *_: target)


def request(n: int, kind: str = "choice", **fields: object) -> Request:
    given: dict[str, object] = {"continuations": ((4,), (5,), (6, 7), (8,))} if kind == "choice" else {}
    given |= {"continuations": ((4, 5, 6),)} if kind == "loss" else {}
    given |= {"max_tokens": 8} if kind == "generation" else {}
    given |= {"benchmark_id": "b", "kind": kind, "prompt": "p", "prompt_digest": "0", "prompt_ids": (3, 4), **fields}
    return Request(item_id=f"i{n}", **given)  # type: ignore[arg-type]


def predicted(row: Response) -> int:
    return max(range(len(row.logprobs)), key=row.logprobs.__getitem__)


@pytest.mark.parametrize("accuracy", [0.0, 0.3, 0.9, 1.0])
def test_as_many_choices_are_right_as_asked_for(tokenizer: Tokenizer, accuracy: float) -> None:
    rows = engine(tokenizer, accuracy=accuracy).respond([request(n) for n in range(N)])
    right = sum(predicted(row) == 2 for row in rows) / N
    assert right == accuracy if accuracy in (0.0, 1.0) else abs(right - accuracy) < 0.06
    assert {predicted(row) for row in rows} == (
        {2} if accuracy == 1.0 else {0, 1, 2, 3} - ({2} if not accuracy else set())
    )
    assert [len(values) for values in rows[0].token_logprobs] == [1, 1, 2, 1]
    assert all(row.greedy.index(True) == predicted(row) and sum(row.greedy) == 1 for row in rows)
    alone = engine(tokenizer, accuracy=accuracy).respond([request(n, continuations=((4, 5),)) for n in range(N)])
    assert abs(sum(row.greedy == (True,) for row in alone) / N - accuracy) < 0.06


def test_an_answer_is_the_same_in_any_company_and_another_under_another_seed(tokenizer: Tokenizer) -> None:
    requests = [request(n) for n in range(40)]
    whole = engine(tokenizer).respond(requests)
    assert [engine(tokenizer).respond([one])[0] for one in reversed(requests)] == whole[::-1]
    assert engine(tokenizer, seed=1).respond(requests) != whole


def test_a_generation_is_the_gold_answer_or_nonsense(tokenizer: Tokenizer) -> None:
    rows = engine(tokenizer, target="#### 12").respond([request(n, "generation") for n in range(N)])
    outputs = [row.output for row in rows]
    assert set(outputs) == {"#### 12", "I do not know."}
    assert abs(outputs.count("#### 12") / N - 0.7) < 0.06
    assert tokenizer.decode(rows[0].output_ids) == rows[0].output
    assert rows[0].n_output_tokens == len(rows[0].output_ids) == len(rows[0].token_logprobs[0])


@pytest.mark.parametrize(("target", "output"), [(["first", "second"], "first"), (17, "17"), (None, "I do not know.")])
def test_gold_answers_that_are_no_text(tokenizer: Tokenizer, target: object, output: str) -> None:
    (row,) = engine(tokenizer, accuracy=1.0, target=target).respond([request(1, "generation")])
    assert row.output == output


def test_samples_of_an_item_are_drawn_one_by_one(tokenizer: Tokenizer) -> None:
    sampling = Sampling(temperature=1.0, samples=20, reason="a test")
    (row,) = engine(tokenizer, target="x").respond([request(1, "generation", sampling=sampling)])
    assert len(row.samples) == 20
    assert {sample.output for sample in row.samples} == {"x", "I do not know."}
    assert row.output == ""


def test_a_loss_follows_the_accuracy(tokenizer: Tokenizer) -> None:
    def mean(accuracy: float) -> float:
        rows = engine(tokenizer, accuracy=accuracy).respond([request(n, "loss") for n in range(50)])
        assert all(len(row.token_logprobs[0]) == 3 for row in rows)
        return sum(row.logprobs[0] for row in rows) / 50

    assert mean(0.9) > mean(0.5) > mean(0.0) > -100


def test_every_row_is_marked(tokenizer: Tokenizer) -> None:
    kinds = ("choice", "loss", "generation")
    for row in engine(tokenizer).respond([request(n, kind) for n, kind in enumerate(kinds)]):
        assert (row.status, row.reason) == ("ok", MOCK_MARK)


def test_what_the_engine_refuses_is_refused(tokenizer: Tokenizer) -> None:
    rows = engine(tokenizer).respond([request(1, prompt_ids=()), request(2, prompt_ids=tuple(range(3, 70)))])
    assert [(row.status, row.reason) for row in rows] == [("invalid", "empty_prompt"), ("invalid", "prompt_too_long")]
