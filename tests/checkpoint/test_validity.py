from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from pathlib import Path

import pytest

from eval_tasks.checkpoint import REASONS, check_complete

INDEX = "model.safetensors.index.json"
SHARD = "model-00002-of-00003.safetensors"
POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:" + b"a" * 64 + b"\nsize 123456\n"


def _truncate(path: Path, by: int) -> None:
    path.write_bytes(path.read_bytes()[:-by])


def _reindex(folder: Path, change: Callable[[dict], object]) -> None:
    index = json.loads((folder / INDEX).read_text())
    change(index)
    (folder / INDEX).write_text(json.dumps(index))


def _set_header(path: Path, change: Callable[[dict], object]) -> None:
    data = path.read_bytes()
    end = 8 + int.from_bytes(data[:8], "little")
    header = json.loads(data[8:end])
    change(header)
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + data[end:])


def _only_pickle(folder: Path) -> None:
    (folder / INDEX).unlink()
    for shard in folder.glob("*.safetensors"):
        shard.unlink()
    (folder / "pytorch_model.bin").write_bytes(pickle.dumps({"w": 1}))
    (folder / "optimizer.pt").write_bytes(b"x")


DAMAGES: dict[str, tuple[str, str, Callable[[Path], object]]] = {
    "config absent": ("no_config", "config.json", lambda f: (f / "config.json").unlink()),
    "config half written": ("unreadable_json", "config.json", lambda f: _truncate(f / "config.json", 3)),
    "config a list": ("unreadable_json", "a list", lambda f: (f / "config.json").write_text("[]")),
    "config not text": ("unreadable_json", "config.json", lambda f: (f / "config.json").write_bytes(b"\xff\xfe\x00{")),
    "config empty": ("zero_byte", "config.json", lambda f: (f / "config.json").write_bytes(b"")),
    "config a pointer": ("pointer_file", "git lfs pull", lambda f: (f / "config.json").write_bytes(POINTER)),
    "tokenizer absent": ("no_tokenizer", "tokenizer.json", lambda f: (f / "tokenizer.json").unlink()),
    "tokenizer a pointer": ("pointer_file", "tokenizer.json", lambda f: (f / "tokenizer.json").write_bytes(POINTER)),
    "index absent": ("no_index", "3 shards", lambda f: (f / INDEX).unlink()),
    "index half written": ("torn_index", INDEX, lambda f: _truncate(f / INDEX, 20)),
    "index without a map": ("torn_index", "weight_map", lambda f: (f / INDEX).write_text("{}")),
    "index leads elsewhere": (
        "torn_index",
        "../other.safetensors",
        lambda f: _reindex(f, lambda i: i["weight_map"].update({"embed.weight": "../other.safetensors"})),
    ),
    "shard absent": ("missing_shard", SHARD, lambda f: (f / SHARD).unlink()),
    "shard under a temporary name": ("missing_shard", SHARD, lambda f: (f / SHARD).rename(f / f"{SHARD}.tmp")),
    "shard of 0 bytes": ("zero_byte", SHARD, lambda f: (f / SHARD).write_bytes(b"")),
    "shard of 5 bytes": ("torn_header", "5 bytes", lambda f: (f / SHARD).write_bytes(b"\x40\0\0\0\0")),
    "shard ends in its header": ("torn_header", SHARD, lambda f: _truncate(f / SHARD, 90)),
    "shard of zeros": ("torn_header", SHARD, lambda f: (f / SHARD).write_bytes(b"\0" * 4096)),
    "shard one byte short": ("truncated", "1 are missing", lambda f: _truncate(f / SHARD, 1)),
    "shard one byte long": (
        "over_long",
        "1 too many",
        lambda f: (f / SHARD).write_bytes((f / SHARD).read_bytes() + b"\0"),
    ),
    "shard a pointer": ("pointer_file", SHARD, lambda f: (f / SHARD).write_bytes(POINTER)),
    "shard a pickle": ("bad_header", SHARD, lambda f: (f / SHARD).write_bytes(pickle.dumps(list(range(3000))))),
    "shard an HTML page": ("bad_header", SHARD, lambda f: (f / SHARD).write_bytes(b"<html>" * 400)),
    "header not JSON": (
        "bad_header",
        "not JSON",
        lambda f: (f / SHARD).write_bytes((2).to_bytes(8, "little") + b"{]" + b"\0" * 64),
    ),
    "tensor of an unknown dtype": (
        "bad_header",
        "F7",
        lambda f: _set_header(f / SHARD, lambda h: h["layer.0.weight"].update(dtype="F7")),
    ),
    "tensor of a wrong shape": (
        "bad_header",
        "[4, 5]",
        lambda f: _set_header(f / SHARD, lambda h: h["layer.0.weight"].update(shape=[4, 5])),
    ),
    "tensor with a hole before it": (
        "bad_header",
        "is expected",
        lambda f: _set_header(f / SHARD, lambda h: h["layer.0.weight"].update(data_offsets=[4, 36])),
    ),
    "tensor without offsets": (
        "bad_header",
        "data_offsets",
        lambda f: _set_header(f / SHARD, lambda h: h["layer.0.weight"].pop("data_offsets")),
    ),
    "no tensor": ("bad_header", "no tensor", lambda f: _set_header(f / SHARD, lambda h: h.clear())),
    "index of another save": (
        "shard_mismatch",
        "layer.9.weight",
        lambda f: _reindex(f, lambda i: i["weight_map"].update({"layer.9.weight": SHARD})),
    ),
    "pickles only": ("pickle_only", "safe_serialization", _only_pickle),
    "nothing": ("no_config", "config.json", lambda f: [file.unlink() for file in f.iterdir()]),
    "folder removed": ("gone", "not there", lambda f: [*(file.unlink() for file in f.iterdir()), f.rmdir()]),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damage_has_its_own_reason(sharded: Path, damage: str) -> None:
    reason, named, inflict = DAMAGES[damage]
    inflict(sharded)
    problem = check_complete(str(sharded))
    assert problem is not None
    assert problem.reason == reason
    assert named in problem.message
    assert str(sharded) in problem.message


@pytest.mark.parametrize("damage", ["shard absent", "shard one byte short", "shard a pointer", "index half written"])
def test_an_object_store_shows_the_same_reasons(sharded: Path, damage: str, upload: Callable[[Path, str], str]) -> None:
    DAMAGES[damage][2](sharded)
    problem = check_complete(upload(sharded, "run/step-200"))
    assert problem is not None
    assert problem.reason == DAMAGES[damage][0]


def test_every_reason_of_the_set_is_seen_here_or_belongs_to_another_module() -> None:
    elsewhere = {"no_marker", "unsettled", "checksum_mismatch", "no_weights"}
    assert {reason for reason, _, _ in DAMAGES.values()} | elsewhere == {
        name for name, reason in REASONS.items() if reason.found_by == "listing"
    }


def test_complete_ones_have_no_problem(single: Path, sharded: Path, upload: Callable[[Path, str], str]) -> None:
    assert check_complete(str(single)) is None
    assert check_complete(str(sharded)) is None
    assert check_complete(upload(sharded, "run/step-200")) is None


def test_a_single_file_goes_before_an_index_as_the_loader_has_it(single: Path) -> None:
    (single / INDEX).write_text("torn")
    assert check_complete(str(single)) is None


def test_an_adapter_alone_is_no_model(single: Path) -> None:
    (single / "model.safetensors").rename(single / "adapter_model.safetensors")
    (single / "adapter_config.json").write_text("{}")
    problem = check_complete(str(single))
    assert problem is not None
    assert problem.reason == "no_weights"
    assert "merge it" in problem.message


def test_what_can_never_heal_is_told_before_what_may(sharded: Path) -> None:
    (sharded / "config.json").unlink()
    (sharded / "model-00001-of-00003.safetensors").write_bytes(b"")
    (sharded / SHARD).write_bytes(POINTER)
    problem = check_complete(str(sharded))
    assert problem is not None
    assert problem.reason == "pointer_file"


def test_a_half_uploaded_one_is_not_complete_at_any_length(sharded: Path) -> None:
    whole = (sharded / SHARD).read_bytes()
    for length in range(len(whole)):
        (sharded / SHARD).write_bytes(whole[:length])
        problem = check_complete(str(sharded))
        assert problem is not None
        assert problem.heals, (length, problem)
    (sharded / SHARD).write_bytes(whole)
    assert check_complete(str(sharded)) is None


def test_only_headers_are_read(single: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from eval_tasks.checkpoint.storage import Folder

    read, n_bytes = Folder.read, []

    def counting(self: Folder, path: str, start: int = 0, end: int | None = None) -> bytes:
        data = read(self, path, start, end)
        n_bytes.append(len(data) if path.endswith(".safetensors") else 0)
        return data

    header = {"w": {"dtype": "U8", "shape": [1_000_000], "data_offsets": [0, 1_000_000]}}
    text = json.dumps(header).encode()
    (single / "model.safetensors").write_bytes(len(text).to_bytes(8, "little") + text + bytes(1_000_000))
    monkeypatch.setattr(Folder, "read", counting)
    assert check_complete(str(single)) is None
    assert sum(n_bytes) < 1_000
