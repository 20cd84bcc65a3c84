"""Selections among many checkpoints."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make the table."""
    op.create_table(
        "selections",
        sa.Column("run_id", sa.String(length=64), nullable=False),
        sa.Column("selection_id", sa.String(length=64), nullable=False),
        sa.Column("record", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["run_id"],
            ["runs.run_id"],
        ),
        sa.PrimaryKeyConstraint("run_id"),
    )


def downgrade() -> None:
    """Remove it."""
    op.drop_table("selections")
