"""The files of an embedded home: where each lies, the secrets made once, the environment that every component gets."""

from __future__ import annotations

import json
import os
import secrets
import socket
import sys
from base64 import urlsafe_b64encode
from dataclasses import dataclass
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[3]
DEFAULT_PORT = 8080

# A variable that only processes of an embedded installation have, so that what a killed one left can be told.
MARK = "CHECKPOINT_EVAL_EMBEDDED"


class EmbeddedError(RuntimeError):
    """The embedded installation did not come up; the message says what stands in the way, or names the log to read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Home:
    """Paths under one home folder."""

    root: Path

    @property
    def run(self) -> Path:
        """Sockets, pid files and the supervisor's configuration."""
        return self.root / "run"

    @property
    def logs(self) -> Path:
        """One log per component."""
        return self.root / "logs"

    @property
    def airflow(self) -> Path:
        """AIRFLOW_HOME."""
        return self.root / "airflow"

    @property
    def kubeconfig(self) -> Path:
        """Written by the local pod API."""
        return self.root / "pods" / "kubeconfig"

    @property
    def config(self) -> Path:
        """checkpoint-eval's configuration file."""
        return self.root / "config.yaml"

    @property
    def supervisor_config(self) -> Path:
        """supervisord's configuration."""
        return self.run / "supervisord.conf"

    @property
    def chosen(self) -> Path:
        """The port and the secrets."""
        return self.run / "chosen.json"

    def running(self, port: int | None) -> dict[str, str]:
        """What was chosen for the installation that runs. Raises EmbeddedError when another `port` is wanted."""
        chosen: dict[str, str] = json.loads(self.chosen.read_text("utf-8"))
        if port not in (None, int(chosen["port"])):
            raise EmbeddedError(
                f"{self.root} is up on port {chosen['port']}; stop it first (`down`) to have it on port {port}"
            )
        return chosen

    def prepare(self, port: int | None) -> dict[str, str]:
        """Create the folders and, once, the secrets; keep the port while it is free. Returns what was chosen.

        Raises EmbeddedError when the wanted `port` is taken.
        """
        for folder in (self.root, self.run, self.logs, self.airflow, self.kubeconfig.parent):
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        if self.chosen.exists():
            chosen: dict[str, str] = json.loads(self.chosen.read_text("utf-8"))
        else:
            chosen = {
                "password": secrets.token_urlsafe(12),
                "jwt_secret": secrets.token_urlsafe(64),
                "api_secret": secrets.token_urlsafe(32),
                "fernet_key": urlsafe_b64encode(secrets.token_bytes(32)).decode(),
            }
        free = _free_port(port or int(chosen.get("port", DEFAULT_PORT)))
        if port is not None and free != port:
            raise EmbeddedError(f"port {port} on 127.0.0.1 is taken; give another --port, or none for a free one")
        chosen["port"] = str(free)
        _write_private(self.chosen, json.dumps(chosen))
        _write_private(self.airflow / "passwords.json", json.dumps({"admin": chosen["password"]}))
        return chosen

    def environment(self, chosen: dict[str, str]) -> dict[str, str]:
        """Variables of every component, on top of the caller's environment."""
        port = chosen["port"]
        direct = ",".join(
            filter(None, [os.environ.get("NO_PROXY") or os.environ.get("no_proxy"), "127.0.0.1,localhost"])
        )
        connection = {"conn_type": "kubernetes", "extra": {"kube_config_path": str(self.kubeconfig)}}
        return {
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '/usr/bin:/bin')}",
            "PYTHONPATH": f"{REPOSITORY / 'plugins'}{os.pathsep}{REPOSITORY}",
            "PYTHONUNBUFFERED": "1",
            MARK: str(self.root),
            "OMP_NUM_THREADS": "1",
            "HF_OFFLINE": os.environ.get("HF_OFFLINE", "1"),
            "CHECKPOINT_EVAL_HOME": str(self.root),
            "CHECKPOINT_EVAL_CONFIG": str(self.config),
            "NO_PROXY": direct,
            "no_proxy": direct,
            "AIRFLOW_CONN_KUBERNETES_DEFAULT": json.dumps(connection),
            "AIRFLOW_HOME": str(self.airflow),
            "AIRFLOW__CORE__DAGS_FOLDER": str(REPOSITORY / "dags"),
            "AIRFLOW__CORE__PLUGINS_FOLDER": str(REPOSITORY / "plugins"),
            "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
            "AIRFLOW__CORE__DAGS_ARE_PAUSED_AT_CREATION": "False",
            "AIRFLOW__CORE__EXECUTOR": "LocalExecutor",
            "AIRFLOW__CORE__PARALLELISM": "4",
            "AIRFLOW__CORE__EXECUTION_API_SERVER_URL": f"http://127.0.0.1:{port}/execution/",
            "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS": "admin:admin",
            "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE": str(self.airflow / "passwords.json"),
            "AIRFLOW__CORE__FERNET_KEY": chosen["fernet_key"],
            "AIRFLOW__API__HOST": "127.0.0.1",
            "AIRFLOW__API__PORT": port,
            "AIRFLOW__API__BASE_URL": f"http://127.0.0.1:{port}",
            "AIRFLOW__API__WORKERS": "1",
            "AIRFLOW__API__SECRET_KEY": chosen["api_secret"],
            "AIRFLOW__API_AUTH__JWT_SECRET": chosen["jwt_secret"],
            "AIRFLOW__DAG_PROCESSOR__MIN_FILE_PROCESS_INTERVAL": "60",
            # A scheduler that was killed is replaced within seconds; its tasks need not wait five minutes to be found.
            "AIRFLOW__SCHEDULER__ORPHANED_TASKS_CHECK_INTERVAL": "30",
            "AIRFLOW__LOGGING__LOGGING_LEVEL": "INFO",
        }


def _write_private(path: Path, text: str) -> None:
    """Write a file that only its owner can read, whole or not at all."""
    temporary = path.with_suffix(".new")
    temporary.touch(mode=0o600)
    temporary.write_text(text, "utf-8")
    temporary.replace(path)


def _free_port(wanted: int) -> int:
    """`wanted` when nothing listens there, else any free port of the loopback interface."""
    for port in (wanted, 0):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            chosen: int = probe.getsockname()[1]
            return chosen
    raise RuntimeError("no free port on the loopback interface")
