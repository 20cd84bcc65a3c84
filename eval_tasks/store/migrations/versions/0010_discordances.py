"""How often two runs differed, by benchmark: what planning reads without a look at any comparison."""

import json

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None

_MOCK = "MOCK ENGINE: not a measurement"


def upgrade() -> None:
    """Make the table, and fill it from the comparisons that are there."""
    table = op.create_table(
        "discordances",
        sa.Column("run_a", sa.String(length=64), nullable=False),
        sa.Column("run_b", sa.String(length=64), nullable=False),
        sa.Column("benchmark", sa.String(length=255), nullable=False),
        sa.Column("metric", sa.String(length=255), nullable=False),
        sa.Column("n_pairs", sa.Integer(), nullable=False),
        sa.Column("n_discordant", sa.Integer(), nullable=True),
        sa.Column("variance", sa.Float(), nullable=True),
        sa.PrimaryKeyConstraint("run_a", "run_b", "benchmark", "metric"),
    )
    op.create_index("ix_discordances_benchmark", "discordances", ["benchmark", "metric"])
    connection = op.get_bind()
    found = {}
    for text in connection.execute(sa.text("select record from comparisons order by seq")).scalars():
        record = json.loads(text)
        if record["run_a"] == record["run_b"] or record.get("further_a") or record.get("further_b"):
            continue
        for test in record["tests"]:
            if test["not_tested"] or not test["n_pairs"] or _MOCK in test["notes"]:
                continue
            key = *sorted((record["run_a"], record["run_b"])), test["benchmark"], test["metric"]
            found[key] = {
                **dict(zip(("run_a", "run_b", "benchmark", "metric"), key, strict=True)),
                "n_pairs": test["n_pairs"],
                "n_discordant": test["n_discordant"],
                "variance": None if test["se"] is None else test["n_pairs"] * test["se"] ** 2,
            }
    if found:
        op.bulk_insert(table, list(found.values()))


def downgrade() -> None:
    """Remove it."""
    op.drop_table("discordances")
