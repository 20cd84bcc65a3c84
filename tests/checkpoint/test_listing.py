from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import fsspec
import pytest

from eval_tasks.checkpoint import check_complete, list_landings, list_sightings
from eval_tasks.checkpoint import storage as storage_module
from eval_tasks.errors import InfraError, UserError
from eval_tasks.settings import TrainingRun


def _run(uri: Path | str, **changes: object) -> TrainingRun:
    return TrainingRun(name="tiny", uri=str(uri), **changes)


def test_steps_are_numbers_whatever_their_padding(tmp_path: Path, save_single: Callable[..., Path]) -> None:
    for name in ("step-10", "step-9", "step-0011", "checkpoint-100", "global_step8", "step_000"):
        save_single(tmp_path / name)
    assert [landing.step for landing in list_landings(_run(tmp_path))] == [0, 8, 9, 10, 11, 100]


def test_what_is_no_step_is_left_out(tmp_path: Path, save_single: Callable[..., Path]) -> None:
    for name in ("latest", "step-5.tmp", ".step-6", "step-x", "tmp-checkpoint-7", "step-8"):
        save_single(tmp_path / name)
    (tmp_path / "step-9").write_text("a file")
    assert [landing.step for landing in list_landings(_run(tmp_path))] == [8]


def test_a_number_that_is_no_step_holds_up_no_other(
    tmp_path: Path, save_single: Callable[..., Path], caplog: pytest.LogCaptureFixture
) -> None:
    for name in ("step-20261130221530123456", "step-8"):
        save_single(tmp_path / name)
    assert [landing.step for landing in list_landings(_run(tmp_path))] == [8]
    assert "step-20261130221530123456 is left out" in caplog.text


@pytest.mark.parametrize("pattern", ["^step-(?P<step>.+)$", "^step-x(?P<step>[0-9]+)?$"])
def test_a_pattern_that_finds_no_number_is_the_users_to_mend(
    tmp_path: Path, save_single: Callable[..., Path], pattern: str
) -> None:
    save_single(tmp_path / "step-x")
    with pytest.raises(UserError, match="must match digits"):
        list_landings(_run(tmp_path, pattern=pattern))


def test_links_are_never_identity(tmp_path: Path, save_single: Callable[..., Path]) -> None:
    root = tmp_path / "run"
    save_single(root / "step-1")
    elsewhere = save_single(tmp_path / "big_disk" / "a")
    (root / "latest").symlink_to("step-1")
    (root / "step-3").symlink_to("step-1")
    (root / "step-2").symlink_to(elsewhere)
    (root / "step-4").symlink_to(tmp_path / "nowhere")
    found = list_landings(_run(root))
    assert [(landing.step, landing.uri) for landing in found] == [
        (1, str(root / "step-1")),
        (2, str(elsewhere)),
    ]


def test_the_listing_holds_what_can_change_a_number(single: Path) -> None:
    run = _run(single.parent)
    before = list_landings(run)
    (single / "trainer_state.json").write_text("{}")
    (single / "optimizer.pt").write_bytes(b"x")
    (single / ".model.safetensors.lock").write_bytes(b"")
    (single / "model.safetensors.part").write_bytes(b"x")
    (single / "PROMOTE").touch()
    assert list_landings(run) == before
    assert [path for path, _, _ in before[0].listing] == [
        "config.json",
        "model.safetensors",
        "tokenizer.json",
        "tokenizer_config.json",
    ]
    (single / "chat_template.jinja").write_text("x")
    assert list_landings(run)[0].landing_id != before[0].landing_id


def test_the_same_path_with_new_content_is_a_new_landing(single: Path) -> None:
    run = _run(single.parent)
    before = list_landings(run)[0]
    stat = (single / "model.safetensors").stat()
    os.utime(single / "model.safetensors", ns=(stat.st_atime_ns, stat.st_mtime_ns + 1_000_000))
    assert list_landings(run)[0].landing_id != before.landing_id


def test_markers_are_seen_and_are_no_content(single: Path) -> None:
    run = _run(single.parent, marker="_SUCCESS", promote_marker="SHIP")
    (before,) = list_sightings(run)
    assert (before.marked, before.promoted) == (False, False)
    (single / "_SUCCESS").touch()
    (single / "SHIP").touch()
    (after,) = list_sightings(run)
    assert (after.marked, after.promoted) == (True, True)
    assert after.landing == before.landing


def test_a_folder_that_vanishes_during_the_listing_is_left_out(
    tmp_path: Path, save_single: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    for step in (1, 2, 3):
        save_single(tmp_path / f"step-{step}")
    scan = storage_module._scan

    def rotating(folder: Path) -> object:
        if folder.name == "step-2":
            shutil.rmtree(folder)
        return scan(folder)

    monkeypatch.setattr(storage_module, "_scan", rotating)
    assert [landing.step for landing in list_landings(_run(tmp_path))] == [1, 3]


def test_a_file_that_vanishes_during_the_listing_is_left_out(single: Path) -> None:
    (single / "chat_template.jinja").symlink_to(single / "nothing")
    assert "chat_template.jinja" not in [path for path, _, _ in list_landings(_run(single.parent))[0].listing]


def test_a_name_that_is_no_text_is_left_out(single: Path) -> None:
    before = list_landings(_run(single.parent))
    (single / "model-\udcff.safetensors").write_bytes(b"x")
    assert list_landings(_run(single.parent)) == before
    assert check_complete(str(single)) is None


def test_an_absent_root_has_no_landings(tmp_path: Path) -> None:
    assert list_landings(_run(tmp_path / "not yet")) == []
    assert list_landings(_run("memory://not/yet")) == []


def test_an_object_store_is_listed_alike(
    tmp_path: Path, save_single: Callable[..., Path], upload: Callable[[Path, str], str]
) -> None:
    folder = save_single(tmp_path / "a")
    for name in ("run/step-10", "run/step-9", "run/step-9/global_step9", "run/latest"):
        upload(folder, name)
    found = list_landings(_run("memory://bucket/run"))
    assert [(landing.step, landing.uri) for landing in found] == [
        (9, "memory://bucket/run/step-9"),
        (10, "memory://bucket/run/step-10"),
    ]
    assert [path for path, _, _ in found[0].listing] == [
        "config.json",
        "model.safetensors",
        "tokenizer.json",
        "tokenizer_config.json",
    ]
    upload(folder, "run/step-9")
    again = list_landings(_run("memory://bucket/run"))
    assert again[0].landing_id != found[0].landing_id
    assert again[1] == found[1]


def test_a_storage_that_fails_is_an_infra_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: object, path: str, **kwargs: object) -> object:
        raise PermissionError(13, "denied", path)

    monkeypatch.setattr(type(fsspec.filesystem("memory")), "find", refuse)
    with pytest.raises(InfraError, match="memory://bucket/run"):
        list_landings(_run("memory://bucket/run"))


def test_an_unknown_protocol_is_the_users_to_mend() -> None:
    with pytest.raises(UserError, match="nosuch://x"):
        list_landings(_run("nosuch://x"))
