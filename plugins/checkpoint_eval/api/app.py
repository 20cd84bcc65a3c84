"""Makes the app: routes behind auth, limits before them, errors as problem documents, and its own OpenAPI document."""

from __future__ import annotations

from importlib.metadata import version
from typing import Any

from airflow.api_fastapi.app import get_auth_manager
from airflow.api_fastapi.core_api.security import requires_authenticated
from fastapi import Depends, FastAPI

from checkpoint_eval.api import problems
from checkpoint_eval.api.access import READ
from checkpoint_eval.api.limits import Limits
from checkpoint_eval.api.routes import ROUTERS
from checkpoint_eval.pages.app import build_pages

MOUNTED_AT = "/checkpoint-eval"
API = "/api/v1"


def build_app() -> FastAPI:
    """The API as an app of its own; Airflow's auth manager must be there, as it is in the API server."""
    app = FastAPI(
        title="checkpoint-eval",
        version=version("checkpoint-eval"),
        summary="Evaluations of training checkpoints: runs, items, comparisons, and what stands in their way.",
        # FastAPI's own routes for these are open to anybody.
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        dependencies=[Depends(requires_authenticated())],
        servers=[{"url": MOUNTED_AT}],
    )
    app.state.auth_manager = get_auth_manager()
    app.add_middleware(Limits)
    problems.install(app)
    for router in ROUTERS:
        app.include_router(router, prefix=API)

    @app.get(f"{API}/openapi.json", dependencies=READ, include_in_schema=False)
    def openapi() -> dict[str, Any]:
        """The OpenAPI document, for client generators."""
        return app.openapi()

    app.mount("/ui", build_pages())
    return app
