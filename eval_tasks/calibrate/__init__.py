"""Closed runs of one benchmark version -> frozen item-response weights, and what each item is worth.

Doors: `calibrate` makes the weights, `item_report` lists the items that the benchmark's owner should look at.
"""

from eval_tasks.calibrate.items import FLAGS
from eval_tasks.calibrate.step import calibrate, item_report

__all__ = ["FLAGS", "calibrate", "item_report"]
