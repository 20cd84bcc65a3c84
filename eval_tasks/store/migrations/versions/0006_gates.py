"""Sightings of environments, the gate's queue, nights, sentinels, items computed twice, sensitivity studies."""

import json

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make the tables; runs that are there already say under which names their fingerprints were seen."""
    sightings = op.create_table(
        "sightings",
        sa.Column("environment", sa.String(length=255), nullable=False),
        sa.Column("env_fingerprint", sa.String(length=64), nullable=False),
        sa.Column("first_seen", sa.String(length=40), nullable=False),
        sa.Column("last_seen", sa.String(length=40), nullable=False),
        sa.PrimaryKeyConstraint("environment", "env_fingerprint"),
    )
    op.create_table(
        "gate_tickets",
        sa.Column("ticket", sa.String(length=512), nullable=False),
        sa.Column("environment", sa.String(length=255), nullable=False),
        sa.Column("place", sa.String(length=255), nullable=False),
        sa.Column("seen_at", sa.Float(), nullable=False),
        sa.PrimaryKeyConstraint("ticket"),
    )
    op.create_table(
        "nights",
        sa.Column("seq", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("night", sa.String(length=255), nullable=False),
        sa.Column("environment", sa.String(length=255), nullable=False),
        sa.Column("env_fingerprint", sa.String(length=64), nullable=False),
        sa.Column("status", sa.String(length=16), nullable=False),
        sa.Column("recorded_at", sa.String(length=40), nullable=False),
        sa.Column("record", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("seq"),
        sa.UniqueConstraint("night", "environment", name="uq_nights_environment"),
    )
    op.create_index(op.f("ix_nights_env_fingerprint"), "nights", ["env_fingerprint"], unique=False)
    for name, columns in (("sentinel_reports", []), ("computed_twice", ["n_differing"])):
        op.create_table(
            name,
            sa.Column("run_id", sa.String(length=64), nullable=False),
            *[sa.Column(column, sa.Integer(), nullable=False) for column in columns],
            sa.Column("record", sa.Text(), nullable=False),
            sa.ForeignKeyConstraint(["run_id"], ["runs.run_id"]),
            sa.PrimaryKeyConstraint("run_id"),
        )
    op.create_table(
        "sensitivities",
        sa.Column("seq", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("study_id", sa.String(length=64), nullable=False),
        sa.Column("record", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("seq"),
        sa.UniqueConstraint("study_id"),
    )
    op.create_index(op.f("ix_shards_env_fingerprint"), "shards", ["env_fingerprint"], unique=False)
    seen: dict[tuple[str, str], list[str]] = {}
    for text in op.get_bind().execute(sa.text("SELECT record FROM runs")).scalars():
        run = json.loads(text)
        if run.get("env_fingerprint"):
            seen.setdefault((run["environment"], run["env_fingerprint"]), []).append(run["created_at"])
    if seen:
        op.bulk_insert(
            sightings,
            [
                {"environment": name, "env_fingerprint": fingerprint, "first_seen": min(at), "last_seen": max(at)}
                for (name, fingerprint), at in sorted(seen.items())
            ],
        )


def downgrade() -> None:
    """Remove them."""
    op.drop_index(op.f("ix_shards_env_fingerprint"), table_name="shards")
    for name in ("sensitivities", "computed_twice", "sentinel_reports"):
        op.drop_table(name)
    op.drop_index(op.f("ix_nights_env_fingerprint"), table_name="nights")
    for name in ("nights", "gate_tickets", "sightings"):
        op.drop_table(name)
