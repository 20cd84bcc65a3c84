"""Who looks at a page, and what Airflow lets them do: a form is shown to those whose sending it would be accepted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from airflow.api_fastapi.app import get_auth_manager
from airflow.api_fastapi.auth.managers.models.resource_details import DagAccessEntity, DagDetails
from fastapi import Depends

from checkpoint_eval.api.access import RELEASE_DAG, User

Right = Literal["read", "evaluate", "operate", "approve"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Viewer:
    """A person with their name, and the rights that they have: those of `api.access`."""

    name: str = ""
    rights: frozenset[Right] = frozenset()

    def may(self, right: Right) -> bool:
        """Whether Airflow would accept what this right stands for."""
        return right == "read" or right in self.rights


NOBODY = Viewer()


def _viewer(user: User) -> Viewer:
    manager = get_auth_manager()
    release = DagDetails(id=RELEASE_DAG)
    held: dict[Right, bool] = {
        "evaluate": manager.is_authorized_dag(
            method="POST", access_entity=DagAccessEntity.RUN, details=release, user=user
        ),
        "approve": manager.is_authorized_dag(
            method="PUT", access_entity=DagAccessEntity.HITL_DETAIL, details=release, user=user
        ),
        "operate": manager.is_authorized_pool(method="POST", user=user),
    }
    return Viewer(name=user.get_name(), rights=frozenset(right for right, is_held in held.items() if is_held))


Visitor = Annotated[Viewer, Depends(_viewer)]
