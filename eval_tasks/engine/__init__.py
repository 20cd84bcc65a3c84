"""The engine: tokenised requests in, responses out, bit-identical whatever shared the batch with them.

The contract is shown on CPU (`tests/engine`, and `verify_engine` on any machine). The kernels of the CUDA path have run
in an interpreter and on no GPU: nothing is promised there before `verify_engine` has passed on it.

Imports neither torch nor transformers until an engine is loaded.
"""

from eval_tasks.engine.engine import Engine, load_engine
from eval_tasks.engine.memory import Workload
from eval_tasks.engine.mock import MockEngine
from eval_tasks.engine.verification import Check, verify_engine

__all__ = ["Check", "Engine", "MockEngine", "Workload", "load_engine", "verify_engine"]
