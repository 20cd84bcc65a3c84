"""The embedded default: Airflow's components and the local pod API on one machine, each kept alive by supervisord.

`up` prepares a home folder and starts everything, `down` ends it; all of it listens on loopback only.
"""

from checkpoint_eval.embedded.control import Endpoint, down, is_up, signal_program, up
from checkpoint_eval.embedded.home import EmbeddedError

__all__ = ["EmbeddedError", "Endpoint", "down", "is_up", "signal_program", "up"]
