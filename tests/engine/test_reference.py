"""The slow path: transformers' own forward and head, one sequence at a time, for what was not verified."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from eval_tasks.engine import Engine, load_engine, verify_engine
from eval_tasks.engine.sentinels import sentinel_requests
from eval_tasks.engine.verification import PLAIN_MODEL, REFERENCE_PROMISES, identities
from eval_tasks.errors import CheckpointError, UserError
from eval_tasks.records import EngineConfig, Response

REFERENCE = EngineConfig(attention="reference")
# Own logit scales, parallel residuals, learned positions with an offset, no attention at all.
UNVERIFIED = ("cohere", "granite", "gpt_neox", "opt", "mamba")


def _rows(engine: Engine) -> dict[str, Response]:
    return identities(engine.respond(sentinel_requests(259, 150)[::9]))


@pytest.mark.parametrize("family", UNVERIFIED)
def test_an_unverified_architecture_is_refused_and_the_refusal_names_the_way(build, family: str) -> None:
    with pytest.raises(CheckpointError, match="attention: reference") as caught:
        load_engine(build(family), EngineConfig())
    assert caught.value.reason == "unsupported_architecture"


@pytest.mark.parametrize("family", UNVERIFIED)
def test_log_probabilities_and_tokens_are_those_of_the_model(build, ask, family: str) -> None:
    import torch
    import transformers

    engine = load_engine(build(family), REFERENCE)
    model = transformers.AutoModelForCausalLM.from_pretrained(build(family), attn_implementation="eager").eval()
    prompt, continuations = tuple(range(3, 60)), ((7,), (8, 9, 10), (11,))
    choice, written = engine.respond(
        [ask("choice", prompt, continuations=continuations), ask("generation", prompt, max_tokens=6)]
    )
    for found, continuation in zip(choice.token_logprobs, continuations, strict=True):
        with torch.inference_mode():
            logits = model(torch.tensor([[*prompt, *continuation]])).logits[0].log_softmax(-1)
        expected = [logits[len(prompt) - 1 + k, token].item() for k, token in enumerate(continuation)]
        assert found == pytest.approx(expected, abs=1e-4)
    ids = torch.tensor([prompt])
    out = model.generate(ids, attention_mask=torch.ones_like(ids), do_sample=False, max_new_tokens=6, pad_token_id=0)
    assert list(written.output_ids) == out[0, len(prompt) :].tolist()


def test_rows_of_a_verified_family_agree_with_the_engines(build, load) -> None:
    fast, slow = _rows(load("gemma2")), _rows(load_engine(build("gemma2"), REFERENCE))
    assert fast.keys() == slow.keys()
    for item_id, row in fast.items():
        assert (slow[item_id].status, slow[item_id].reason) == (row.status, row.reason)
        assert slow[item_id].output_ids == row.output_ids
        assert [s.output_ids for s in slow[item_id].samples] == [s.output_ids for s in row.samples]
        assert slow[item_id].logprobs == pytest.approx(row.logprobs, abs=1e-3)


def test_a_row_is_the_same_alone_and_in_any_company(build) -> None:
    engine = load_engine(build("opt"), REFERENCE)
    requests = sentinel_requests(259, 150)[::9]
    expected = identities(engine.respond(requests))
    alone = {item_id: row for r in requests[::-1] for item_id, row in identities(engine.respond([r])).items()}
    assert alone == expected


def test_verify_engine_promises_less(build) -> None:
    checks = verify_engine(build("opt"), REFERENCE)
    assert [check.name for check in checks] == [*REFERENCE_PROMISES, PLAIN_MODEL]
    assert all(check.passed for check in checks)


def test_the_path_is_part_of_the_record_and_takes_no_prefix() -> None:
    assert REFERENCE.engine_digest != EngineConfig().engine_digest
    with pytest.raises(UserError, match="prefix"):
        load_engine(Path("nowhere"), EngineConfig(attention="reference", prefix="shared"))


def test_a_model_that_sees_what_it_predicts_is_refused(build) -> None:
    with pytest.raises(CheckpointError) as caught:
        load_engine(build("bert"), REFERENCE)
    assert caught.value.reason == "bidirectional_attention"


def test_code_of_a_checkpoint_never_runs(build, tmp_path) -> None:
    folder = tmp_path / "checkpoint"
    shutil.copytree(build("opt"), folder)
    config = json.loads((folder / "config.json").read_text())
    own = {"model_type": "their_own", "auto_map": {"AutoModelForCausalLM": "theirs.Model"}}
    (folder / "config.json").write_text(json.dumps({**config, **own}))
    (folder / "theirs.py").write_text("raise SystemExit('it ran')")
    with pytest.raises(CheckpointError) as caught:
        load_engine(folder, REFERENCE)
    assert caught.value.reason == "unsupported_architecture"


def test_what_does_not_fit_is_refused_before_it_is_loaded(build) -> None:
    from eval_tasks.engine.memory import Workload, fitted
    from eval_tasks.engine.room import Room
    from eval_tasks.records import EngineTuning

    work = Workload(prompt_tokens=20_000, output_tokens=0, n_sequences=1, generates=False)
    room = Room(n_bytes=1 << 30, source="a test")
    with pytest.raises(CheckpointError) as caught:
        fitted(build("opt"), REFERENCE, EngineTuning(), work, lambda _device: room)
    assert caught.value.reason == "does_not_fit"
    assert fitted(build("opt"), EngineConfig(), EngineTuning(), work, lambda _device: room)
