"""``python -m eval_tasks``: the command line."""

import sys

from eval_tasks.cli import main

if __name__ == "__main__":
    sys.exit(main())
