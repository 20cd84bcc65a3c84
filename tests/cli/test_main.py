"""The entry point: errors to exit codes, close names, and what a pod does not have to import."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import click
import pytest

from eval_tasks import __version__, errors
from eval_tasks.cli import main
from eval_tasks.cli.main import _MODULES, cli, exit_code

_REPOSITORY = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (errors.UserError("x"), 2),
        (errors.CheckpointError("missing_shard", "x"), 2),
        (errors.NotComparableError("x"), 3),
        (errors.InfraError("x"), 4),
        (errors.DataError("x"), 5),
        (errors.DriftError("x"), 5),
        (errors.CheckpointGoneError("x"), 6),
        (errors.BlockedError("x"), 7),
        (errors.EvalError("x"), 1),
    ],
)
def test_an_error_ends_in_one_line_and_the_exit_code_of_its_class(
    error: errors.EvalError, code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*_arguments: object, **_keywords: object) -> None:
        raise error

    monkeypatch.setattr(cli, "invoke", fail)
    assert main(["config"]) == exit_code(error) == code
    assert capsys.readouterr().err == "error: x\n"


def test_a_bug_is_not_swallowed(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_arguments: object, **_keywords: object) -> None:
        raise KeyError("a bug")

    monkeypatch.setattr(cli, "invoke", fail)
    with pytest.raises(KeyError):
        main(["config"])


def test_an_interruption_ends_as_a_shell_expects(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_arguments: object, **_keywords: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(cli, "invoke", interrupt)
    assert main(["config"]) == 130


def test_an_unknown_command_shows_the_close_ones(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["comapre"]) == 2
    assert "no command 'comapre'; close: 'compare'" in capsys.readouterr().err
    assert main(["xyzzy"]) == 2
    assert "no command 'xyzzy'; known: aggregate, alerts, " in capsys.readouterr().err


def test_a_wrong_option_is_bad_input(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "x", "--suite", "s", "--dtype", "int8"]) == 2
    assert "'float32', 'bfloat16', 'float16'" in capsys.readouterr().err
    assert main(["run-shard", "--shard", "0"]) == 2
    assert "--plan" in capsys.readouterr().err


def test_version_and_help_are_no_failures(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert __version__ in capsys.readouterr().out
    assert main(["--help"]) == 0
    listed = capsys.readouterr().out
    assert [name for name in _MODULES if f"\n  {name} " not in listed] == []


@pytest.mark.parametrize("name", list(_MODULES))
def test_every_command_is_where_the_table_says_and_explains_itself(name: str) -> None:
    command = cli.get_command(click.Context(cli), name)
    assert command is not None
    assert command.name == name
    assert command.help


def test_steps_are_called_as_the_flow_calls_them() -> None:
    steps = "gate resolve plan run-shard grade aggregate join-contamination guard compare publish"
    assert set(steps.split()) <= set(_MODULES)


def test_what_a_pod_runs_does_not_import_what_it_does_not_need() -> None:
    script = (
        "import sys; from eval_tasks.cli import main; main(['run-shard', '--help']); "
        "heavy = {'airflow', 'kubernetes', 'matplotlib', 'pandas', 'scipy', 'statsmodels', 'torch', 'transformers'}; "
        "sys.exit(' '.join(sorted(heavy & set(sys.modules))) or 0)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=_REPOSITORY, capture_output=True, text=True, check=False, timeout=120
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "--plan" in done.stdout


def test_the_package_is_its_own_command() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "eval_tasks", "comapre"],
        cwd=_REPOSITORY,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 2
    assert "close: 'compare'" in done.stderr
