"""Who may call a route: Airflow's roles, asked of Airflow's auth manager.

A viewer reads. A user, who may trigger evaluations, also starts runs, compares and acknowledges. An operator, who may
change pools, also explains blocks: what lets a whole environment go on.
"""

from __future__ import annotations

from typing import Annotated, Any

from airflow.api_fastapi.auth.managers.models.base_user import BaseUser
from airflow.api_fastapi.auth.managers.models.resource_details import DagAccessEntity
from airflow.api_fastapi.core_api.security import get_user, requires_access_dag, requires_access_pool
from fastapi import Depends

RELEASE_DAG = "evaluate_release"

READ: list[Any] = [Depends(requires_access_dag("GET", DagAccessEntity.RUN, RELEASE_DAG))]
EVALUATE: list[Any] = [Depends(requires_access_dag("POST", DagAccessEntity.RUN, RELEASE_DAG))]
OPERATE: list[Any] = [Depends(requires_access_pool("POST"))]

User = Annotated[BaseUser, Depends(get_user)]
