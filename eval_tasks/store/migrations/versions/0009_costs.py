"""The ledger of costs."""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make the table."""
    op.create_table(
        "costs",
        sa.Column("run_id", sa.String(length=64), nullable=False),
        sa.Column("training_run", sa.String(length=255), nullable=False),
        sa.Column("tier", sa.String(length=16), nullable=False),
        sa.Column("environment", sa.String(length=255), nullable=False),
        sa.Column("created_at", sa.String(length=40), nullable=False),
        sa.Column("record", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["run_id"], ["runs.run_id"]),
        sa.PrimaryKeyConstraint("run_id"),
    )
    op.create_index("ix_costs_tier", "costs", ["tier", "created_at"], unique=False)


def downgrade() -> None:
    """Remove it."""
    op.drop_index("ix_costs_tier", table_name="costs")
    op.drop_table("costs")
