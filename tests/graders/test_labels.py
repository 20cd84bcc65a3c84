"""Files of labels: long fields are read, torn ones are named."""

from __future__ import annotations

from pathlib import Path

import pytest

from eval_tasks.errors import UserError
from eval_tasks.graders.labels import read_labels


def test_a_long_output_beside_a_label_is_read(tmp_path: Path) -> None:
    path = tmp_path / "labels.csv"
    path.write_text(f'item_id,rater,label,output\nq1,ann,1,"{"long " * 50_000}"\n')
    (label,) = read_labels(path)
    assert (label.item_id, label.rater, label.value) == ("q1", "ann", 1.0)


def test_a_torn_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "labels.csv"
    path.write_text('item_id,rater,label,output\nq1,ann,1,"whole"\nq2,ann,0,"cut he')
    with pytest.raises(UserError, match=r"labels\.csv, after line 2: not CSV \(unexpected end of data\)"):
        read_labels(path)
