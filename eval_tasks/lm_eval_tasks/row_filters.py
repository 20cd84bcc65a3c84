"""A module of a task's Python code, read as text and never run -> what rows one of its functions keeps.

Most `process_docs` functions of lm-eval 0.4.9 do nothing but ``dataset.filter(lambda x: x["subject"] == subject)``,
made for each subject by `functools.partial`, by assignment or in a comprehension that updates the module's names. Those
are a column and its value; anything else is not understood, and refuses its task.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path

Names = Mapping[str, str]
_TEXT_METHODS = ("lower", "upper", "strip", "replace", "capitalize", "title")


class _NotUnderstood(Exception):  # noqa: N818 - an outcome of reading, not an error
    """The code is not of a form that is known."""


def row_filter(module: Path, function: str) -> dict[str, str] | None:
    """Column -> value of the rows that `function` of the file `module` keeps; None unless that is all that it does."""
    try:
        body = ast.parse(module.read_text("utf-8")).body
        return _kept(body, function)
    except (_NotUnderstood, OSError, SyntaxError, UnicodeDecodeError, ValueError):
        return None


def _kept(body: list[ast.stmt], function: str) -> dict[str, str]:
    bound = [(statement, value) for statement, value in _bindings(body) if statement == function]
    if len(bound) > 1:
        raise _NotUnderstood
    if not bound:
        return _of_call(body, *_from_comprehension(body, function))
    (_, value) = bound[0]
    if isinstance(value, ast.FunctionDef):
        return _of_function(value, {})
    return _of_call(body, value, {})


def _bindings(body: list[ast.stmt]) -> Iterator[tuple[str, ast.AST]]:
    """Names that the module's own statements bind: functions, and values of plain assignments."""
    for statement in body:
        if isinstance(statement, ast.FunctionDef):
            yield statement.name, statement
        elif isinstance(statement, ast.Assign):
            for target in statement.targets:
                if isinstance(target, ast.Name):
                    yield target.id, statement.value


def _only(body: list[ast.stmt], name: str) -> ast.AST:
    found = [value for bound, value in _bindings(body) if bound == name]
    if len(found) != 1:
        raise _NotUnderstood
    return found[0]


def _of_call(body: list[ast.stmt], call: ast.AST, names: Names) -> dict[str, str]:
    """``partial(function, name=value, ...)``."""
    if not (isinstance(call, ast.Call) and _is_name(call.func, "partial") and len(call.args) == 1):
        raise _NotUnderstood
    if not any(isinstance(s, ast.ImportFrom) and s.module == "functools" for s in body):
        raise _NotUnderstood
    (inner,) = call.args
    if not isinstance(inner, ast.Name):
        raise _NotUnderstood
    function = _only(body, inner.id)
    if not isinstance(function, ast.FunctionDef):
        raise _NotUnderstood
    return _of_function(function, {keyword.arg or "": _text(keyword.value, names) for keyword in call.keywords})


def _from_comprehension(body: list[ast.stmt], function: str) -> tuple[ast.AST, Names]:
    """The call that ``{name: partial(...) for each in LIST}`` makes for `function`, and the names it is made with."""
    updates = [s.value for s in body if isinstance(s, ast.Expr) and isinstance(s.value, ast.Call)]
    given = [c.args[0] for c in updates if ast.unparse(c.func) == "globals().update" and len(c.args) == 1]
    for argument in given:
        made = _only(body, argument.id) if isinstance(argument, ast.Name) else argument
        if not isinstance(made, ast.DictComp) or len(made.generators) != 1:
            raise _NotUnderstood
        (generator,) = made.generators
        if generator.ifs or not isinstance(generator.target, ast.Name):
            raise _NotUnderstood
        listed = _only(body, generator.iter.id) if isinstance(generator.iter, ast.Name) else generator.iter
        if not isinstance(listed, ast.List | ast.Tuple):
            raise _NotUnderstood
        for element in listed.elts:
            names = {generator.target.id: _text(element, {})}
            if _text(made.key, names) == function:
                return made.value, names
    raise _NotUnderstood


def _of_function(function: ast.FunctionDef, given: Names) -> dict[str, str]:
    """``def f(dataset, name): return dataset.filter(lambda row: row["column"] == value)``."""
    arguments = function.args
    plain = not (arguments.posonlyargs or arguments.kwonlyargs or arguments.vararg or arguments.kwarg)
    names = [argument.arg for argument in arguments.args]
    if not plain or not names or arguments.defaults or function.decorator_list or set(given) != set(names[1:]):
        raise _NotUnderstood
    statements = [s for s in function.body if not (isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant))]
    if len(statements) != 1 or not isinstance(statements[0], ast.Return):
        raise _NotUnderstood
    call = statements[0].value
    if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and len(call.args) == 1):
        raise _NotUnderstood
    if call.keywords or call.func.attr != "filter" or not _is_name(call.func.value, names[0]):
        raise _NotUnderstood
    return _of_test(call.args[0], given)


def _of_test(test: ast.AST, names: Names) -> dict[str, str]:
    if not (isinstance(test, ast.Lambda) and len(test.args.args) == 1 and isinstance(test.body, ast.Compare)):
        raise _NotUnderstood
    comparison = test.body
    if len(comparison.ops) != 1 or not isinstance(comparison.ops[0], ast.Eq):
        raise _NotUnderstood
    column, value = comparison.left, comparison.comparators[0]
    row = test.args.args[0].arg
    if not (isinstance(column, ast.Subscript) and _is_name(column.value, row) and row not in names):
        raise _NotUnderstood
    return {_text(column.slice, {}): _text(value, names)}


def _text(node: ast.AST, names: Names) -> str:
    """The text that an expression of constants, known names, f-strings and methods of text gives."""
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.Name(id=name) if name in names:
            return names[name]
        case ast.JoinedStr(values=parts):
            return "".join(_text(part, names) for part in parts)
        case ast.FormattedValue(value=value, conversion=-1, format_spec=None):
            return _text(value, names)
        case ast.Call(func=ast.Attribute(value=inner, attr=method), args=arguments, keywords=[]) if (
            method in _TEXT_METHODS
        ):
            given = [_text(argument, names) for argument in arguments]
            try:
                return str(getattr(_text(inner, names), method)(*given))
            except TypeError as error:
                raise _NotUnderstood from error
    raise _NotUnderstood


def _is_name(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name
