"""Log lines for people and for collectors."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys

from eval_tasks.log_lines import at, formatter


def line(form: str, message: str = "batch %d", *arguments: object, **more: object) -> str:
    record = logging.makeLogRecord(
        {"name": "eval_tasks.run", "levelname": "INFO", "msg": message, "args": arguments, "created": 0.0, **more}
    )
    return formatter("json" if form == "json" else "text").format(record)


def test_a_line_names_run_shard_and_checkpoint_while_they_are_worked_on() -> None:
    with at(run_id="r", checkpoint_id="c"), at(shard=3):
        assert json.loads(line("json", "batch %d", 7)) == {
            "time": "1970-01-01T00:00:00.000+00:00",
            "level": "INFO",
            "logger": "eval_tasks.run",
            "message": "batch 7",
            "run_id": "r",
            "checkpoint_id": "c",
            "shard": 3,
        }
    assert "run_id" not in json.loads(line("json", "batch %d", 7))


def test_a_line_stays_one_line_with_its_traceback() -> None:
    try:
        raise ValueError("two\nlines")
    except ValueError:
        text = line("json", "failed", exc_info=sys.exc_info())
    assert "\n" not in text
    assert "ValueError: two" in json.loads(text)["traceback"]


def test_text_is_for_people() -> None:
    with at(run_id="r"):
        assert line("text", "batch %d", 7).endswith("INFO eval_tasks.run: batch 7")


def test_the_variable_chooses_and_an_unknown_form_is_named() -> None:
    command = [sys.executable, "-m", "eval_tasks", "config"]
    environment = os.environ | {"CHECKPOINT_EVAL_LOG_FORMAT": "xml"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (
        2,
        "error: CHECKPOINT_EVAL_LOG_FORMAT is 'xml'; it is one of: text, json\n",
    )
