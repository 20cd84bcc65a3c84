"""Every reason that the code gives is in the closed set, and every one of the set is given."""

from __future__ import annotations

import ast
from pathlib import Path

import eval_tasks
from eval_tasks.checkpoint import REASONS

SOURCES = Path(eval_tasks.__file__).parent
PLACES = {"engine": ["engine"], "tokenizer": ["tokenization.py"], "listing": ["checkpoint"]}


def given(*places: str) -> set[str]:
    """Reasons in `CheckpointError(reason, ...)` and `Problem(reason=...)`, also through variables and defaults."""
    reasons: set[str] = set()
    for path in (p for place in places for p in files(SOURCES / place)):
        tree = ast.parse(path.read_text("utf-8"))
        arguments = [argument for node in ast.walk(tree) if (argument := reason_of(node)) is not None]
        names = {name.id for argument in arguments for name in ast.walk(argument) if isinstance(name, ast.Name)}
        for value in [*arguments, *bound(tree, names)]:
            reasons |= texts(value)
    return reasons


def files(place: Path) -> list[Path]:
    return [place] if place.is_file() else sorted(place.rglob("*.py"))


def reason_of(node: ast.AST) -> ast.expr | None:
    if not isinstance(node, ast.Call):
        return None
    called = node.func.id if isinstance(node.func, ast.Name) else ""
    if called == "CheckpointError":
        return node.args[0]
    if called == "Problem":
        return next(keyword.value for keyword in node.keywords if keyword.arg == "reason")
    return None


def texts(value: ast.expr) -> set[str]:
    """The string that an expression is, or those that it chooses from; its condition is none of them."""
    if isinstance(value, ast.IfExp):
        return texts(value.body) | texts(value.orelse)
    return {value.value} if isinstance(value, ast.Constant) and isinstance(value.value, str) else set()


def bound(tree: ast.Module, names: set[str]) -> list[ast.expr]:
    """What is assigned to these variables, and given to or the default of parameters of these names."""
    values: list[ast.expr] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and {t.id for t in node.targets if isinstance(t, ast.Name)} & names:
            values.append(node.value)
        if isinstance(node, ast.FunctionDef):
            defaults = zip(reversed(node.args.args), reversed(node.args.defaults), strict=False)
            values += [default for argument, default in defaults if argument.arg in names]
        if isinstance(node, ast.keyword) and node.arg in names:
            values.append(node.value)
    return values


def test_every_reason_that_the_code_gives_is_known() -> None:
    everywhere = [path.name for path in sorted(SOURCES.iterdir()) if path.is_dir() or path.suffix == ".py"]
    assert given(*everywhere) - REASONS.keys() == set()


def test_every_reason_of_tokenizer_and_engine_is_given_there_and_heals_never() -> None:
    for finder in ("engine", "tokenizer"):
        known = {name for name, reason in REASONS.items() if reason.found_by == finder}
        assert known == given(*PLACES[finder]) & known, finder
        assert not any(REASONS[name].heals for name in known)


def test_a_listings_reasons_are_given_by_its_package() -> None:
    known = {name for name, reason in REASONS.items() if reason.found_by == "listing"}
    # These two stand as positional arguments; tests/checkpoint/test_validity.py meets them.
    assert known - given(*PLACES["listing"]) <= {"no_tokenizer", "no_config"}
