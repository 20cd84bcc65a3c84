"""What people write of alerts in the configuration file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from eval_tasks.errors import UserError
from eval_tasks.settings import Config, load_config


def configured(tmp_path: Path, document: dict[str, Any]) -> Config:
    path = tmp_path / "config.yaml"
    path.write_text(yaml.safe_dump(document), "utf-8")
    return load_config(path)


def test_without_a_word_of_alerts_the_log_is_told(tmp_path: Path) -> None:
    assert configured(tmp_path, {}).alerts.channels == ()


HOOK = {"name": "hook", "url": "json://hooks.example/x"}


@pytest.mark.parametrize(
    ("alerts", "said"),
    [
        ({"chanels": []}, "close: 'channels'"),
        ({"channels": [{"name": "hook"}]}, "give one of 'url' and 'url_variable'"),
        ({"channels": [{**HOOK, "url_variable": "X"}]}, "give one of 'url' and 'url_variable'"),
        ({"channels": [{"name": "hook", "url": "hooks.example"}]}, "not an Apprise URL"),
        ({"channels": [{"name": "hook", "url_variable": "a b"}]}, "url_variable"),
        ({"channels": [HOOK, HOOK]}, "a name stands once; twice here: hook"),
        ({"channels": [{**HOOK, "timeout_seconds": 0}]}, "timeout_seconds"),
        ({"retry_seconds": -1}, "retry_seconds"),
    ],
)
def test_what_cannot_be_sent_to_is_refused_by_name(tmp_path: Path, alerts: dict[str, Any], said: str) -> None:
    with pytest.raises(UserError, match=said):
        configured(tmp_path, {"alerts": alerts})
