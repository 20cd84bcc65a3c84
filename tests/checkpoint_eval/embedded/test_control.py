"""Starting and stopping, without Airflow: supervisord's configuration, what was left behind, whose port it is."""

from __future__ import annotations

import shlex
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import psutil
import pytest
from supervisor.options import ClientOptions, ServerOptions

from checkpoint_eval.embedded import control, down, is_up
from checkpoint_eval.embedded.home import MARK, EmbeddedError, Home


@pytest.fixture
def home(tmp_path: Path) -> Home:
    made = Home(root=tmp_path / "a 'home', so to say")
    made.prepare(None)
    return made


def _supervised(home: Home) -> dict[str, list[str]]:
    """The command of each program as supervisord reads the configuration."""
    options = ServerOptions()
    options.realize(["-c", str(home.supervisor_config)], doc="")
    assert Path(options.pidfile) == home.run / "supervisord.pid"
    return {group.name: shlex.split(group.process_configs[0].command) for group in options.process_group_configs}


def test_a_home_may_have_blanks_and_quotes_in_its_path(home: Home) -> None:
    control._write_supervisor_config(home, standalone=False)
    commands = _supervised(home)
    assert set(commands) == set(control.PROGRAMS)
    pods = commands["pods"]
    assert pods[pods.index("--state") + 1] == str(home.kubeconfig.parent)
    assert pods[pods.index("--kubeconfig") + 1] == str(home.kubeconfig)
    client = ClientOptions()
    client.realize(["-c", str(home.supervisor_config), "status"], doc="")
    assert client.serverurl == f"unix://{control._socket(home)}"


def test_no_log_server_is_started_beside_the_api_server(home: Home) -> None:
    """Airflow's log servers listen on every interface."""
    control._write_supervisor_config(home, standalone=False)
    commands = _supervised(home)
    assert all("--skip-serve-logs" in commands[name] for name in ("scheduler", "triggerer"))


def test_no_secret_is_in_the_configuration_or_on_a_command_line(home: Home) -> None:
    control._write_supervisor_config(home, standalone=False)
    chosen = home.prepare(None)
    text = home.supervisor_config.read_text("utf-8")
    assert not [name for name, value in chosen.items() if name != "port" and value in text]


@pytest.mark.parametrize("name", ["home #1", "home ;", "100%"])
def test_a_path_that_supervisord_would_cut_or_expand_is_refused(tmp_path: Path, name: str) -> None:
    home = Home(root=tmp_path / name)
    home.prepare(None)
    with pytest.raises(EmbeddedError, match="give another --home"):
        control._write_supervisor_config(home, standalone=False)


def test_a_socket_folder_of_somebody_else_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    home = Home(root=tmp_path / ("long" * 30))
    folder = control._socket(home).parent
    folder.chmod(0o777)
    with pytest.raises(EmbeddedError, match="yours alone"):
        control._socket(home)


def test_down_when_nothing_is_up(home: Home, tmp_path: Path) -> None:
    assert not down(home.root)
    assert not down(tmp_path / "absent")
    assert not (tmp_path / "absent").exists()


_LEADER = """
import subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], env={})
print(child.pid, flush=True)
time.sleep(600)
"""


@pytest.fixture
def killed_supervisor(home: Home) -> Iterator[psutil.Process]:
    """What `kill -9` of supervisord leaves: its pid file, and a component without the mark, its title overwrote it."""
    leader = subprocess.Popen(
        [sys.executable, "-c", _LEADER],
        env={MARK: str(home.root)},
        stdout=subprocess.PIPE,
        start_new_session=True,
        text=True,
    )
    assert leader.stdout is not None
    child = psutil.Process(int(leader.stdout.readline()))
    (home.run / "supervisord.pid").write_text(f"{leader.pid}\n", "ascii")
    leader.kill()
    leader.wait()
    leader.stdout.close()
    yield child
    with suppress(psutil.Error):
        child.kill()


def test_down_ends_what_a_killed_supervisor_left(home: Home, killed_supervisor: psutil.Process) -> None:
    assert not is_up(home.root)
    assert down(home.root)
    assert not psutil.pid_exists(killed_supervisor.pid) or killed_supervisor.status() == psutil.STATUS_ZOMBIE
    assert not down(home.root)


def test_a_number_that_is_somebody_elses_session_by_now_is_left_alone(home: Home) -> None:
    other = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], env={}, start_new_session=True)
    try:
        (home.run / "supervisord.pid").write_text(str(other.pid), "ascii")
        assert not down(home.root)
        assert other.poll() is None
    finally:
        other.kill()
        other.wait()


def test_down_ends_pods_that_outlived_everything_and_up_keeps_them(home: Home) -> None:
    pod = subprocess.Popen(
        [sys.executable, "-c", "import time; time.sleep(600)"],
        env={"LOCAL_PODS_DIR": str(home.kubeconfig.parent / "pods" / "some-uid")},
    )
    try:
        while not psutil.Process(pod.pid).cmdline():
            time.sleep(0.01)
        assert not control._end_leftovers(home, 0)
        assert pod.poll() is None
        assert down(home.root)
        assert pod.poll() is not None
    finally:
        pod.kill()
        pod.wait()


class _AnotherAirflow(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        self.send_error(401)

    def log_message(self, *_: object) -> None:
        """Nothing on the terminal."""


def test_another_installation_on_the_port_is_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")  # loopback is asked directly
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    with HTTPServer(("127.0.0.1", 0), _AnotherAirflow) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        endpoint = control.Endpoint(url=f"http://127.0.0.1:{server.server_port}", user="admin", password="ours")
        assert not control._signs_in(endpoint)
        server.shutdown()
        thread.join()


def test_the_flows_pools_are_made_here_and_named_for_a_cluster(airflow_home: Path) -> None:
    """A task whose pool does not exist is never scheduled."""
    from checkpoint_eval.flow import POOLS

    cluster = (Path(__file__).parents[3] / "docs" / "cluster.md").read_text("utf-8")
    assert set(control.POOLS) == set(POOLS.values())
    assert not any(pool["include_deferred"] for pool in control.POOLS.values())
    assert not [name for name in control.POOLS if f"airflow pools set {name}" not in cluster]


def test_a_callers_airflow_is_not_this_one(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its database would be migrated otherwise."""
    monkeypatch.setenv("AIRFLOW__DATABASE__SQL_ALCHEMY_CONN", "postgresql://production/airflow")
    monkeypatch.setenv("AIRFLOW_CONFIG", "/etc/production.cfg")
    monkeypatch.setenv("AIRFLOW_HOME", "/srv/production")
    seen: dict[str, str] = {}

    def migrate(_home: Home, environment: dict[str, str]) -> None:
        seen.update(environment)
        raise EmbeddedError("enough")

    monkeypatch.setattr(control, "_migrate", migrate)
    with pytest.raises(EmbeddedError, match="enough"):
        control.up(home.root)
    assert not [name for name, value in seen.items() if "production" in value]
