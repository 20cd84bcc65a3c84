"""Shards of a plan -> pods. Everything about a worker pod is decided here, and is plain data until Airflow runs it.

`shard_pods` gives a DAG the operator, `shard_pod_kwargs` gives it one mapping per shard. What a pod may do is little:
it runs as nobody, without privileges, capabilities or a service account token, on a read-only root with a scratch
directory, and it ends by a deadline. `placement` says which nodes it may go to. Which cluster that is, the Airflow
connection `kubernetes_default` says: a kubeconfig path for the local pod API, `in_cluster` in a cluster. Importing this
module imports neither Airflow nor Kubernetes; calling `shard_pods` imports both.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import timedelta
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from checkpoint_eval.placement import affinity
from eval_tasks.settings import EnvironmentSpec, Limits, Settings

if TYPE_CHECKING:
    from airflow.sdk.definitions.mappedoperator import OperatorPartial

CONNECTION = "kubernetes_default"
SCRATCH = "/scratch"
CACHE = "/checkpoints"
SHARED_MEMORY = "/dev/shm"  # noqa: S108  where a pod's processes share memory, not a temporary file
WORKER_SECRET = "checkpoint-eval-worker"  # noqa: S105  the name of a Secret and of a ConfigMap, not a secret
LABEL = "checkpoint-eval"
RUN_ANNOTATION = f"{LABEL}/run-id"  # whole: a label holds 63 characters
QUEUE_LABEL = "kueue.x-k8s.io/queue-name"
NOBODY = 65532
# In a pod's name. The task instance's id is new at every try, so that a retry never meets the failed pod's name, and it
# stays the same within one, so that a lost answer to a create can never lead to a second pod.
_TRY = "{{ (ti.id | string)[-8:] }}"
GRACE_SECONDS = 60  # a worker that is asked to stop finishes the batch in hand

# Of a pod that failed for a reason that may pass. Finished batches are kept, so that a try costs little; with delays
# that double from 30 s to ten minutes, an outage of a quarter of an hour is sat out.
RETRIES = 6

# A pod may wait long for room (a node has to come up, or others to finish), but not for its image.
SCHEDULE_TIMEOUT_SECONDS = 6 * 3600
STARTUP_TIMEOUT_SECONDS = 20 * 60


def shard_pods(
    *,
    task_id: str,
    pool: str | None = None,
    poll_seconds: float = 2.0,
    log_seconds: int | None = 30,
    retries: int = RETRIES,
    retry_delay: timedelta = timedelta(seconds=30),
    map_index_template: str = "shard {{ task.labels['checkpoint-eval/shard'] }}",
    **overrides: Any,
) -> OperatorPartial:
    """The deferrable pod operator with all that is common to shards; `.expand_kwargs(...)` it with `shard_pod_kwargs`.

    A failed pod is kept to look at, a succeeded one is deleted. No result crosses XCom. `overrides` are further
    arguments of the operator.
    """
    from checkpoint_eval.pod_operator import ShardPodOperator

    return ShardPodOperator.partial(
        task_id=task_id,
        pool=pool,
        map_index_template=map_index_template,
        kubernetes_conn_id=CONNECTION,
        deferrable=True,
        durable=True,
        do_xcom_push=False,
        random_name_suffix=False,
        get_logs=True,
        logging_interval=log_seconds,
        log_events_on_failure=True,
        log_pod_spec_on_failure=False,
        on_finish_action="delete_succeeded_pod",
        on_kill_action="delete_pod",
        termination_grace_period=GRACE_SECONDS,
        termination_message_policy="FallbackToLogsOnError",
        poll_interval=poll_seconds,
        startup_check_interval_seconds=max(1, round(poll_seconds)),
        schedule_timeout_seconds=SCHEDULE_TIMEOUT_SECONDS,
        startup_timeout_seconds=STARTUP_TIMEOUT_SECONDS,
        **({"retries": retries, "retry_delay": retry_delay} | overrides),
    )


def shard_pod_kwargs(
    *,
    plan_uri: str,
    run_id: str,
    shards: Iterable[int],
    group: str,
    tier: str,
    environment: EnvironmentSpec,
    limits: Limits,
    settings: Settings,
    suspects: Collection[str] = (),
) -> list[dict[str, Any]]:
    """One mapping of operator arguments per shard of an evaluation, JSON throughout.

    `suspects`: nodes to keep away from while others have room.
    """
    template = pod_template(environment, limits, settings, tier=tier, suspects=suspects)
    command = ("run-shard", "--plan", plan_uri)
    return _mappings(command, run_id, shards, group=group, tier=tier, template=template, queue=environment.queue)


def scan_pod_kwargs(
    *,
    plan_uri: str,
    scan_id: str,
    shards: Iterable[int],
    environment: EnvironmentSpec,
    limits: Limits,
    settings: Settings,
) -> list[dict[str, Any]]:
    """One mapping of operator arguments per shard of a contamination scan, which uses no accelerator."""
    bare = environment.model_copy(update={"gpus": 0, "gpu_node": None, "checkpoint_cache": None})
    command = ("contamination", "scan-shard", "--scan", plan_uri)
    return _mappings(
        command,
        scan_id,
        shards,
        group="scan",
        tier="contamination",
        template=pod_template(bare, limits, settings, tier="contamination"),
        queue=environment.queue,
    )


def sentinel_pod_kwargs(
    *, run_id: str, environment: EnvironmentSpec, limits: Limits, settings: Settings
) -> dict[str, Any]:
    """The operator's arguments for the pod that tries the engine's promises beside a night's run."""
    return {
        "name": f"sentinels-{run_id[:8]}-{_TRY}",
        "arguments": ["determinism", "sentinels", "--run", run_id],
        "labels": _labels(run_id, group="sentinels", tier="determinism", queue=environment.queue)
        | {f"{LABEL}/environment": environment.name},
        "annotations": {RUN_ANNOTATION: run_id},
        "pod_template_dict": pod_template(environment, limits, settings, tier="determinism"),
    }


def _mappings(
    command: tuple[str, ...],
    run_id: str,
    shards: Iterable[int],
    *,
    group: str,
    tier: str,
    template: dict[str, Any],
    queue: str | None,
) -> list[dict[str, Any]]:
    return [
        {
            "name": f"{group}-{run_id[:8]}-{shard}-{_TRY}",
            "arguments": [*command, "--shard", str(shard)],
            "labels": _labels(run_id, group=group, tier=tier, queue=queue) | {f"{LABEL}/shard": str(shard)},
            "annotations": {RUN_ANNOTATION: run_id},
            "pod_template_dict": template,
        }
        for shard in shards
    ]


def _labels(run_id: str, *, group: str, tier: str, queue: str | None) -> dict[str, str]:
    return {
        "app.kubernetes.io/name": "checkpoint-eval",
        f"{LABEL}/run": run_id[:63],
        f"{LABEL}/group": group,
        f"{LABEL}/tier": tier,
        **({QUEUE_LABEL: queue} if queue else {}),
    }


def pod_template(
    environment: EnvironmentSpec,
    limits: Limits,
    settings: Settings,
    *,
    tier: str = "",
    suspects: Collection[str] = (),
) -> dict[str, Any]:
    """The pod of an environment, as Kubernetes reads it, without name, labels and arguments.

    Its priority class is the one that `limits` names for `tier`; none where it names none.
    """
    priority = next(({"priorityClassName": name} for of, name in limits.priority_classes.items() if of == tier), {})
    volumes = _volumes(environment)
    container = {
        "name": "base",
        "image": environment.image,
        "command": ["python", "-m", "eval_tasks"],
        "env": worker_env(settings, cached=environment.checkpoint_cache is not None),
        "envFrom": [
            {"configMapRef": {"name": WORKER_SECRET, "optional": True}},
            {"secretRef": {"name": WORKER_SECRET, "optional": not _needs_the_secret(settings)}},
        ],
        "resources": _resources(environment),
        "volumeMounts": [{"name": volume["name"], "mountPath": path} for path, volume in volumes.items()],
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"namespace": environment.namespace},
        "spec": {
            "restartPolicy": "Never",
            "serviceAccountName": environment.service_account,
            "automountServiceAccountToken": False,
            "enableServiceLinks": False,
            "nodeSelector": dict(environment.node_selector),
            **affinity(environment, suspects),
            "tolerations": [dict(toleration) for toleration in environment.tolerations],
            "activeDeadlineSeconds": limits.pod_deadline_seconds,
            "terminationGracePeriodSeconds": GRACE_SECONDS,
            **priority,
            "securityContext": {
                "runAsNonRoot": True,
                "runAsUser": NOBODY,
                "runAsGroup": NOBODY,
                "fsGroup": NOBODY,
                "seccompProfile": {"type": "RuntimeDefault"},
            },
            "containers": [container],
            "volumes": list(volumes.values()),
        },
    }


def _resources(environment: EnvironmentSpec) -> dict[str, dict[str, str]]:
    accelerators = {"nvidia.com/gpu": str(environment.gpus)} if environment.gpus else {}
    disk = environment.ephemeral_storage_limit
    return {
        "requests": {
            "cpu": environment.cpu,
            "memory": environment.memory,
            "ephemeral-storage": environment.ephemeral_storage,
            **accelerators,
        },
        "limits": {
            "memory": environment.memory,
            **({"ephemeral-storage": disk} if disk else {}),
            **accelerators,
        },
    }


def _volumes(environment: EnvironmentSpec) -> dict[str, dict[str, Any]]:
    """Where each volume is mounted -> the volume."""
    disk, cache = environment.ephemeral_storage_limit, environment.checkpoint_cache
    volumes: dict[str, dict[str, Any]] = {
        SCRATCH: {"name": "scratch", "emptyDir": {"sizeLimit": disk} if disk else {}},
        SHARED_MEMORY: {"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": environment.shm}},
    }
    if cache is not None and cache.host_path is not None:
        volumes[CACHE] = {"name": "checkpoints", "hostPath": {"path": cache.host_path, "type": "DirectoryOrCreate"}}
    elif cache is not None:
        claim = {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": cache.size}},
            **({"storageClassName": cache.storage_class} if cache.storage_class else {}),
        }
        volumes[CACHE] = {"name": "checkpoints", "ephemeral": {"volumeClaimTemplate": {"spec": claim}}}
    return volumes


def _needs_the_secret(settings: Settings) -> bool:
    """Whether a pod without the Secret would not find the catalog: it is better not started than left to guess."""
    return urlsplit(settings.catalog_url).password is not None


def worker_env(settings: Settings, *, cached: bool = False) -> list[dict[str, Any]]:
    """What a worker is told. Never a secret: a catalog URL with a password is left to the worker's Secret.

    With a store on the local file system the pod is a process of this machine and shares its home; otherwise its home
    is the scratch directory. `cached`: copies of checkpoints have a volume of their own.
    """
    shares_the_machine = urlsplit(settings.store_uri).scheme in ("", "file")
    home = str(settings.home) if shares_the_machine else f"{SCRATCH}/home"
    values = {
        "CHECKPOINT_EVAL_HOME": home,
        "CHECKPOINT_EVAL_STORE_URI": settings.store_uri,
        "HF_OFFLINE": str(int(settings.hf_offline)),
        "HOME": SCRATCH,
        "TMPDIR": SCRATCH,
        "TERMINATION_MESSAGE_PATH": "/dev/termination-log",
    }
    if cached:
        values["CHECKPOINT_EVAL_CACHE"] = CACHE
    if shares_the_machine and settings.config is not None:
        values["CHECKPOINT_EVAL_CONFIG"] = str(settings.config)
    if not _needs_the_secret(settings):
        values["CHECKPOINT_EVAL_CATALOG_URL"] = settings.catalog_url
    fields = {"POD_NAME": "metadata.name", "NODE_NAME": "spec.nodeName"}
    return [
        *({"name": name, "value": value} for name, value in sorted(values.items())),
        *({"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}} for name, path in fields.items()),
    ]
