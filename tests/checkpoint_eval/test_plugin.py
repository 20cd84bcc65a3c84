"""Airflow's plug-in loader sees one file, and imports nothing of the package under a bare name."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "plugins" / "checkpoint_eval"

_LOAD = """
import json, sys
from airflow import plugins_manager
names = [plugin.name for plugin in plugins_manager._get_plugins()[0]]
print(json.dumps({"plugins": names, "errors": plugins_manager.get_import_errors(), "modules": sorted(sys.modules)}))
"""


def test_the_loader_finds_the_plugin_and_hides_the_package(airflow_home: Path) -> None:
    done = subprocess.run([sys.executable, "-c", _LOAD], capture_output=True, text=True, check=True, timeout=120)
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["plugins"].count("checkpoint_eval") == 1
    assert found["errors"] == {}
    own = {name for name in found["modules"] if name.split(".")[0] == "checkpoint_eval"}
    assert own == {"checkpoint_eval", "checkpoint_eval.timetable"}
    assert not [name for name in found["modules"] if name.split(".")[0] == "eval_tasks"]
    bare = {path.stem for path in PACKAGE.rglob("*.py")} - set(sys.stdlib_module_names) - {"__init__", "__main__"}
    assert not bare & set(found["modules"])
