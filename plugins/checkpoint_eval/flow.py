"""The evaluation flow as one Airflow DAG per tier. What a task does is in `steps`; here is their order and policy.

gate -> resolve -> plan [-> approve] -> logprob pods | generation pods -> grade -> aggregate -> join_contamination
-> guard [-> health | select] -> compare -> publish
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from functools import wraps
from typing import Any

from airflow.providers.standard.operators.hitl import ApprovalOperator
from airflow.providers.standard.operators.trigger_dagrun import TriggerDagRunOperator
from airflow.sdk import (
    DAG,
    Asset,
    Param,
    PokeReturnValue,
    TaskGroup,
    chain,
    get_current_context,
    task,
)
from airflow.sdk.definitions.callback import AsyncCallback
from airflow.sdk.definitions.deadline import DeadlineAlert, DeadlineReference
from airflow.sdk.exceptions import AirflowFailException, AirflowRuntimeError

from checkpoint_eval import nights, steps
from checkpoint_eval.alerting import AlertNotifier
from checkpoint_eval.pods import shard_pods

_log = logging.getLogger(__name__)

TAGS = frozenset(
    {
        "checkpoint-eval",
        "watch",
        "health",
        "selection",
        "release",
        "regrade",
        "determinism",
        "contamination",
        "maintenance",
        "alerts",
    }
)
OWNER = "checkpoint-eval"

DEFAULT_ARGS: dict[str, Any] = {
    "owner": OWNER,
    "on_failure_callback": AlertNotifier(),
    "retries": 5,  # for reasons that may pass alone: from 15 s, doubled, about eight minutes together
    "retry_delay": timedelta(seconds=15),
    "retry_exponential_backoff": True,
    "max_retry_delay": timedelta(minutes=10),
}

# Others may schedule on this; nothing here depends on it.
EVALUATIONS = Asset(name="checkpoint_eval_evaluations", uri="checkpoint-eval://evaluations")

# The ledger's own check has each training run's deadline; this one asks it at once, at the usual one.
HEALTH_DEADLINE = timedelta(minutes=10)

TRIES_WHILE_QUEUED = 30  # ten minutes of `compare`

POOLS = {"logprob": "logprob_pods", "generation": "generation_pods"}


@contextmanager
def airflow_errors() -> Iterator[None]:
    """The library's errors as Airflow's: InfraError is retried, everything a person must act on is not."""
    from eval_tasks.errors import EvalError, InfraError

    try:
        yield
    except InfraError:
        raise
    except EvalError as error:
        raise AirflowFailException(f"{type(error).__name__}: {error}") from error


def common_params(tier: str) -> dict[str, Param]:
    """The parameters of a tier's DAG: what the watcher passes, and what the form of a release asks for."""
    checkpoint = {
        "checkpoint_uri": Param(
            "",
            type="string",
            minLength=1,
            title="Checkpoint",
            description="Folder of the candidate checkpoint (any fsspec URI).",
        ),
        "training_run": Param(
            "adhoc",
            type="string",
            title="Training run",
            pattern=r"^[a-z0-9][a-z0-9._-]*$",
            description="Name of the training run; baselines `previous` and `first` are looked for in it.",
        ),
        "step": Param(
            None,
            type=["integer", "null"],
            minimum=0,
            maximum=2**53 - 1,
            title="Step",
            description="Empty: the last number in the name.",
        ),
    }
    question = {
        "suite": Param(
            "",
            type="string",
            minLength=1,
            title="Suite",
            description="NAME or NAME@VERSION of a registered suite. What it can find: python -m eval_tasks power NAME",
        ),
        "baseline": Param(
            "none",
            type="string",
            title="Baseline",
            description="A checkpoint folder (evaluated too if it was not), a run id, `previous`, `first` or `none`.",
        ),
        "rule": Param(
            None,
            type=["string", "null"],
            title="Decision rule",
            description="Name of a rule registered before this run; without one the comparison is exploratory.",
        ),
        "environment": Param(
            None, type=["string", "null"], title="Environment", description="Empty: the first live one."
        ),
    }
    if tier != "release":
        landing = "Set by watch_checkpoints: the entry of the landing ledger that started this run."
        return {**checkpoint, **question, "landing_id": Param("", type="string", title="Landing", description=landing)}
    arms = {
        "seeds": Param(
            [],
            type="array",
            items={"type": "string"},
            title="Further seeds",
            description="Checkpoints of the same recipe trained with other seeds, one folder a line. Three of each "
            "recipe show 1.8 points where training again moves a score by 0.6.",
        ),
        "notes": Param("", type="string", title="Notes", format="multiline", description="Shown on the report."),
    }
    return {**checkpoint, **question, **arms}


def step(**task_arguments: Any) -> Callable[[Callable[..., Any]], Any]:
    """`@task`, with the library's errors mapped to Airflow's."""

    def decorate(function: Callable[..., Any]) -> Any:
        @wraps(function)
        def call(*arguments: Any, **keywords: Any) -> Any:
            with airflow_errors():
                return function(*arguments, **keywords)

        return task(doc_md=function.__doc__, **task_arguments)(call)

    return decorate


def params_now() -> dict[str, Any]:
    """The DAG run's parameters as plain values."""
    return dict(get_current_context()["params"])


@task.sensor(task_id="gate", poke_interval=30, timeout=14 * 24 * 3600, mode="reschedule", retries=5)
def gate() -> PokeReturnValue:
    """Hold while a block stands on the environment; a waiting run takes no worker slot."""
    with airflow_errors():
        is_open, reason = steps.gate(params_now())
    _log.info("%s", reason)
    return PokeReturnValue(is_done=is_open, xcom_value=reason)


@step()
def resolve(tier: str) -> list[steps.Arm]:
    """Validate and hash the checkpoints; a broken one ends here, with its reason, and raises an alert."""
    return steps.resolve(params_now(), tier)


@step()
def plan(arms: list[steps.Arm]) -> list[steps.PlannedRun]:
    """Cut the suite into shards for every arm. The same request is the same run, so nothing is done twice."""
    return steps.plan(params_now(), arms)


@step()
def pods(planned: list[steps.PlannedRun], group: str, tier: str) -> list[dict[str, Any]]:
    """The pods of this group that still have work: one per shard."""
    return steps.pods(planned, group, tier)


@step(trigger_rule="none_failed")
def grade(planned: list[steps.PlannedRun]) -> list[str]:
    """Close the runs and score their rows. Missing rows make a run incomplete, whatever its tasks said."""
    return steps.grade(planned)


@step()
def aggregate(run_ids: list[str]) -> list[str]:
    """Scores to measurements: score, n, se, ci95."""
    return steps.aggregate(run_ids)


@step()
def join_contamination(run_ids: list[str]) -> list[str]:
    """Each number gets its decontaminated companion, or the words `never checked`."""
    return steps.join_contamination(run_ids)


@step()
def guard(run_ids: list[str]) -> list[str]:
    """Quarantine implausible numbers, with five raw outputs and one alert each."""
    return steps.guard(run_ids)


@step()
def health(planned: list[steps.PlannedRun]) -> list[str]:
    """Hold the loss and the answers against earlier checkpoints of the training run; one alert for what began."""
    return steps.health(planned)


@step()
def select(planned: list[steps.PlannedRun]) -> str:
    """The best of the checkpoints so far, how much of that is luck, and what the other half of the items says of it."""
    return steps.select(planned)


@step(retries=1080, retry_delay=timedelta(seconds=20), retry_exponential_backoff=False)
def compare(planned: list[steps.PlannedRun], tier: str) -> str:
    """Paired comparison with the baseline, under the registered rule; waits, by retrying, while that is evaluated."""
    instance = get_current_context()["ti"]
    awaited = next((run["awaited"] for run in planned if run["role"] == "baseline"), "")
    last_try = instance.try_number > instance.max_tries or not _may_come(instance, f"evaluate_{tier}", awaited)
    # An XCom of None is none, and asking for it is logged as an error: no comparison is an empty id.
    return steps.compare(params_now(), planned, last_try=last_try) or ""


def _may_come(instance: Any, dag_id: str, run_id: str) -> bool:
    """Whether that DAG run may still evaluate the baseline. One that is queued may be behind this one: not for long."""
    if not run_id:
        return False
    try:
        state: str = instance.get_dagrun_state(dag_id=dag_id, run_id=run_id)
    except AirflowRuntimeError:  # it was deleted
        return False
    return state == "running" or (state == "queued" and instance.try_number <= TRIES_WHILE_QUEUED)


@step(outlets=[EVALUATIONS])
def publish(planned: list[steps.PlannedRun], comparison_id: str) -> dict[str, str]:
    """Write the reports, print the scorecard, tell others by an asset event. Returns report URIs by role."""
    uris = steps.publish(params_now(), planned, comparison_id or None)
    event = get_current_context()["outlet_events"][EVALUATIONS]
    event.extra = {"runs": [run["run_id"] for run in planned], "reports": dict(uris)}
    return uris


@step()
def blocks(run_ids: list[str]) -> list[dict[str, Any]]:
    """The blocks that these runs have opened, for a person to explain; nothing waits for this."""
    return nights.to_explain(nights.blocks_of(run_ids))


def ask_about_blocks(asked: Any) -> Any:
    """Start `explain_block` for each block; one that was asked about already is not asked about twice."""
    return TriggerDagRunOperator.partial(
        task_id="ask_about_blocks",
        trigger_dag_id=nights.EXPLAIN_DAG,
        logical_date=None,
        skip_when_already_exists=True,
        max_active_tis_per_dagrun=1,
        map_index_template="{{ task.trigger_run_id }}",
        doc_md=ask_about_blocks.__doc__,
    ).expand_kwargs(asked)


@step()
def power() -> str:
    """What the suite can find and takes, by past comparisons, seed studies and pace: read before approving."""
    return steps.power(params_now())


def pod_group(planned: Any, group: str, tier: str) -> TaskGroup:
    """`<group>.pods` lists the shards, `<group>.run_shard` is one deferrable pod for each."""
    with TaskGroup(group_id=group, tooltip=f"{group} pods, one per shard") as pod_group:
        shard_pods(task_id="run_shard", pool=POOLS[group]).expand_kwargs(pods(planned, group, tier))
    return pod_group


def _approval() -> ApprovalOperator:
    """A person looks at what will be run, and says yes, before any pod starts."""
    return ApprovalOperator(
        task_id="approve",
        subject="Release evaluation of {{ params.checkpoint_uri }}",
        body=(
            "**Suite** {{ params.suite }}  **Baseline** {{ params.baseline }}  **Rule** {{ params.rule }}\n\n"
            "{{ params.notes }}\n\n"
            "{% for run in ti.xcom_pull(task_ids='plan') %}"
            "* {{ run.role }}: {{ 'at most ' ~ run.forecast if run.forecast else 'nothing left to compute' }}\n"
            "{% endfor %}\n{{ ti.xcom_pull(task_ids='power') }}\n\n"
            "The plan is in the XCom of task `plan`. Approving starts the pods."
        ),
        ignore_downstream_trigger_rules=True,
    )


def _deadline(tier: str) -> DeadlineAlert | None:
    """A health verdict is due ten minutes after its DAG run was queued."""
    if tier != "health":
        return None
    callback = AsyncCallback(AlertNotifier)
    return DeadlineAlert(reference=DeadlineReference.DAGRUN_QUEUED_AT, interval=HEALTH_DEADLINE, callback=callback)


def evaluation_dag(tier: str, *, doc_md: str | None) -> DAG:
    """The DAG `evaluate_<tier>`. Runs wait at `gate` without a worker slot; `release` also waits for an approval."""
    with DAG(
        dag_id=f"evaluate_{tier}",
        description=f"Evaluate one checkpoint in the {tier} tier.",
        schedule=None,
        catchup=False,
        max_active_runs=4,
        tags=["checkpoint-eval", tier],
        doc_md=doc_md,
        params=common_params(tier),
        deadline=_deadline(tier),
        default_args=DEFAULT_ARGS,
    ) as dag:
        arms = resolve(tier)
        planned = plan(arms)
        groups = [pod_group(planned, group, tier) for group in POOLS]
        run_ids = grade(planned)
        ask_about_blocks(blocks(run_ids))
        comparison_id = compare(planned, tier)
        approval = [power(), _approval()] if tier == "release" else []
        guarded = guard(join_contamination(aggregate(run_ids)))
        chain(gate(), arms, planned, *approval, groups, run_ids)
        chain(guarded, comparison_id)
        published = publish(planned, comparison_id)
        if tier == "health":
            chain(guarded, health(planned), published)
        if tier == "selection":
            chain(guarded, select(planned), published)
    return dag
