"""Where things are, from CHECKPOINT_EVAL_* variables and one YAML file. Reads no storage and opens no connection.

`Settings` says where the store, the catalog and the configuration lie; `Config` is what the YAML file holds: training
runs to watch, tier policy, environments. Text from people is validated here, with a way out in each message.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import yaml
from pydantic import BaseModel, Field, ValidationError, field_validator, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from eval_tasks.errors import UserError, did_you_mean
from eval_tasks.placement import QUANTITY, CheckpointCache, GpuNode
from eval_tasks.policies import AlertPolicy, Budget, MaintenancePolicy, Section

if TYPE_CHECKING:
    from eval_tasks.records import EngineConfig

_SHOWN_CHARS = 200

# As Kubernetes has them.
_IMAGE = re.compile(r"[a-z0-9][a-zA-Z0-9._/:-]*(@sha256:[0-9a-f]{64})?")
_LABEL = re.compile(r"([a-z0-9]([a-z0-9.-]*[a-z0-9])?/)?[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?")
_LABEL_VALUE = re.compile(r"([A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?)?")
_TOLERATION = {
    "operator": ("Equal", "Exists"),
    "effect": ("NoSchedule", "PreferNoSchedule", "NoExecute"),
}


class Settings(BaseSettings):
    """Places. `home` holds the embedded defaults; `store_uri` is any fsspec URI, `catalog_url` any SQLAlchemy URL."""

    model_config = SettingsConfigDict(env_prefix="CHECKPOINT_EVAL_", extra="ignore", frozen=True)

    home: Path = Path.home() / ".checkpoint-eval"
    store_uri: str = ""
    catalog_url: str = ""
    config: Path | None = None
    hf_offline: bool = Field(default=True, alias="HF_OFFLINE")

    def __init__(self, **values: Any) -> None:
        """From the environment, `values` first. Raises UserError naming the variable."""
        try:
            super().__init__(**values)
        except ValidationError as error:
            raise UserError(explain_validation("settings (environment variables)", error, type(self))) from error

    @model_validator(mode="before")
    @classmethod
    def _places_under_home(cls, values: dict[str, Any]) -> dict[str, Any]:
        home = Path(values.get("home") or Path.home() / ".checkpoint-eval").expanduser().resolve()
        values["home"] = home
        values["store_uri"] = values.get("store_uri") or str(home / "store")
        values["catalog_url"] = values.get("catalog_url") or f"sqlite:///{home / 'catalog.db'}"
        values["config"] = values.get("config") or home / "config.yaml"
        return values


class TierPolicy(Section):
    """When a tier runs on a training run's checkpoints, and what it runs.

    `every` k: the k-th checkpoint, the 2k-th and so on, as they are ready. `baseline`: ``previous`` and ``first`` are
    the nearest and the earliest checkpoint of the run at a lower step; anything with a slash is a checkpoint's folder.
    `coalesce_beyond` n, for health alone: with more than n evaluations waiting or under way the latest go first, and
    older ones are skipped, on purpose and on record; without it every checkpoint is evaluated.
    """

    suite: str
    every: int = Field(default=1, ge=1)
    coalesce_beyond: int | None = Field(default=None, ge=1)
    baseline: str = Field(default="none", pattern=r"^(none|previous|first|.*/.*)$")
    rule: str | None = None


class TrainingRun(Section):
    """One training run to watch. `uri` holds one directory per step; `pattern` finds the step in its name.

    A directory counts as landed once its files are complete and unchanged for `quiet_seconds` and, when `marker` is
    set, once that file is there. One that is not complete after `alert_after_seconds` raises one alert. So does one
    without a health verdict `health_deadline_seconds` after its last change.
    """

    name: str = Field(pattern=r"^[a-z0-9]([a-z0-9._-]{0,61}[a-z0-9])?$")
    uri: str
    pattern: str = r"^(?:step|checkpoint|global_step|iter)[-_]?0*(?P<step>\d+)$"
    marker: str | None = None
    quiet_seconds: float = Field(default=60.0, ge=0)
    alert_after_seconds: float = Field(default=3600.0, gt=0)
    promote_marker: str = "PROMOTE"
    corpora: tuple[str, ...] = ()
    health: TierPolicy | None = None
    selection: TierPolicy | None = None
    environment: str | None = None
    health_deadline_seconds: float = Field(default=600.0, gt=0)

    @model_validator(mode="after")
    def _each_tier_has_its_own_policy(self) -> TrainingRun:
        if self.health is not None and self.health.every != 1:
            raise ValueError("health.every: the health tier reads every checkpoint; 'every' belongs to selection")
        if self.selection is not None and self.selection.coalesce_beyond is not None:
            raise ValueError("selection.coalesce_beyond: only health evaluations are skipped; raise 'every' instead")
        return self

    @field_validator("pattern")
    @classmethod
    def _pattern_finds_a_step(cls, pattern: str) -> str:
        try:
            groups = re.compile(pattern).groupindex
        except re.error as error:
            raise ValueError(f"not a regular expression: {error}") from error
        if "step" not in groups:
            raise ValueError("needs a named group 'step', such as ^step-0*(?P<step>\\d+)$")
        return pattern


PriorityClass = Annotated[str, Field(pattern=r"^[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?$")]
NodeName = Annotated[str, Field(pattern=r"^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$")]


class EnvironmentSpec(Section):
    """A pinned class of machines for pods. Quantities are Kubernetes quantities (``2Gi``, ``500m``).

    `image` is pinned by digest (``name@sha256:...``) where a cluster may pull anything else under its tag.
    `attention`: ``reference`` is the slow path for architectures that the engine was not verified on.
    `tensor_parallel`: how many local processes share a model's layers. `engine`: ``mock`` runs no model, and makes up
    answers of which a share of `mock_accuracy` is right; such an environment is never live, so that only its name
    chooses it. `gpu_node`, `avoid_nodes`: which nodes are meant. `shm`: shared memory, which counts as memory;
    `ephemeral_storage`: what is asked of the node's disk, `ephemeral_storage_limit` what a pod may fill. `queue`: the
    Kueue queue that pods wait in. `usd_per_device_hour`: what a GPU (or, without any, a pod's machine) costs.
    `tokens_per_second`: what one computes, and `load_seconds` what a pod needs before, until runs have shown both.
    """

    name: str = Field(pattern=r"^[a-z0-9]([a-z0-9._-]{0,61}[a-z0-9])?$")
    image: str = "checkpoint-eval-worker:local"
    namespace: str = "checkpoint-eval"
    service_account: str = "checkpoint-eval-worker"
    node_selector: dict[str, str] = Field(default_factory=dict)
    tolerations: tuple[dict[str, Any], ...] = ()
    cpu: str = Field(default="1", pattern=QUANTITY)
    memory: str = Field(default="4Gi", pattern=QUANTITY)
    gpus: int = Field(default=0, ge=0)
    gpu_node: GpuNode | None = None
    avoid_nodes: tuple[NodeName, ...] = ()
    shm: str = Field(default="1Gi", pattern=QUANTITY)
    ephemeral_storage: str = Field(default="1Gi", pattern=QUANTITY)
    ephemeral_storage_limit: str | None = Field(default=None, pattern=QUANTITY)
    checkpoint_cache: CheckpointCache | None = None
    queue: str | None = Field(default=None, pattern=r"^[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?$")
    device: Literal["cpu", "cuda"] = "cpu"
    dtype: Literal["float32", "bfloat16", "float16"] = "float32"
    attention: Literal["tile", "reference"] = "tile"
    tensor_parallel: int = Field(default=1, ge=1)
    engine: Literal["torch", "mock"] = "torch"
    mock_accuracy: float = Field(default=0.7, ge=0, le=1)
    live: bool = True
    usd_per_device_hour: float | None = Field(default=None, ge=0)
    tokens_per_second: float | None = Field(default=None, gt=0)
    load_seconds: float = Field(default=0.0, ge=0)

    @model_validator(mode="before")
    @classmethod
    def _a_mock_is_never_live(cls, values: Any) -> Any:
        if isinstance(values, dict) and values.get("engine") == "mock":
            if values.get("live", False):
                raise ValueError("an environment with engine 'mock' is never live; leave 'live' out")
            return {**values, "live": False}
        return values

    @model_validator(mode="after")
    def _a_gpu_node_is_for_gpus(self) -> EnvironmentSpec:
        if self.gpu_node is not None and not self.gpus:
            raise ValueError(
                f"environment {self.name} wants nodes by their GPUs and asks for none; "
                "set 'gpus', or leave gpu_node out"
            )
        return self

    @field_validator("image")
    @classmethod
    def _image_can_be_pulled(cls, image: str) -> str:
        if not _IMAGE.fullmatch(image):
            raise ValueError("not an image; it should read name:tag or name@sha256:<64 hexadecimal digits>")
        return image

    @field_validator("node_selector")
    @classmethod
    def _labels_are_labels(cls, labels: dict[str, str]) -> dict[str, str]:
        for name, value in labels.items():
            if not _LABEL.fullmatch(name) or not _LABEL_VALUE.fullmatch(value):
                raise ValueError(f"{name}: {value} is no label of a node; it should read key: value, as in Kubernetes")
        return labels

    @field_validator("tolerations")
    @classmethod
    def _tolerations_are_those_of_kubernetes(
        cls, tolerations: tuple[dict[str, Any], ...]
    ) -> tuple[dict[str, Any], ...]:
        for toleration in tolerations:
            if unknown := sorted(set(toleration) - _TOLERATION.keys() - {"key", "value", "tolerationSeconds"}):
                names = ["key", "value", "tolerationSeconds", *_TOLERATION]
                raise ValueError(f"a toleration has no field {unknown[0]!r}; {did_you_mean(unknown[0], names)}")
            for name, allowed in _TOLERATION.items():
                if toleration.get(name, allowed[0]) not in allowed:
                    raise ValueError(f"a toleration's {name} is one of {', '.join(allowed)}, not {toleration[name]!r}")
            if "key" not in toleration and toleration.get("operator") != "Exists":
                raise ValueError("a toleration without a key needs 'operator: Exists'")
        return tolerations

    @property
    def state(self) -> str:
        """``live``, ``retired`` (nothing new is sent there by default, no night watches it), or ``mock``."""
        return "mock" if self.engine == "mock" else "live" if self.live else "retired"

    @property
    def is_pinned(self) -> bool:
        """Whether the image is named by its digest."""
        return "@sha256:" in self.image

    def engine_config(self, dtype: str | None = None) -> EngineConfig:
        """How the engine is to run there; `dtype` instead of its own where given."""
        # Files that Airflow parses read settings and need none of the records.
        from eval_tasks.records import EngineConfig

        return EngineConfig(
            device=self.device,
            dtype=dtype or self.dtype,  # type: ignore[arg-type]
            attention=self.attention,
            tensor_parallel=self.tensor_parallel,
            prefix="none" if self.attention == "reference" else "shared",
            mock_accuracy=self.mock_accuracy if self.engine == "mock" else None,
        )


class Limits(Section):
    """How a plan is cut, and what its pods are given. `max_shards` stays below Airflow's max_map_length (1,024).

    `priority_classes`: tier to the Kubernetes PriorityClass of its pods; a tier without one has the cluster's default.
    """

    shard_cost_tokens: int = Field(default=2_000_000, ge=1)
    max_shards: int = Field(default=1024, ge=1, le=1024)
    lease_seconds: float = Field(default=300.0, gt=0)
    pod_deadline_seconds: int = Field(default=6 * 3600, gt=0)
    priority_classes: dict[Literal["health", "selection", "release"], PriorityClass] = Field(default_factory=dict)


class DeterminismPolicy(Section):
    """What the nights run: a fixed suite on a fixed checkpoint, in every live environment.

    A new fingerprint whose scores differ from the last adopted baseline's by no more than the bound is adopted by
    itself: `bound_points` (percentage points) of a fraction, `bound_loss` (in the metric's unit) of anything else.
    `checkpoint_id`: the digest that the checkpoint must have, where it is known.
    """

    suite: str = Field(min_length=1)
    checkpoint: str = Field(min_length=1)
    checkpoint_id: str = Field(default="", pattern=r"^([0-9a-f]{64})?$")
    bound_points: float = Field(default=0.5, ge=0)
    bound_loss: float = Field(default=0.001, ge=0)


class ContaminationPolicy(Section):
    """The rule that benchmarks are held against corpora by (`contamination.Rule`), and how a scan is cut.

    `thresholds`: n-gram length in words -> share of a question's or an answer's n-grams from which an item is
    contaminated. `environment`: whose pods scan, the first live one where none is named.
    """

    thresholds: dict[int, float] = Field(default_factory=lambda: {8: 0.5, 13: 0.2})
    document_limit: int = Field(default=1000, ge=1)
    template_limit: int = Field(default=10, ge=1)
    examples: int = Field(default=3, ge=1)
    answer_window: int = Field(default=50, ge=1)
    shard_bytes: int = Field(default=4 * 1024**3, ge=1)
    environment: str | None = None


class Config(Section):
    """The whole configuration file."""

    training_runs: tuple[TrainingRun, ...] = ()
    environments: tuple[EnvironmentSpec, ...] = (EnvironmentSpec(name="local"),)
    poll_seconds: float = Field(default=30.0, gt=0)
    limits: Limits = Limits()
    determinism: DeterminismPolicy | None = None
    alerts: AlertPolicy = AlertPolicy()
    budgets: tuple[Budget, ...] = ()
    contamination: ContaminationPolicy = ContaminationPolicy()
    maintenance: MaintenancePolicy = MaintenancePolicy()

    @field_validator("training_runs", "environments")
    @classmethod
    def _each_name_once(cls, named: tuple[Any, ...]) -> tuple[Any, ...]:
        """Two training runs of one name would each find the other's landings gone, again and again."""
        names = [section.name for section in named]
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise ValueError(f"a name stands once; twice here: {', '.join(twice)}")
        return named

    @model_validator(mode="after")
    def _budgets_can_be_kept(self) -> Config:
        """A name that no training run has, or money without a price, would be a budget that stops nothing."""
        names = [run.name for run in self.training_runs]
        priceless = [e.name for e in self.environments if e.engine == "torch" and e.usd_per_device_hour is None]
        for budget in self.budgets:
            if budget.training_run not in (None, "adhoc", *names):
                known = did_you_mean(budget.training_run or "", names)
                raise ValueError(
                    f"a budget is for training run {budget.training_run!r}, which is not configured; {known}"
                )
            if budget.usd is not None and priceless:
                raise ValueError(
                    "a budget in usd needs usd_per_device_hour of every environment; absent from: "
                    + ", ".join(priceless)
                )
        return self

    def training_run(self, name: str) -> TrainingRun:
        """The training run of that name. Raises UserError with close names."""
        for run in self.training_runs:
            if run.name == name:
                return run
        raise UserError(
            f"no training run {name!r} in the configuration; {did_you_mean(name, [r.name for r in self.training_runs])}"
        )

    def live_environments(self) -> tuple[EnvironmentSpec, ...]:
        """The environments that runs are sent to and nights watch. Raises UserError when there is none."""
        live = tuple(e for e in self.environments if e.live)
        if not live:
            raise UserError("no live environment in the configuration; set 'live: true' under 'environments'")
        return live

    def nightly(self) -> DeterminismPolicy:
        """What the nights run. Raises UserError when nothing is configured."""
        if self.determinism is None:
            raise UserError(
                "no fixed suite is configured, so nothing watches the environments; set 'determinism: {suite: ..., "
                "checkpoint: ...}' in the configuration"
            )
        return self.determinism

    def environment(self, name: str | None) -> EnvironmentSpec:
        """The environment of that name, or the first live one. Raises UserError when there is none."""
        if name is None:
            return self.live_environments()[0]
        for environment in self.environments:
            if environment.name == name:
                return environment
        raise UserError(
            f"no environment {name!r} in the configuration; {did_you_mean(name, [e.name for e in self.environments])}"
        )


def load_config(path: Path | None) -> Config:
    """The configuration in a YAML file; an absent file is an empty configuration. Raises UserError naming the field."""
    if path is None or not path.exists():
        return Config()
    try:
        raw = yaml.safe_load(path.read_text("utf-8")) or {}
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror or error}; give the path of a YAML file") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise UserError(f"{path} is not readable as YAML: {error}") from error
    if not isinstance(raw, dict):
        raise UserError(f"{path} must hold a mapping, not {type(raw).__name__}")
    try:
        return Config.model_validate(raw)
    except ValidationError as error:
        raise UserError(explain_validation(str(path), error, Config)) from error


# What other systems sample by. Here a benchmark that measures sampled outputs says so, and nothing else can.
_SAMPLES = frozenset({"sampling", "do_sample", "temperature", "top_p", "top_k", "min_p", "n_samples", "num_samples"})
_SAMPLING = (
    "scored generation is greedy, but for a benchmark of kind 'generation' that declares in its own file "
    "sampling: {temperature: ..., samples: ..., reason: ...}"
)


def explain_validation(source: str, error: ValidationError, model: type[BaseModel]) -> str:
    """A ValidationError as one message: where, what, the value, and for an unknown field the close names."""
    lines = []
    for problem in error.errors():
        where = ".".join(str(part) for part in problem["loc"]) or "(top level)"
        if problem["type"] == "extra_forbidden":
            name = str(problem["loc"][-1])
            hint = _SAMPLING if name in _SAMPLES else did_you_mean(name, _fields_at(model, problem["loc"][:-1]))
            lines.append(f"{where}: unknown field; {hint}")
        elif problem["type"] == "missing":
            lines.append(f"{where}: required, and absent")
        else:
            message = str(problem["msg"]).removeprefix("Value error, ")
            if problem["type"] == "string_type" and isinstance(problem["input"], int | float):
                message = "must be text: put it in quotes"
            lines.append(f"{where}: {message} (got {_shown(problem['input'])})")
    return f"{source}: " + "; ".join(lines)


def _shown(value: object) -> str:
    """A value as a message shows it: what breaks a rule of a whole section is that section."""
    text = repr(value)
    return text if len(text) <= _SHOWN_CHARS else f"{text[:_SHOWN_CHARS]}..."


def _fields_at(model: type[BaseModel], location: tuple[int | str, ...]) -> list[str]:
    """Field names of the model found by following `location` from `model`."""
    import typing

    current: Any = model
    for part in location:
        if isinstance(part, int) or not (isinstance(current, type) and issubclass(current, BaseModel)):
            continue
        field = current.model_fields.get(part)
        if field is None:
            return []
        candidates = [field.annotation, *typing.get_args(field.annotation)]
        current = next((c for c in candidates if isinstance(c, type) and issubclass(c, BaseModel)), current)
    return list(current.model_fields) if isinstance(current, type) and issubclass(current, BaseModel) else []
