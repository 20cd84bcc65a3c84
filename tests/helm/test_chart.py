"""The chart's values against its schema, what it renders against the code, and the values of Airflow's own chart.

What needs a helm binary is skipped where none is.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from checkpoint_eval.pods import NOBODY, SCRATCH, WORKER_SECRET, shard_pod_kwargs
from eval_tasks.settings import Config, EnvironmentSpec, Limits, Settings, load_config
from tests.helm.conftest import CHART, NAMESPACE, Objects, objects_of, rendered, run

HELM_FOLDER = CHART.parent


def values() -> dict[str, Any]:
    return yaml.safe_load((CHART / "values.yaml").read_text("utf-8"))


def schema() -> dict[str, Any]:
    return json.loads((CHART / "values.schema.json").read_text("utf-8"))


def render(helm: str, tmp_path: Path, changes: dict[str, Any] | None = None) -> Objects:
    """(kind, name) -> object, as rendered with `changes` on top of the values."""
    file = tmp_path / "values.yaml"
    file.write_text(yaml.safe_dump(changes or {}), "utf-8")
    return objects_of(rendered(helm, file))


def test_values_fit_their_schema() -> None:
    jsonschema.Draft7Validator.check_schema(schema())
    jsonschema.validate(values(), schema())


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("worker", "image", "tag"), "latest"),
        (("worker", "image", "digest"), "sha256:short"),
        (("worker", "env"), {"CHECKPOINT_EVAL_CATALOG_URL": "postgresql+psycopg://u:p@h/d"}),
        (("worker", "env"), {"AWS_SECRET_ACCESS_KEY": "x"}),
        (("airflow", "serviceAccounts"), []),
        (("networkPolicy", "database", "cidrs"), ["db.example"]),
        (("networkPolicy", "enabled"), "yes"),
        (("config", "environments"), []),
        (("priorityClasses", "tiers", "nightly"), {"value": 1, "preemptionPolicy": "Never"}),
        (("priorityClasses", "tiers", "health", "value"), 2_000_000_000),
        (("quota", "hard"), {"pods": "many"}),
        (("registration", "suites"), {"suite.txt": {"name": "s"}}),
        (("registration", "rules"), {"ship.yaml": "a string"}),
        (("unknown",), 1),
    ],
)
def test_the_schema_refuses(path: tuple[str, ...], value: object) -> None:
    changed = values()
    place = changed
    for part in path[:-1]:
        place = place[part]
    place[path[-1]] = value
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(changed, schema())


def test_the_configuration_in_the_values_is_one() -> None:
    found = values()
    config = Config.model_validate(found["config"])
    (environment,) = config.environments
    assert environment.service_account == found["worker"]["serviceAccount"]["name"]
    assert environment.service_account == EnvironmentSpec(name="e").service_account
    assert environment.image.startswith(found["worker"]["image"]["repository"] + ":")


def test_lint_strict(helm: str) -> None:
    done = run(helm, "lint", "--strict", str(CHART), "--namespace", NAMESPACE)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_configuration_file_arrives_as_written(helm: str, tmp_path: Path) -> None:
    config = {
        "limits": {"shard_cost_tokens": 2_000_000},
        "training_runs": [{"name": "r", "uri": "s3://bucket/r", "pattern": r"^step-0*(?P<step>\d+)$"}],
    }
    found = render(helm, tmp_path, {"config": config})["ConfigMap", "checkpoint-eval-config"]
    assert found["metadata"]["namespace"] == values()["airflow"]["namespace"]
    file = tmp_path / "config.yaml"
    file.write_text(found["data"]["config.yaml"], "utf-8")
    expected = values()["config"] | config
    expected["limits"] = values()["config"]["limits"] | config["limits"]
    assert load_config(file) == Config.model_validate(expected)


def test_airflow_may_do_with_pods_what_it_needs_and_no_more(helm: str, tmp_path: Path) -> None:
    objects = render(helm, tmp_path)
    rules = {
        resource: set(rule["verbs"])
        for rule in objects["Role", "checkpoint-eval-launcher"]["rules"]
        for resource in rule["resources"]
    }
    assert rules == {
        "pods": {"create", "delete", "get", "list", "patch", "watch"},
        "pods/log": {"get"},
        "events": {"list", "watch"},
    }
    subjects = objects["RoleBinding", "checkpoint-eval-launcher"]["subjects"]
    assert {s["name"] for s in subjects} == set(values()["airflow"]["serviceAccounts"])
    assert {s["namespace"] for s in subjects} == {"airflow"}
    assert not [kind for kind, _ in objects if kind.startswith("Cluster")]


def test_a_worker_account_has_no_rights_and_no_token(helm: str, tmp_path: Path) -> None:
    objects = render(helm, tmp_path)
    account = objects["ServiceAccount", EnvironmentSpec(name="e").service_account]
    assert account["automountServiceAccountToken"] is False
    bound = [s["name"] for (kind, _), found in objects.items() if kind == "RoleBinding" for s in found["subjects"]]
    assert account["metadata"]["name"] not in bound


def test_everything_is_denied_and_a_shards_pod_may_reach_what_it_needs(helm: str, tmp_path: Path) -> None:
    objects = render(helm, tmp_path)
    deny = objects["NetworkPolicy", "checkpoint-eval-default-deny"]["spec"]
    assert deny == {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]}
    egress = objects["NetworkPolicy", "checkpoint-eval-worker-egress"]["spec"]
    ports = [sorted({port["port"] for port in rule["ports"]}) for rule in egress["egress"]]
    assert ports == [[53], [5432], [443]]
    (kwargs,) = shard_pod_kwargs(
        plan_uri="u",
        run_id="r",
        shards=[0],
        group="logprob",
        tier="health",
        environment=EnvironmentSpec(name="e"),
        limits=Limits(),
        settings=Settings(),
    )
    assert egress["podSelector"]["matchLabels"].items() <= kwargs["labels"].items()


def test_the_migration_runs_as_a_worker_does_and_fails_without_the_secret(helm: str, tmp_path: Path) -> None:
    job = render(helm, tmp_path, {"worker": {"image": {"digest": "sha256:" + "0" * 64}}})[
        "Job", "checkpoint-eval-migrate"
    ]
    pod = job["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert container["command"] == ["python", "-m", "eval_tasks", "migrate"]
    assert container["image"] == "checkpoint-eval-worker@sha256:" + "0" * 64
    assert pod["securityContext"]["runAsUser"] == NOBODY
    assert pod["automountServiceAccountToken"] is False
    assert container["securityContext"]["readOnlyRootFilesystem"] is True
    assert [mount["mountPath"] for mount in container["volumeMounts"]] == [SCRATCH]
    url = next(e for e in container["env"] if e["name"] == "CHECKPOINT_EVAL_CATALOG_URL")
    assert url["valueFrom"]["secretKeyRef"] == {"name": WORKER_SECRET, "key": "CHECKPOINT_EVAL_CATALOG_URL"}


def test_no_secret_is_made(helm: str, tmp_path: Path) -> None:
    objects = render(helm, tmp_path, {"worker": {"env": {"AWS_REGION": "eu-central-1"}}})
    assert not [kind for kind, _ in objects if kind == "Secret"]
    assert objects["ConfigMap", WORKER_SECRET]["data"] == {"AWS_REGION": "eu-central-1"}


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"config": {"environments": [{"name": "e", "image": "i", "namespace": "other"}]}}, "has namespace"),
        ({"airflow": {"namespace": NAMESPACE}}, "would cut it off"),
        ({"registration": {"shipped": True}}, "worker.env has no CHECKPOINT_EVAL_STORE_URI"),
    ],
)
def test_values_that_cannot_work_are_refused(helm: str, tmp_path: Path, changes: dict[str, Any], said: str) -> None:
    file = tmp_path / "values.yaml"
    file.write_text(yaml.safe_dump(changes), "utf-8")
    done = run(helm, "template", "release", str(CHART), "--namespace", NAMESPACE, "--values", str(file))
    assert done.returncode != 0
    assert said in done.stderr


def airflow_values() -> dict[str, Any]:
    return yaml.safe_load((HELM_FOLDER / "airflow-values.yaml").read_text("utf-8"))


def test_airflows_variables_are_settings_and_its_connection_is_the_pods() -> None:
    from checkpoint_eval.pods import CONNECTION

    env = {entry["name"]: entry["value"] for entry in airflow_values()["env"]}
    known = {f"CHECKPOINT_EVAL_{name.upper()}" for name in Settings.model_fields}
    assert {name for name in env if name.startswith("CHECKPOINT_EVAL_")} <= known
    assert json.loads(env[f"AIRFLOW_CONN_{CONNECTION.upper()}"]) == {
        "conn_type": "kubernetes",
        "extra": {"in_cluster": True},
    }
    assert yaml.safe_load(airflow_values()["extraEnvFrom"]) == [{"secretRef": {"name": WORKER_SECRET}}]


def test_airflow_finds_the_configuration_where_it_is_mounted() -> None:
    found = airflow_values()
    env = {entry["name"]: entry["value"] for entry in found["env"]}
    mounts = {mount["name"]: mount["mountPath"] for mount in found["volumeMounts"]}
    assert env["CHECKPOINT_EVAL_CONFIG"] == f"{mounts['checkpoint-eval-config']}/config.yaml"
    assert env["CHECKPOINT_EVAL_HOME"] == mounts["checkpoint-eval-home"]
    assert {volume["name"] for volume in found["volumes"]} == mounts.keys()
    config_map = next(v for v in found["volumes"] if v["name"] == "checkpoint-eval-config")
    assert config_map["configMap"]["name"] == "checkpoint-eval-config"


def test_airflows_values_name_the_locked_airflow_and_hold_no_secret() -> None:
    found = airflow_values()
    lock = (HELM_FOLDER.parent / "requirements.txt").read_text("utf-8").splitlines()
    assert f"apache-airflow=={found['airflowVersion']}" in lock
    assert found["postgresql"]["enabled"] is False
    assert "metadataConnection" not in found["data"]
    assert not {"fernetKey", "webserverSecretKey", "apiSecretKey", "jwtSecret"} & found.keys()
    assert found["images"]["airflow"]["tag"] == yaml.safe_load((CHART / "Chart.yaml").read_text("utf-8"))["appVersion"]


@pytest.mark.parametrize("name", ["airflow-values.yaml", "airflow-telemetry.yaml", "airflow-remote-logs.yaml"])
def test_every_option_is_one_that_the_locked_airflow_knows_and_does_not_drop(name: str) -> None:
    import airflow

    text = (Path(airflow.__path__[0]) / "config_templates/config.yml").read_text("utf-8")
    known = yaml.safe_load(text)
    for section, options in yaml.safe_load((HELM_FOLDER / name).read_text("utf-8"))["config"].items():
        assert section in known, section
        for option in options:
            assert option in known[section]["options"], f"{section}.{option}"
            assert not known[section]["options"][option].get("version_deprecated"), f"{section}.{option}"


def test_telemetry_adds_variables_and_replaces_none_of_ours() -> None:
    """Helm does not merge lists: what stands in `env` would be lost."""
    telemetry = yaml.safe_load((HELM_FOLDER / "airflow-telemetry.yaml").read_text("utf-8"))
    assert telemetry.keys() == {"extraEnv", "config"} and "extraEnv" not in airflow_values()
    assert {entry["name"] for entry in yaml.safe_load(telemetry["extraEnv"])} == {
        "OTEL_EXPORTER_OTLP_ENDPOINT",
        "OTEL_EXPORTER_OTLP_PROTOCOL",
        "OTEL_SERVICE_NAME",
    }


def test_remote_logs_go_where_the_store_is_and_hold_no_secret() -> None:
    logs = yaml.safe_load((HELM_FOLDER / "airflow-remote-logs.yaml").read_text("utf-8"))
    options = logs["config"]["logging"]
    (connection,) = yaml.safe_load(logs["extraEnv"])
    assert connection["name"] == f"AIRFLOW_CONN_{options['remote_log_conn_id'].upper()}"
    assert json.loads(connection["value"]) == {"conn_type": "aws"}
    store = next(e["value"] for e in airflow_values()["env"] if e["name"] == "CHECKPOINT_EVAL_STORE_URI")
    assert options["remote_base_log_folder"].split("/")[:3] == store.split("/")[:3]


@pytest.mark.parametrize("kind", ["environments", "training_runs"])
def test_a_name_that_stands_twice_is_refused_before_anything_is_installed(helm: str, tmp_path: Path, kind: str) -> None:
    entry = {"name": "same", "image": "i:1", "namespace": NAMESPACE, "uri": "s3://b/r"}
    wanted = [{name: entry[name] for name in keys} for keys in [KEYS[kind]] * 2]
    file = tmp_path / "values.yaml"
    file.write_text(yaml.safe_dump({"config": {kind: wanted}}), "utf-8")
    done = run(helm, "template", "release", str(CHART), "--namespace", NAMESPACE, "--values", str(file))
    assert done.returncode != 0
    assert f'config.{kind}: the name "same" stands twice' in done.stderr


KEYS = {"environments": ("name", "image", "namespace"), "training_runs": ("name", "uri")}
