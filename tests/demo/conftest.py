"""The demo's scripts lie beside each other and import one another by name, as they do when they are run."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "demo"))
