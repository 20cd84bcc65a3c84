"""lm-eval 0.4.9 from our side: makes or reuses its environment, and talks to `lm_eval_worker` there."""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Any, Self

REPOSITORY = Path(__file__).parents[2]
ENVIRONMENT = REPOSITORY / ".venv-lm-eval"
_WORKER = Path(__file__).parent / "lm_eval_worker.py"
_MAKE_SECONDS = 1800


class UnavailableError(Exception):
    """lm-eval's environment cannot be made here; says why."""


def reference_python() -> Path:
    """The interpreter of lm-eval's environment, which is made when it is not there. Raises UnavailableError."""
    try:
        # Of two test processes one makes it, and the other waits.
        with (Path(tempfile.gettempdir()) / f"checkpoint-eval-parity-env-{os.getuid()}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            made = subprocess.run(
                ["make", "--no-print-directory", "parity-env"],
                cwd=REPOSITORY,
                capture_output=True,
                text=True,
                timeout=_MAKE_SECONDS,
                check=False,
            )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise UnavailableError(f"`make parity-env` did not run: {error}") from error
    if made.returncode:
        raise UnavailableError(f"`make parity-env` failed: {made.stderr.strip()[-500:]}")
    return ENVIRONMENT / "bin/python"


class Reference:
    """The running worker. Methods of `lm_eval_worker.Worker` are called by name with `ask`."""

    def __init__(self, python: Path) -> None:
        self._python = python

    def __enter__(self) -> Self:
        self._scratch = tempfile.TemporaryDirectory()
        scratch = Path(self._scratch.name)
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        environment |= {"HF_HOME": str(scratch / "hf"), "OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"}
        self._log = (scratch / "log").open("w+", encoding="utf-8")
        self._process = subprocess.Popen(
            [str(self._python), str(_WORKER)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            cwd=scratch,
            env=environment,
            text=True,
        )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        try:
            self._process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()
        self._log.close()
        self._scratch.cleanup()

    def ask(self, do: str, **arguments: Any) -> dict[str, Any]:
        """One command, one answer. Raises RuntimeError with the worker's last words when it has died."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"do": do, **arguments}) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            self._log.seek(0)
            raise RuntimeError(f"lm-eval's process ended during {do!r}:\n{self._log.read()[-3000:]}")
        answer: dict[str, Any] = json.loads(line)
        return answer
