"""The watcher's sensor, trigger and ledger on a real catalog and real folders; time is given where it matters."""

from __future__ import annotations

import asyncio
import json
import logging
import threading
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import yaml

from eval_tasks.errors import InfraError
from eval_tasks.settings import Config, Settings, load_config
from eval_tasks.store import Store, open_store

pytestmark = pytest.mark.usefixtures("airflow_home")

START = datetime(2026, 1, 31, 12, tzinfo=UTC)


def _save(folder: Path, payload: bytes = b"\0\0\0\0", *, cut: int = 0) -> Path:
    """A complete checkpoint of one tensor; the last `cut` bytes of the weights are not there yet."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text('{"model_type": "llama"}')
    (folder / "tokenizer.json").write_text("{}")
    header = json.dumps({"w": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}).encode()
    data = len(header).to_bytes(8, "little") + header + payload
    (folder / "model.safetensors").write_bytes(data[: len(data) - cut])
    return folder


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home for the settings that Airflow's processes read, with the folder `runs` beside it."""
    folder = tmp_path / "home"
    folder.mkdir()
    monkeypatch.setenv("CHECKPOINT_EVAL_HOME", str(folder))
    return folder


@pytest.fixture
def configure(home: Path, tmp_path: Path) -> Callable[..., Config]:
    def write(*names: str, **changes: object) -> Config:
        runs = [
            {
                "name": name,
                "uri": str(tmp_path / "runs" / name),
                "quiet_seconds": 0,
                "health": {"suite": "health"},
                "selection": {"suite": "selection", "every": 2},
            }
            | changes
            for name in names
        ]
        (home / "config.yaml").write_text(yaml.safe_dump({"poll_seconds": 0.02, "training_runs": runs}))
        return load_config(home / "config.yaml")

    return write


@pytest.fixture
def opened(home: Path) -> Iterator[Store]:
    with open_store(Settings()) as store:
        yield store


def _fire_and_record(store: Store, config: Config, landing_ids: list[str]) -> list[str]:
    from checkpoint_eval.ledger import dispatches, record_dispatch

    due = dispatches(store, config, landing_ids, START)
    record_dispatch(store, {dispatch["conf"]["landing_id"] for dispatch in due}, START)
    return [dispatch["trigger_run_id"] for dispatch in due]


def _steps(run_ids: list[str]) -> list[tuple[str, str, int]]:
    return [(tier, run, int(step)) for tier, run, step, _ in (run_id.split("__") for run_id in run_ids)]


def _first_event(max_wait_seconds: float = 20.0) -> Any:
    from checkpoint_eval.triggers import CheckpointTrigger

    async def first() -> Any:
        trigger = CheckpointTrigger(max_wait_seconds)
        try:
            async for event in trigger.run():
                return event.payload
        finally:
            await trigger.cleanup()

    return asyncio.run(first())


def test_landings_of_several_training_runs_are_fired_in_numeric_order(
    opened: Store, configure: Callable[..., Config], tmp_path: Path
) -> None:
    from checkpoint_eval.ledger import Watch

    config = configure("a", "b")
    for name in ("a/step-10", "a/step-9", "a/step-100", "b/checkpoint-3"):
        _save(tmp_path / "runs" / name)
    _save(tmp_path / "runs" / "a" / "step-8", cut=1)
    landing_ids = Watch(opened).poll(config, START)
    assert _steps(_fire_and_record(opened, config, landing_ids)) == [
        ("health", "a", 9),
        ("health", "a", 10),
        ("selection", "a", 10),
        ("health", "a", 100),
        ("health", "b", 3),
    ]
    assert Watch(opened).poll(config, START) == []


def test_a_landing_fired_but_not_recorded_is_fired_again_under_the_same_ids(
    opened: Store, configure: Callable[..., Config], tmp_path: Path
) -> None:
    from checkpoint_eval.ledger import Watch, dispatches

    config = configure("a")
    _save(tmp_path / "runs" / "a" / "step-2")
    first = dispatches(opened, config, Watch(opened).poll(config, START))
    _save(tmp_path / "runs" / "a" / "step-1")
    second = dispatches(opened, config, Watch(opened).poll(config, START))
    assert [dispatch for dispatch in second if dispatch["conf"]["step"] == 2] == first
    assert _steps([dispatch["trigger_run_id"] for dispatch in second])[-1] == ("health", "a", 2)


def test_quiet_period_marker_overwriting_and_promotion_with_the_real_ledger(
    opened: Store, configure: Callable[..., Config], tmp_path: Path
) -> None:
    from checkpoint_eval.ledger import Watch

    config = configure("a", quiet_seconds=60, marker="_DONE")
    watch, folder = Watch(opened), _save(tmp_path / "runs" / "a" / "step-1", cut=2)

    def poll(seconds: float) -> list[tuple[str, str, int]]:
        landing_ids = watch.poll(config, START + timedelta(seconds=seconds))
        return _steps(_fire_and_record(opened, config, landing_ids))

    assert poll(0) == poll(90) == []
    (folder / "_DONE").touch()
    assert poll(91) == []
    assert opened.catalog.landings("a")[0].reason.startswith("truncated: ")
    _save(folder)
    assert poll(100) == poll(159) == []
    assert poll(160) == [("health", "a", 1)]
    (folder / "PROMOTE").touch()
    assert ("selection", "a", 1) in poll(170)
    assert poll(180) == []
    _save(folder, b"\1\1\1\1")
    assert poll(200) == []
    assert poll(260) == [("health", "a", 1), ("selection", "a", 1)]
    assert [row.state for row in opened.catalog.landings("a")] == ["superseded", "dispatched", "dispatched"]


def test_an_incomplete_and_a_broken_one_raise_one_alert_each(
    opened: Store, configure: Callable[..., Config], tmp_path: Path
) -> None:
    from checkpoint_eval.ledger import Watch

    config = configure("a", alert_after_seconds=3600)
    _save(tmp_path / "runs" / "a" / "step-1", cut=1)
    pointer = _save(tmp_path / "runs" / "a" / "step-2") / "model.safetensors"
    pointer.write_text("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n")
    for hours in range(4):
        assert Watch(opened).poll(config, START + timedelta(hours=hours)) == []
    broken, incomplete = sorted(opened.catalog.alerts(), key=lambda alert: alert.kind)
    assert (broken.kind, broken.title) == ("checkpoint_broken", "a: step 2 is broken: pointer_file")
    assert (incomplete.kind, incomplete.title) == ("checkpoint_incomplete", "a: step 1 is not complete: truncated")
    assert "model.safetensors" in broken.body
    assert "1 are missing" in incomplete.body
    assert [row.state for row in opened.catalog.landings("a")] == ["waiting", "broken"]


def test_a_crash_between_alert_and_ledger_tells_nobody_twice(
    opened: Store, configure: Callable[..., Config], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from checkpoint_eval.ledger import Watch

    config = configure("a")
    (_save(tmp_path / "runs" / "a" / "step-1") / "model.safetensors").write_text("<html>" * 20)
    mark = type(opened.catalog).mark_landing

    def die(*args: object, **kwargs: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(type(opened.catalog), "mark_landing", die)
    with pytest.raises(KeyboardInterrupt):
        Watch(opened).poll(config, START)
    monkeypatch.setattr(type(opened.catalog), "mark_landing", mark)
    Watch(opened).poll(config, START)
    assert len(opened.catalog.alerts()) == 1
    assert opened.catalog.landings("a")[0].state == "broken"


def test_storage_that_fails_holds_up_no_other_run_and_is_asked_less_and_less(
    opened: Store,
    configure: Callable[..., Config],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    import eval_tasks.checkpoint
    from checkpoint_eval.ledger import Watch

    config = configure("a", "b")
    _save(tmp_path / "runs" / "b" / "step-1")
    asked: list[float] = []
    real, now = eval_tasks.checkpoint.list_sightings, START

    def failing(run: Any) -> Any:
        if run.name == "a":
            asked.append((now - START).total_seconds())
            raise InfraError("the bucket of run a is away")
        return real(run)

    monkeypatch.setattr(eval_tasks.checkpoint, "list_sightings", failing)
    watch = Watch(opened)
    with caplog.at_level(logging.WARNING):
        assert len(watch.poll(config, now)) == 1
        for tick in range(1, 101):
            now = START + timedelta(seconds=tick * 0.02)
            watch.poll(config, now)
    assert "the bucket of run a is away" in caplog.text
    gaps = [round(later - sooner, 2) for sooner, later in pairwise(asked)]
    assert gaps == [0.02, 0.04, 0.08, 0.16, 0.32, 0.64]
    monkeypatch.setattr(eval_tasks.checkpoint, "list_sightings", real)
    _save(tmp_path / "runs" / "a" / "step-1")
    assert len(watch.poll(config, START + timedelta(hours=1))) == 2


def test_tiers_taken_out_of_the_configuration_are_fired_when_they_are_back(
    opened: Store, configure: Callable[..., Config], tmp_path: Path
) -> None:
    from checkpoint_eval.ledger import Watch

    _save(tmp_path / "runs" / "a" / "step-1")
    watch, with_tiers = Watch(opened), configure("a")
    assert len(watch.poll(with_tiers, START)) == 1
    assert watch.poll(configure("a", health=None, selection=None), START) == []
    assert len(watch.poll(with_tiers, START)) == 1


def test_a_backlog_is_fired_in_passes(
    opened: Store, configure: Callable[..., Config], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from checkpoint_eval import ledger

    monkeypatch.setattr(ledger, "MAX_LANDINGS_PER_PASS", 2)
    config = configure("a", selection=None)
    for step in range(5):
        _save(tmp_path / "runs" / "a" / f"step-{step}")
    passes = []
    while landing_ids := ledger.Watch(opened).poll(config, START):
        passes.append([step for _, _, step in _steps(_fire_and_record(opened, config, landing_ids))])
    assert passes == [[0, 1], [2, 3], [4]]


def test_the_trigger_gives_its_constructors_arguments() -> None:
    import importlib

    from checkpoint_eval.triggers import CheckpointTrigger

    classpath, arguments = CheckpointTrigger(max_wait_seconds=7.0).serialize()
    module, name = classpath.rsplit(".", 1)
    again = getattr(importlib.import_module(module), name)(**arguments)
    assert again.serialize() == (classpath, {"max_wait_seconds": 7.0})


def test_the_trigger_waits_for_a_landing(configure: Callable[..., Config], tmp_path: Path) -> None:
    configure("a")
    folder = tmp_path / "runs" / "a" / "step-7"
    late = threading.Timer(0.3, lambda: _save(folder))
    late.start()
    payload = _first_event()
    late.join()
    assert len(payload["landing_ids"]) == 1


def test_the_trigger_ends_with_nothing_after_its_time(configure: Callable[..., Config]) -> None:
    configure("a")
    began = time.monotonic()
    assert _first_event(max_wait_seconds=0.2) == {"landing_ids": []}
    assert time.monotonic() - began < 5


def test_the_trigger_lives_through_a_bad_configuration_and_sees_it_mended(
    configure: Callable[..., Config], home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from checkpoint_eval import triggers

    monkeypatch.setattr(triggers, "RETRY_SECONDS", 0.01)
    _save(tmp_path / "runs" / "a" / "step-1")
    (home / "config.yaml").write_text("training_runs: nonsense\n")
    late = threading.Timer(0.3, lambda: configure("a"))
    late.start()
    payload = _first_event()
    late.join()
    assert len(payload["landing_ids"]) == 1


def test_a_slow_look_does_not_block_the_loop(configure: Callable[..., Config], monkeypatch: pytest.MonkeyPatch) -> None:
    from checkpoint_eval.triggers import CheckpointTrigger

    configure("a")

    def slow(self: CheckpointTrigger) -> tuple[list[str], float]:
        time.sleep(0.5)
        return ["x"], 1.0

    monkeypatch.setattr(CheckpointTrigger, "_look", slow)

    async def both() -> tuple[int, object]:
        ticks = 0
        looking = asyncio.ensure_future(anext(CheckpointTrigger().run()))
        while not looking.done():
            await asyncio.sleep(0.01)
            ticks += 1
        return ticks, (await looking).payload

    ticks, payload = asyncio.run(both())
    assert payload == {"landing_ids": ["x"]}
    assert ticks > 10


def test_the_sensor_starts_in_the_triggerer_and_gives_what_is_due(
    configure: Callable[..., Config], tmp_path: Path
) -> None:
    from checkpoint_eval.sensor import CheckpointSensor
    from checkpoint_eval.triggers import CheckpointTrigger

    configure("a")
    _save(tmp_path / "runs" / "a" / "step-7")
    sensor = CheckpointSensor(task_id="await_checkpoints", max_wait_seconds=5)
    assert sensor.start_from_trigger
    arguments = sensor.start_trigger_args
    assert (arguments.trigger_cls, arguments.trigger_kwargs) == CheckpointTrigger(5).serialize()
    assert arguments.next_method == "execute_complete"
    (due,) = sensor.execute_complete({}, _first_event())
    assert due["trigger_dag_id"] == "evaluate_health"
    assert due["conf"]["checkpoint_uri"] == str(tmp_path / "runs" / "a" / "step-7")
    assert sensor.execute_complete({}, {"landing_ids": []}) == []


def test_a_promotion_from_the_command_line_starts_the_selection_tier_once(
    opened: Store, configure: Callable[..., Config], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from checkpoint_eval.ledger import Watch
    from eval_tasks.cli import main

    config = configure("a")
    _save(tmp_path / "runs" / "a" / "step-10")
    watch = Watch(opened)
    assert _steps(_fire_and_record(opened, config, watch.poll(config, START))) == [("health", "a", 10)]
    assert main(["promote", "a", "10"]) == 0
    assert "step 10 of a is promoted; it is dispatched now" in capsys.readouterr().out
    fired = _fire_and_record(opened, config, watch.poll(config, START))
    assert _steps(fired) == [("health", "a", 10), ("selection", "a", 10)]
    assert main(["promote", "a", "10"]) == 0
    assert watch.poll(config, START) == []
    for wrong, said in (
        (["b", "10"], "no training run 'b'"),
        (["a", "11"], "no checkpoint at step 11; the last ones: 10"),
    ):
        assert main(["promote", *wrong]) == 2
        assert said in capsys.readouterr().err
    configure("a", selection=None)
    assert main(["promote", "a", "10"]) == 2
    assert "has no selection tier" in capsys.readouterr().err


def test_a_backlog_is_coalesced_only_where_that_is_configured(
    opened: Store, configure: Callable[..., Config], tmp_path: Path
) -> None:
    from checkpoint_eval.ledger import Watch

    config = configure("a", health={"suite": "health", "coalesce_beyond": 2}, selection=None)
    for step in range(1, 7):
        _save(tmp_path / "runs" / "a" / f"step-{step}")
    watch = Watch(opened)
    assert _steps(_fire_and_record(opened, config, watch.poll(config, START))) == [
        ("health", "a", 5),
        ("health", "a", 6),
    ]
    rows = {row.landing.step: row for row in opened.catalog.landings("a")}
    assert [step for step, row in rows.items() if row.state == "skipped"] == [1, 2, 3, 4]
    assert rows[1].reason.startswith("skipped on purpose: 6 health evaluations waited or ran")
    _save(tmp_path / "runs" / "a" / "step-7")
    assert watch.poll(config, START) == [], "two are under way"
    opened.catalog.finish_landing(rows[5].landing.landing_id, rows[5].dag_runs[0])
    assert _steps(_fire_and_record(opened, config, watch.poll(config, START))) == [("health", "a", 7)]
