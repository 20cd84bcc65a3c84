"""`airflow scheduler`, with the pod operator and the library's steps imported first.

The local executor's workers and their tasks are forks of the scheduler: what it has imported costs them nothing, and
the pod operator is most of what a task of the evaluation flow would otherwise import at every start.
"""

from __future__ import annotations

import sys

from airflow.__main__ import main
from airflow.providers.cncf.kubernetes.operators.pod import KubernetesPodOperator
from airflow.providers.standard.operators.hitl import ApprovalOperator

from eval_tasks import aggregate, compare, grade, guard, plan, publish, resolve

PRELOADED = (KubernetesPodOperator, ApprovalOperator, resolve, plan, grade, aggregate, guard, compare, publish)

if __name__ == "__main__":
    sys.argv = ["airflow", "scheduler", *sys.argv[1:]]
    main()  # type: ignore[no-untyped-call]
