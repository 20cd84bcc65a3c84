"""What does not fit is refused before a weight is read; what fits with lower tuning runs, with the same bits."""

from __future__ import annotations

import dataclasses
import json
import logging
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest
import transformers

from eval_tasks.engine import engine as engine_module
from eval_tasks.engine import load_engine, memory
from eval_tasks.engine.memory import Workload, amount, fitted, model_of, need_of
from eval_tasks.engine.room import Room
from eval_tasks.engine.verification import identities
from eval_tasks.errors import CheckpointError
from eval_tasks.records import EngineConfig, EngineTuning

MEBIBYTE = 1024 * 1024
SHARED = EngineConfig(prefix="shared")
WRITING = Workload(prompt_tokens=60, output_tokens=40, n_sequences=32, generates=True)
READING = Workload(prompt_tokens=60, output_tokens=4, n_sequences=160, generates=False)


def room(n_bytes: int):
    return lambda device: Room(n_bytes=n_bytes, source="a test's limit")


def need(folder: Path, workload: Workload, config: EngineConfig = SHARED, tuning: EngineTuning | None = None):
    model = model_of(folder, transformers.AutoConfig.from_pretrained(folder), config)
    return need_of(model, config, tuning or EngineTuning(), workload)


def test_weights_are_counted_as_the_engine_holds_them(build) -> None:
    """259 x 64 embedding, 2 layers of 64-wide attention (2 of 4 key-value heads) and a 172-wide MLP."""
    layer = (64 + 64 + 64 + 64) * 64 + 3 * 192 * 64  # of k, v and gate, up: 64 and 192 outputs of oneDNN's blocks
    down = 64 * 172 - 192 * 64
    linears = 2 * (layer + down)
    norms = 5 * 64
    embedding = head = 259 * 64
    untied = need(build("llama", tie_word_embeddings=False), READING)
    tied = need(build("llama", tie_word_embeddings=True), READING)
    assert untied.weights == tied.weights == 4 * (linears + norms + embedding + head)
    wide = need(build("llama"), READING, EngineConfig(dtype="bfloat16"))
    assert 4 * head + 2 * (linears + norms + embedding) <= wide.weights <= untied.weights


def test_caches_follow_the_rows_and_the_longest_sequence(build) -> None:
    folder = build("llama")
    position = 2 * 2 * 32 * 4  # layers x (key, value) x width of the key-value heads x float32
    prompt = -(-WRITING.prompt_tokens // 32) * 32
    assert need(folder, WRITING).caches == (33 * 128 + prompt) * position
    assert need(folder, WRITING, tuning=EngineTuning(decode_rows=8)).caches == (9 * 128 + prompt) * position
    assert need(folder, READING).caches == 0
    assert need(folder, READING).prefixes == 256 * MEBIBYTE + 64 * position
    assert need(folder, READING, EngineConfig()).prefixes == 64 * position
    longer = dataclasses.replace(READING, prompt_tokens=4000)
    assert need(folder, longer).activations > need(folder, READING).activations


def test_what_does_not_fit_is_refused_with_every_figure(build) -> None:
    folder = build("llama")
    with pytest.raises(CheckpointError) as caught:
        fitted(folder, SHARED, EngineTuning(), WRITING, room(100 * MEBIBYTE))
    assert caught.value.reason == "does_not_fit"
    message = str(caught.value)
    named = ("weights", "loading", "caches", "prefixes", "activations", "runtime", "100 MiB are free (a test's limit)")
    assert all(name in message for name in (*named, "decode_rows", "prefix_cache_mb", "give the pod", "max_context"))


def test_lower_tuning_is_chosen_where_it_alone_makes_it_fit(build, caplog: pytest.LogCaptureFixture) -> None:
    folder = build("llama")
    asked = EngineTuning(decode_rows=64)
    whole = need(folder, WRITING, tuning=asked).peak
    assert fitted(folder, SHARED, asked, WRITING, room(whole)) == asked
    assert all(record.levelno < logging.WARNING for record in caplog.records)
    chosen = fitted(folder, SHARED, asked, WRITING, room(whole - 200 * MEBIBYTE))
    assert need(folder, WRITING, tuning=chosen).peak <= whole - 200 * MEBIBYTE
    assert chosen == dataclasses.replace(asked, prefix_cache_mb=32)
    assert "changes the speed and no result" in caplog.text


def test_lower_tuning_gives_the_same_rows(build, ask, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = build("llama")
    requests = [ask("choice", range(3, 80 + i), f"c{i}", continuations=((4,), (5, 6))) for i in range(6)]
    requests += [ask("generation", range(5, 60 + i), f"g{i}", max_tokens=6) for i in range(6)]
    plenty = load_engine(folder, SHARED, EngineTuning(), WRITING)
    assert plenty.tuning == EngineTuning()
    little = need(folder, WRITING).peak - 240 * MEBIBYTE
    monkeypatch.setattr(engine_module, "fitted", lambda *given: fitted(*given, room(little)))
    scarce = load_engine(folder, SHARED, EngineTuning(), WRITING)
    assert scarce.tuning != EngineTuning()
    assert identities(scarce.respond(requests)) == identities(plenty.respond(requests))


def test_a_large_model_is_refused_in_seconds_without_its_weights(build, tmp_path, monkeypatch) -> None:
    """70 billion weights that exist in the header alone: the file is a hole."""
    source = build("llama")
    settings = json.loads((source / "config.json").read_text())
    wide = {"hidden_size": 8192, "intermediate_size": 28672, "num_hidden_layers": 80, "num_attention_heads": 64}
    (tmp_path / "config.json").write_text(json.dumps(settings | wide | {"head_dim": 128, "num_key_value_heads": 8}))
    for name in ("tokenizer.json", "tokenizer_config.json"):
        (tmp_path / name).write_bytes((source / name).read_bytes())
    shapes = {"model.embed_tokens.weight": [259, 8192]}
    for layer in range(80):
        shapes |= {f"model.layers.{layer}.mlp.{n}_proj.weight": [28672, 8192] for n in ("gate", "up")}
        shapes[f"model.layers.{layer}.mlp.down_proj.weight"] = [8192, 28672]
    header, end = {}, 0
    for name, (rows, columns) in shapes.items():
        header[name] = {"dtype": "F32", "shape": [rows, columns], "data_offsets": [end, end + 4 * rows * columns]}
        end = header[name]["data_offsets"][1]
    text = json.dumps(header).encode()
    with (tmp_path / "model.safetensors").open("wb") as stream:
        stream.write(len(text).to_bytes(8, "little") + text)
        stream.truncate(8 + len(text) + end)
    monkeypatch.setattr(engine_module, "load_model", lambda *_: pytest.fail("a weight was read"))
    monkeypatch.setattr(memory, "room_of", room(64 * 1024 * MEBIBYTE))
    began = time.monotonic()
    with pytest.raises(CheckpointError, match=r"needs [\d,.]+ GiB \(weights [\d,.]+ GiB") as caught:
        load_engine(tmp_path, EngineConfig())
    assert caught.value.reason == "does_not_fit"
    assert time.monotonic() - began < 10


def test_on_a_gpu_the_host_must_hold_what_is_converted(build) -> None:
    folder = build("llama")
    config = EngineConfig(device="cuda", dtype="bfloat16")
    rooms = {"cuda": Room(n_bytes=2**40, source="a GPU"), "cpu": Room(n_bytes=2**20, source="a small host")}
    with pytest.raises(CheckpointError, match="of the host's memory, and 1 MiB are free"):
        fitted(folder, config, EngineTuning(), READING, rooms.__getitem__)
    plenty = rooms | {"cpu": Room(n_bytes=2**40, source="a host")}
    assert fitted(folder, config, EngineTuning(), READING, plenty.__getitem__) == EngineTuning()


def test_a_file_that_is_overwritten_changes_no_loaded_engine(build, tmp_path, ask) -> None:
    import shutil

    shutil.copytree(build("llama"), tmp_path / "checkpoint")
    loaded = load_engine(tmp_path / "checkpoint", EngineConfig())
    request = ask("choice", range(3, 40), continuations=((4,), (5, 6)))
    before = identities(loaded.respond([request]))
    weights = tmp_path / "checkpoint/model.safetensors"
    with weights.open("r+b") as stream:
        stream.write(b"\0" * weights.stat().st_size)
    assert identities(loaded.respond([request])) == before


@pytest.mark.parametrize(
    ("n_bytes", "text"),
    [(0, "0 MiB"), (300 * MEBIBYTE, "300 MiB"), (1536 * MEBIBYTE, "1.5 GiB"), (2**41, "2,048.0 GiB")],
)
def test_amounts_are_for_people(n_bytes: int, text: str) -> None:
    assert amount(n_bytes) == text


_MEASURE = textwrap.dedent(
    """
    import random, sys, threading, time
    from pathlib import Path
    import torch, transformers
    from eval_tasks.engine import load_engine, memory
    from eval_tasks.records import EngineConfig, EngineTuning, Request

    def taken():
        lines = Path("/proc/self/status").read_text().splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("RssAnon"))

    folder, dtype, kind, prompt, output, n = Path(sys.argv[1]), *sys.argv[2:4], *map(int, sys.argv[4:])
    config, tuning = EngineConfig(dtype=dtype, prefix="shared"), EngineTuning()
    generates = kind == "generation"
    workload = memory.Workload(prompt_tokens=prompt, output_tokens=output, n_sequences=5 * n, generates=generates)
    settings = transformers.AutoConfig.from_pretrained(folder)
    need = memory.need_of(memory.model_of(folder, settings, config), config, tuning, workload)
    before = peak = taken()
    ended = threading.Event()

    def watch():
        global peak
        while not ended.wait(0.002):
            peak = max(peak, taken())

    watcher = threading.Thread(target=watch)
    watcher.start()
    rng = random.Random(0)
    draw = lambda length: tuple(rng.randrange(3, 200) for _ in range(length))
    requests = [
        Request(
            benchmark_id="b", item_id=str(i), kind=kind, prompt="", prompt_digest="", prompt_ids=draw(prompt),
            continuations=() if generates else tuple(draw(output) for _ in range(4)),
            max_tokens=output if generates else 0,
        )
        for i in range(n)
    ]
    load_engine(folder, config, tuning, workload).respond(requests)
    ended.set()
    watcher.join()
    print(need.peak, peak - before)
    """
)


def measured(folder: Path, *arguments: object) -> tuple[int, int]:
    """Estimated and measured bytes of a process that loads and works."""
    command = [sys.executable, "-c", _MEASURE, str(folder), *map(str, arguments)]
    root = Path(__file__).parents[2]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True)
    estimate, peak = map(int, done.stdout.split())
    return estimate, peak


linux_only = pytest.mark.skipif(not Path("/proc/self/status").is_file(), reason="reads Linux's account of memory")


@linux_only
def test_the_estimate_bounds_what_a_tiny_model_takes(build) -> None:
    estimate, peak = measured(build("llama"), "float32", "choice", 60, 4, 8)
    assert peak <= estimate


@linux_only
@pytest.mark.full
@pytest.mark.parametrize(
    ("dtype", "work"),
    [
        ("float32", ("choice", 500, 4, 8)),
        ("float32", ("generation", 150, 24, 16)),
        ("bfloat16", ("choice", 900, 20, 2)),
    ],
)
def test_the_estimate_is_of_the_order_of_what_a_model_of_500_mb_takes(build, dtype: str, work: tuple) -> None:
    sizes = {"hidden_size": 1024, "intermediate_size": 2816, "num_hidden_layers": 6, "num_attention_heads": 16}
    folder = build("llama", vocab_size=32000, max_position_embeddings=2048, **sizes)
    estimate, peak = measured(folder, dtype, *work)
    assert peak <= estimate < 2 * peak
