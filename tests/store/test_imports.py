"""What opening a store may load: plug-ins do it in a triggerer, which has no room for more."""

from __future__ import annotations

import subprocess
import sys

SCRIPT = """
import sys, tempfile
from eval_tasks.settings import Settings
from eval_tasks.store import open_store
with open_store(Settings(home=tempfile.mkdtemp())) as store:
    store.catalog.runs()
    store.queue.counts("run")
    store.blobs.get(store.blobs.put(b"x"))
print(sorted({"pyarrow", "pandas", "numpy", "torch", "transformers"} & set(sys.modules)))
"""


def test_catalog_queue_and_plain_blobs_load_no_pyarrow() -> None:
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
