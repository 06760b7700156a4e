"""What an API server answers when it says no: its Status object as the error that callers know."""

from collections.abc import Mapping
from typing import Final

import msgspec

from joiner.kube.errors import (
    AlreadyExists,
    Conflict,
    EvictionBlocked,
    Forbidden,
    Gone,
    Invalid,
    KubeError,
    NotFound,
    Throttled,
    Unauthorized,
    Unreachable,
)
from joiner.model.meta import Value

MESSAGE_MOST: Final = 2_000
PAGE_MOST: Final = 200
"""How much is told of an answer that is no Status: mostly the page of a proxy."""
_PATIENCE_S: Final = 1.0
_PATIENCE_MOST_S: Final = 60.0
"""A proxy may ask for a day; caches must not be silent for so long."""
_TOO_LARGE: Final = "etcdserver: request is too large"
_TOO_NEW: Final = "ResourceVersionTooLarge"
"""After etcd was restored from a backup its versions begin again further down."""
_MANY_BUDGETS: Final = "more than one PodDisruptionBudget"


class Cause(Value):
    """One thing that was wrong."""

    reason: str | None = None
    message: str | None = None
    field: str | None = None


class Details(Value):
    """More about an error."""

    causes: tuple[Cause, ...] | None = None
    retry_after_seconds: int | None = None


class Status(Value):
    """The `Status` object of the API."""

    code: int | None = None
    reason: str | None = None
    message: str | None = None
    details: Details | None = None


def status_of(code: int, body: bytes) -> Status:
    """The Status in an answer; a proxy in between may send something else."""
    try:
        found = msgspec.json.decode(body, type=Status)
    except msgspec.MsgspecError:
        text = " ".join(body.decode(errors="replace").split())[:PAGE_MOST]
        found = Status(message=f"HTTP {code}, and no Status of an API server: {text}" if text else None)
    message = (found.message or f"HTTP {code}")[:MESSAGE_MOST]
    return msgspec.structs.replace(found, code=found.code or code, message=message)


def error_of(status: Status, headers: Mapping[str, str], *, evicting: bool = False) -> KubeError:
    """The error that a Status stands for."""
    code, message, causes = status.code or 0, status.message or "", _causes(status)
    if evicting and (
        any(each.reason == "DisruptionBudget" for each in causes) or (code == 500 and _MANY_BUDGETS in message)
    ):
        told = "; ".join(each.message for each in causes if each.message)
        return EvictionBlocked(f"{message} {told}".strip())
    if evicting and any(each.reason == "NamespaceTerminating" for each in causes):
        return Conflict(f"{message}: the pod goes with its namespace")
    if code == 422 and any(each.field == "metadata.uid" for each in causes):
        return Conflict(f"{message}: it is another object of the same name")
    if any(each.reason == _TOO_NEW for each in causes):
        return Gone(message)
    if code == 409:
        return AlreadyExists(message) if status.reason == "AlreadyExists" else Conflict(message)
    if code in (400, 405, 413, 415, 422) or (code == 500 and _TOO_LARGE in message):
        return Invalid(
            message, (f"{each.field}: {each.message}" if each.field else each.message or "" for each in causes)
        )
    if code == 429:
        return Throttled(message, _retry_after(status, headers))
    kinds: Mapping[int, type[KubeError]] = {401: Unauthorized, 403: Forbidden, 404: NotFound, 410: Gone}
    return kinds.get(code, Unreachable if code >= 500 else KubeError)(message)


def _causes(status: Status) -> tuple[Cause, ...]:
    return (status.details.causes or ()) if status.details is not None else ()


def _retry_after(status: Status, headers: Mapping[str, str]) -> float:
    text = headers.get("Retry-After", "")
    asked = status.details.retry_after_seconds if status.details is not None else None
    return min(max(float(text) if text.isdecimal() else float(asked or 0), _PATIENCE_S), _PATIENCE_MOST_S)
