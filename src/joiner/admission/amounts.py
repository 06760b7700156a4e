"""Amounts that no machine has: a unit was probably left out, or one was taken that belongs to another resource.

Every one of them is an amount that an API server accepts, so these are warnings.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from joiner.admission.problem import FieldProblem, nearest
from joiner.model import resources
from joiner.model.quantity import MILLI
from joiner.model.resources import CPU, EPHEMERAL_STORAGE, MEMORY, NODES, PODS

_MOST: Final[Mapping[str, int]] = {CPU: 10_000 * MILLI, PODS: 10_000 * MILLI}
_MOST_BYTES: Final = MILLI << 50
_MOST_DEVICES: Final = 10**9 * MILLI
"""Of devices and other things that are counted."""
_LEAST_BYTES: Final = MILLI << 20
_PLAIN: Final = (CPU, MEMORY, EPHEMERAL_STORAGE, PODS, NODES, "pid")
_FAMILIES: Final = ("hugepages-", "attachable-volumes-")
OWN_RESOURCES: Final = "one of your own has a domain before it, like example.com/name"
_TOGETHER: Final = 10_000
"""So many times as much may be the limit of a pool."""


def odd_amounts(amounts: Mapping[str, int], path: str, *, together: bool = False) -> Iterator[FieldProblem]:
    """A warning for each amount that cannot be meant for one machine, or for many machines together."""
    for name, amount in amounts.items():
        if message := odd_amount(name, amount, together=together):
            place = f"{path}[{name}]"
            yield FieldProblem(path=place, message=message, severity="warning", nearest=_meant(name, amount))


def odd_amount(name: str, amount: int, *, together: bool = False) -> str:
    """What is odd about an amount of a resource; empty where nothing is."""
    most = _MOST_BYTES if resources.is_bytes(name) else _MOST.get(name, _MOST_DEVICES)
    if not _is_resource(name):
        return f"no machine has a resource {name}; {OWN_RESOURCES}"
    written = f"{resources.text(name, amount)} of {name}"
    if amount < 0:
        return f"{written} is below 0{', so the pool may buy nothing' if together else ''}"
    if amount > most * (_TOGETHER if together else 1):
        many = "all machines of a cloud have" if together else "any machine has"
        return f"{written} is more than {many}; {_unit(name)}"
    if resources.is_bytes(name) and 0 < amount < _LEAST_BYTES:
        return f"{written} is less than 1Mi; {_unit(name)}"
    if name not in (CPU, NODES) and not resources.is_bytes(name) and amount % MILLI:
        return f"{written} is not a whole number; {_unit(name)}"
    return ""


def _unit(name: str) -> str:
    if name == CPU:
        return "cpu is counted in cores, such as 2 or 500m"
    if resources.is_bytes(name):
        return f"{name} is counted in bytes, such as 512Mi or 4Gi"
    return f"{name} is counted in whole ones, such as 2"


def _is_resource(name: str) -> bool:
    return "/" in name or name in _PLAIN or name.startswith(_FAMILIES)


def nearest_resource(name: str, known: Iterable[str]) -> str | None:
    """The resource of Kubernetes that was probably meant."""
    return nearest(name, known) or ("memory" if name.startswith("mem") else None)


def _meant(name: str, amount: int) -> str | None:
    """Of a few bytes as many Mi: 512 and 512m are written where 512Mi is meant. Of no resource the one that looks like it."""
    if not _is_resource(name):
        return nearest_resource(name, _PLAIN)
    if not resources.is_bytes(name) or not 0 < amount < _LEAST_BYTES:
        return None
    number = amount if amount % MILLI else amount // MILLI
    return f"{number}Mi"
