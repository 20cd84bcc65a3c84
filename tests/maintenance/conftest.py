"""Maintenance looks at stored runs whose rows a test has written by hand."""

from tests.answered import answered, checkpoint

__all__ = ["answered", "checkpoint"]
