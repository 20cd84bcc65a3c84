"""Start, stop and look at an embedded installation. supervisord owns the processes; this writes its configuration."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shlex
import signal
import stat
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from configparser import ConfigParser
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

from checkpoint_eval.embedded.home import MARK, REPOSITORY, EmbeddedError, Home
from checkpoint_eval.local_pods.launch import MARK as POD_MARK

PROGRAMS = ("pods", "api-server", "scheduler", "dag-processor", "triggerer")
# Deferred tasks are not counted: the pod API queues pods until there is room. Were they counted, a task whose pod has
# ended would wait for a slot behind pods that have yet to start (ten minutes were seen), and its run with it.
POOLS = {
    name: {
        "slots": 16,
        "description": "tasks of this kind of pod at a time, deferred ones apart",
        "include_deferred": False,
    }
    for name in ("logprob_pods", "generation_pods")
}
# What pods are told of the caller's environment: what a cluster's worker Secret holds, and how Python is set up.
PASSED = ("PYTHONPATH", "OMP_NUM_THREADS", "CHECKPOINT_EVAL_CATALOG_URL", "AWS_*")
_UNIX_PATH_LIMIT = 100
# A proxy of the caller's environment is none of loopback's business.
_loopback = urllib.request.build_opener(urllib.request.ProxyHandler({}))


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """Where the Airflow UI answers, and who may sign in."""

    url: str
    user: str
    password: str


def up(root: Path, *, port: int | None = None, standalone: bool = False, timeout_seconds: float = 300) -> Endpoint:
    """Start everything under `root`, or find it running, and wait until it is healthy.

    `standalone` runs `airflow standalone` as one program instead of Airflow's components one by one: for tests, since
    it does not bring a component back that died, and its log servers listen on every interface. Airflow's configuration
    is the home's own: AIRFLOW__ variables and AIRFLOW_CONFIG of the caller count for nothing. Raises EmbeddedError.
    """
    home = Home(root=root.resolve())
    running = is_up(home.root)
    if not running:
        _end_leftovers(home, _session(home))
    chosen = home.running(port) if running else home.prepare(port)
    endpoint = Endpoint(url=f"http://127.0.0.1:{chosen['port']}", user="admin", password=chosen["password"])
    if not running:
        foreign = ("AIRFLOW__", "AIRFLOW_CONFIG")
        inherited = {name: value for name, value in os.environ.items() if not name.startswith(foreign)}
        environment = inherited | home.environment(chosen)
        _migrate(home, environment)
        _write_supervisor_config(home, standalone=standalone)
        _run([sys.executable, "-m", "supervisor.supervisord", "-c", str(home.supervisor_config)], environment)
    _wait(home, endpoint, timeout_seconds)
    return endpoint


def down(root: Path, timeout_seconds: float = 60) -> bool:
    """End everything under `root`; False when nothing was running. Pods that still run are ended too."""
    home = Home(root=root.resolve())
    session = _session(home)
    if not is_up(home.root):
        return _end_leftovers(home, session, pods=True)
    _supervisorctl(home, "shutdown")
    deadline = time.monotonic() + timeout_seconds
    while _alive(session):
        if time.monotonic() > deadline:
            raise EmbeddedError(f"supervisord (pid {session}) did not end; see {home.logs / 'supervisord.log'}")
        time.sleep(0.2)
    _end_leftovers(home, session, pods=True)
    return True


def is_up(root: Path) -> bool:
    """Whether a supervisor of this home is running."""
    home = Home(root=root.resolve())
    return _alive(_session(home)) and _supervisorctl(home, "pid").returncode == 0


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
    except (ProcessLookupError, PermissionError):  # none, or another user's by now
        return False
    return not Path(f"/proc/{pid}/stat").exists() or ") Z " not in Path(f"/proc/{pid}/stat").read_text()


def _session(home: Home) -> int:
    """The session of supervisord and of all that it started, as its pid file says; 0 without one."""
    try:
        return int((home.run / "supervisord.pid").read_text("ascii"))
    except (FileNotFoundError, ValueError):
        return 0


def _end_leftovers(home: Home, session: int, *, pods: bool = False, grace_seconds: float = 5) -> bool:
    """End what components that were killed have left behind, and with `pods` the pods too. True when there was any.

    A component carries this home's mark in its environment. One that has set its title (the API server, the executor's
    workers) has overwritten it, and is known by supervisord's session, unless that number is somebody else's by now.
    """
    ours = session > 0 and (not _alive(session) or _mark(session, MARK) == str(home.root))
    left = []
    for process in psutil.process_iter():
        if process.pid == os.getpid():
            continue
        try:
            marked = _mark(process.pid, MARK) == str(home.root) or (ours and os.getsid(process.pid) == session)
            pod = pods and Path(_mark(process.pid, POD_MARK)).is_relative_to(home.kubeconfig.parent)
            if (marked or pod) and process.status() != psutil.STATUS_ZOMBIE:
                process.terminate()
                left.append(process)
        except (psutil.Error, OSError):
            continue
    stubborn = psutil.wait_procs(left, timeout=grace_seconds)[1]
    for process in stubborn:
        with suppress(psutil.Error):
            process.kill()
    psutil.wait_procs(stubborn, timeout=grace_seconds)
    return bool(left)


def _mark(pid: int, name: str) -> str:
    try:
        return psutil.Process(pid).environ().get(name, "")
    except (psutil.Error, OSError):
        return ""


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
    pods = ["-m", "checkpoint_eval.local_pods", "--state", str(home.kubeconfig.parent), "--kill-on-exit"]
    pods += ["--kubeconfig", str(home.kubeconfig), *(part for name in PASSED for part in ("--pass-env", name))]
    commands: dict[str, list[str]] = {"pods": [sys.executable, *pods]}
    if standalone:
        commands["standalone"] = [airflow, "standalone"]
    else:
        commands |= {name: [airflow, name] for name in PROGRAMS if name != "pods"}
        commands["scheduler"] = [sys.executable, "-m", "checkpoint_eval.embedded.scheduler"]
        # Their log servers would listen on every interface; here the API server reads the same files.
        for name in ("scheduler", "triggerer"):
            commands[name].append("--skip-serve-logs")
    parser = ConfigParser(interpolation=None)
    parser["supervisord"] = {
        "logfile": _value(home.logs / "supervisord.log"),
        "pidfile": _value(home.run / "supervisord.pid"),
        "childlogdir": _value(home.logs),
        "directory": _value(REPOSITORY),
        "silent": "true",
    }
    parser["unix_http_server"] = {"file": _value(_socket(home)), "chmod": "0700"}
    parser["supervisorctl"] = {"serverurl": _value(f"unix://{_socket(home)}")}
    factory = "supervisor.rpcinterface:make_main_rpcinterface"
    parser["rpcinterface:supervisor"] = {"supervisor.rpcinterface_factory": factory}
    for name, command in commands.items():
        parser[f"program:{name}"] = {
            "command": _value(shlex.join(command)),
            "priority": "1" if name == "pods" else "10",
            "autorestart": "true",
            "startretries": "10",
            "stopasgroup": "true",
            "killasgroup": "true",
            "stopwaitsecs": "20",
            "redirect_stderr": "true",
            "stdout_logfile": _value(home.logs / f"{name}.log"),
            "stdout_logfile_maxbytes": "20MB",
        }
    with home.supervisor_config.open("w", encoding="utf-8") as file:
        parser.write(file)


def _value(text: str | Path) -> str:
    """A value of supervisord's configuration; what it would expand, or cut off as a comment, cannot be said there."""
    if re.search(r"%|\s[;#]", str(text)):
        raise EmbeddedError(f"supervisord takes no path with '%', ' ;' or ' #' in it: {text}; give another --home")
    return str(text)


def _socket(home: Home) -> Path:
    """supervisord's control socket; a home with a long path gets one in the temporary folder (a kernel limit)."""
    path = home.run / "supervisor.sock"
    if len(str(path)) < _UNIX_PATH_LIMIT:
        return path
    name = hashlib.blake2s(str(path).encode(), digest_size=8).hexdigest()
    folder = Path(tempfile.gettempdir()) / f"checkpoint-eval-{os.getuid()}-{name}"
    folder.mkdir(mode=0o700, exist_ok=True)
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o077:
        raise EmbeddedError(f"{folder} must be a folder that is yours alone; remove it, or give a shorter --home")
    return folder / "supervisor.sock"


def _supervisorctl(home: Home, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "supervisor.supervisorctl", "-c", str(home.supervisor_config), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def _wait(home: Home, endpoint: Endpoint, timeout_seconds: float) -> None:
    deadline = time.monotonic() + timeout_seconds
    while True:
        if _healthy(endpoint) and home.kubeconfig.exists():
            if not _signs_in(endpoint):
                raise EmbeddedError(
                    f"{endpoint.url} is answered by another installation; `down` and `up` take a free port"
                )
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
        with _loopback.open(f"{endpoint.url}/api/v2/monitor/health", timeout=5) as answer:
            health = json.load(answer)
    except (OSError, urllib.error.URLError, ValueError):
        return False
    wanted = ("metadatabase", "scheduler", "triggerer", "dag_processor")
    return all(health.get(part, {}).get("status") == "healthy" for part in wanted)


def _signs_in(endpoint: Endpoint) -> bool:
    """Whether what listens there is this installation: another one does not know the password."""
    body = json.dumps({"username": endpoint.user, "password": endpoint.password}).encode()
    request = urllib.request.Request(  # noqa: S310
        f"{endpoint.url}/auth/token", data=body, headers={"Content-Type": "application/json"}
    )
    try:
        with _loopback.open(request, timeout=30):
            return True
    except urllib.error.HTTPError:
        return False
