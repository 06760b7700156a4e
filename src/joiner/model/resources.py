"""Resource lists: names to exact quantities, and their arithmetic."""

from collections.abc import Iterable, Mapping
from typing import Final

from joiner.model import quantity

CPU: Final = "cpu"
MEMORY: Final = "memory"
EPHEMERAL_STORAGE: Final = "ephemeral-storage"
PODS: Final = "pods"
NODES: Final = "nodes"
HUGEPAGES_PREFIX: Final = "hugepages-"

Resources = Mapping[str, int]
"""Resource name to thousandths. Never written after it is made."""

NONE: Final[Resources] = {}


def of(**amounts: str | int) -> dict[str, int]:
    """Resources from keyword arguments; `_` in a name stands for `-`: `of(cpu="1", ephemeral_storage="20Gi")`."""
    return {name.replace("_", "-"): int(quantity.parse(amount)) for name, amount in amounts.items()}


def add(*lists: Resources) -> dict[str, int]:
    """The sum, over every name that occurs."""
    total: dict[str, int] = {}
    for resources in lists:
        for name, amount in resources.items():
            total[name] = total.get(name, 0) + amount
    return total


def subtract(left: Resources, right: Resources) -> dict[str, int]:
    """`left` minus `right`, over the names of `left`; other names of `right` are ignored."""
    return {name: amount - right.get(name, 0) for name, amount in left.items()}


def at_least_zero(resources: Resources) -> dict[str, int]:
    """No amount below zero."""
    return {name: max(0, amount) for name, amount in resources.items()}


def fits(wanted: Resources, available: Resources) -> bool:
    """Whether every wanted amount is there; a resource that is not listed amounts to zero."""
    return all(amount <= available.get(name, 0) for name, amount in wanted.items())


def largest(lists: Iterable[Resources]) -> dict[str, int]:
    """For each name the largest amount that occurs."""
    most: dict[str, int] = {}
    for resources in lists:
        for name, amount in resources.items():
            most[name] = max(amount, most.get(name, amount))
    return most


def is_hugepages(name: str) -> bool:
    """Whether the resource is a pool of huge pages, which is carved out of memory."""
    return name.startswith(HUGEPAGES_PREFIX)


def is_bytes(name: str) -> bool:
    """Whether people write the resource with binary suffixes."""
    return name in (MEMORY, EPHEMERAL_STORAGE) or is_hugepages(name)


def text(name: str, amount: int) -> str:
    """One amount as people write it: `1930m`, `6903Mi`."""
    return quantity.text(amount, binary=is_bytes(name))


def plain(name: str, amount: int, digits: int = 3) -> str:
    """One amount in a fixed unit, cores or Gi, so that amounts side by side compare: `7.84`, `27.545Gi`."""
    unit = quantity.MILLI << 30 if is_bytes(name) else quantity.MILLI
    number = f"{amount / unit:.{digits}f}"
    if amount and not float(number):
        return text(name, amount)  # too little to be seen in that unit
    short = number.rstrip("0").rstrip(".") if "." in number else number
    return f"{short}{'Gi' if is_bytes(name) else ''}"


def written(resources: Resources) -> dict[str, str]:
    """The list as it is written into an API object, in order of name."""
    return {name: text(name, resources[name]) for name in sorted(resources)}
