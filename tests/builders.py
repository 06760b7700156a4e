"""Values with good defaults, so that a test says only what matters."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from joiner.catalog.market import UNLIMITED, InstanceType, Offering, Overhead
from joiner.model import resources
from joiner.model.codec import decode
from joiner.model.labels import ARCH, CAPACITY_TYPE, INSTANCE_TYPE, NODEPOOL, ON_DEMAND, OS, ZONE, Vocabulary
from joiner.model.nodeoverlay import NodeOverlay
from joiner.model.nodepool import NodePool
from joiner.model.typesettings import InstanceTypeSettings
from joiner.requirements import Requirement, Requirements

MEMORY_LABEL = "example.com/instance-memory"
RESERVATION = "example.com/reservation-id"
VOCABULARY = Vocabulary(reservation_id=RESERVATION).extended(well_known=[MEMORY_LABEL, RESERVATION])


def offering(
    capacity_type: str = ON_DEMAND,
    zone: str = "a",
    price: float | None = 1.0,
    available: int = UNLIMITED,
    reservation: str = "",
    **more: Any,
) -> Offering:
    """One way to buy a type."""
    identity = (
        Requirement.of(RESERVATION, "In", reservation) if reservation else Requirement.of(RESERVATION, "DoesNotExist")
    )
    requirements = Requirements(
        [*Requirements.of_labels({CAPACITY_TYPE: capacity_type, ZONE: zone}).values(), identity]
    )
    return Offering(requirements=requirements, price=price, available=available, **more)


def instance_type(
    name: str = "m5.large",
    offerings: Iterable[Offering] | None = None,
    labels: Mapping[str, str | Sequence[str]] | None = None,
    overhead: Overhead | None = None,
    **more: Any,
) -> InstanceType:
    """A machine with 2 cpu and 8Gi, on demand in zone a, unless said otherwise."""
    ways = tuple(offerings) if offerings is not None else (offering(),)
    described = {
        INSTANCE_TYPE: name,
        ARCH: "amd64",
        OS: "linux",
        ZONE: sorted({way.zone for way in ways}),
        CAPACITY_TYPE: sorted({way.capacity_type for way in ways}),
        **(labels or {}),
    }
    requirements = Requirements(
        Requirement(key, [values] if isinstance(values, str) else values) for key, values in described.items()
    )
    capacity = more.pop("capacity", resources.of(cpu=2, memory="8Gi", ephemeral_storage="20Gi", pods=29))
    return InstanceType(
        name=name, requirements=requirements, offerings=ways, capacity=capacity, overhead=overhead or Overhead(), **more
    )


def node_pool(
    name: str = "default",
    requirements: Sequence[Mapping[str, Any]] = (),
    labels: Mapping[str, str] | None = None,
    **spec: Any,
) -> NodePool:
    """A pool that allows everything, unless said otherwise."""
    template = {
        "metadata": {"labels": dict(labels or {})},
        "spec": {
            "requirements": list(requirements),
            "nodeClassRef": {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"},
        },
    }
    return decode({"metadata": {"name": name}, "spec": {"template": template, **spec}}, NodePool)


def overlay(name: str = "overlay", **spec: Any) -> NodeOverlay:
    """An overlay; `match` is short for `selector.matchLabels`, `pool` for the name of a pool."""
    match = {**spec.pop("match", {}), **({NODEPOOL: spec.pop("pool")} if "pool" in spec else {})}
    if match:
        spec["selector"] = {"matchLabels": match}
    return decode({"metadata": {"name": name}, "spec": spec}, NodeOverlay)


def settings(name: str = "m5.large", **spec: Any) -> InstanceTypeSettings:
    """Settings of one type."""
    return decode({"metadata": {"name": name}, "spec": spec}, InstanceTypeSettings)


def requirement(key: str, operator: str, *values: str, **more: Any) -> dict[str, Any]:
    """A requirement as it is written in a manifest."""
    return {"key": key, "operator": operator, "values": list(values), **more}
