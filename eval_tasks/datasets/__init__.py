"""A benchmark's pinned rows -> its items. The one door to data, from files and from the Hugging Face hub."""

from eval_tasks.datasets.checks import Finding, data_findings
from eval_tasks.datasets.items import Dataset, items_digest, load_dataset, load_items

__all__ = ["Dataset", "Finding", "data_findings", "items_digest", "load_dataset", "load_items"]
