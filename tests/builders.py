"""Values with good defaults, so that a test says only what matters."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from joiner.catalog.build import Adjustments, build
from joiner.catalog.market import UNLIMITED, InstanceType, Offering, Overhead
from joiner.model import resources
from joiner.model.codec import decode
from joiner.model.labels import ARCH, CAPACITY_TYPE, HOSTNAME, INSTANCE_TYPE, NODEPOOL, ON_DEMAND, OS, ZONE, Vocabulary
from joiner.model.nodeoverlay import NodeOverlay
from joiner.model.nodepool import NodePool
from joiner.model.pod import Pod
from joiner.model.storage import PersistentVolume, PersistentVolumeClaim
from joiner.model.typesettings import InstanceTypeSettings
from joiner.requirements import Requirement, Requirements
from joiner.scheduling.problem import ExistingNode, PoolOption, Problem
from joiner.scheduling.reporter import Attempt

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


# -- scheduling ------------------------------------------------------------------------------------------------------


def pod(
    name: str = "web",
    cpu: str | None = "1",
    memory: str | None = "1Gi",
    labels: Mapping[str, str] | None = None,
    namespace: str = "default",
    **spec: Any,
) -> Pod:
    """A pod that waits; `extra` are further requests, `ports` its host ports, `claims` the claims behind its volumes."""
    sizes = {"cpu": cpu, "memory": memory, **spec.pop("extra", {})}
    container = {
        "name": "main",
        "resources": {"requests": {name: amount for name, amount in sizes.items() if amount is not None}},
        "ports": [{"hostPort": port} if isinstance(port, int) else port for port in spec.pop("ports", ())],
    }
    volumes = [{"name": each, "persistentVolumeClaim": {"claimName": each}} for each in spec.pop("claims", ())]
    metadata = {"name": name, "namespace": namespace, "uid": name, "labels": dict(labels or {})}
    return decode({"metadata": metadata, "spec": {"containers": [container], "volumes": volumes, **spec}}, Pod)


def pods(count: int, name: str = "web", cpu: str = "1", memory: str = "1Gi", **more: Any) -> tuple[Pod, ...]:
    """So many pods that differ in nothing but their names."""
    return tuple(pod(f"{name}-{number}", cpu, memory, **{"labels": {"app": name}, **more}) for number in range(count))


def existing_node(name: str = "node-a", zone: str = "a", **more: Any) -> ExistingNode:
    """A node with 4 cpu and 16Gi that nobody is on, unless said otherwise."""
    labels = {ZONE: zone, ARCH: "amd64", OS: "linux", **more.pop("labels", {})}
    given = more.pop("allocatable", resources.of(cpu=4, memory="16Gi", pods=20))
    return ExistingNode(name=name, labels=labels, allocatable=given, **more)


SHELF = tuple(
    instance_type(
        f"m-{cpu}",
        [
            offering(kind, zone, cpu * (0.04 if kind == "spot" else 0.1) + place * 0.001)
            for kind in ("spot", ON_DEMAND)
            for place, zone in enumerate("abc")
        ],
        capacity=resources.of(cpu=cpu, memory=f"{4 * cpu}Gi", pods=8 * cpu),
    )
    for cpu in (1, 2, 4, 8, 16)
)
"""Five sizes of one shape, spot and on demand in three zones; zone a is the cheapest by a little."""


def pool_option(
    pool: NodePool | None = None,
    types: Iterable[InstanceType] = SHELF,
    overlays: Sequence[NodeOverlay] = (),
    used: Mapping[str, int] | None = None,
) -> PoolOption:
    """A pool with what it can buy."""
    pool = pool or node_pool()
    catalog = build(tuple(types), Adjustments(overlays=tuple(overlays)), pool, VOCABULARY)
    return PoolOption(pool=pool, catalog=catalog, used=used or {})


def problem(
    waiting: Iterable[Pod], *pools: PoolOption | NodePool, types: Iterable[InstanceType] = SHELF, **more: Any
) -> Problem:
    """Pods that wait, and one pool that can buy everything of the shelf; say `pools=()` for none."""
    kinds = tuple(types)
    options = pools or more.pop("pools", (node_pool(),))
    made = tuple(each if isinstance(each, PoolOption) else pool_option(each, kinds) for each in options)
    vocabulary = VOCABULARY.extended(well_known={key for each in kinds for key in each.requirements})
    return Problem(pods=tuple(waiting), pools=made, vocabulary=vocabulary, **more)


def away_from(app: str, key: str = HOSTNAME, **more: Any) -> dict[str, Any]:
    """The affinity of a pod that shares no domain with an app."""
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [near_term(app, key, **more)]}}


def near_to(app: str, key: str = ZONE, **more: Any) -> dict[str, Any]:
    """The affinity of a pod that needs an app in its domain."""
    return {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [near_term(app, key, **more)]}}


def near_term(app: str, key: str, **more: Any) -> dict[str, Any]:
    """One term of pod affinity, by the label `app`."""
    return {"topologyKey": key, "labelSelector": {"matchLabels": {"app": app}}, **more}


def spread_over(app: str, key: str = ZONE, skew: int = 1, **more: Any) -> dict[str, Any]:
    """A spread constraint on the pods of an app."""
    return {"topologyKey": key, "maxSkew": skew, "labelSelector": {"matchLabels": {"app": app}}, **more}


def bound_volume(name: str, *places: dict[str, Any]) -> tuple[PersistentVolumeClaim, PersistentVolume]:
    """A claim and the volume it is bound to, which is to be had where one of these requirements holds."""
    claim = {
        "metadata": {"name": name, "namespace": "default", "annotations": {"pv.kubernetes.io/bind-completed": "yes"}},
        "spec": {"volumeName": name},
    }
    there = {"required": {"nodeSelectorTerms": [{"matchExpressions": [place]} for place in places]}}
    volume = {"metadata": {"name": name}, "spec": {"nodeAffinity": there}}
    return decode(claim, PersistentVolumeClaim), decode(volume, PersistentVolume)


class Heard:
    """A reporter that remembers."""

    def __init__(self) -> None:
        self.begun: list[str] = []
        self.attempts: list[Attempt] = []

    def trying(self, planner: str) -> None:
        self.begun.append(planner)

    def tried(self, attempt: Attempt) -> None:
        self.attempts.append(attempt)
