import json
import random
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
import train
from safetensors import safe_open
from transformers import AutoModelForCausalLM, AutoTokenizer
from word_problems import choices, draw_problem, question, training_document

from eval_tasks.checkpoint import build_manifest
from eval_tasks.tokenization import load_tokenizer

FILES = {"config.json", "generation_config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"}


@pytest.fixture(scope="module", autouse=True)
def _leave_torch_as_it_was() -> Iterator[None]:
    threads, deterministic = torch.get_num_threads(), torch.are_deterministic_algorithms_enabled()
    yield
    torch.set_num_threads(threads)
    torch.use_deterministic_algorithms(deterministic)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("run")
    assert len(list(train.train(out, steps=24))) == 6
    return out


def test_the_checkpoints_are_spread_over_the_training(run: Path) -> None:
    assert {int(folder.name.removeprefix("step-")) for folder in run.iterdir()} == {1, 4, 8, 12, 18, 24}
    assert all({path.name for path in folder.iterdir()} == FILES for folder in run.iterdir())


def test_the_same_seed_gives_the_same_bytes_and_another_does_not(run: Path, tmp_path: Path) -> None:
    list(train.train(tmp_path / "again", steps=24))
    list(train.train(tmp_path / "other", steps=1, seed=1))
    for folder in run.iterdir():
        for name in FILES:
            assert (tmp_path / "again" / folder.name / name).read_bytes() == (folder / name).read_bytes()
    weights = "step-1/model.safetensors"
    assert (tmp_path / "other" / weights).read_bytes() != (run / weights).read_bytes()


def test_the_weights_are_written_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[set[str]] = []
    monkeypatch.setattr(train.time, "sleep", lambda _: seen.append({p.name for p in (tmp_path / "step-1").iterdir()}))
    list(train.train(tmp_path, steps=1, pause=5.0))
    assert seen == [FILES - {"model.safetensors"}]


def test_transformers_loads_a_checkpoint_with_no_weight_missing(run: Path) -> None:
    model, info = AutoModelForCausalLM.from_pretrained(run / "step-24", output_loading_info=True)
    assert not info["missing_keys"]
    assert not info["unexpected_keys"]
    assert not info["mismatched_keys"]
    assert 200_000 < model.num_parameters() < 500_000
    with safe_open(run / "step-24" / "model.safetensors", "pt") as weights:
        assert "lm_head.weight" not in weights.keys()  # noqa: SIM118


def test_the_product_takes_a_checkpoint_as_complete(run: Path) -> None:
    manifest = build_manifest(str(run / "step-24"), training_run="demo", step=24)
    assert {file.path for file in manifest.files} == FILES


def test_both_tokenizers_agree_and_any_text_round_trips(run: Path) -> None:
    ours, theirs = load_tokenizer(run / "step-24"), AutoTokenizer.from_pretrained(run / "step-24")
    rng = random.Random(3)
    for text in [*(training_document(rng) for _ in range(50)), "Ünïcode 日本 🙂\n\n\t$3.50", " x  y"]:
        ids = ours.encode(text)
        assert ids == theirs(text, add_special_tokens=False)["input_ids"]
        assert ours.decode(ids) == text
    assert ours.adds_bos
    assert theirs("Q")["input_ids"][0] == ours.bos_id
    config = json.loads((run / "step-24" / "config.json").read_text("utf-8"))
    assert ours.eos_ids == (config["eos_token_id"],)


def test_every_word_of_the_language_is_one_token(run: Path) -> None:
    tokenizer = load_tokenizer(run / "step-24")
    rng = random.Random(5)
    for _ in range(200):
        text = training_document(rng)
        pieces = [tokenizer.decode([i]) for i in tokenizer.encode(text)]
        assert not [p for p in pieces if len(p) == 1 and p.isalpha() and p not in "QA"]
        assert not [p for p in pieces if p.strip().isdigit() and p != " " + p.strip()]


def test_the_learning_rate_rises_then_falls() -> None:
    rates = [train.learning_rate(step, 100) for step in range(100)]
    assert rates.index(max(rates)) == 4
    assert rates[0] == pytest.approx(train.PEAK_LEARNING_RATE / 5)
    assert rates[99] == pytest.approx(0.1 * train.PEAK_LEARNING_RATE, rel=0.1)


def test_a_wrong_number_of_steps_is_refused(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    with pytest.raises(SystemExit):
        train.main(["--out", str(tmp_path), "--steps", "0"])
    assert "--steps must be 1 or more, not 0" in capsys.readouterr().err


@pytest.mark.full
def test_training_learns_what_the_benchmarks_ask(tmp_path: Path) -> None:
    folders = [folder for folder, _ in train.train(tmp_path)]

    def accuracy(folder: Path) -> float:
        model, tokenizer = AutoModelForCausalLM.from_pretrained(folder).eval(), AutoTokenizer.from_pretrained(folder)
        rng = random.Random(11)
        right = 0
        for _ in range(200):
            problem = draw_problem(rng, held_out=True)
            options, gold = choices(problem, rng)
            ids = tokenizer(f"Q: {question(problem)}\nA:", return_tensors="pt").input_ids
            with torch.no_grad():
                scores = model(ids).logits[0, -1]
            first = [tokenizer(f" {o}", add_special_tokens=False).input_ids[0] for o in options]
            right += int(scores[first].argmax()) == gold
        return right / 200

    assert accuracy(folders[0]) < 0.45
    assert accuracy(folders[-1]) > 0.65
