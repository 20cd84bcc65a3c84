"""Quantities against the parser of the Kubernetes client."""

from __future__ import annotations

import pytest
from kubernetes.utils import parse_quantity

from checkpoint_eval.local_pods.quantities import quantity


@pytest.mark.parametrize("text", ["1", "500m", "0.5", "2Gi", "1.5Mi", "10k", "3M", "1e3", "100n", "4Ti", "-2"])
def test_agrees_with_the_client(text: str) -> None:
    assert quantity(text) == parse_quantity(text)


@pytest.mark.parametrize("text", ["", "two", "1Qx", "1 Gi", "Gi"])
def test_refuses_what_is_none(text: str) -> None:
    with pytest.raises(ValueError, match="such as 500m or 2Gi"):
        quantity(text)
