"""Start, stop and look at an embedded installation. supervisord owns the processes; this writes its configuration."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from configparser import ConfigParser
from dataclasses import dataclass
from pathlib import Path

import psutil

from checkpoint_eval.embedded.home import MARK, REPOSITORY, Home

PROGRAMS = ("pods", "api-server", "scheduler", "dag-processor", "triggerer")
POOLS = {
    name: {"slots": 2, "description": "pods of this kind at a time, deferred ones included", "include_deferred": True}
    for name in ("logprob_pods", "generation_pods")
}
_UNIX_PATH_LIMIT = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """Where the Airflow UI answers, and who may sign in."""

    url: str
    user: str
    password: str


class EmbeddedError(RuntimeError):
    """The embedded installation did not come up; the message names the log to read."""


def up(root: Path, *, port: int | None = None, standalone: bool = False, timeout_seconds: float = 300) -> Endpoint:
    """Start everything under `root`, or find it running, and wait until it is healthy.

    `standalone` runs `airflow standalone` as one program instead of Airflow's components one by one (it does not bring
    a component back that died). Raises EmbeddedError naming the component and its log.
    """
    home = Home(root=root.resolve())
    chosen = home.prepare(port)
    endpoint = Endpoint(url=f"http://127.0.0.1:{chosen['port']}", user="admin", password=chosen["password"])
    environment = {**os.environ, **home.environment(chosen)}
    if not is_up(home.root):
        _end_leftovers(home)
        _migrate(home, environment)
        _write_supervisor_config(home, standalone=standalone)
        _run([sys.executable, "-m", "supervisor.supervisord", "-c", str(home.supervisor_config)], environment)
    _wait(home, endpoint, timeout_seconds)
    return endpoint


def down(root: Path, timeout_seconds: float = 60) -> bool:
    """End everything under `root`; False when nothing was running. Pods that still run are ended too."""
    home = Home(root=root.resolve())
    if not is_up(home.root):
        return False
    pid = int((home.run / "supervisord.pid").read_text())
    _supervisorctl(home, "shutdown")
    deadline = time.monotonic() + timeout_seconds
    while _alive(pid):
        if time.monotonic() > deadline:
            raise EmbeddedError(f"supervisord (pid {pid}) did not end; see {home.logs / 'supervisord.log'}")
        time.sleep(0.2)
    _end_leftovers(home)
    return True


def is_up(root: Path) -> bool:
    """Whether a supervisor of this home is running."""
    home = Home(root=root.resolve())
    pid_file = home.run / "supervisord.pid"
    if not pid_file.exists() or not _alive(int(pid_file.read_text() or "0")):
        return False
    return _supervisorctl(home, "pid").returncode == 0


def signal_program(root: Path, program: str, number: int = signal.SIGKILL) -> int:
    """Send a signal to one program (for fault tests); the pid it had."""
    home = Home(root=root.resolve())
    pid = int(_supervisorctl(home, "pid", program).stdout.strip())
    os.kill(pid, number)
    return pid


def _alive(pid: int) -> bool:
    if pid <= 0:
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return not Path(f"/proc/{pid}/stat").exists() or ") Z " not in Path(f"/proc/{pid}/stat").read_text()


def _end_leftovers(home: Home, grace_seconds: float = 5) -> None:
    """End what components that were killed have left behind: only processes that carry this home's mark."""
    left = []
    for process in psutil.process_iter():
        try:
            if process.environ().get(MARK) == str(home.root):
                process.terminate()
                left.append(process)
        except (psutil.AccessDenied, psutil.NoSuchProcess):
            continue
    for process in psutil.wait_procs(left, timeout=grace_seconds)[1]:
        process.kill()


def _run(command: list[str], environment: dict[str, str]) -> None:
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise EmbeddedError(
            f"{' '.join(command[:4])} failed ({done.returncode}): {(done.stderr or done.stdout)[-2000:]}"
        )


def _migrate(home: Home, environment: dict[str, str]) -> None:
    airflow = str(Path(sys.executable).with_name("airflow"))
    _run([airflow, "db", "migrate"], environment)
    _run([sys.executable, "-m", "eval_tasks", "migrate"], environment)
    pools = home.run / "pools.json"
    pools.write_text(json.dumps(POOLS), "utf-8")
    _run([airflow, "pools", "import", str(pools)], environment)


def _write_supervisor_config(home: Home, *, standalone: bool) -> None:
    airflow = str(Path(sys.executable).with_name("airflow"))
    commands = {
        "pods": f"{sys.executable} -m checkpoint_eval.local_pods --state {home.kubeconfig.parent}"
        f" --kubeconfig {home.kubeconfig} --kill-on-exit --pass-env PYTHONPATH --pass-env OMP_NUM_THREADS"
    }
    if standalone:
        commands["standalone"] = f"{airflow} standalone"
    else:
        commands |= {name: f"{airflow} {name}" for name in PROGRAMS if name != "pods"}
        commands["scheduler"] = f"{sys.executable} -m checkpoint_eval.embedded.scheduler"
        # Their log servers would listen on every interface; here the API server reads the same files.
        for name in ("scheduler", "triggerer"):
            commands[name] += " --skip-serve-logs"
    parser = ConfigParser(interpolation=None)
    parser["supervisord"] = {
        "logfile": str(home.logs / "supervisord.log"),
        "pidfile": str(home.run / "supervisord.pid"),
        "childlogdir": str(home.logs),
        "directory": str(REPOSITORY),
        "silent": "true",
    }
    parser["unix_http_server"] = {"file": str(_socket(home)), "chmod": "0700"}
    parser["supervisorctl"] = {"serverurl": f"unix://{_socket(home)}"}
    factory = "supervisor.rpcinterface:make_main_rpcinterface"
    parser["rpcinterface:supervisor"] = {"supervisor.rpcinterface_factory": factory}
    for name, command in commands.items():
        parser[f"program:{name}"] = {
            "command": command,
            "priority": "1" if name == "pods" else "10",
            "autorestart": "true",
            "startretries": "10",
            "stopasgroup": "true",
            "killasgroup": "true",
            "stopwaitsecs": "20",
            "redirect_stderr": "true",
            "stdout_logfile": str(home.logs / f"{name}.log"),
            "stdout_logfile_maxbytes": "20MB",
        }
    with home.supervisor_config.open("w", encoding="utf-8") as file:
        parser.write(file)


def _socket(home: Home) -> Path:
    """supervisord's control socket; a home with a long path gets one in the temporary folder (a kernel limit)."""
    path = home.run / "supervisor.sock"
    if len(str(path)) < _UNIX_PATH_LIMIT:
        return path
    name = hashlib.blake2s(str(path).encode(), digest_size=8).hexdigest()
    folder = Path(tempfile.gettempdir()) / f"checkpoint-eval-{os.getuid()}-{name}"
    folder.mkdir(mode=0o700, exist_ok=True)
    return folder / "supervisor.sock"


def _supervisorctl(home: Home, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "supervisor.supervisorctl", "-c", str(home.supervisor_config), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def _wait(home: Home, endpoint: Endpoint, timeout_seconds: float) -> None:
    deadline = time.monotonic() + timeout_seconds
    while True:
        if _healthy(endpoint) and home.kubeconfig.exists():
            return
        status = _supervisorctl(home, "status").stdout
        for line in status.splitlines():
            if "FATAL" in line:
                name = line.split()[0]
                raise EmbeddedError(f"{name} does not stay up; read {home.logs / f'{name}.log'}")
        if time.monotonic() > deadline:
            raise EmbeddedError(f"not healthy after {timeout_seconds:.0f} s; logs are in {home.logs}\n{status}")
        time.sleep(1)


def _healthy(endpoint: Endpoint) -> bool:
    try:
        with urllib.request.urlopen(f"{endpoint.url}/api/v2/monitor/health", timeout=5) as answer:  # noqa: S310
            health = json.load(answer)
    except (OSError, urllib.error.URLError, ValueError):
        return False
    wanted = ("metadatabase", "scheduler", "triggerer", "dag_processor")
    return all(health.get(part, {}).get("status") == "healthy" for part in wanted)
