"""The first schema of the catalog."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make every table."""
    op.create_table(
        "alerts",
        sa.Column("seq", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("alert_id", sa.String(length=64), nullable=False),
        sa.Column("kind", sa.String(length=64), nullable=False),
        sa.Column("run_id", sa.String(length=64), nullable=True),
        sa.Column("training_run", sa.String(length=255), nullable=True),
        sa.Column("acknowledged", sa.Boolean(), nullable=False),
        sa.Column("record", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("seq"),
        sa.UniqueConstraint("alert_id"),
    )
    op.create_index(op.f("ix_alerts_run_id"), "alerts", ["run_id"], unique=False)
    op.create_index(op.f("ix_alerts_training_run"), "alerts", ["training_run"], unique=False)
    op.create_table(
        "baselines",
        sa.Column("seq", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("env_fingerprint", sa.String(length=64), nullable=False),
        sa.Column("suite_id", sa.String(length=64), nullable=False),
        sa.Column("status", sa.String(length=16), nullable=False),
        sa.Column("record", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("seq"),
        sa.UniqueConstraint("env_fingerprint", "suite_id", name="uq_baselines_environment"),
    )
    op.create_index(op.f("ix_baselines_suite_id"), "baselines", ["suite_id"], unique=False)
    op.create_table(
        "benchmarks",
        sa.Column("seq", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("name", sa.String(length=255), nullable=False),
        sa.Column("version", sa.String(length=255), nullable=False),
        sa.Column("benchmark_id", sa.String(length=64), nullable=False),
        sa.Column("record", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("seq"),
        sa.UniqueConstraint("name", "version", name="uq_benchmarks_name"),
    )
    op.create_index(op.f("ix_benchmarks_benchmark_id"), "benchmarks", ["benchmark_id"], unique=False)
    op.create_table(
        "blocks",
        sa.Column("seq", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("block_id", sa.String(length=64), nullable=False),
        sa.Column("env_fingerprint", sa.String(length=64), nullable=False),
        sa.Column("explained", sa.Boolean(), nullable=False),
        sa.Column("record", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("seq"),
        sa.UniqueConstraint("block_id"),
    )
    op.create_index(op.f("ix_blocks_env_fingerprint"), "blocks", ["env_fingerprint"], unique=False)
    op.create_table(
        "checkpoints",
        sa.Column("seq", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("checkpoint_id", sa.String(length=64), nullable=False),
        sa.Column("training_run", sa.String(length=255), nullable=False),
        sa.Column("step", sa.BigInteger(), nullable=False),
        sa.Column("record", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("seq"),
        sa.UniqueConstraint("checkpoint_id", "training_run", "step", name="uq_checkpoints_place"),
    )
    op.create_index(op.f("ix_checkpoints_checkpoint_id"), "checkpoints", ["checkpoint_id"], unique=False)
    op.create_index("ix_checkpoints_training_run", "checkpoints", ["training_run", "step"], unique=False)
    op.create_table(
        "comparisons",
        sa.Column("seq", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("comparison_id", sa.String(length=64), nullable=False),
        sa.Column("run_a", sa.String(length=64), nullable=False),
        sa.Column("run_b", sa.String(length=64), nullable=False),
        sa.Column("record", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("seq"),
        sa.UniqueConstraint("comparison_id"),
    )
    op.create_index(op.f("ix_comparisons_run_a"), "comparisons", ["run_a"], unique=False)
    op.create_index(op.f("ix_comparisons_run_b"), "comparisons", ["run_b"], unique=False)
    op.create_table(
        "contamination",
        sa.Column("seq", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("benchmark_id", sa.String(length=64), nullable=False),
        sa.Column("corpus", sa.String(length=255), nullable=False),
        sa.Column("rule", sa.String(length=255), nullable=False),
        sa.Column("record", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("seq"),
        sa.UniqueConstraint("benchmark_id", "corpus", "rule", name="uq_contamination_check"),
    )
    op.create_table(
        "corpora",
        sa.Column("seq", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("name", sa.String(length=255), nullable=False),
        sa.Column("record", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("seq"),
        sa.UniqueConstraint("name"),
    )
    op.create_table(
        "environments",
        sa.Column("seq", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("env_fingerprint", sa.String(length=64), nullable=False),
        sa.Column("record", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("seq"),
        sa.UniqueConstraint("env_fingerprint"),
    )
    op.create_table(
        "graders",
        sa.Column("seq", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("name", sa.String(length=255), nullable=False),
        sa.Column("version", sa.String(length=255), nullable=False),
        sa.Column("record", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("seq"),
        sa.UniqueConstraint("name", "version", name="uq_graders_name"),
    )
    op.create_table(
        "landings",
        sa.Column("landing_id", sa.String(length=64), nullable=False),
        sa.Column("training_run", sa.String(length=255), nullable=False),
        sa.Column("step", sa.BigInteger(), nullable=False),
        sa.Column("uri", sa.Text(), nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("record", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("landing_id"),
    )
    op.create_index("ix_landings_place", "landings", ["training_run", "step"], unique=False)
    op.create_index("ix_landings_state", "landings", ["state"], unique=False)
    op.create_table(
        "rules",
        sa.Column("seq", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("name", sa.String(length=255), nullable=False),
        sa.Column("rule_id", sa.String(length=64), nullable=False),
        sa.Column("record", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("seq"),
        sa.UniqueConstraint("name"),
    )
    op.create_table(
        "runs",
        sa.Column("seq", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("run_id", sa.String(length=64), nullable=False),
        sa.Column("checkpoint_id", sa.String(length=64), nullable=False),
        sa.Column("training_run", sa.String(length=255), nullable=False),
        sa.Column("step", sa.BigInteger(), nullable=False),
        sa.Column("suite", sa.String(length=255), nullable=False),
        sa.Column("tier", sa.String(length=16), nullable=False),
        sa.Column("status", sa.String(length=16), nullable=False),
        sa.Column("created_at", sa.String(length=40), nullable=False),
        sa.Column("record", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("seq"),
        sa.UniqueConstraint("run_id"),
    )
    op.create_index(op.f("ix_runs_checkpoint_id"), "runs", ["checkpoint_id"], unique=False)
    op.create_index(op.f("ix_runs_created_at"), "runs", ["created_at"], unique=False)
    op.create_index(op.f("ix_runs_training_run"), "runs", ["training_run"], unique=False)
    op.create_table(
        "suites",
        sa.Column("seq", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("name", sa.String(length=255), nullable=False),
        sa.Column("version", sa.String(length=255), nullable=False),
        sa.Column("suite_id", sa.String(length=64), nullable=False),
        sa.Column("record", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("seq"),
        sa.UniqueConstraint("name", "version", name="uq_suites_name"),
    )
    op.create_index(op.f("ix_suites_suite_id"), "suites", ["suite_id"], unique=False)
    op.create_table(
        "work_batches",
        sa.Column("run_id", sa.String(length=64), nullable=False),
        sa.Column("batch", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("items_digest", sa.String(length=64), nullable=False),
        sa.Column("n_items", sa.Integer(), nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("owner", sa.Text(), nullable=True),
        sa.Column("owners", sa.Text(), nullable=False),
        sa.Column("lease_until", sa.Float(), nullable=True),
        sa.Column("result_id", sa.String(length=64), nullable=True),
        sa.PrimaryKeyConstraint("run_id", "batch"),
    )
    op.create_table(
        "work_items",
        sa.Column("key", sa.LargeBinary(length=32), nullable=False),
        sa.Column("run_id", sa.String(length=64), nullable=False),
        sa.Column("batch", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("key"),
    )
    op.create_index("ix_work_items_batch", "work_items", ["run_id", "batch"], unique=False)
    op.create_table(
        "eval_reports",
        sa.Column("seq", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("run_id", sa.String(length=64), nullable=False),
        sa.Column("format", sa.String(length=16), nullable=False),
        sa.Column("blob_digest", sa.String(length=64), nullable=False),
        sa.Column("record", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["run_id"],
            ["runs.run_id"],
        ),
        sa.PrimaryKeyConstraint("seq"),
        sa.UniqueConstraint("run_id", "format", "blob_digest", name="uq_eval_reports_blob"),
    )
    op.create_table(
        "guards",
        sa.Column("run_id", sa.String(length=64), nullable=False),
        sa.Column("passed", sa.Boolean(), nullable=False),
        sa.Column("record", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["run_id"],
            ["runs.run_id"],
        ),
        sa.PrimaryKeyConstraint("run_id"),
    )
    op.create_table(
        "measurements",
        sa.Column("run_id", sa.String(length=64), nullable=False),
        sa.Column("position", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("benchmark", sa.String(length=255), nullable=False),
        sa.Column("metric", sa.String(length=255), nullable=False),
        sa.Column("record", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["run_id"],
            ["runs.run_id"],
        ),
        sa.PrimaryKeyConstraint("run_id", "position"),
    )
    op.create_index(op.f("ix_measurements_benchmark"), "measurements", ["benchmark"], unique=False)
    op.create_table(
        "shards",
        sa.Column("run_id", sa.String(length=64), nullable=False),
        sa.Column("shard", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("status", sa.String(length=16), nullable=False),
        sa.Column("env_fingerprint", sa.String(length=64), nullable=True),
        sa.Column("record", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["run_id"],
            ["runs.run_id"],
        ),
        sa.PrimaryKeyConstraint("run_id", "shard"),
    )


def downgrade() -> None:
    """Remove every table, and all that is in them."""
    op.drop_table("shards")
    op.drop_index(op.f("ix_measurements_benchmark"), table_name="measurements")
    op.drop_table("measurements")
    op.drop_table("guards")
    op.drop_table("eval_reports")
    op.drop_index("ix_work_items_batch", table_name="work_items")
    op.drop_table("work_items")
    op.drop_table("work_batches")
    op.drop_index(op.f("ix_suites_suite_id"), table_name="suites")
    op.drop_table("suites")
    op.drop_index(op.f("ix_runs_training_run"), table_name="runs")
    op.drop_index(op.f("ix_runs_created_at"), table_name="runs")
    op.drop_index(op.f("ix_runs_checkpoint_id"), table_name="runs")
    op.drop_table("runs")
    op.drop_table("rules")
    op.drop_index("ix_landings_state", table_name="landings")
    op.drop_index("ix_landings_place", table_name="landings")
    op.drop_table("landings")
    op.drop_table("graders")
    op.drop_table("environments")
    op.drop_table("corpora")
    op.drop_table("contamination")
    op.drop_index(op.f("ix_comparisons_run_b"), table_name="comparisons")
    op.drop_index(op.f("ix_comparisons_run_a"), table_name="comparisons")
    op.drop_table("comparisons")
    op.drop_index("ix_checkpoints_training_run", table_name="checkpoints")
    op.drop_index(op.f("ix_checkpoints_checkpoint_id"), table_name="checkpoints")
    op.drop_table("checkpoints")
    op.drop_index(op.f("ix_blocks_env_fingerprint"), table_name="blocks")
    op.drop_table("blocks")
    op.drop_index(op.f("ix_benchmarks_benchmark_id"), table_name="benchmarks")
    op.drop_table("benchmarks")
    op.drop_index(op.f("ix_baselines_suite_id"), table_name="baselines")
    op.drop_table("baselines")
    op.drop_index(op.f("ix_alerts_training_run"), table_name="alerts")
    op.drop_index(op.f("ix_alerts_run_id"), table_name="alerts")
    op.drop_table("alerts")
