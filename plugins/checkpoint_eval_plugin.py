"""What Airflow's plug-in loader imports: the one file that it sees here, since `.airflowignore` hides the package.

The loader imports files under their bare names, so that the package's `errors` or `sensor` would be somebody else's
too. Operators, sensors and triggers need no registration; DAG files import them from `checkpoint_eval`. Timetables do:
Airflow makes no other from a stored DAG.
"""

from airflow.plugins_manager import AirflowPlugin

from checkpoint_eval.timetable import StoredRunsTimetable


class CheckpointEvalPlugin(AirflowPlugin):
    """Shows in `airflow plugins` and in the UI that this folder was found and loaded."""

    name = "checkpoint_eval"
    timetables = (StoredRunsTimetable,)
