"""The command line: one verb per step of the flow, and commands to register, list and show.

Knows how to print and how to exit; everything else is a call into the library. Exit codes: 0 done, 1 a condition the
caller asked to fail on (or a failed check), 2 bad input, 3 refused as not comparable, 4 infrastructure failed (trying
again may help), 5 the data contradicts what is recorded, 6 the checkpoint is gone, 7 blocked.
"""

from eval_tasks.cli.main import main

__all__ = ["main"]
