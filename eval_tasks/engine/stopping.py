"""Generated token ids in, one by one; text and the reason to stop out. Knows no model and no torch.

EOS ids and stop strings that are one special token end at token level. Other stop strings end at text level, wherever
token borders fall; the text before the first one is kept exactly. Within a reasoning block EOS ids alone end it, and
the block's markers are kept in the text even where the tokenizer has them as special tokens.
"""

from __future__ import annotations

from collections.abc import Sequence

from eval_tasks.errors import UserError
from eval_tasks.reasoning import first_stop, is_within
from eval_tasks.records import ReasoningBlock
from eval_tasks.records.item import FinishReason
from eval_tasks.tokenization import Tokenizer

# Tokens beyond a stop string's bytes: what starts the window may decode otherwise there than in the whole text.
_MARGIN = 8


class Stopper:
    """Follows one generation: `add` each token id until it gives a reason, then read `text`."""

    def __init__(
        self, tokenizer: Tokenizer, stops: Sequence[str], max_tokens: int, reasoning: ReasoningBlock | None = None
    ) -> None:
        if isinstance(stops, str):
            raise UserError(f"stops is the text {stops!r}; give a list, or every character of it would be a stop")
        self._tokenizer = tokenizer
        self._eos_ids = frozenset(tokenizer.eos_ids)
        self._stop_ids = frozenset(i for stop in stops if (i := _special_id(tokenizer, stop)) is not None)
        self._stops = tuple(stop for stop in stops if stop)
        longest = max((len(stop.encode()) for stop in self._stops), default=0)
        self._window = longest + _MARGIN
        self._max_tokens = max_tokens
        self._reasoning = reasoning
        self._marker_ids = _special_ids(tokenizer, reasoning)
        self._specials: dict[int, bool] = {}
        self.ids: list[int] = []
        self.reason: FinishReason = ""

    def add(self, token_id: int) -> FinishReason:
        """The reason to stop after this token, '' to go on. The token is kept in `ids` either way."""
        self.ids.append(token_id)
        if token_id in self._eos_ids:
            self.reason = "eos"
        elif (token_id in self._stop_ids and self._may_stop()) or (self._stops and self._shows_stop()):
            self.reason = "stop"
        elif len(self.ids) >= self._max_tokens:
            self.reason = "length"
        return self.reason

    def text(self) -> str:
        """What was written before any stop string and without the token that ended it."""
        ended = self.reason == "eos" or (self.reason == "stop" and self.ids[-1] in self._stop_ids)
        text = self._decode(self.ids[:-1] if ended else self.ids)
        at = first_stop(text, self._stops, self._reasoning)
        return text if at < 0 else text[:at]

    def _shows_stop(self) -> bool:
        """Whether the text so far has a stop string: looked for in the last tokens, then made sure of in all.

        Decoding is not a sum over tokens (bytes that are no character yet, a blank that only the start loses), so a
        text that is put together token by token may differ from the decoded whole, which is what counts.
        """
        seen = self._decode(self.ids[-self._window :])
        if not any(stop in seen for stop in self._stops):
            return False
        return first_stop(self._decode(self.ids), self._stops, self._reasoning) >= 0

    def _may_stop(self) -> bool:
        """Whether the text so far, the last token apart, ends outside reasoning."""
        return self._reasoning is None or not is_within(self._decode(self.ids[:-1]), self._reasoning)

    def _decode(self, ids: Sequence[int]) -> str:
        if not self._marker_ids:
            return self._tokenizer.decode(ids)
        shown = [i for i in ids if i in self._marker_ids or not self._is_special(i)]
        return self._tokenizer.decode(shown, skip_special_tokens=False)

    def _is_special(self, token_id: int) -> bool:
        if token_id not in self._specials:
            hidden = self._tokenizer.decode([token_id]) == ""
            self._specials[token_id] = hidden and self._tokenizer.decode([token_id], skip_special_tokens=False) != ""
        return self._specials[token_id]


def _special_id(tokenizer: Tokenizer, stop: str) -> int | None:
    """The id of a stop string that is one special token: it never shows in the text."""
    ids = tokenizer.encode(stop) if stop else []
    return ids[0] if len(ids) == 1 and tokenizer.decode(ids) == "" else None


def _special_ids(tokenizer: Tokenizer, reasoning: ReasoningBlock | None) -> frozenset[int]:
    """The special tokens of the block's markers, which decoding would leave out."""
    if reasoning is None:
        return frozenset()
    ids = [i for marker in (reasoning.start, reasoning.end) for i in tokenizer.encode(marker)]
    return frozenset(i for i in ids if tokenizer.decode([i]) == "" and tokenizer.decode([i], False) != "")
