"""A log-softmax row and a place in a run in, the token drawn there out. Knows no model, no torch and no batch.

The random number of a token is a function of (run seed, item id, number of the sample, tokens written before it), by
the counter-based generator Philox4x32-10 (Salmon, Moraes, Dror, Shaw: Parallel random numbers, SC 2011). There is no
stream to be advanced, so that neither batch, order, threads, sharding nor resumption can move it.

All arithmetic is fp64 on the row alone, in one fixed order: equal probabilities are ranked by token id, the mass of a
nucleus is added up from the most probable token on, and a draw walks the kept tokens by id.
"""

from __future__ import annotations

import json

import numpy as np
import numpy.typing as npt
from blake3 import blake3

from eval_tasks.errors import UserError
from eval_tasks.records import Sampling

FloatArray = npt.NDArray[np.float64]
Row = npt.NDArray[np.float32]

_WORD = 0xFFFFFFFF
_MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
_WEYL = (0x9E3779B9, 0xBB67AE85)
_ROUNDS = 10
# Tokens that are ranked at first when a nucleus is looked for; more only when they do not hold its mass.
_RANKED_FIRST = 1024


class Sampler:
    """Draws the tokens of one sample of one item. Raises UserError for a temperature that is not above 0."""

    def __init__(self, sampling: Sampling, *, seed: int, item_id: str, sample: int) -> None:
        if not sampling.temperature > 0:
            raise UserError(f"temperature is {sampling.temperature}; sampling needs one above 0, and 0 is greedy")
        self._sampling = sampling
        self._sample = sample
        # 64 bits of the digest are the key, 64 more stand in the counter beside sample and position.
        name = json.dumps([seed, item_id], ensure_ascii=False).encode("utf-8", "surrogatepass")
        words = np.frombuffer(blake3(name).digest(length=16), dtype="<u4").tolist()
        self._key = (words[0], words[1])
        self._item = (words[2], words[3])

    def draw(self, row: Row, position: int) -> int:
        """The token at `position` (0 for the first one written), given the fp32 log-softmax row, shape (tokens,)."""
        ids, weights = kept(row, self._sampling)
        return int(ids[_walk(weights, self.uniform(position))])

    def uniform(self, position: int) -> float:
        """The random number of that position: 53 bits, from 0 to 1, 1 excluded."""
        words = philox4x32((position, self._sample, *self._item), self._key)
        return ((words[0] >> 5) * 67108864 + (words[1] >> 6)) / 9007199254740992


def kept(row: Row, sampling: Sampling) -> tuple[npt.NDArray[np.int64], FloatArray]:
    """The token ids that may be drawn, ascending, and their weights (not normalised; the highest is 1).

    Temperature, then top-k, then top-p on what top-k left, then min-p, as transformers orders them.
    """
    tempered = row.astype(np.float64) / sampling.temperature
    weights: FloatArray = np.exp(tempered - tempered.max())
    ids = np.arange(len(weights), dtype=np.int64)
    if 0 < sampling.top_k < len(weights):
        ids = np.sort(_highest(weights, sampling.top_k))
    if sampling.top_p < 1:
        ids = np.sort(_nucleus(weights, ids, sampling.top_p))
    if sampling.min_p > 0:
        ids = ids[weights[ids] >= sampling.min_p]
    return ids, weights[ids]


def philox4x32(counter: tuple[int, int, int, int], key: tuple[int, int]) -> tuple[int, int, int, int]:
    """Philox4x32-10: four 32-bit words for a counter of four and a key of two."""
    a, b, c, d = counter
    k0, k1 = key
    for _ in range(_ROUNDS):
        first, second = a * _MULTIPLIERS[0], c * _MULTIPLIERS[1]
        a, b, c, d = (second >> 32) ^ b ^ k0, second & _WORD, (first >> 32) ^ d ^ k1, first & _WORD
        k0, k1 = (k0 + _WEYL[0]) & _WORD, (k1 + _WEYL[1]) & _WORD
    return a, b, c, d


def _ranked(weights: FloatArray, ids: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """`ids` (ascending) by falling weight, equal ones by id."""
    return ids[np.argsort(-weights[ids], kind="stable")]


def _highest(weights: FloatArray, n: int) -> npt.NDArray[np.int64]:
    """The ids of the `n` highest weights, ranked; of those equal to the last one, the lowest ids."""
    least = np.partition(weights, len(weights) - n)[len(weights) - n]
    above = np.flatnonzero(weights > least)
    ties = np.flatnonzero(weights == least)[: n - len(above)]
    return _ranked(weights, np.sort(np.concatenate([above, ties])))


def _nucleus(weights: FloatArray, ids: npt.NDArray[np.int64], top_p: float) -> npt.NDArray[np.int64]:
    """The shortest start of the ranked `ids` (ascending) whose mass is at least `top_p` of theirs."""
    among = weights[ids]
    wanted = top_p * float(among.cumsum()[-1])
    n = min(_RANKED_FIRST, len(ids))
    while True:
        ranked = ids[_highest(among, n)]
        mass = weights[ranked].cumsum()
        if mass[-1] >= wanted or n == len(ids):
            return ranked[: int(np.searchsorted(mass, wanted, side="left")) + 1]
        n = min(8 * n, len(ids))


def _walk(weights: FloatArray, uniform: float) -> int:
    """The index at which the running sum of `weights` passes `uniform` of the whole; never one of weight 0."""
    sums = weights.cumsum()
    at = int(np.searchsorted(sums, uniform * sums[-1], side="right"))
    return min(at, int(np.searchsorted(sums, sums[-1], side="left")))
