"""The routes, one module per noun."""

from checkpoint_eval.api.routes import alerts, blocks, comparisons, items, machines, registry, runs, training

ROUTERS = (
    runs.router,
    items.router,
    comparisons.router,
    registry.router,
    machines.router,
    blocks.router,
    alerts.router,
    training.router,
)
