"""The store as it is -> what may go: queue rows of closed runs, orphan files, and outputs where that was asked for."""

from eval_tasks.maintenance.step import MaintenanceReport, maintenance

__all__ = ["MaintenanceReport", "maintenance"]
