"""What the commands on the machine print, and with which code they end."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from eval_tasks import engine
from eval_tasks.engine import Check
from eval_tasks.records import EngineConfig, Environment
from eval_tasks.settings import Settings
from eval_tasks.store import open_store
from tests.planned import write_checkpoint

Run = Callable[..., str]
RunJson = Callable[..., Any]
HOLDS = Check(name="again", passed=True, n_items=201, seconds=1.5)
BROKEN = Check(name="alone", passed=False, n_items=201, differing=tuple(f"item-{n}" for n in range(7)), seconds=2.0)


@pytest.fixture
def verified(monkeypatch: pytest.MonkeyPatch) -> list[EngineConfig]:
    """The configurations that were verified; two checks come out, one of them broken."""
    asked: list[EngineConfig] = []

    def verify(_folder: Path, config: EngineConfig, *_: object) -> list[Check]:
        asked.append(config)
        return [HOLDS, BROKEN]

    monkeypatch.setattr(engine, "verify_engine", verify)
    return asked


def test_the_environment_is_named_component_by_component(run: Run, run_json: RunJson) -> None:
    shown = run_json("environment")
    assert len(shown["env_fingerprint"]) == 32
    assert {"torch", "transformers", "tokenizers", "numpy", "onednn", "blas", "cpu_capability"} <= set(
        shown["components"]
    )
    other = run_json("environment", "--dtype", "bfloat16", "--threads", 2)
    assert (other["components"]["dtype"], other["components"]["threads"]) == ("bfloat16", "2")
    assert other["env_fingerprint"] != shown["env_fingerprint"]
    assert f"env_fingerprint {shown['env_fingerprint']}" in run("environment")


def test_a_difference_between_two_environments_is_explained(run: Run, run_json: RunJson) -> None:
    a = Environment(components={"torch": "2.13.0", "driver": "550"})
    b = Environment(components={"torch": "2.13.1", "driver": "550", "gpu": "H200"})
    with open_store(Settings()) as store:
        for number, environment in enumerate((a, b)):
            store.catalog.save_environment(environment)
            store.catalog.see_environment("gpu", environment.env_fingerprint, float(number))
    assert run("environment", "diff", a.env_fingerprint[:8], "gpu", code=1).splitlines() == [
        "gpu: absent -> 'H200'",
        "torch: '2.13.0' -> '2.13.1'",
        "2 of 3 components differ",
    ]
    shown = run_json("environment", "diff", "gpu", "gpu")
    assert shown == {"a": b.env_fingerprint, "b": b.env_fingerprint, "same": True, "differs": []}
    assert "no environment 'gpx' in the catalog" in run("environment", "diff", "gpx", "gpu", code=2)
    assert run("environment", "diff", "here", "here").startswith("0 of ")


def test_environments_are_listed_with_what_their_pods_reported(run: Run, run_json: RunJson) -> None:
    with open_store(Settings()) as store:
        store.catalog.see_environment("local", "f" * 32, 1.0)
    (local,) = run_json("environment", "list")
    assert (local["name"], local["state"], local["fingerprints"]) == ("local", "live", ["f" * 32])
    assert "f" * 12 in run("environment", "list")


def test_a_table_names_what_differs(run: Run, verified: list[EngineConfig], tmp_path: Path) -> None:
    printed = run("verify-engine", tmp_path, code=1)
    words = " ".join(printed.split())
    assert "again │ yes │ 201 │ 1.5" in words
    assert "alone │ NO │ 201 │ 2.0 │ item-0, item-1," in words
    assert "and 2 more" in words
    assert "1 of 2 promises hold, on 201 items, in " in words and words.endswith("broken: alone")


def test_quiet_is_one_line(run: Run, verified: list[EngineConfig], tmp_path: Path) -> None:
    (line,) = run("verify-engine", tmp_path, "--quiet", code=1).splitlines()
    assert line.startswith("1 of 2 promises hold, on 201 items, in ")
    assert line.endswith(" s; broken: alone")


def test_json_says_for_what_and_where(run_json: RunJson, verified: list[EngineConfig], tmp_path: Path) -> None:
    shown = run_json("verify-engine", tmp_path, "--device", "cuda", "--dtype", "float16", "--threads", 2, code=1)
    assert verified == [EngineConfig(device="cuda", dtype="float16", threads=2)]
    assert (shown["passed"], shown["checkpoint"], shown["engine"]["dtype"]) == (False, str(tmp_path), "float16")
    assert len(shown["env_fingerprint"]) == 32 and shown["seconds"] >= 0
    assert [check["name"] for check in shown["checks"]] == ["again", "alone"]
    assert shown["checks"][1]["differing"] == list(BROKEN.differing)


def test_a_sound_checkpoint_ends_with_0(run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(engine, "verify_engine", lambda *_: [HOLDS])
    assert run("verify-engine", tmp_path, "-q").startswith("1 of 1 promises hold")


def test_what_cannot_be_verified_is_bad_input(run: Run, tmp_path: Path) -> None:
    assert "config.json is not there" in run("verify-engine", tmp_path, code=2)
    checkpoint = write_checkpoint(tmp_path / "step-1")
    assert "threads is 3" in run("verify-engine", checkpoint, "--threads", 3, code=2)
    assert "float16 needs device cuda" in run("verify-engine", checkpoint, "--dtype", "float16", code=2)


@pytest.mark.full
def test_a_real_checkpoint_is_verified_to_its_end(run_json: RunJson, tmp_path: Path) -> None:
    shown = run_json("verify-engine", write_checkpoint(tmp_path / "step-1"))
    assert shown["passed"] and len(shown["checks"]) == 16
