"""A run's rows and measurements -> what is implausible about them. A number that fails is quarantined, never dropped.

Knows no notifier: it records an alert in the catalog, and the flow sends it.
"""

from eval_tasks.guard.step import guard

__all__ = ["guard"]
