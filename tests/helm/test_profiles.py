"""Each profile as it renders: it fits schema and code, any supported Kubernetes takes it, its jobs' commands run."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from checkpoint_eval.pods import pod_template, shard_pod_kwargs
from eval_tasks.cli import main
from eval_tasks.settings import Config, Limits, Settings, load_config
from tests.helm.conftest import CHART, NAMESPACE, REPOSITORY, Objects, objects_of, rendered, run

PROFILES = ("dev", "single-gpu", "lab")
TIERS = ("health", "selection", "release")
KUBERNETES = ["1.33.0", *(pytest.param(f"1.{n}.0", marks=pytest.mark.full) for n in (34, 35, 36)), "1.37.0"]


def file(profile: str) -> Path:
    return REPOSITORY / f"helm/profiles/{profile}.yaml"


def config(objects: Objects, tmp_path: Path) -> Config:
    path = tmp_path / "config.yaml"
    path.write_text(objects["ConfigMap", "checkpoint-eval-config"]["data"]["config.yaml"], "utf-8")
    return load_config(path)


def pods(found: Config) -> list[dict[str, Any]]:
    """A whole pod of every environment and tier, as the operator would send it."""
    made = []
    for environment in found.environments:
        for tier in TIERS:
            (kwargs,) = shard_pod_kwargs(
                plan_uri="s3://b/plan",
                run_id="0" * 32,
                shards=[0],
                group="logprob",
                tier=tier,
                environment=environment,
                limits=found.limits,
                settings=Settings(store_uri="s3://b/store"),
            )
            pod = json.loads(json.dumps(kwargs["pod_template_dict"]))
            pod["metadata"] |= {"name": f"{environment.name}-{tier}", "labels": kwargs["labels"]}
            pod["spec"]["containers"][0]["args"] = kwargs["arguments"]
            made.append(pod)
    return made


def test_every_profile_is_tested() -> None:
    assert {path.stem for path in (REPOSITORY / "helm/profiles").glob("*.yaml")} == set(PROFILES)


@pytest.mark.parametrize("profile", PROFILES)
def test_values_fit_the_schema_and_lint(helm: str, profile: str) -> None:
    changes = yaml.safe_load(file(profile).read_text("utf-8"))
    schema = json.loads((CHART / "values.schema.json").read_text("utf-8"))
    assert changes.keys() <= schema["properties"].keys()
    jsonschema.validate(merged(yaml.safe_load((CHART / "values.yaml").read_text("utf-8")), changes), schema)
    done = run(helm, "lint", "--strict", str(CHART), "--namespace", NAMESPACE, "--values", str(file(profile)))
    assert done.returncode == 0, done.stdout + done.stderr


def merged(values: Any, changes: Any) -> Any:
    """As Helm puts one file of values over another."""
    if not isinstance(values, dict) or not isinstance(changes, dict):
        return changes
    return values | {name: merged(values.get(name), value) for name, value in changes.items()}


@pytest.mark.parametrize("version", KUBERNETES)
def test_every_supported_kubernetes_takes_everything(
    helm: str, kubernetes_validate: str, tmp_path: Path, version: str
) -> None:
    """What the chart renders for each profile, the pods that Airflow then launches, and pods with every option."""
    files = []
    for profile in PROFILES:
        text = rendered(helm, file(profile))
        (tmp_path / profile).mkdir()
        made = pods(config(objects_of(text), tmp_path / profile))
        assert len(made) >= len(TIERS)
        path = tmp_path / f"{profile}.yaml"
        path.write_text(text + "---\n" + yaml.safe_dump_all(made), "utf-8")
        files.append(str(path))
    files.append(str(REPOSITORY / "helm/convert-pod.yaml"))
    files += [str(path) for path in sorted((REPOSITORY / "tests/checkpoint_eval/golden").glob("*.yaml"))]
    done = run(kubernetes_validate, "--strict", "--no-warn", "-k", version, *files)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    assert "job/checkpoint-eval-register" in done.stdout + done.stderr


def test_what_is_not_valid_is_found(kubernetes_validate: str, tmp_path: Path) -> None:
    pod = pod_template(Config().environments[0], Limits(), Settings())
    pod["metadata"]["name"] = "p"
    pod["spec"]["priorityClas"] = "x"
    path = tmp_path / "pod.yaml"
    path.write_text(yaml.safe_dump(pod), "utf-8")
    assert run(kubernetes_validate, "--strict", str(path)).returncode != 0


@pytest.mark.parametrize("profile", PROFILES)
def test_pods_have_the_priority_class_of_their_tier_and_fit_the_quota(helm: str, tmp_path: Path, profile: str) -> None:
    objects = objects_of(rendered(helm, file(profile)))
    found = config(objects, tmp_path)
    classes = {name for kind, name in objects if kind == "PriorityClass"}
    for pod in pods(found):
        assert (
            pod["spec"]["priorityClassName"] == f"checkpoint-eval-{pod['metadata']['labels']['checkpoint-eval/tier']}"
        )
    assert {pod["spec"]["priorityClassName"] for pod in pods(found)} == classes
    hard = objects.get(("ResourceQuota", "checkpoint-eval"), {"spec": {"hard": {}}})["spec"]["hard"]
    for name in (name.removeprefix("requests.") for name in hard if name.startswith("requests.")):
        # A pod that requests nothing of what is limited would be refused; of extended resources that is 0.
        for pod in pods(found):
            requests = pod["spec"]["containers"][0]["resources"]["requests"]
            assert name in requests or "/" in name
    assert all(isinstance(amount, str) for amount in hard.values())


def test_health_goes_before_release_and_release_before_selection(helm: str) -> None:
    objects = objects_of(rendered(helm))
    value = {tier: objects["PriorityClass", f"checkpoint-eval-{tier}"]["value"] for tier in TIERS}
    assert value["health"] > value["release"] > value["selection"] > 0
    assert not any(found.get("globalDefault") for (kind, _), found in objects.items() if kind == "PriorityClass")


def test_classes_have_the_names_that_pods_ask_for(helm: str, tmp_path: Path) -> None:
    changes = tmp_path / "values.yaml"
    changes.write_text("config: {limits: {priority_classes: {health: urgent}}}", "utf-8")
    assert ("PriorityClass", "urgent") in objects_of(rendered(helm, changes))
    changes.write_text("priorityClasses: {create: false}", "utf-8")
    assert not [kind for kind, _ in objects_of(rendered(helm, changes)) if kind == "PriorityClass"]


@pytest.mark.parametrize("names", ["health: urgent, release: urgent", "health: checkpoint-eval-release"])
def test_two_tiers_of_one_class_are_refused_unless_somebody_else_makes_it(
    helm: str, tmp_path: Path, names: str
) -> None:
    changes = tmp_path / "values.yaml"
    changes.write_text(f"config: {{limits: {{priority_classes: {{{names}}}}}}}", "utf-8")
    done = run(helm, "template", "release", str(CHART), "--values", str(changes))
    assert done.returncode != 0
    assert "the tiers health and release would both have the class" in done.stderr
    changes.write_text(f"{changes.read_text('utf-8')}\npriorityClasses: {{create: false}}", "utf-8")
    rendered(helm, changes)


def test_what_is_registered_is_registered_by_the_jobs_own_commands(
    helm: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The job's steps, in order, with its ConfigMaps as folders: twice, since an upgrade runs them again."""
    for name in [name for name in os.environ if name.startswith("CHECKPOINT_EVAL_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("CHECKPOINT_EVAL_HOME", str(tmp_path / "home"))
    suite = {
        "name": "mini",
        "version": "1",
        "tier": "selection",
        "benchmarks": [{"name": "mmlu-mini"}],
    }
    changes = tmp_path / "values.yaml"
    changes.write_text(yaml.safe_dump({"registration": {"suites": {"mini.yaml": suite}}}), "utf-8")
    objects = objects_of(rendered(helm, file("lab"), changes))
    spec = objects["Job", "checkpoint-eval-register"]["spec"]["template"]["spec"]
    for kind in ("suites", "rules"):
        (tmp_path / kind).mkdir()
        for name, content in objects["ConfigMap", f"checkpoint-eval-{kind}"]["data"].items():
            (tmp_path / kind / name).write_text(content, "utf-8")
    steps = [*spec["initContainers"], *spec["containers"]]
    assert [step["name"] for step in steps] == ["benchmarks", "rules", "suites"]
    for _ in range(2):
        for step in steps:
            assert step["command"][:3] == ["python", "-m", "eval_tasks"]
            arguments = [str(tmp_path) + part if part.startswith("/") else part for part in step["command"][3:]]
            assert main(arguments) == 0, capsys.readouterr().err
    said = capsys.readouterr().out
    assert "mini@1: 1 benchmarks" in said and "ship: superiority_by_margin" in said


def test_only_what_stores_items_has_the_credentials_of_storage(helm: str) -> None:
    objects = objects_of(rendered(helm, file("lab")))
    secret = {"secretRef": {"name": "checkpoint-eval-worker"}}
    for name, has in (("checkpoint-eval-migrate", False), ("checkpoint-eval-register", True)):
        spec = objects["Job", name]["spec"]["template"]["spec"]
        for container in [*spec.get("initContainers", []), *spec["containers"]]:
            assert (secret in container["envFrom"]) is has
            assert container["securityContext"]["readOnlyRootFilesystem"] is True


def test_airflows_own_chart_takes_our_values(helm: str) -> None:
    """With AIRFLOW_CHART=folder (or archive) of the official chart."""
    chart = os.environ.get("AIRFLOW_CHART")
    if not chart:
        pytest.skip("no copy of Airflow's chart: set AIRFLOW_CHART to its folder")
    files = [str(REPOSITORY / f"helm/airflow-{name}.yaml") for name in ("values", "telemetry", "remote-logs")]
    values = [argument for path in files for argument in ("--values", path)]
    done = run(helm, "template", "airflow", chart, "--namespace", "airflow", *values)
    assert done.returncode == 0, done.stderr
    made = objects_of(done.stdout)
    image = "checkpoint-eval-airflow:0.1.0"
    assert image in done.stdout
    assert {("Deployment", "airflow-triggerer"), ("StatefulSet", "airflow-triggerer")} & made.keys()
