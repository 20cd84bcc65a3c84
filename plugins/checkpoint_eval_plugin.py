"""What Airflow's plug-in loader imports: the one file that it sees here, since `.airflowignore` hides the package.

The loader imports files under their bare names, so that the package's `errors` or `sensor` would be somebody else's
too. Operators, sensors and triggers need no registration; DAG files import them from `checkpoint_eval`. Timetables do:
Airflow makes no other from a stored DAG.
"""

from __future__ import annotations

from typing import Any, ClassVar

from airflow.plugins_manager import AirflowPlugin

from checkpoint_eval.timetable import StoredRunsTimetable


class LazyApi:
    """The REST API and the pages as an ASGI app that is made at the first request.

    Every component of Airflow loads this file, and only the API server has a use for the app.
    """

    def __init__(self) -> None:
        self._app: Any = None

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Hand the request on."""
        if self._app is None:
            from checkpoint_eval.api.app import build_app

            self._app = build_app()
        await self._app(scope, receive, send)


class CheckpointEvalPlugin(AirflowPlugin):
    """Shows in `airflow plugins` and in the UI that this folder was found and loaded."""

    name = "checkpoint_eval"
    timetables = (StoredRunsTimetable,)
    fastapi_apps: ClassVar[list[Any]] = [
        {"app": LazyApi(), "url_prefix": "/checkpoint-eval", "name": "checkpoint-eval"},
    ]
    external_views: ClassVar[list[Any]] = [
        {
            "name": "Evaluations",
            "href": "/checkpoint-eval/ui/runs",
            "destination": "nav",
            "url_route": "evaluations",
        },
        {
            "name": "Evaluation",
            "href": "/checkpoint-eval/ui/of/{DAG_ID}/{RUN_ID}",
            "destination": "dag_run",
            "url_route": "evaluation",
        },
    ]
