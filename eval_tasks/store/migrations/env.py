"""Run by Alembic, inside the transaction of the connection that `eval_tasks.store.schema` hands over."""

from alembic import context

from eval_tasks.store.schema import VERSION_TABLE
from eval_tasks.store.tables import metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    version_table=VERSION_TABLE,
    transactional_ddl=True,
    render_as_batch=True,
)
with context.begin_transaction():
    context.run_migrations()
