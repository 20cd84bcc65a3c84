"""One module for each entry of the menu: paths, and the page of each."""

from checkpoint_eval.pages.routes import (
    alerts,
    comparisons,
    costs,
    dag_runs,
    determinism,
    items,
    registry,
    release,
    runs,
    training,
)

ROUTERS = tuple(
    module.router
    for module in (items, runs, training, comparisons, registry, determinism, alerts, costs, release, dag_runs)
)
