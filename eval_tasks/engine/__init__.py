"""The engine: tokenised requests in, responses out, bit-identical whatever shared the batch with them.

Imports neither torch nor transformers until an engine is loaded.
"""

from eval_tasks.engine.engine import Engine, load_engine
from eval_tasks.engine.sentinels import Check, verify_engine

__all__ = ["Check", "Engine", "load_engine", "verify_engine"]
