"""Places from the environment and policy from a file; every refusal names the field, the value and the way out."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import ValidationError

from eval_tasks.errors import UserError
from eval_tasks.settings import Config, EnvironmentSpec, Settings, load_config

RUN = {"name": "tiny", "uri": "s3://bucket/tiny"}


@pytest.fixture(autouse=True)
def no_settings_of_the_caller(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HOME", "STORE_URI", "CATALOG_URL", "CONFIG"):
        monkeypatch.delenv(f"CHECKPOINT_EVAL_{name}", raising=False)
    monkeypatch.delenv("HF_OFFLINE", raising=False)


@pytest.fixture
def refused(tmp_path: Path) -> Any:
    """`refused(document) -> message` of the UserError that the file with this content gives."""

    def message(document: object) -> str:
        path = tmp_path / "config.yaml"
        path.write_text(document if isinstance(document, str) else yaml.safe_dump(document), "utf-8")
        with pytest.raises(UserError) as caught:
            load_config(path)
        assert str(caught.value).startswith(str(path))
        return str(caught.value).removeprefix(str(path))

    return message


def test_everything_lies_under_the_home_folder_by_default(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("CHECKPOINT_EVAL_HOME", str(tmp_path))
    settings = Settings()
    assert settings.home == tmp_path
    assert settings.store_uri == str(tmp_path / "store")
    assert settings.catalog_url == f"sqlite:///{tmp_path / 'catalog.db'}"
    assert settings.config == tmp_path / "config.yaml"
    assert settings.hf_offline is True


def test_without_any_setting_the_home_is_in_the_users_own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert Settings().home == tmp_path / ".checkpoint-eval"


def test_each_place_can_be_set_apart(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    wanted = {
        "HOME": str(tmp_path / "home"),
        "STORE_URI": "s3://bucket/evals",
        "CATALOG_URL": "postgresql+psycopg://db/evals",
        "CONFIG": str(tmp_path / "elsewhere.yaml"),
    }
    for name, value in wanted.items():
        monkeypatch.setenv(f"CHECKPOINT_EVAL_{name}", value)
    monkeypatch.setenv("HF_OFFLINE", "0")
    settings = Settings()
    assert (settings.store_uri, settings.catalog_url) == (wanted["STORE_URI"], wanted["CATALOG_URL"])
    assert (settings.config, settings.hf_offline) == (tmp_path / "elsewhere.yaml", False)


def test_a_relative_home_is_made_absolute_since_pods_start_elsewhere(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CHECKPOINT_EVAL_HOME", "here")
    assert Settings().store_uri == str(tmp_path / "here" / "store")


def test_a_setting_that_does_not_fit_names_its_variable_and_value(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_OFFLINE", "maybe")
    with pytest.raises(UserError, match=r"HF_OFFLINE: .*boolean.*\(got 'maybe'\)"):
        Settings()


def test_an_absent_or_empty_file_is_an_empty_configuration(tmp_path: Path) -> None:
    (tmp_path / "empty.yaml").write_text("")
    for path in (None, tmp_path / "absent.yaml", tmp_path / "empty.yaml"):
        config = load_config(path)
        assert config == Config()
        assert [e.name for e in config.environments] == ["local"]


def test_defaults_of_a_training_run(tmp_path: Path) -> None:
    path = tmp_path / "c.yaml"
    path.write_text(yaml.safe_dump({"training_runs": [{**RUN, "health": {"suite": "h"}}]}))
    run = load_config(path).training_run("tiny")
    assert (run.quiet_seconds, run.marker, run.promote_marker, run.selection) == (60.0, None, "PROMOTE", None)
    assert run.health is not None
    assert (run.health.every, run.health.baseline, run.health.rule) == (1, "none", None)


def test_an_unknown_field_shows_the_close_ones_at_its_place(refused: Any) -> None:
    said = refused({"training_runs": [{**RUN, "quiet_second": 5}]})
    assert said.startswith(": training_runs.0.quiet_second: unknown field; close: 'quiet_seconds'")
    said = refused({"training_runs": [{**RUN, "health": {"suit": "h"}}]})
    assert "training_runs.0.health.suite: required, and absent" in said
    assert "training_runs.0.health.suit: unknown field; close: 'suite'" in said
    assert refused({"enviroments": []}) == ": enviroments: unknown field; close: 'environments'"
    warm = refused({"environments": [{"name": "local", "temperature": 0.6}]})
    assert warm.startswith(": environments.0.temperature: unknown field; scored generation is greedy, but for ")


@pytest.mark.parametrize(
    ("document", "said"),
    [
        ({"poll_seconds": 0}, r"poll_seconds: .*greater than 0 \(got 0\)"),
        ({"limits": {"max_shards": 1025}}, r"limits\.max_shards: .*1024 \(got 1025\)"),
        ({"limits": {"lease_seconds": "soon"}}, r"limits\.lease_seconds: .*number.* \(got 'soon'\)"),
        ({"environments": [{"name": "x", "dtype": "int8"}]}, r"environments\.0\.dtype: .*'bfloat16'.*\(got 'int8'\)"),
        ({"training_runs": [{**RUN, "name": "Tiny Run"}]}, r"training_runs\.0\.name: .*pattern.*\(got 'Tiny Run'\)"),
        (
            {"training_runs": [{**RUN, "pattern": "("}]},
            r"training_runs\.0\.pattern: .*not a regular expression.*got '\('",
        ),
        ({"training_runs": [{**RUN, "pattern": r"(\d+)"}]}, r"needs a named group 'step', such as"),
        ({"training_runs": [{**RUN, "health": {"suite": "h", "every": 0}}]}, r"health\.every: .*\(got 0\)"),
        (
            {"training_runs": [{**RUN, "health": {"suite": "h", "baseline": "last"}}]},
            r"health\.baseline: .*first.*\(got 'last'\)",
        ),
        (
            {"training_runs": [RUN, {**RUN, "uri": "s3://other"}]},
            r"training_runs: .*twice here: tiny ",
        ),
        ({"environments": [{"name": "a"}, {"name": "b"}, {"name": "a"}]}, r"environments: .*twice here: a"),
        ({"training_runs": [{"name": "x"}]}, r"training_runs\.0\.uri: required, and absent"),
        ("- a\n- b\n", "must hold a mapping, not list"),
        ("a: [", "is not readable as YAML"),
    ],
)
def test_a_value_that_does_not_fit_is_named(refused: Any, document: object, said: str) -> None:
    assert re.search(said, refused(document))


def test_a_section_that_breaks_a_rule_is_shown_by_its_beginning(refused: Any) -> None:
    assert re.search(r"twice here: tiny \(got .{200}\.\.\.\)$", refused({"training_runs": [RUN] * 20}))


def test_a_folder_in_the_place_of_the_file_is_a_users_error(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"cannot read .*: Is a directory; give the path of a YAML file"):
        load_config(tmp_path)


def test_several_mistakes_are_all_told_at_once(refused: Any) -> None:
    assert refused({"poll_seconds": -1, "limits": {"max_shards": 0}, "x": 1}).count(";") >= 2


def test_names_are_looked_up_with_close_ones() -> None:
    config = Config.model_validate({"training_runs": [RUN], "environments": [{"name": "cpu"}, {"name": "gpu-h200"}]})
    with pytest.raises(UserError, match="no training run 'tinny' in the configuration; close: 'tiny'"):
        config.training_run("tinny")
    with pytest.raises(UserError, match=r"no environment 'gpu' in the configuration; close: .*'gpu-h200'"):
        config.environment("gpu")


def test_the_first_live_environment_is_the_default_and_others_go_by_name() -> None:
    retired, live = EnvironmentSpec(name="old", live=False), EnvironmentSpec(name="new")
    config = Config(environments=(retired, live))
    assert config.environment(None) == live
    assert config.environment("old") == retired
    with pytest.raises(UserError, match=r"no live environment .*; set 'live: true' under 'environments'"):
        Config(environments=(retired,)).environment(None)


def test_a_configuration_is_frozen() -> None:
    with pytest.raises(ValidationError):
        Config().poll_seconds = 1.0  # type: ignore[misc]


def test_an_environment_may_ask_for_the_reference_path() -> None:
    from eval_tasks.settings import EnvironmentSpec

    fast, slow = EnvironmentSpec(name="fast").engine_config(), EnvironmentSpec(name="slow", attention="reference")
    assert (fast.attention, fast.prefix) == ("tile", "shared")
    assert (slow.engine_config("bfloat16").attention, slow.engine_config("bfloat16").prefix) == ("reference", "none")
    assert slow.engine_config("bfloat16").dtype == "bfloat16"
    assert slow.engine_config().engine_digest != fast.engine_digest


def test_an_environment_may_ask_for_two_ranks() -> None:
    from eval_tasks.settings import EnvironmentSpec

    assert EnvironmentSpec(name="two", tensor_parallel=2).engine_config().tensor_parallel == 2


@pytest.mark.parametrize(
    ("environment", "named"),
    [
        ({"image": "worker@sha256:12"}, "not an image"),
        ({"image": "a b"}, "not an image"),
        ({"cpu": "much"}, "environments.0.cpu"),
        ({"memory": "4 GB"}, "environments.0.memory"),
        ({"name": "GPU 1"}, "environments.0.name"),
        ({"node_selector": {"a b": "c"}}, "no label of a node"),
        ({"tolerations": [{"ky": "x"}]}, "no field 'ky'; close: 'key'"),
        ({"tolerations": [{"key": "x", "effect": "Never"}]}, "effect is one of NoSchedule"),
        ({"tolerations": [{"value": "x"}]}, "needs 'operator: Exists'"),
    ],
)
def test_an_environment_that_kubernetes_would_refuse_is_refused_here(
    refused: Any, environment: dict[str, Any], named: str
) -> None:
    assert named in refused({"environments": [{"name": "gpu", **environment}]})


def test_an_environment_as_a_cluster_has_it() -> None:
    spec = EnvironmentSpec(
        name="h100-cu13",
        image=f"registry.example:5000/eval/worker:0.1.0@sha256:{'0' * 64}",
        cpu="7500m",
        memory="1.5Gi",
        node_selector={"nvidia.com/gpu.product": "H100", "pool": ""},
        tolerations=({"key": "gpu", "operator": "Exists", "effect": "NoSchedule"}, {"operator": "Exists"}),
        live=False,
    )
    assert spec.is_pinned and spec.state == "retired"
    assert not EnvironmentSpec(name="local").is_pinned and EnvironmentSpec(name="local").state == "live"
    assert EnvironmentSpec(name="mock", engine="mock").state == "mock"


def test_without_a_fixed_suite_or_a_live_environment_there_is_no_night(refused: Any) -> None:
    with pytest.raises(UserError, match="no fixed suite is configured"):
        Config().nightly()
    retired = Config(environments=(EnvironmentSpec(name="old", live=False),))
    with pytest.raises(UserError, match="no live environment"):
        retired.live_environments()
    assert "determinism.bound_points" in refused({"determinism": {"suite": "s", "checkpoint": "c", "bound_points": -1}})
    assert "determinism.checkpoint: required" in refused({"determinism": {"suite": "s"}})
    assert "determinism.checkpoint_id" in refused(
        {"determinism": {"suite": "s", "checkpoint": "c", "checkpoint_id": "x"}}
    )
