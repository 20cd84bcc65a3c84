"""Item-response calibrations of benchmarks."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make the table."""
    op.create_table(
        "calibrations",
        sa.Column("seq", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("benchmark_id", sa.String(length=64), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("calibration_id", sa.String(length=64), nullable=False),
        sa.Column("record", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("seq"),
        sa.UniqueConstraint("benchmark_id", "version", name="uq_calibrations_version"),
    )


def downgrade() -> None:
    """Remove it."""
    op.drop_table("calibrations")
