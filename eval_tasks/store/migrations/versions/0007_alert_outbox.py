"""The outbox of alerts, and which evaluations of a landing have ended."""

import json

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make the table. What was raised or started before this is nobody's to send, and not late."""
    op.create_table(
        "alert_deliveries",
        sa.Column("seq", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("alert_id", sa.String(length=64), nullable=False),
        sa.Column("channel", sa.String(length=64), nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("due_at", sa.Float(), nullable=False),
        sa.Column("owner", sa.Text(), nullable=True),
        sa.Column("lease_until", sa.Float(), nullable=True),
        sa.Column("error", sa.Text(), nullable=False),
        sa.Column("sent_at", sa.String(length=40), nullable=True),
        sa.PrimaryKeyConstraint("seq"),
        sa.UniqueConstraint("alert_id", "channel", name="uq_alert_deliveries_channel"),
    )
    op.create_index("ix_alert_deliveries_state", "alert_deliveries", ["channel", "state"], unique=False)
    op.add_column("alerts", sa.Column("fanned_out", sa.Boolean(), nullable=False, server_default=sa.true()))
    op.create_index(op.f("ix_alerts_fanned_out"), "alerts", ["fanned_out"], unique=False)
    landings = sa.table("landings", sa.column("landing_id"), sa.column("state"), sa.column("record"))
    connection = op.get_bind()
    started = connection.execute(sa.select(landings).where(landings.c.state == "dispatched")).all()
    for row in started:
        record = json.loads(row.record)
        record["finished"] = record.get("dag_runs", [])
        text = json.dumps(record, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
        connection.execute(sa.update(landings).where(landings.c.landing_id == row.landing_id).values(record=text))


def downgrade() -> None:
    """Remove them."""
    landings = sa.table("landings", sa.column("landing_id"), sa.column("record"))
    connection = op.get_bind()
    for row in connection.execute(sa.select(landings)).all():
        record = json.loads(row.record)
        if record.pop("finished", None) is not None:
            text = json.dumps(record, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
            connection.execute(sa.update(landings).where(landings.c.landing_id == row.landing_id).values(record=text))
    op.drop_index(op.f("ix_alerts_fanned_out"), table_name="alerts")
    with op.batch_alter_table("alerts") as batch:
        batch.drop_column("fanned_out")
    op.drop_index("ix_alert_deliveries_state", table_name="alert_deliveries")
    op.drop_table("alert_deliveries")
