"""Looks at the health of training runs."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make the table."""
    op.create_table(
        "health_looks",
        sa.Column("run_id", sa.String(length=64), nullable=False),
        sa.Column("training_run", sa.String(length=255), nullable=False),
        sa.Column("step", sa.BigInteger(), nullable=False),
        sa.Column("record", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["run_id"],
            ["runs.run_id"],
        ),
        sa.PrimaryKeyConstraint("run_id"),
    )
    op.create_index("ix_health_looks_place", "health_looks", ["training_run", "step"], unique=False)


def downgrade() -> None:
    """Remove it."""
    op.drop_index("ix_health_looks_place", table_name="health_looks")
    op.drop_table("health_looks")
