"""Commands on instruments, places and the archive; all JSON parses, and the README shows only what exists."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click
import pytest
import yaml

from eval_tasks.cli.main import _MODULES, cli
from eval_tasks.records import Alert
from eval_tasks.settings import Settings
from eval_tasks.store import open_store
from tests.planned import NOW, write_suite

Run = Callable[..., str]
RunJson = Callable[..., Any]
_README = Path(__file__).parents[2] / "README.md"


def commands(group: click.Group = cli, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Every command that does something, by its words."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        if isinstance(command, click.Group):
            yield from commands(command, (*path, name))
        else:
            yield (*path, name), command


def test_every_option_and_command_is_explained() -> None:
    for words, command in commands():
        assert command.help, words
        assert "-h" not in {option for p in command.params for option in p.opts}


def test_lists_are_empty_json_in_an_empty_home(run: Run, run_json: RunJson) -> None:
    empty = {("runs", "list"), ("alerts", "list"), ("landings",), ("benchmarks", "list"), ("suites", "list")}
    for words in sorted(empty | {("rules", "list")}):
        assert run_json(*words) == []
        assert run(*words).rstrip().endswith(": none")


def test_registering_is_told_and_repeating_it_changes_nothing(run: Run, run_json: RunJson, tmp_path: Path) -> None:
    suite = write_suite(tmp_path / "b")
    files = [suite.with_name(f"{name}.yaml") for name in ("colours", "colour-text", "colour-sums")]
    first = run_json("benchmarks", "register", *files)
    assert [b["name"] for b in first] == ["colours", "colour-text", "colour-sums"]
    assert [b["benchmark_id"] for b in run_json("benchmarks", "register", *files)] == [b["benchmark_id"] for b in first]
    assert "colours@1: 70 items, id " in run("benchmarks", "register", files[0])
    assert {b["name"] for b in run_json("benchmarks", "list")} == {"colours", "colour-text", "colour-sums"}
    assert json.loads(run("benchmarks", "show", "colours"))["scorer"]["name"] == "choice"
    assert "colours-all@1: 3 benchmarks, tier selection" in run("suites", "register", suite)
    assert [s["name"] for s in run_json("suites", "list")] == ["colours-all"]
    assert "name at least one YAML file" in run("benchmarks", "register", code=2)


def test_what_ships_is_registered_in_one_go(run: Run, run_json: RunJson) -> None:
    names = [b["name"] for b in run_json("benchmarks", "register", "--shipped")]
    assert {"mmlu-mini", "gsm8k-mini", "ifeval-mini"} <= set(names)
    assert [b["name"] for b in run_json("benchmarks", "list")] == sorted(names)
    assert all(f"{name}@" in run("benchmarks", "register", "--shipped") for name in names[:1])
    assert run_json("suites", "list") and run_json("rules", "list")


def test_other_content_under_a_registered_version_is_refused(run: Run, tmp_path: Path) -> None:
    path = write_suite(tmp_path / "b").with_name("colours.yaml")
    run("benchmarks", "register", path)
    changed = yaml.safe_load(path.read_text()) | {"prompt": {"item": "{{ question }}", "choices": "choices"}}
    path.write_text(yaml.safe_dump(changed))
    assert "template_digest" in run("benchmarks", "register", path, code=2)


def test_a_rule_is_registered_with_its_time(run: Run, run_json: RunJson, tmp_path: Path) -> None:
    path = tmp_path / "rule.yaml"
    path.write_text(
        yaml.safe_dump({"name": "ship", "kind": "superiority", "metric": "acc", "components": {"colours": 1.0}})
    )
    assert "no benchmark 'colours'" in run("rules", "register", path, code=2)
    run("benchmarks", "register", write_suite(tmp_path / "b").with_name("colours.yaml"))
    told = run("rules", "register", path)
    assert re.search(r"ship: superiority on acc, registered \d{4}-\d\d-\d\dT.*, id \w{32}", told)
    assert [r["name"] for r in run_json("rules", "list")] == ["ship"]
    assert json.loads(run("rules", "show", "ship"))["registered_at"]
    assert "close: 'ship'" in run("rules", "show", "shop", code=2)


def test_an_alert_is_acknowledged_once_with_a_reason(run: Run, run_json: RunJson) -> None:
    with open_store(Settings()) as store:
        store.catalog.raise_alert(Alert(alert_id="a" * 32, kind="excursion", title="t", body="b", created_at=NOW))
    assert [a["acknowledged_by"] for a in run_json("alerts", "list")] == [None]
    run("alerts", "acknowledge", "a" * 32, "--reason", "known", "--by", "ada")
    assert [a["acknowledged_by"] for a in run_json("alerts", "list")] == ["ada"]
    assert "acknowledged by 'ada'" in run("alerts", "acknowledge", "a" * 32, "--reason", "again", "--by", "bob", code=2)
    run("alerts", "acknowledge", "b" * 32, "--reason", "x", "--by", "ada", code=2)


def test_the_catalog_is_made_once(run: Run, home: Path) -> None:
    home.mkdir()
    assert "catalog is current" in run("migrate")
    assert (home / "catalog.db").exists()
    assert "catalog is current" in run("migrate")


def test_the_configuration_is_checked(run: Run, run_json: RunJson, home: Path) -> None:
    assert "absent, defaults hold" in run("config")
    home.mkdir(exist_ok=True)
    health = {"suite": "h", "every": 2}
    (home / "config.yaml").write_text(
        yaml.safe_dump({"training_runs": [{"name": "tiny", "uri": "s3://b/tiny", "selection": health}]})
    )
    assert "valid" in run("config")
    assert run_json("config")["training_runs"][0]["selection"]["every"] == 2
    (home / "config.yaml").write_text("poll_second: 1\n")
    assert "poll_second: unknown field; close: 'poll_seconds'" in run("config", code=2)


def shown_in_readme() -> list[str]:
    """Every `python -m eval_tasks ...` of the README, in a block or in a sentence."""
    text = _README.read_text("utf-8")
    return [found.strip() for found in re.findall(r"python -m eval_tasks\b([^`\n#]*)", text)]


def test_the_readme_shows_commands() -> None:
    assert len(shown_in_readme()) >= 6


@pytest.mark.parametrize("line", shown_in_readme())
def test_what_the_readme_shows_exists(line: str) -> None:
    words = shlex.split(line)
    command: click.Command = cli
    while isinstance(command, click.Group) and words and not words[0].startswith("-"):
        found = command.get_command(click.Context(command), words.pop(0))
        assert found is not None, line
        command = found
    known = {option for parameter in command.params for option in parameter.opts} | {"--help"}
    options = {word.split("=")[0] for word in words if word.startswith("-")}
    assert options <= known, line
    takes = [p for p in command.params if isinstance(p, click.Argument)]
    flags = {o for p in command.params if isinstance(p, click.Option) and p.is_flag for o in p.opts}
    values = sum(1 for word in words if word.startswith("--") and word not in flags and word != "--help")
    given = len(words) - len([word for word in words if word.startswith("-")]) - values
    assert any(p.nargs == -1 for p in takes) or given <= len(takes), line


def test_the_readme_explains_every_step() -> None:
    text = _README.read_text("utf-8")
    steps = [name for name in _MODULES if f"`{name.replace('-', '_')}`" in text]
    assert set(steps) >= {"gate", "resolve", "plan", "run-shard", "grade", "aggregate", "guard", "compare", "publish"}
