"""The catalog's tables as the code uses them. The database itself is made by the migrations, never from here.

A record is stored as its canonical JSON in `record`, beside the columns that are needed to find it. `seq` is the order
of registration.
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Float,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
)

metadata = MetaData()


def _seq() -> Column[int]:
    return Column("seq", Integer, primary_key=True, autoincrement=True)


def _record() -> Column[str]:
    return Column("record", Text, nullable=False)


def _of_run(*, primary_key: bool = False) -> Column[str]:
    return Column("run_id", ForeignKey("runs.run_id"), nullable=False, primary_key=primary_key)


checkpoints = Table(
    "checkpoints",
    metadata,
    _seq(),
    Column("checkpoint_id", String(64), nullable=False, index=True),
    Column("training_run", String(255), nullable=False),
    Column("step", BigInteger, nullable=False),
    _record(),
    UniqueConstraint("checkpoint_id", "training_run", "step", name="uq_checkpoints_place"),
    Index("ix_checkpoints_training_run", "training_run", "step"),
)

landings = Table(
    "landings",
    metadata,
    Column("landing_id", String(64), primary_key=True),
    Column("training_run", String(255), nullable=False),
    Column("step", BigInteger, nullable=False),
    Column("uri", Text, nullable=False),
    Column("state", String(16), nullable=False),
    _record(),
    Index("ix_landings_place", "training_run", "step"),
    Index("ix_landings_state", "state"),
)

benchmarks = Table(
    "benchmarks",
    metadata,
    _seq(),
    Column("name", String(255), nullable=False),
    Column("version", String(255), nullable=False),
    Column("benchmark_id", String(64), nullable=False, index=True),
    _record(),
    UniqueConstraint("name", "version", name="uq_benchmarks_name"),
)

suites = Table(
    "suites",
    metadata,
    _seq(),
    Column("name", String(255), nullable=False),
    Column("version", String(255), nullable=False),
    Column("suite_id", String(64), nullable=False, index=True),
    _record(),
    UniqueConstraint("name", "version", name="uq_suites_name"),
)

rules = Table(
    "rules",
    metadata,
    _seq(),
    Column("name", String(255), nullable=False, unique=True),
    Column("rule_id", String(64), nullable=False),
    _record(),
)

runs = Table(
    "runs",
    metadata,
    _seq(),
    Column("run_id", String(64), nullable=False, unique=True),
    Column("checkpoint_id", String(64), nullable=False, index=True),
    Column("training_run", String(255), nullable=False, index=True),
    Column("step", BigInteger, nullable=False),
    Column("suite", String(255), nullable=False),
    Column("tier", String(16), nullable=False),
    Column("status", String(16), nullable=False),
    Column("created_at", String(40), nullable=False, index=True),
    _record(),
)

shards = Table(
    "shards",
    metadata,
    _of_run(primary_key=True),
    Column("shard", Integer, primary_key=True, autoincrement=False),
    Column("status", String(16), nullable=False),
    Column("env_fingerprint", String(64), index=True),
    _record(),
)

work_batches = Table(
    "work_batches",
    metadata,
    Column("run_id", String(64), primary_key=True),
    Column("batch", Integer, primary_key=True, autoincrement=False),
    Column("items_digest", String(64), nullable=False),
    Column("n_items", Integer, nullable=False),
    Column("state", String(16), nullable=False),
    Column("owner", Text),
    Column("owners", Text, nullable=False),
    Column("lease_until", Float),
    Column("result_id", String(64)),
)

work_items = Table(
    "work_items",
    metadata,
    Column("key", LargeBinary(32), primary_key=True),
    Column("run_id", String(64), nullable=False),
    Column("batch", Integer, nullable=False),
    Index("ix_work_items_batch", "run_id", "batch"),
)

environments = Table(
    "environments", metadata, _seq(), Column("env_fingerprint", String(64), nullable=False, unique=True), _record()
)

sightings = Table(
    "sightings",
    metadata,
    Column("environment", String(255), primary_key=True),
    Column("env_fingerprint", String(64), primary_key=True),
    Column("first_seen", String(40), nullable=False),
    Column("last_seen", String(40), nullable=False),
)

measurements = Table(
    "measurements",
    metadata,
    _of_run(primary_key=True),
    Column("position", Integer, primary_key=True, autoincrement=False),
    Column("benchmark", String(255), nullable=False, index=True),
    Column("metric", String(255), nullable=False),
    _record(),
)

guards = Table("guards", metadata, _of_run(primary_key=True), Column("passed", Boolean, nullable=False), _record())

health_looks = Table(
    "health_looks",
    metadata,
    _of_run(primary_key=True),
    Column("training_run", String(255), nullable=False),
    Column("step", BigInteger, nullable=False),
    _record(),
    Index("ix_health_looks_place", "training_run", "step"),
)

selections = Table(
    "selections",
    metadata,
    _of_run(primary_key=True),
    Column("selection_id", String(64), nullable=False),
    _record(),
)

comparisons = Table(
    "comparisons",
    metadata,
    _seq(),
    Column("comparison_id", String(64), nullable=False, unique=True),
    Column("run_a", String(64), nullable=False, index=True),
    Column("run_b", String(64), nullable=False, index=True),
    _record(),
)

discordances = Table(
    "discordances",
    metadata,
    Column("run_a", String(64), primary_key=True),
    Column("run_b", String(64), primary_key=True),
    Column("benchmark", String(255), primary_key=True),
    Column("metric", String(255), primary_key=True),
    Column("n_pairs", Integer, nullable=False),
    Column("n_discordant", Integer),
    Column("variance", Float),
    Index("ix_discordances_benchmark", "benchmark", "metric"),
)

seed_studies = Table(
    "seed_studies",
    metadata,
    _seq(),
    Column("name", String(255), nullable=False),
    Column("version", Integer, nullable=False),
    Column("study_id", String(64), nullable=False),
    _record(),
    UniqueConstraint("name", "version", name="uq_seed_studies_name"),
)

calibrations = Table(
    "calibrations",
    metadata,
    _seq(),
    Column("benchmark_id", String(64), nullable=False),
    Column("version", Integer, nullable=False),
    Column("calibration_id", String(64), nullable=False),
    _record(),
    UniqueConstraint("benchmark_id", "version", name="uq_calibrations_version"),
)

reruns = Table(
    "reruns",
    metadata,
    _seq(),
    Column("rerun_id", String(64), nullable=False, unique=True),
    Column("env_a", String(64), nullable=False, index=True),
    Column("env_b", String(64), nullable=False, index=True),
    _record(),
)

baselines = Table(
    "baselines",
    metadata,
    _seq(),
    Column("env_fingerprint", String(64), nullable=False),
    Column("suite_id", String(64), nullable=False, index=True),
    Column("status", String(16), nullable=False),
    _record(),
    UniqueConstraint("env_fingerprint", "suite_id", name="uq_baselines_environment"),
)

blocks = Table(
    "blocks",
    metadata,
    _seq(),
    Column("block_id", String(64), nullable=False, unique=True),
    Column("env_fingerprint", String(64), nullable=False, index=True),
    Column("explained", Boolean, nullable=False),
    _record(),
)

gate_tickets = Table(
    "gate_tickets",
    metadata,
    Column("ticket", String(512), primary_key=True),
    Column("environment", String(255), nullable=False),
    Column("place", String(255), nullable=False),
    Column("seen_at", Float, nullable=False),
)

nights = Table(
    "nights",
    metadata,
    _seq(),
    Column("night", String(255), nullable=False),
    Column("environment", String(255), nullable=False),
    Column("env_fingerprint", String(64), nullable=False, index=True),
    Column("status", String(16), nullable=False),
    Column("recorded_at", String(40), nullable=False),
    _record(),
    UniqueConstraint("night", "environment", name="uq_nights_environment"),
)

sentinel_reports = Table("sentinel_reports", metadata, _of_run(primary_key=True), _record())

computed_twice = Table(
    "computed_twice",
    metadata,
    _of_run(primary_key=True),
    Column("n_differing", Integer, nullable=False),
    _record(),
)

sensitivities = Table(
    "sensitivities", metadata, _seq(), Column("study_id", String(64), nullable=False, unique=True), _record()
)

corpora = Table("corpora", metadata, _seq(), Column("name", String(255), nullable=False, unique=True), _record())

contamination = Table(
    "contamination",
    metadata,
    _seq(),
    Column("benchmark_id", String(64), nullable=False),
    Column("corpus", String(255), nullable=False),
    Column("rule", String(255), nullable=False),
    _record(),
    UniqueConstraint("benchmark_id", "corpus", "rule", name="uq_contamination_check"),
)

graders = Table(
    "graders",
    metadata,
    _seq(),
    Column("name", String(255), nullable=False),
    Column("version", String(255), nullable=False),
    _record(),
    UniqueConstraint("name", "version", name="uq_graders_name"),
)

agreement_sets = Table(
    "agreement_sets",
    metadata,
    _seq(),
    Column("name", String(255), nullable=False),
    Column("version", String(255), nullable=False),
    Column("set_digest", String(64), nullable=False, index=True),
    _record(),
    UniqueConstraint("name", "version", name="uq_agreement_sets_name"),
)

grader_verdicts = Table(
    "grader_verdicts",
    metadata,
    _seq(),
    Column("set_digest", String(64), nullable=False),
    Column("grader", String(255), nullable=False),
    _record(),
    UniqueConstraint("set_digest", "grader", name="uq_grader_verdicts_set"),
)

qualifications = Table(
    "qualifications",
    metadata,
    _seq(),
    Column("qualification_id", String(64), nullable=False, unique=True),
    Column("grader", String(255), nullable=False, index=True),
    _record(),
)

graders_in_use = Table(
    "graders_in_use", metadata, _seq(), Column("benchmark", String(255), nullable=False, index=True), _record()
)

alerts = Table(
    "alerts",
    metadata,
    _seq(),
    Column("alert_id", String(64), nullable=False, unique=True),
    Column("kind", String(64), nullable=False),
    Column("run_id", String(64), index=True),
    Column("training_run", String(255), index=True),
    Column("acknowledged", Boolean, nullable=False),
    Column("fanned_out", Boolean, nullable=False, index=True),
    _record(),
)

costs = Table(
    "costs",
    metadata,
    _of_run(primary_key=True),
    Column("training_run", String(255), nullable=False),
    Column("tier", String(16), nullable=False),
    Column("environment", String(255), nullable=False),
    Column("created_at", String(40), nullable=False),
    _record(),
    Index("ix_costs_tier", "tier", "created_at"),
)

alert_deliveries = Table(
    "alert_deliveries",
    metadata,
    _seq(),
    Column("alert_id", String(64), nullable=False),
    Column("channel", String(64), nullable=False),
    Column("state", String(16), nullable=False),
    Column("attempts", Integer, nullable=False),
    Column("due_at", Float, nullable=False),
    Column("owner", Text),
    Column("lease_until", Float),
    Column("error", Text, nullable=False),
    Column("sent_at", String(40)),
    UniqueConstraint("alert_id", "channel", name="uq_alert_deliveries_channel"),
    Index("ix_alert_deliveries_state", "channel", "state"),
)

eval_reports = Table(
    "eval_reports",
    metadata,
    _seq(),
    _of_run(),
    Column("format", String(16), nullable=False),
    Column("blob_digest", String(64), nullable=False),
    _record(),
    UniqueConstraint("run_id", "format", "blob_digest", name="uq_eval_reports_blob"),
)
