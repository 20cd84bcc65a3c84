"""Hidden rows in, log-probabilities out: an fp32 matrix product, then fp32 log-softmax, each row by itself.

Logits that the model bounds (soft-capping) are bounded before anything else is done with them.
"""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from eval_tasks.engine import cuda
from eval_tasks.engine.attention import one_thread
from eval_tasks.engine.linears import ELEMENTS, MIN_ROWS, multiply_by
from eval_tasks.engine.sampling import Row

if TYPE_CHECKING:
    import torch

_MOST_ROWS = 512
_MOST_LOGITS = 16 * 1024 * 1024


class LogProbs(ABC):
    """What is wanted of rows, by way of their logits. A row whose logits are not all finite gives None."""

    def logprobs_of(
        self, hidden: torch.Tensor, targets: Sequence[Sequence[int]]
    ) -> list[list[tuple[float, bool]] | None]:
        """For each row of `hidden` (n, width), per target token id: (log-probability, whether `greedy` takes it)."""
        found: list[list[tuple[float, bool]] | None] = []
        for logits, finite in self._blocks(hidden):
            wanted = [list(tokens) for tokens in targets[len(found) : len(found) + len(finite)]]
            places = [row for row, tokens in enumerate(wanted) for _ in tokens]
            values = iter(_log_softmax(logits)[places, [token for tokens in wanted for token in tokens]].tolist())
            best = logits.argmax(dim=-1).tolist()
            for tokens, is_finite, top in zip(wanted, finite, best, strict=False):
                row = list(itertools.islice(values, len(tokens)))
                found.append([(v, t == top) for v, t in zip(row, tokens, strict=True)] if is_finite else None)
        return found

    def greedy(self, hidden: torch.Tensor) -> list[tuple[int, float] | None]:
        """For each row of `hidden` (n, width) its most probable token (ties: the lowest id) and log-probability."""
        found: list[tuple[int, float] | None] = []
        for logits, finite in self._blocks(hidden):
            best = logits.argmax(dim=-1)
            values = _log_softmax(logits).gather(1, best[:, None])[:, 0].tolist()
            found += [
                (token, value) if is_finite else None
                for token, value, is_finite in zip(best.tolist(), values, finite, strict=False)
            ]
        return found

    def rows_of(self, hidden: torch.Tensor) -> list[Row | None]:
        """For each row of `hidden` (n, width) its log-softmax over all tokens, on the host."""
        found: list[Row | None] = []
        for logits, finite in self._blocks(hidden):
            rows = _log_softmax(logits).cpu().numpy()
            found += [row if is_finite else None for row, is_finite in zip(rows, finite, strict=False)]
        return found

    @abstractmethod
    def _blocks(self, hidden: torch.Tensor) -> Iterator[tuple[torch.Tensor, list[bool]]]:
        """Blocks of (float32 logits, whether finite per real row), of all rows of `hidden` in order."""


def rows_at_once(n_tokens: int) -> int:
    """Rows of a block of logits: many use the processor better, and they stay within 64 MiB."""
    return max(MIN_ROWS, min(_MOST_ROWS, _MOST_LOGITS // n_tokens // MIN_ROWS * MIN_ROWS))


class Head(LogProbs):
    """The output head, over at most `rows` rows at a time. `softcap`: logits become softcap tanh(logits / softcap)."""

    def __init__(
        self,
        weight: torch.Tensor,
        bias: torch.Tensor | None,
        softcap: float | None = None,
        *,
        most_rows: int | None = None,
    ) -> None:
        self.n_tokens = int(weight.shape[0])
        self.rows = most_rows or rows_at_once(self.n_tokens)
        self._softcap = softcap
        self._multiply = multiply_by(weight.detach(), None if bias is None else bias.detach(), wide=True)

    def _blocks(self, hidden: torch.Tensor) -> Iterator[tuple[torch.Tensor, list[bool]]]:
        """Blocks of at most `rows` rows; zero rows fill them up to what a product is exact for."""
        for start in range(0, hidden.shape[0], self.rows):
            part = hidden[start : start + self.rows].float()
            block = part.new_zeros(-(-part.shape[0] // MIN_ROWS) * MIN_ROWS, part.shape[1])
            block[: part.shape[0]] = part
            logits = self._multiply(block)
            if self._softcap is not None:
                logits = _capped(logits, self._softcap)
            yield logits, finite_rows(logits)[: part.shape[0]]


def finite_rows(logits: torch.Tensor) -> list[bool]:
    """Whether all logits of a row are finite.

    Two extremes say as much as a look at every element, at a tenth of the cost: they keep NaN and infinities.
    """
    import torch

    extremes = torch.stack((logits.amax(dim=-1), logits.amin(dim=-1)))
    finite: list[bool] = extremes.isfinite().all(dim=0).tolist()
    return finite


def _capped(logits: torch.Tensor, softcap: float) -> torch.Tensor:
    """softcap tanh(logits / softcap), with the same bits at any row: a row ends where a run of elements does."""
    import torch

    n_rows, width = logits.shape
    wide = logits.new_zeros(n_rows, -(-width // ELEMENTS) * ELEMENTS)
    wide[:, :width] = logits
    with one_thread():
        wide.div_(softcap).tanh_().mul_(softcap)
    # An infinite logit would come out as a number like any other.
    return torch.where(logits.isfinite(), wide[:, :width], logits)


def _log_softmax(logits: torch.Tensor) -> torch.Tensor:
    if cuda.uses_kernels(logits.device):
        from eval_tasks.engine.cuda.rows import log_softmax

        return log_softmax(logits)
    return logits.log_softmax(dim=-1)
