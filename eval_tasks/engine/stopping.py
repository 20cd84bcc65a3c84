"""Generated token ids in, one by one; text and the reason to stop out. Knows no model and no torch.

EOS ids and stop strings that are one special token end at token level. Other stop strings end at text level, wherever
token borders fall; the text before the first one is kept exactly.
"""

from __future__ import annotations

from collections.abc import Sequence

from eval_tasks.errors import UserError
from eval_tasks.records.item import FinishReason
from eval_tasks.tokenization import Tokenizer

# Tokens beyond a stop string's bytes: what starts the window may decode otherwise there than in the whole text.
_MARGIN = 8


class Stopper:
    """Follows one generation: `add` each token id until it gives a reason, then read `text`."""

    def __init__(self, tokenizer: Tokenizer, stops: Sequence[str], max_tokens: int) -> None:
        if isinstance(stops, str):
            raise UserError(f"stops is the text {stops!r}; give a list, or every character of it would be a stop")
        self._tokenizer = tokenizer
        self._eos_ids = frozenset(tokenizer.eos_ids)
        self._stop_ids = frozenset(i for stop in stops if (i := _special_id(tokenizer, stop)) is not None)
        self._stops = tuple(stop for stop in stops if stop)
        longest = max((len(stop.encode()) for stop in self._stops), default=0)
        self._window = longest + _MARGIN
        self._max_tokens = max_tokens
        self.ids: list[int] = []
        self.reason: FinishReason = ""

    def add(self, token_id: int) -> FinishReason:
        """The reason to stop after this token, '' to go on. The token is kept in `ids` either way."""
        self.ids.append(token_id)
        if token_id in self._eos_ids:
            self.reason = "eos"
        elif token_id in self._stop_ids or (self._stops and self._shows_stop()):
            self.reason = "stop"
        elif len(self.ids) >= self._max_tokens:
            self.reason = "length"
        return self.reason

    def text(self) -> str:
        """What was written before any stop string and without the token that ended it."""
        ended = self.reason == "eos" or (self.ids and self.ids[-1] in self._stop_ids)
        text = self._tokenizer.decode(self.ids[:-1] if ended else self.ids)
        ends = [at for stop in self._stops if (at := text.find(stop)) >= 0]
        return text[: min(ends)] if ends else text

    def _shows_stop(self) -> bool:
        """Whether the text so far has a stop string: looked for in the last tokens, then made sure of in all.

        Decoding is not a sum over tokens (bytes that are no character yet, a blank that only the start loses), so a
        text that is put together token by token may differ from the decoded whole, which is what counts.
        """
        return self._has_stop(self.ids[-self._window :]) and self._has_stop(self.ids)

    def _has_stop(self, ids: Sequence[int]) -> bool:
        text = self._tokenizer.decode(ids)
        return any(stop in text for stop in self._stops)


def _special_id(tokenizer: Tokenizer, stop: str) -> int | None:
    """The id of a stop string that is one special token: it never shows in the text."""
    ids = tokenizer.encode(stop) if stop else []
    return ids[0] if len(ids) == 1 and tokenizer.decode(ids) == "" else None
