"""What each task of the nightly determinism flow does: environments in, nights and blocks out, by ids and URIs.

As `steps`: knows the library and the shape of what tasks hand on, not Airflow; imports of the library are inside the
functions, since DAG files are parsed with this module loaded.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import asdict
from typing import Any, TypedDict

from checkpoint_eval.steps import PlannedRun, cache_dir, now, open_catalog

_log = logging.getLogger(__name__)

EXPLAIN_DAG = "explain_block"


class NightOf(TypedDict):
    """One environment's night. `planned`: the fields of a `PlannedNight`; None where `error` says why there is none."""

    environment: str
    planned: dict[str, str] | None
    error: str


class Judged(TypedDict):
    """What a night was found to be."""

    environment: str
    status: str
    block_ids: list[str]
    findings: list[str]


def is_configured() -> bool:
    """Whether a fixed suite is configured, and an environment is live to run it in."""
    from eval_tasks.settings import Settings, load_config

    config = load_config(Settings().config)
    if config.determinism is None:
        _log.info("no fixed suite is configured (`determinism`): nothing watches the environments")
        return False
    names = [environment.name for environment in config.live_environments()]
    _log.info("live environments: %s", ", ".join(names) or "none")
    return bool(names)


def plan(night: str, *, last_try: bool) -> list[NightOf]:
    """Plan the night of every live environment. One that cannot be planned stops no other: its entry says why.

    Raises InfraError for one that may be planned later, unless this is the `last_try`.
    """
    from eval_tasks.determinism import plan_night
    from eval_tasks.errors import EvalError, InfraError
    from eval_tasks.settings import Settings, load_config

    store = open_catalog()
    config = load_config(Settings().config)
    nights: list[NightOf] = []
    for environment in config.live_environments():
        try:
            planned = plan_night(
                store, config=config, environment=environment.name, night=night, cache_dir=cache_dir(), now=now()
            )
        except InfraError as error:
            if not last_try:
                raise
            nights.append(_without(environment.name, error))
        except EvalError as error:
            nights.append(_without(environment.name, error))
        else:
            nights.append(NightOf(environment=environment.name, planned=asdict(planned), error=""))
    return nights


def _without(environment: str, error: Exception) -> NightOf:
    _log.error("environment %s: no night: %s", environment, error)
    return NightOf(environment=environment, planned=None, error=f"{type(error).__name__}: {error}")


def runs(nights: Iterable[NightOf]) -> list[PlannedRun]:
    """The two runs of each night that was planned: as ever, and perturbed."""
    return [
        PlannedRun(role=role, run_id=planned[f"{part}run_id"], plan_uri=planned[f"{part}plan_uri"], awaited="")
        for planned in (night["planned"] for night in nights)
        if planned is not None
        for role, part in (("as ever", ""), ("perturbed", "perturbed_"))
    ]


def sentinel_pods(nights: Iterable[NightOf]) -> list[dict[str, Any]]:
    """Arguments of one pod for each night whose sentinels have not reported; a mock engine has none to try."""
    from checkpoint_eval.pods import sentinel_pod_kwargs
    from eval_tasks.settings import Settings, load_config

    store = open_catalog()
    settings = Settings()
    config = load_config(settings.config)
    wanted = []
    for night in nights:
        if night["planned"] is None:
            continue
        run = store.catalog.run(night["planned"]["run_id"])
        if run.request.engine_config.is_mock or store.catalog.sentinels(run.run_id) is not None:
            continue
        environment = config.environment(run.environment)
        wanted.append(
            sentinel_pod_kwargs(run_id=run.run_id, environment=environment, limits=config.limits, settings=settings)
        )
    return wanted


def judge(night: NightOf) -> Judged:
    """Close, score and compare a night's runs; what was found. A difference opens a block and raises its alert.

    Raises UserError for a night that could not be planned, InfraError where rows or the sentinels' report are missing.
    """
    from eval_tasks.determinism import PlannedNight, judge_night
    from eval_tasks.errors import UserError
    from eval_tasks.settings import Settings, load_config

    if night["planned"] is None:
        raise UserError(f"environment {night['environment']} had no night: {night['error']}")
    config = load_config(Settings().config)
    found = judge_night(open_catalog(), PlannedNight(**night["planned"]), policy=config.nightly(), now=now())
    _log.info(
        "environment %s: %s, %d items twice, %.1f device-seconds",
        found.environment,
        found.status,
        found.n_items,
        found.device_seconds,
    )
    for finding in found.findings:
        _log.info("%s", finding)
    return Judged(
        environment=found.environment,
        status=found.status,
        block_ids=list(found.block_ids),
        findings=list(found.findings),
    )


def verdict(judged: Judged) -> str:
    """The night's outcome in words. Raises DriftError unless it was good or its rows were adopted."""
    from eval_tasks.errors import DriftError

    words = "; ".join(judged["findings"])
    if judged["status"] not in ("good", "adopted"):
        raise DriftError(f"environment {judged['environment']}: {judged['status']}: {words}")
    return f"environment {judged['environment']}: {judged['status']}{f': {words}' if words else ''}"


def blocks_of(run_ids: Iterable[str]) -> list[str]:
    """The open blocks that these runs have shown."""
    wanted = set(run_ids)
    return [block.block_id for block in open_catalog().catalog.open_blocks() if block.run_id in wanted]


def to_explain(block_ids: Iterable[str]) -> list[dict[str, Any]]:
    """The DAG runs in which a person is asked about these blocks, one for each block whoever asks for it."""
    return [
        {"trigger_run_id": f"block__{block_id}", "conf": {"block_id": block_id}} for block_id in sorted(set(block_ids))
    ]
