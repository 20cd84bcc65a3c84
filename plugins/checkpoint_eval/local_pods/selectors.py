"""Label and field selectors: text -> a test on an object. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from checkpoint_eval.local_pods.errors import bad_request

Object = dict[str, Any]
Test = Callable[[Object], bool]

_COMMA_OUTSIDE_PARENTHESES = re.compile(r",(?![^(]*\))")
_KEY = r"[A-Za-z0-9]([\w./-]*[A-Za-z0-9])?"
_SET = re.compile(rf"^(?P<key>{_KEY})\s+(?P<op>in|notin)\s*\((?P<values>[^()]*)\)$")
_EQUALITY = re.compile(rf"^(?P<key>{_KEY})\s*(?P<op>==|!=|=)\s*(?P<value>[\w.-]*)$")
_EXISTS = re.compile(rf"^(?P<negated>!?)\s*(?P<key>{_KEY})$")

FIELDS = {
    "pods": (
        "metadata.name",
        "metadata.namespace",
        "spec.nodeName",
        "spec.restartPolicy",
        "spec.schedulerName",
        "spec.serviceAccountName",
        "status.phase",
        "status.podIP",
        "status.nominatedNodeName",
    ),
    "events": (
        "involvedObject.kind",
        "involvedObject.namespace",
        "involvedObject.name",
        "involvedObject.uid",
        "involvedObject.apiVersion",
        "involvedObject.resourceVersion",
        "involvedObject.fieldPath",
        "metadata.name",
        "metadata.namespace",
        "reason",
        "reportingComponent",
        "source",
        "type",
    ),
    "namespaces": ("metadata.name", "metadata.namespace", "status.phase"),
}


def selector(resource: str, labels: str | None, fields: str | None) -> Test:
    """One test for both selectors of a request. Raises ApiError 400 on text that Kubernetes would not take either."""
    tests = [*_label_tests(labels or ""), *_field_tests(resource, fields or "")]
    return lambda candidate: all(test(candidate) for test in tests)


def _label_tests(text: str) -> list[Test]:
    return [_label_test(part.strip()) for part in _COMMA_OUTSIDE_PARENTHESES.split(text) if part.strip()]


def _label_test(part: str) -> Test:
    if match := _SET.match(part):
        values = {value.strip() for value in match["values"].split(",")}
        return _membership(match["key"], values, inside=match["op"] == "in")
    if match := _EQUALITY.match(part):
        return _membership(match["key"], {match["value"]}, inside=match["op"] != "!=")
    if match := _EXISTS.match(part):
        key, wanted = match["key"], not match["negated"]
        return lambda candidate: (key in _labels(candidate)) is wanted
    raise bad_request(f"unable to parse requirement: found {part!r}, expected: identifier, '=', '!=', in, notin or !")


def _membership(key: str, values: set[str], *, inside: bool) -> Test:
    def test(candidate: Object) -> bool:
        labels = _labels(candidate)
        # As in Kubernetes: `!=` and `notin` also choose objects that lack the key.
        return (key in labels and labels[key] in values) is inside

    return test


def _labels(candidate: Object) -> dict[str, str]:
    labels: dict[str, str] = candidate["metadata"].get("labels") or {}
    return labels


def _field_tests(resource: str, text: str) -> list[Test]:
    return [_field_test(resource, part.strip()) for part in text.split(",") if part.strip()]


def _field_test(resource: str, part: str) -> Test:
    match = re.match(r"^(?P<path>[\w.]+?)(?P<op>==|!=|=)(?P<value>.*)$", part)
    if match is None:
        raise bad_request(f"invalid selector: {part!r}; can't understand {part!r}")
    path, wanted, equal = match["path"], match["value"], match["op"] != "!="
    if path not in FIELDS[resource]:
        raise bad_request(f"field label not supported: {path}")
    return lambda candidate: (_value_at(candidate, path) == wanted) is equal


def _value_at(candidate: Object, path: str) -> str:
    value: Any = candidate
    for part in path.split("."):
        value = value.get(part) if isinstance(value, dict) else None
    if path == "source" and isinstance(value, dict):
        value = value.get("component")
    return "" if value is None else str(value)
