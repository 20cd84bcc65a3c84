"""Frozen vectors: a scorer whose outputs changed must say so in its version, and its digest says so by itself."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from eval_tasks.errors import DataError, UserError
from eval_tasks.records import ScorerRef
from eval_tasks.scoring import registry, scorer_digest, scorer_names, scorer_version, vector_file
from eval_tasks.scoring.registry import Mark


@pytest.mark.parametrize("name", scorer_names())
def test_outputs_on_the_vectors_are_those_recorded_under_this_version(name: str) -> None:
    frozen = vector_file.read_vectors(name)
    assert frozen["version"] == scorer_version(name), "new version: freeze its outputs with vector_file.freeze"
    assert vector_file.vector_outputs(name, {}) == frozen["outputs"], "outputs changed: declare a new version"
    assert len(frozen["cases"]) == len(frozen["outputs"]) >= 5


@pytest.fixture
def changed_scorer(monkeypatch: pytest.MonkeyPatch) -> None:
    """exact_match with code that changed under the same version."""
    known = registry.find_scorer("exact_match")
    changed = replace(known, function=lambda case: [Mark(metric="exact_match", value=0.5)])
    monkeypatch.setitem(registry._SCORERS, "exact_match", changed)
    vector_file._digest.cache_clear()


def test_the_digest_covers_parameters_and_fills_in_defaults() -> None:
    plain = scorer_digest(ScorerRef(name="exact_match", version="1"))
    assert len(plain) == 64
    assert scorer_digest(ScorerRef(name="exact_match", version="1", parameters={"strip": True})) == plain
    assert scorer_digest(ScorerRef(name="exact_match", version="1", parameters={"ignore_case": True})) != plain


def test_changed_code_has_another_digest_though_it_declares_the_same_version(
    request: pytest.FixtureRequest,
) -> None:
    before = scorer_digest(ScorerRef(name="exact_match", version="1"))
    request.getfixturevalue("changed_scorer")
    after = scorer_digest(ScorerRef(name="exact_match", version="1"))
    vector_file._digest.cache_clear()
    assert before != after


def test_freezing_refuses_changed_outputs_under_the_same_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    frozen = vector_file.read_vectors("exact_match")
    monkeypatch.setattr(vector_file, "_FOLDER", tmp_path)
    path = tmp_path / "exact_match.json"
    path.write_text(json.dumps({**frozen, "outputs": frozen["outputs"][:-1]}))
    vector_file.freeze("exact_match")
    assert json.loads(path.read_text()) == frozen
    request.getfixturevalue("changed_scorer")
    with pytest.raises(UserError, match="declare a new version"):
        vector_file.freeze("exact_match")
    vector_file._digest.cache_clear()


def test_a_scorer_without_vectors_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vector_file, "_FOLDER", tmp_path)
    with pytest.raises(DataError, match=r"write choice\.json"):
        vector_file.read_vectors("choice")
