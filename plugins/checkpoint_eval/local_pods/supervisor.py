"""Runs one pod's containers, one process per pod: launch.json in; state.json, exit codes and a time-stamped log out.

Started as a script in a session of its own, so that it outlives the server: a pod's end is recorded while nobody
listens. It enforces what must hold without the server too: memory limit, deadline, grace period. Knows no HTTP and
nothing of this package.
"""

from __future__ import annotations

import ctypes
import fcntl
import json
import os
import selectors
import signal
import subprocess
import sys
import time
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, BinaryIO

import psutil

TICK_SECONDS = 0.1
LOG_LINE_BYTES = 16 * 1024  # as the container runtimes: a longer line is written in parts
MESSAGE_BYTES = 4096
FALLBACK_BYTES, FALLBACK_LINES = 2048, 80
_SET_PDEATHSIG, _SET_CHILD_SUBREAPER = 1, 36  # linux/prctl.h


def write_atomically(path: Path, value: Any) -> None:
    """Replace the file in one step, readable by its owner only. Text is written as it is, anything else as JSON."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    with os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
        file.write(value if isinstance(value, str) else json.dumps(value))
    temporary.replace(path)


class LogWriter:
    """Appends bytes as lines `<time> F|P <content>`: F is a full line, P a part that the next line continues."""

    def __init__(self, path: Path) -> None:
        self._file: BinaryIO = path.open("ab", buffering=0)
        self._rest = b""

    def write(self, chunk: bytes) -> None:
        """Take what the process wrote."""
        *lines, rest = (self._rest + chunk).split(b"\n")
        out = [part for line in lines for part in self._parts(line, last=b"F")]
        while len(rest) >= LOG_LINE_BYTES:
            out.append((b"P", rest[:LOG_LINE_BYTES]))
            rest = rest[LOG_LINE_BYTES:]
        self._rest = rest
        self._append(out)

    def close(self) -> None:
        """Write the last, unfinished line."""
        if self._rest:
            self._append([(b"P", self._rest)])
        self._file.close()

    @staticmethod
    def _parts(line: bytes, *, last: bytes) -> list[tuple[bytes, bytes]]:
        cuts = [line[i : i + LOG_LINE_BYTES] for i in range(0, len(line), LOG_LINE_BYTES)] or [b""]
        return [*((b"P", cut) for cut in cuts[:-1]), (last, cuts[-1])]

    def _append(self, lines: list[tuple[bytes, bytes]]) -> None:
        if lines:
            stamp = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%f000Z").encode()
            self._file.write(b"".join(b"%s %s %s\n" % (stamp, tag, content) for tag, content in lines))


class Supervisor:
    """The life of one pod's processes."""

    def __init__(self, pod_dir: Path) -> None:
        self.pod_dir = pod_dir
        self.launch: dict[str, Any] = json.loads((pod_dir / "launch.json").read_text("utf-8"))
        me = psutil.Process()
        self.state: dict[str, Any] = {
            "pid": me.pid,
            "create_time": me.create_time(),
            "started_at": time.time(),
            "done": False,
            "deadline_exceeded": False,
            "containers": [{"name": c["name"], "state": "waiting"} for c in self.launch["containers"]],
        }
        self.me = me
        self.stop_at: float | None = None  # when the grace period ends
        self.wake_read, self.wake_write = os.pipe()
        os.set_blocking(self.wake_read, False)
        os.set_blocking(self.wake_write, False)

    def run(self) -> None:
        """All containers in order; the first that fails, or a stop, ends the pod."""
        signal.set_wakeup_fd(self.wake_write, warn_on_full_buffer=False)
        signal.signal(signal.SIGTERM, lambda *_: None)
        for ignored in (signal.SIGINT, signal.SIGHUP):
            signal.signal(ignored, signal.SIG_IGN)
        self._save()
        for spec, status in zip(self.launch["containers"], self.state["containers"], strict=True):
            if self.stop_at is None and not self.state["deadline_exceeded"]:
                self._run_container(spec, status)
                if status["exit_code"] != 0:
                    break
        self.state["done"] = True
        self._save()

    def _save(self) -> None:
        write_atomically(self.pod_dir / "state.json", self.state)

    def _run_container(self, spec: dict[str, Any], status: dict[str, Any]) -> None:
        log = LogWriter(Path(spec["log"]))
        status.update(state="running", started_at=time.time())
        try:
            process = subprocess.Popen(
                spec["argv"],
                env=spec["env"],
                cwd=spec["cwd"],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                preexec_fn=_die_with_parent,
            )
        except OSError as error:
            status.update(state="terminated", exit_code=128, reason="StartError", message=str(error))
        else:
            status["pid"] = process.pid
            self._save()
            killed_for_memory = self._follow(process, spec["memory_bytes"], log)
            code = process.returncode
            reason = "OOMKilled" if killed_for_memory else "Completed" if code == 0 else "Error"
            code = 137 if killed_for_memory else code if code >= 0 else 128 - code
            status.update(state="terminated", exit_code=code, reason=reason)
        log.close()
        status["finished_at"] = time.time()
        status.setdefault("message", _termination_message(spec, status["exit_code"]))
        self._save()

    def _follow(self, process: subprocess.Popen[bytes], memory_bytes: int | None, log: LogWriter) -> bool:
        """Copy output until the process ended and its output is drained. True when it was killed for its memory."""
        assert process.stdout is not None
        output = process.stdout.fileno()
        os.set_blocking(output, False)
        killed_for_memory, drained = False, False
        with selectors.DefaultSelector() as selector, process.stdout:
            selector.register(output, selectors.EVENT_READ)
            selector.register(self.wake_read, selectors.EVENT_READ)
            next_look = 0.0
            while process.poll() is None:
                for key, _ in selector.select(TICK_SECONDS):
                    if key.fd == self.wake_read:
                        self._take_signals(process)
                    elif not drained and _copy(output, log):
                        drained = True
                        selector.unregister(output)
                if time.monotonic() >= next_look:
                    begin = time.monotonic()
                    killed_for_memory |= self._look(process, memory_bytes)
                    cost = time.monotonic() - begin
                    next_look = begin + max(2 * TICK_SECONDS, 50 * cost)  # so that looking takes 2 % at most
            self._kill_everything()  # what the main process left behind goes with it, as in a container
            self._reap_everything()
            end = time.monotonic() + 2.0
            while not drained and time.monotonic() < end:
                drained = _copy(output, log)
                if not drained:
                    time.sleep(0.01)
        return killed_for_memory

    def _take_signals(self, process: subprocess.Popen[bytes]) -> None:
        with suppress(BlockingIOError):
            os.read(self.wake_read, 512)
        try:
            grace = float(json.loads((self.pod_dir / "stop.json").read_text("utf-8"))["grace_seconds"])
        except (OSError, ValueError, KeyError):
            return  # a child ended, or a signal that was not the server's
        self._begin_stop(process, grace)

    def _begin_stop(self, process: subprocess.Popen[bytes], grace: float) -> None:
        if self.stop_at is None and grace > 0:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGTERM)
        end = time.monotonic() + grace
        self.stop_at = end if self.stop_at is None else min(self.stop_at, end)

    def _look(self, process: subprocess.Popen[bytes], memory_bytes: int | None) -> bool:
        """Reap adopted orphans, then enforce grace period, deadline and memory. True when killed for memory now."""
        children = self.me.children(recursive=True)
        for child in children:
            with suppress(psutil.Error, ChildProcessError):
                if child.pid != process.pid and child.status() == psutil.STATUS_ZOMBIE and child.ppid() == self.me.pid:
                    os.waitpid(child.pid, os.WNOHANG)
        if self.stop_at is not None and time.monotonic() >= self.stop_at:
            self._kill_everything()
        deadline = self.launch["deadline_at"]
        if deadline is not None and time.time() >= deadline and not self.state["deadline_exceeded"]:
            self.state["deadline_exceeded"] = True
            self._begin_stop(process, self.launch["grace_seconds"])
        if memory_bytes is not None and resident_bytes(children) > memory_bytes:
            self._kill_everything()
            return True
        return False

    def _kill_everything(self) -> None:
        for child in self.me.children(recursive=True):
            with suppress(psutil.Error):
                child.kill()

    @staticmethod
    def _reap_everything() -> None:
        """Wait for killed orphans; only once the main process was waited for, whose exit code this would take."""
        end = time.monotonic() + 2.0
        with suppress(ChildProcessError):
            while time.monotonic() < end:
                pid, _ = os.waitpid(-1, os.WNOHANG)
                if not pid:
                    time.sleep(0.01)


def resident_bytes(processes: list[psutil.Process]) -> int:
    """Resident size of a process tree. Several processes share pages, so theirs are counted by share (PSS)."""
    total = 0
    for process in processes:
        with suppress(psutil.Error):
            full = process.memory_full_info() if len(processes) > 1 else process.memory_info()
            total += getattr(full, "pss", full.rss)
    return total


def _copy(output: int, log: LogWriter) -> bool:
    """Move what is there from the pipe to the log. True at its end."""
    try:
        chunk = os.read(output, 1 << 16)
    except BlockingIOError:
        return False
    log.write(chunk)
    return not chunk


def _termination_message(spec: dict[str, Any], exit_code: int) -> str:
    with suppress(OSError):
        message = Path(spec["message_path"]).read_bytes()[:MESSAGE_BYTES]
        if message.strip():
            return message.decode("utf-8", errors="replace")
    if exit_code == 0 or spec["message_policy"] != "FallbackToLogsOnError":
        return ""
    with suppress(OSError):
        lines = Path(spec["log"]).read_bytes().splitlines()[-FALLBACK_LINES:]
        text = b"\n".join(line.split(b" ", 2)[2] for line in lines if line.count(b" ") >= 2)
        return text[-FALLBACK_BYTES:].decode("utf-8", errors="replace")
    return ""


def _prctl(option: int, value: int) -> None:
    """Linux only; elsewhere orphans are found by the server instead."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0)


def _die_with_parent() -> None:
    _prctl(_SET_PDEATHSIG, signal.SIGKILL)


def main() -> None:
    """`supervisor.py POD_DIR`. A second one on the same pod waits for the first, and finds nothing to do."""
    pod_dir = Path(sys.argv[1])
    with (pod_dir / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if (pod_dir / "state.json").exists():
            return
        _prctl(_SET_CHILD_SUBREAPER, 1)
        Supervisor(pod_dir).run()


if __name__ == "__main__":
    main()
