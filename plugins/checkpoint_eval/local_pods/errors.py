"""Refusals of the API as `v1.Status` objects. Knows no web framework."""

from __future__ import annotations

from typing import Any


class ApiError(Exception):
    """A request that is refused. `code` is the HTTP status, `reason` Kubernetes' word for it."""

    def __init__(self, code: int, reason: str, message: str, details: dict[str, Any] | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.details = details

    def status(self) -> dict[str, Any]:
        """The body of the answer."""
        body: dict[str, Any] = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": str(self),
            "reason": self.reason,
            "code": self.code,
        }
        if self.details:
            body["details"] = self.details
        return body


def bad_request(message: str) -> ApiError:
    """400: the request does not parse."""
    return ApiError(400, "BadRequest", message)


def unauthorized() -> ApiError:
    """401: no bearer token, or not this server's."""
    return ApiError(401, "Unauthorized", "Unauthorized")


def forbidden(verb: str, resource: str, namespace: str | None, name: str | None) -> ApiError:
    """403 with the sentence of Kubernetes' role-based access control."""
    subject = f'{resource} "{name}"' if name else resource
    where = f'in the namespace "{namespace}"' if namespace else "at the cluster scope"
    message = f'{subject} is forbidden: User "local-pods" cannot {verb} resource "{resource}" in API group "" {where}'
    return ApiError(403, "Forbidden", message, {"name": name or "", "kind": resource})


def not_found(resource: str, name: str) -> ApiError:
    """404 for one object."""
    return ApiError(404, "NotFound", f'{resource} "{name}" not found', {"name": name, "kind": resource})


def already_exists(resource: str, name: str) -> ApiError:
    """409 on create."""
    return ApiError(409, "AlreadyExists", f'{resource} "{name}" already exists', {"name": name, "kind": resource})


def conflict(resource: str, name: str, message: str) -> ApiError:
    """409 on a precondition that does not hold."""
    text = f'Operation cannot be fulfilled on {resource} "{name}": {message}'
    return ApiError(409, "Conflict", text, {"name": name, "kind": resource})


def expired(asked: int, oldest: int) -> ApiError:
    """410: a watch from a version whose changes are no longer kept."""
    return ApiError(410, "Expired", f"too old resource version: {asked} ({oldest})")


def invalid(name: str, causes: list[tuple[str, str]]) -> ApiError:
    """422: a pod that is not accepted; `causes` are (field, why)."""
    listed = [{"reason": "FieldValueInvalid", "field": field, "message": why} for field, why in causes]
    text = f'Pod "{name}" is invalid: ' + ", ".join(f"{field}: {why}" for field, why in causes)
    return ApiError(422, "Invalid", text, {"name": name, "kind": "Pod", "causes": listed})
