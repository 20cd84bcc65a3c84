"""The pod operator of Airflow's provider, with the reason of a failure in its error, and nothing left running.

The provider's own error says that a pod "returned a failure" and where the pod's whole specification is. A person needs
the reason; Airflow needs to know whether trying again can help. Importing this costs seconds on a small machine (it
imports the Kubernetes client): `checkpoint_eval.pods` does so only where a DAG has pods.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from airflow.providers.cncf.kubernetes.operators.pod import KubernetesPodOperator
from airflow.sdk.exceptions import AirflowException, AirflowFailException, AirflowSkipException
from kubernetes.client.exceptions import ApiException
from kubernetes.config import ConfigException

from checkpoint_eval.placement import avoiding, strayed_nodes
from checkpoint_eval.pods import RUN_ANNOTATION
from checkpoint_eval.steps import open_catalog
from eval_tasks.errors import EvalError

if TYPE_CHECKING:
    from airflow.sdk import Context
    from kubernetes.client import V1Pod

_log = logging.getLogger(__name__)

# Exit codes of `python -m eval_tasks` for errors that a person must act on: trying again cannot help.
FINAL_EXIT_CODES = frozenset({2, 3, 5, 6, 7})


class ShardPodOperator(KubernetesPodOperator):
    """KubernetesPodOperator for one shard. The connection alone says which cluster: KUBECONFIG is not looked at."""

    def convert_config_file_to_dict(self) -> None:
        """Only a `config_file` that was given. The provider would add KUBECONFIG's, and refuse two configurations."""
        self._config_dict = None
        if self.config_file:
            super().convert_config_file_to_dict()  # type: ignore[no-untyped-call]

    def execute(self, context: Context) -> Any:
        """As the provider's; what the cluster refuses is told in its own words, with what a person can do."""
        with self._refusals():
            return super().execute(context)

    def trigger_reentry(self, context: Context, event: dict[str, Any]) -> Any:
        """As the provider's, with refusals told as in `execute`."""
        with self._refusals():
            return super().trigger_reentry(context, event)

    @contextmanager
    def _refusals(self) -> Iterator[None]:
        try:
            yield
        except ConfigException as error:
            raise AirflowFailException(
                f"connection {self.kubernetes_conn_id!r} leads to no cluster: {error}; give it a kubeconfig path that "
                "this machine has, or in_cluster (`airflow connections get` shows it)"
            ) from error
        except ApiException as error:
            raise refusal(error) from error

    def build_pod_request_obj(self, context: Context | None = None, *, dry_run: bool = False) -> V1Pod:
        """The pod; from its second try on kept away from nodes that turned out to be another environment."""
        run_id = (self.annotations or {}).get(RUN_ANNOTATION)
        if run_id and context is not None and context["ti"].try_number > 1 and isinstance(self.pod_template_dict, dict):
            self.pod_template_dict = avoiding(self.pod_template_dict, _strayed_nodes(run_id))
        return super().build_pod_request_obj(context, dry_run=dry_run)

    def cleanup(
        self,
        pod: V1Pod,
        remote_pod: V1Pod,
        xcom_result: dict[Any, Any] | None = None,
        context: Context | None = None,
    ) -> None:
        """End the pod as `on_finish_action` says; raise with the pod's reason when it failed."""
        try:
            super().cleanup(pod, remote_pod, xcom_result, context)
        except AirflowSkipException:
            raise
        except AirflowException:
            if remote_pod.status.phase in ("Pending", "Running"):  # it never started, or it ran into a time-out
                self.pod_manager.delete_pod(remote_pod)
            message = f"Pod {remote_pod.metadata.name} failed: {failure_reason(remote_pod, self.base_container_name)}"
            if exit_code(remote_pod, self.base_container_name) in FINAL_EXIT_CODES:
                raise AirflowFailException(message) from None
            raise AirflowException(message) from None


def _strayed_nodes(run_id: str) -> list[str]:
    """What the ledger knows; nothing for what is no run (a scan), and where it cannot be asked: the pod goes anyway."""
    try:
        return strayed_nodes(open_catalog(), run_id)
    except EvalError as error:
        _log.info("no nodes are kept away from: %s", error)
        return []


def refusal(error: ApiException) -> AirflowException:
    """What the API server says when it does not do what it was asked; final where only a person can change it."""
    try:
        said = str(json.loads(error.body)["message"])
    except (KeyError, TypeError, ValueError):
        said = f"{error.reason or 'no reason given'}"
    what = f"the Kubernetes API refused ({error.status}): {said}"
    if error.status == HTTPStatus.UNAUTHORIZED:
        return AirflowFailException(f"{what}; its credentials in the connection are wrong, or ran out")
    if error.status == HTTPStatus.FORBIDDEN and " cannot " in said:
        return AirflowFailException(
            f"{what}; give Airflow's service account that verb: the chart's Role has all of them"
        )
    no_namespace = error.status == HTTPStatus.NOT_FOUND and said.startswith("namespaces ")
    if no_namespace or error.status in (HTTPStatus.BAD_REQUEST, HTTPStatus.UNPROCESSABLE_ENTITY):
        return AirflowFailException(f"{what}; mend the environment in the configuration, or make what it names")
    return AirflowException(what)  # a quota that is full, a server that is busy: later it may go


def exit_code(pod: V1Pod, container_name: str) -> int | None:
    """The container's exit code, or None while it has none."""
    for status in pod.status.container_statuses or []:
        if status.name == container_name and status.state.terminated is not None:
            return int(status.state.terminated.exit_code)
    return None


def failure_reason(pod: V1Pod, container_name: str) -> str:
    """Why a pod failed, in one sentence: the pod's own reason, then each container's, then what it waits for."""
    reasons = []
    if pod.status.reason:
        reasons.append(_sentence(pod.status.reason, pod.status.message))
    for status in [*(pod.status.init_container_statuses or []), *(pod.status.container_statuses or [])]:
        state, where = status.state, "" if status.name == container_name else f"container {status.name}: "
        if state.terminated is not None and state.terminated.exit_code != 0:
            what = f"{state.terminated.reason or 'Error'} (exit code {state.terminated.exit_code})"
            reasons.append(where + _sentence(what, state.terminated.message))
        elif state.waiting is not None and state.waiting.reason not in (None, "ContainerCreating", "PodInitializing"):
            reasons.append(where + _sentence(state.waiting.reason, state.waiting.message))
    reasons += [
        _sentence(condition.reason or "Unschedulable", condition.message)
        for condition in pod.status.conditions or []
        if condition.type == "PodScheduled" and condition.status == "False"
    ]
    return "; ".join(reasons) or f"no reason given (phase {pod.status.phase})"


def _sentence(what: str, message: str | None) -> str:
    return f"{what}: {message.strip()}" if message and message.strip() else what
