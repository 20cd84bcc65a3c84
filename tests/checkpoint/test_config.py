from __future__ import annotations

from pathlib import Path

import pytest

from eval_tasks.checkpoint import max_context, read_config
from eval_tasks.errors import CheckpointError, UserError


def test_a_config_is_read(single: Path) -> None:
    assert max_context(read_config(single)) == 2048


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({"n_positions": 1024}, 1024),
        ({"n_ctx": 512}, 512),
        ({"text_config": {"max_position_embeddings": 8192}}, 8192),
        ({"max_position_embeddings": None, "seq_length": 4096}, 4096),
    ],
)
def test_the_context_goes_by_several_names(config: dict[str, object], expected: int) -> None:
    assert max_context(config) == expected


@pytest.mark.parametrize("config", [{"model_type": "odd"}, {"n_ctx": 0}, {"n_ctx": True}, {"n_ctx": "512"}])
def test_a_context_that_is_not_named_is_never_guessed(config: dict[str, object]) -> None:
    with pytest.raises(UserError, match="max_context"):
        max_context(config)


@pytest.mark.parametrize(("text", "reason"), [(None, "no_config"), ("{", "unreadable_json"), ("[]", "unreadable_json")])
def test_a_config_that_cannot_be_read_is_named(tmp_path: Path, text: str | None, reason: str) -> None:
    if text is not None:
        (tmp_path / "config.json").write_text(text)
    with pytest.raises(CheckpointError, match=r"config\.json") as caught:
        read_config(tmp_path)
    assert caught.value.reason == reason
