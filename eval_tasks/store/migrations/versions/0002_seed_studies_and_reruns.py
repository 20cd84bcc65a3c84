"""Tables for seed studies, and for one checkpoint evaluated twice."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make both tables."""
    op.create_table(
        "reruns",
        sa.Column("seq", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("rerun_id", sa.String(length=64), nullable=False),
        sa.Column("env_a", sa.String(length=64), nullable=False),
        sa.Column("env_b", sa.String(length=64), nullable=False),
        sa.Column("record", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("seq"),
        sa.UniqueConstraint("rerun_id"),
    )
    op.create_index(op.f("ix_reruns_env_a"), "reruns", ["env_a"], unique=False)
    op.create_index(op.f("ix_reruns_env_b"), "reruns", ["env_b"], unique=False)
    op.create_table(
        "seed_studies",
        sa.Column("seq", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("name", sa.String(length=255), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("study_id", sa.String(length=64), nullable=False),
        sa.Column("record", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("seq"),
        sa.UniqueConstraint("name", "version", name="uq_seed_studies_name"),
    )


def downgrade() -> None:
    """Remove both, and all that is in them."""
    op.drop_table("seed_studies")
    op.drop_index(op.f("ix_reruns_env_b"), table_name="reruns")
    op.drop_index(op.f("ix_reruns_env_a"), table_name="reruns")
    op.drop_table("reruns")
