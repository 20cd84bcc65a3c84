"""The sampler: known answers of its generator, the right distribution, and nothing but its row and place counts."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy import stats

from eval_tasks.engine import sampling as module
from eval_tasks.engine.sampling import Sampler, kept, philox4x32
from eval_tasks.errors import UserError
from eval_tasks.records import Sampling

PLAIN = Sampling(temperature=1.0, samples=1, reason="test")


def row_of(n: int, seed: int = 0, scale: float = 3.0) -> np.ndarray:
    logits = np.random.Generator(np.random.PCG64(seed)).standard_normal(n).astype(np.float32) * np.float32(scale)
    return torch.from_numpy(logits).log_softmax(dim=-1).numpy()


@pytest.mark.parametrize(
    ("counter", "key", "words"),
    [  # the known answers that come with Random123
        ((0, 0, 0, 0), (0, 0), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
        ((0xFFFFFFFF,) * 4, (0xFFFFFFFF,) * 2, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
        (
            (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
            (0xA4093822, 0x299F31D0),
            (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
        ),
    ],
)
def test_philox_gives_its_known_answers(counter, key, words) -> None:
    assert philox4x32(counter, key) == words


def test_the_numbers_of_a_place_never_change() -> None:
    """A change here would make every sampled row another one under the same harness of rows."""
    sampler = Sampler(PLAIN, seed=3, item_id="q/17 é", sample=2)
    assert [sampler.uniform(p) for p in (0, 1, 2**31)] == pytest.approx(EXPECTED, abs=0, rel=0)
    assert Sampler(PLAIN, seed=0, item_id="\ud800", sample=0).uniform(0) < 1


EXPECTED = [0.20009398086936436, 0.0004845515409028778, 0.16155830479097688]


def test_seed_item_sample_and_position_each_give_other_numbers() -> None:
    places = [(s, i, n, p) for s in (0, 1, -1, 2**40) for i in ("a", "b", "1") for n in (0, 1) for p in (0, 1, 2)]
    numbers = {Sampler(PLAIN, seed=s, item_id=i, sample=n).uniform(p) for s, i, n, p in places}
    assert len(numbers) == len(places)


def test_numbers_are_uniform_and_neighbours_do_not_know_of_each_other() -> None:
    items = np.array(
        [[Sampler(PLAIN, seed=0, item_id=str(i), sample=n).uniform(7) for n in range(4)] for i in range(2000)]
    )
    assert stats.kstest(items.ravel(), "uniform").pvalue > 0.001
    assert np.abs(np.corrcoef(items.T) - np.eye(4)).max() < 4 / np.sqrt(2000)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"temperature": 0.6},
        {"temperature": 2.5},
        {"top_k": 5},
        {"top_p": 0.8},
        {"min_p": 0.05},
        {"temperature": 0.6, "top_p": 0.95, "top_k": 20, "min_p": 0.01},
    ],
)
def test_draws_follow_the_distribution(changes) -> None:
    """Chi-square of 8,000 draws (one per item, the seed fixed) against the probabilities as torch has them."""
    sampling = replace(PLAIN, **changes)
    row = row_of(40)
    drawn = np.bincount([Sampler(sampling, seed=1, item_id=str(i), sample=0).draw(row, 0) for i in range(8_000)])
    expected = reference(row, sampling)
    drawn = np.pad(drawn, (0, len(expected) - len(drawn)))
    assert drawn[expected == 0].sum() == 0
    likely = expected * 8_000 >= 5
    observed = np.append(drawn[likely], drawn[~likely].sum())
    wanted = np.append(expected[likely], expected[~likely].sum()) * 8_000
    used = wanted > 0
    assert stats.chisquare(observed[used], wanted[used] * observed[used].sum() / wanted[used].sum()).pvalue > 0.001


def reference(row: np.ndarray, sampling: Sampling) -> np.ndarray:
    """What transformers' own warpers leave of the row, in the order of its generate."""
    from transformers import MinPLogitsWarper, TemperatureLogitsWarper, TopKLogitsWarper, TopPLogitsWarper

    scores = TemperatureLogitsWarper(sampling.temperature)(None, torch.from_numpy(row).double()[None])
    if sampling.top_k:
        scores = TopKLogitsWarper(sampling.top_k)(None, scores)
    if sampling.top_p < 1:
        scores = TopPLogitsWarper(sampling.top_p)(None, scores)
    if sampling.min_p:
        scores = MinPLogitsWarper(sampling.min_p)(None, scores)
    return scores.softmax(dim=-1)[0].numpy()


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("scale", [0.3, 3.0])
def test_what_is_kept_is_what_transformers_keeps(seed: int, scale: float) -> None:
    row = row_of(3000, seed, scale)
    for changes in ({"top_k": 50}, {"top_p": 0.9}, {"min_p": 0.1}, {"top_k": 200, "top_p": 0.7, "min_p": 0.02}):
        sampling = replace(PLAIN, temperature=0.8, **changes)
        ids, weights = kept(row, sampling)
        expected = reference(row, sampling)
        assert ids.tolist() == np.flatnonzero(expected).tolist()
        np.testing.assert_allclose(weights / weights.sum(), expected[ids], rtol=1e-9)


def test_a_nucleus_does_not_depend_on_how_many_tokens_were_ranked_first(monkeypatch: pytest.MonkeyPatch) -> None:
    row = row_of(2000, scale=0.2)
    sampling = replace(PLAIN, top_p=0.99)
    whole = kept(row, sampling)
    assert len(whole[0]) > 1024
    for first in (1, 7, 2000):
        monkeypatch.setattr(module, "_RANKED_FIRST", first)
        again = kept(row, sampling)
        assert again[0].tobytes() == whole[0].tobytes()
        assert again[1].tobytes() == whole[1].tobytes()


def test_ties_go_to_the_lowest_ids() -> None:
    row = np.log(np.array([0.1, 0.2, 0.2, 0.2, 0.2, 0.1], np.float32))
    assert kept(row, replace(PLAIN, top_k=2))[0].tolist() == [1, 2]
    assert kept(row, replace(PLAIN, top_p=0.35))[0].tolist() == [1, 2]
    assert kept(row, replace(PLAIN, top_k=1))[0].tolist() == [1]


def test_at_least_one_token_is_kept_and_one_of_no_weight_is_never_drawn() -> None:
    row = np.array([-1e30, -0.5, -1e30, -0.9, -1e30], np.float32)
    for changes in ({"top_p": 1e-9}, {"min_p": 0.999}, {"top_k": 1}, {"temperature": 1e-4}):
        assert set(kept(row, replace(PLAIN, **changes))[0][kept(row, replace(PLAIN, **changes))[1] > 0]) == {1}
    weights = np.array([0.0, 0.6, 0.0, 0.4, 0.0])
    ends = {module._walk(weights, uniform) for uniform in (0.0, 0.3, 0.6, 1 - 2**-53, 1.0)}
    assert ends == {1, 3}


def test_a_draw_is_a_function_of_its_row_and_its_place_alone() -> None:
    """The same row as part of another array, drawn after other draws, or from another sampler: the same token."""
    sampling = replace(PLAIN, temperature=1.3, top_p=0.9)
    rows = np.stack([row_of(257, seed) for seed in range(6)])
    fresh = [Sampler(sampling, seed=0, item_id="a", sample=1).draw(rows[n].copy(), n) for n in range(6)]
    one = Sampler(sampling, seed=0, item_id="a", sample=1)
    assert [one.draw(rows[n], n) for n in reversed(range(6))] == fresh[::-1]
    strided = np.asfortranarray(rows)
    assert [one.draw(strided[n], n) for n in range(6)] == fresh


@pytest.mark.parametrize("temperature", [0.0, -1.0, float("nan")])
def test_a_temperature_that_is_not_above_zero_is_refused(temperature: float) -> None:
    with pytest.raises(UserError, match="0 is greedy"):
        Sampler(replace(PLAIN, temperature=temperature), seed=0, item_id="a", sample=0)
