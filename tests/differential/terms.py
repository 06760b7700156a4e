"""The small languages a scenario is written in, read anew for the judge: amounts, label requirements, selectors, tolerations.

Nothing here knows the product. A mistake in its algebra must not be repeated by the one who judges it.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

Json = dict[str, Any]
Amounts = dict[str, Fraction]

HOSTNAME = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"
CAPACITY_TYPE = "karpenter.sh/capacity-type"
INSTANCE_TYPE = "node.kubernetes.io/instance-type"
NODEPOOL = "karpenter.sh/nodepool"
REGISTERED = "karpenter.sh/registered"
INITIALIZED = "karpenter.sh/initialized"

CORE_WELL_KNOWN = frozenset(
    {
        NODEPOOL,
        ZONE,
        "topology.kubernetes.io/region",
        INSTANCE_TYPE,
        "kubernetes.io/arch",
        "kubernetes.io/os",
        CAPACITY_TYPE,
        "node.kubernetes.io/windows-build",
    }
)
ALIASES = {
    "failure-domain.beta.kubernetes.io/zone": ZONE,
    "failure-domain.beta.kubernetes.io/region": "topology.kubernetes.io/region",
    "beta.kubernetes.io/arch": "kubernetes.io/arch",
    "beta.kubernetes.io/os": "kubernetes.io/os",
    "beta.kubernetes.io/instance-type": INSTANCE_TYPE,
}

SUFFIXES = {"": 0, "n": -9, "u": -6, "m": -3, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
BINARY = {"Ki": 1, "Mi": 2, "Gi": 3, "Ti": 4, "Pi": 5, "Ei": 6}
QUANTITY = re.compile(r"^([+-]?(?:\d+\.?\d*|\.\d+))(?:([KMGTPE]i)|([eE][+-]?\d+)|([numkMGTPE]?))$")


@lru_cache(maxsize=4096)
def amount(text: str | int | float) -> Fraction:
    """An amount, exact."""
    found = QUANTITY.match(str(text))
    if not found:
        raise ValueError(f"not an amount: {text!r}")
    number, binary, exponent, decimal = found.groups()
    if binary:
        return Fraction(number) * int(1024 ** BINARY[binary])
    power = int(exponent[1:]) if exponent else SUFFIXES[decimal]
    return Fraction(number) * (Fraction(int(10**power)) if power >= 0 else Fraction(1, int(10**-power)))


def amounts(written: Mapping[str, Any] | None) -> Amounts:
    return {name: amount(value) for name, value in (written or {}).items()}


def total(parts: Iterable[Mapping[str, Fraction]]) -> Amounts:
    summed: Amounts = {}
    for part in parts:
        for name, value in part.items():
            summed[name] = summed.get(name, Fraction(0)) + value
    return summed


def largest(parts: Iterable[Mapping[str, Fraction]]) -> Amounts:
    """The largest of each resource."""
    top: Amounts = {}
    for part in parts:
        for name, value in part.items():
            top[name] = max(top.get(name, Fraction(0)), value)
    return top


def pod_requests(spec: Json) -> Amounts:
    """What a node must have for a pod: containers and sidecars together, or the dearest moment of starting up."""

    def asked(container: Json) -> Amounts:
        return amounts(container.get("resources", {}).get("requests"))

    sidecars: list[Amounts] = []
    starting: list[Amounts] = []
    for container in spec.get("initContainers", ()):
        if container.get("restartPolicy") == "Always":
            sidecars.append(asked(container))
            starting.append(total(sidecars))
        else:
            starting.append(total([*sidecars, asked(container)]))
    running = total([*sidecars, *map(asked, spec.get("containers", ()))])
    whole = {**largest([running, *starting]), **amounts(spec.get("resources", {}).get("requests"))}
    return total([whole, amounts(spec.get("overhead")), {"pods": Fraction(1)}])


@dataclass(frozen=True)
class Allowed:
    """What a label may be: one of `listed` (or anything but `excluded`), within bounds; or not there at all."""

    listed: frozenset[str] | None = None
    excluded: frozenset[str] = frozenset()
    low: int | None = None
    high: int | None = None
    absent: bool = False

    def has(self, value: str) -> bool:
        if value in self.excluded or (self.listed is not None and value not in self.listed):
            return False
        if self.low is None and self.high is None:
            return True
        try:
            number = int(value)
        except ValueError:
            return False
        return (self.low is None or number >= self.low) and (self.high is None or number <= self.high)

    def values(self) -> frozenset[str]:
        """The values it is limited to; only asked of a limited one."""
        return frozenset(value for value in self.listed or () if self.has(value))

    @property
    def impossible(self) -> bool:
        if self.absent:
            return False
        if self.listed is not None:
            return not self.values()
        return self.low is not None and self.high is not None and self.low > self.high

    def __and__(self, other: "Allowed") -> "Allowed":
        lists = [side.listed for side in (self, other) if side.listed is not None]
        return Allowed(
            listed=frozenset.intersection(*lists) if lists else None,
            excluded=self.excluded | other.excluded,
            low=max((side.low for side in (self, other) if side.low is not None), default=None),
            high=min((side.high for side in (self, other) if side.high is not None), default=None),
            absent=self.absent and other.absent,
        )

    def within(self, other: "Allowed") -> bool:
        """Whether everything that this allows, the other accepts."""
        if self.absent and not other.absent:
            return False
        if self.listed is not None:
            return all(other.has(value) for value in self.values())
        if other.listed is not None:
            return False
        bounded = (other.low is None or (self.low is not None and self.low >= other.low)) and (
            other.high is None or (self.high is not None and self.high <= other.high)
        )
        return bounded and not any(self.has(value) for value in other.excluded)


ABSENT = Allowed(listed=frozenset(), absent=True)
Labels = dict[str, Allowed]


def exactly(*values: str) -> Allowed:
    return Allowed(listed=frozenset(values))


def allowed(operator: str, values: Iterable[str] | None) -> Allowed:
    """One requirement as the values it accepts."""
    given = [str(value) for value in values or ()]
    match operator:
        case "In":
            return exactly(*given)
        case "NotIn":
            return Allowed(excluded=frozenset(given), absent=True)
        case "Exists":
            return Allowed()
        case "DoesNotExist":
            return ABSENT
        case "Gt":
            return Allowed(low=int(given[0]) + 1)
        case "Lt":
            return Allowed(high=int(given[0]) - 1)
        case "Gte":
            return Allowed(low=int(given[0]))
        case "Lte":
            return Allowed(high=int(given[0]))
    raise ValueError(f"unknown operator {operator!r}")


def joined(*parts: Labels) -> Labels:
    """All of them at once."""
    together: Labels = {}
    for part in parts:
        for key, value in part.items():
            together[key] = together[key] & value if key in together else value
    return together


def requirements(written: Iterable[Json] | None) -> Labels:
    return joined(*({_key(row["key"]): allowed(row["operator"], row.get("values"))} for row in written or ()))


def _key(written: str) -> str:
    return ALIASES.get(written, written)


def of_labels(written: Mapping[str, str] | None) -> Labels:
    return {_key(key): exactly(value) for key, value in (written or {}).items()}


def meets(node: Labels, wanted: Labels) -> bool:
    """Whether a node that may be anything `node` allows satisfies all of `wanted`."""
    return all(node.get(key, ABSENT).within(accepted) for key, accepted in wanted.items())


def may_meet(node: Labels, wanted: Labels, well_known: frozenset[str] | set[str] = frozenset()) -> bool:
    """Whether such a node can satisfy all of `wanted`; a well-known label that nothing speaks of may come to be."""
    return all(
        not (node[key] & accepted).impossible if key in node else accepted.absent or key in well_known
        for key, accepted in wanted.items()
    )


def selects(selector: Json | None, labels: Mapping[str, str]) -> bool:
    """Whether a label selector selects an object; no selector selects nothing."""
    if selector is None:
        return False
    if any(labels.get(key) != value for key, value in (selector.get("matchLabels") or {}).items()):
        return False
    return all(
        allowed(row["operator"], row.get("values")).has(labels[row["key"]])
        if row["key"] in labels
        else row["operator"] in ("NotIn", "DoesNotExist")
        for row in selector.get("matchExpressions") or ()
    )


def tolerates(tolerations: Iterable[Json] | None, taints: Iterable[Json] | None) -> bool:
    """Whether a pod stands all taints that keep pods away (a preference does not)."""
    hard = [taint for taint in taints or () if taint.get("effect") != "PreferNoSchedule"]
    return all(any(_tolerated(toleration, taint) for toleration in tolerations or ()) for taint in hard)


def _tolerated(toleration: Json, taint: Json) -> bool:
    if toleration.get("effect") and toleration["effect"] != taint.get("effect"):
        return False
    if toleration.get("key") and toleration["key"] != taint["key"]:
        return False
    if toleration.get("operator") == "Exists":
        return True
    return bool(toleration.get("key")) and toleration.get("value", "") == taint.get("value", "")
