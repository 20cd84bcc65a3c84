"""Agreement sets, verdicts on them, qualifications of graders, and the grader in use for each benchmark."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make the four tables."""
    op.create_table(
        "agreement_sets",
        sa.Column("seq", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("name", sa.String(length=255), nullable=False),
        sa.Column("version", sa.String(length=255), nullable=False),
        sa.Column("set_digest", sa.String(length=64), nullable=False),
        sa.Column("record", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("seq"),
        sa.UniqueConstraint("name", "version", name="uq_agreement_sets_name"),
    )
    op.create_index(op.f("ix_agreement_sets_set_digest"), "agreement_sets", ["set_digest"], unique=False)
    op.create_table(
        "grader_verdicts",
        sa.Column("seq", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("set_digest", sa.String(length=64), nullable=False),
        sa.Column("grader", sa.String(length=255), nullable=False),
        sa.Column("record", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("seq"),
        sa.UniqueConstraint("set_digest", "grader", name="uq_grader_verdicts_set"),
    )
    op.create_table(
        "qualifications",
        sa.Column("seq", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("qualification_id", sa.String(length=64), nullable=False),
        sa.Column("grader", sa.String(length=255), nullable=False),
        sa.Column("record", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("seq"),
        sa.UniqueConstraint("qualification_id"),
    )
    op.create_index(op.f("ix_qualifications_grader"), "qualifications", ["grader"], unique=False)
    op.create_table(
        "graders_in_use",
        sa.Column("seq", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("benchmark", sa.String(length=255), nullable=False),
        sa.Column("record", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("seq"),
    )
    op.create_index(op.f("ix_graders_in_use_benchmark"), "graders_in_use", ["benchmark"], unique=False)


def downgrade() -> None:
    """Remove them, and all that is in them."""
    for name in ("graders_in_use", "qualifications", "grader_verdicts", "agreement_sets"):
        op.drop_table(name)
