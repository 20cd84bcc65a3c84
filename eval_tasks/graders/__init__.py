"""Graders beside a benchmark's own scorer. Human labels come in as one more score set of a run."""

from eval_tasks.graders.labels import Label, import_labels, read_labels

__all__ = ["Label", "import_labels", "read_labels"]
