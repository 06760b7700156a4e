"""A scenario as the judge sees it: what each pool can buy, which nodes there are, who waits.

Reads the scenario format alone. Where the reference reads overlays differently from what we decided,
`reference` chooses its reading.
"""

import itertools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any

from tests.differential.terms import (
    CAPACITY_TYPE,
    CORE_WELL_KNOWN,
    HOSTNAME,
    INITIALIZED,
    INSTANCE_TYPE,
    NODEPOOL,
    REGISTERED,
    ZONE,
    Amounts,
    Json,
    Labels,
    amounts,
    exactly,
    joined,
    may_meet,
    meets,
    of_labels,
    pod_requests,
    requirements,
    total,
)

EPHEMERAL = {
    ("node.kubernetes.io/not-ready", "NoSchedule"),
    ("node.kubernetes.io/not-ready", "NoExecute"),
    ("node.kubernetes.io/unreachable", "NoSchedule"),
    ("node.cloudprovider.kubernetes.io/uninitialized", "NoSchedule"),
    ("karpenter.sh/unregistered", "NoExecute"),
}
Port = tuple[str, int, str]


@dataclass(frozen=True, eq=False)
class Kind:
    """One instance type bought in one way: everything a node of it would be and have."""

    name: str
    labels: Labels
    price: float
    available: bool
    reserved_left: int
    """How many a reservation still has; only read of a reserved one."""
    reservation: str
    capacity: Amounts
    allocatable: Amounts

    @property
    def capacity_type(self) -> str:
        return next(iter(self.labels[CAPACITY_TYPE].values()), "")

    @property
    def zone(self) -> str:
        return next(iter(self.labels[ZONE].values()), "")

    @property
    def launchable(self) -> bool:
        return self.available and (self.capacity_type != "reserved" or self.reserved_left > 0)


@dataclass(frozen=True, eq=False)
class Pod:
    """A pod that waits, runs, or stands for a DaemonSet."""

    key: str
    namespace: str
    labels: Mapping[str, str]
    spec: Json
    node: str = ""
    daemon: bool = False

    @cached_property
    def requests(self) -> Amounts:
        return pod_requests(self.spec)

    @cached_property
    def ports(self) -> list[Port]:
        return [
            (port.get("protocol") or "TCP", port["hostPort"], port.get("hostIP") or "0.0.0.0")
            for container in self.spec.get("containers", ())
            for port in container.get("ports", ())
            if port.get("hostPort")
        ]

    @cached_property
    def alternatives(self) -> list[Labels]:
        """What the node must be: its selector with each of the terms of which one must hold."""
        selector = of_labels(self.spec.get("nodeSelector"))
        affinity = (self.spec.get("affinity") or {}).get("nodeAffinity") or {}
        required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or {}
        terms = required.get("nodeSelectorTerms") or []
        return [joined(selector, requirements(term.get("matchExpressions"))) for term in terms] or [selector]

    def hard_terms(self, kind: str) -> list[Json]:
        """Required terms of `podAffinity` or `podAntiAffinity`."""
        affinity = (self.spec.get("affinity") or {}).get(kind) or {}
        return list(affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or [])

    @cached_property
    def hard_spread(self) -> list[Json]:
        rows = self.spec.get("topologySpreadConstraints") or []
        return [row for row in rows if row.get("whenUnsatisfiable") == "DoNotSchedule"]


@dataclass(frozen=True, eq=False)
class Node:
    """A node that is there or on its way, as pods will find it."""

    name: str
    labels: Mapping[str, str]
    taints: list[Json]
    capacity: Amounts
    allocatable: Amounts
    deleting: bool
    pods: list[Pod] = field(default_factory=list)

    @cached_property
    def wanted(self) -> Labels:
        return of_labels(self.labels)


@dataclass(frozen=True, eq=False)
class Pool:
    """A NodePool with what it can buy."""

    name: str
    spec: Json
    kinds: list[Kind]

    @property
    def template(self) -> Json:
        return self.spec["template"].get("spec") or {}

    @cached_property
    def rows(self) -> list[Json]:
        return list(self.template.get("requirements") or [])

    @cached_property
    def requirements(self) -> Labels:
        return requirements(self.rows)

    @cached_property
    def labels(self) -> Labels:
        """Labels that every node of the pool gets."""
        written = (self.spec["template"].get("metadata") or {}).get("labels")
        return {**of_labels(written), NODEPOOL: exactly(self.name)}

    @cached_property
    def open(self) -> Labels:
        """What a new node may be before any pod is on it."""
        return joined(self.requirements, self.labels, {REGISTERED: exactly("true"), INITIALIZED: exactly("true")})

    @property
    def taints(self) -> list[Json]:
        return list(self.template.get("taints") or [])


@dataclass(frozen=True, eq=False)
class World:
    """Everything a plan is judged by."""

    pools: dict[str, Pool]
    nodes: dict[str, Node]
    waiting: dict[str, Pod]
    """Pods that want a place, those of nodes that are going away among them."""
    bound: list[Pod]
    """Pods that stay where they are."""
    daemons: list[Pod]
    namespaces: dict[str, Mapping[str, str]]
    objects: dict[tuple[str, str, str], Json]
    options: Json
    well_known: frozenset[str]
    reservations: dict[str, int]
    types: dict[str, Labels]
    """What each type says of itself, before any way of buying it."""


def read(scenario: Json, overlays: Mapping[str, str] | None = None, reference: bool = False) -> World:
    """The world of a scenario; `overlays` are the statuses that the reference gave them."""
    options = scenario.get("options") or {}
    reservation_key = options.get("reservationIDLabel") or "oracle.test/reservation-id"
    applied = [
        overlay
        for overlay in scenario.get("nodeOverlays") or ()
        if ((overlays or {}).get(overlay["metadata"]["name"]) == "applied" if reference else _makes_sense(overlay))
    ]
    applied = applied if options.get("nodeOverlay", True) else []
    pools = {
        pool["metadata"]["name"]: Pool(
            pool["metadata"]["name"], pool["spec"], list(_kinds(scenario, pool, applied, reservation_key, reference))
        )
        for pool in scenario["nodePools"]
        if pool["spec"].get("replicas") is None
    }
    going = set(scenario.get("deletingNodes") or ())
    nodes = {node.name: node for node in _nodes(scenario, going)}
    waiting = [_pod(pod, "pod", index) for index, pod in enumerate(scenario.get("pods") or ())]
    bound = []
    for index, written in enumerate(scenario.get("boundPods") or ()):
        pod = _pod(written, "bound", index)
        if pod.node in nodes:
            nodes[pod.node].pods.append(pod)
        if pod.node in going and not pod.daemon:
            waiting.append(pod)
        else:
            bound.append(pod)
    objects = {_identity(item): item for item in scenario.get("objects") or ()}
    left: dict[str, int] = {}
    for kind in itertools.chain.from_iterable(pool.kinds for pool in pools.values()):
        if kind.reservation:
            left[kind.reservation] = min(left.get(kind.reservation, kind.reserved_left), kind.reserved_left)
    return World(
        pools=pools,
        nodes=nodes,
        waiting={pod.key: pod for pod in waiting},
        bound=bound,
        daemons=[_daemon(item) for item in scenario.get("daemonSets") or ()],
        namespaces={
            name: item["metadata"].get("labels") or {}
            for (kind, _, name), item in objects.items()
            if kind == "Namespace"
        },
        objects=objects,
        options={**options, "reservationIDLabel": reservation_key},
        well_known=CORE_WELL_KNOWN
        | _catalogue_keys(scenario)
        | {reservation_key}
        | set(options.get("wellKnownLabels") or ()),
        reservations=left,
        types={
            written["name"]: requirements(written["requirements"]) for written in scenario.get("instanceTypes") or ()
        },
    )


def _identity(item: Json) -> tuple[str, str, str]:
    scope = "" if item["kind"] in ("PersistentVolume", "StorageClass", "CSINode", "Namespace") else "default"
    return item["kind"], item["metadata"].get("namespace") or scope, item["metadata"]["name"]


def _catalogue_keys(scenario: Json) -> set[str]:
    rows = (
        row
        for written in scenario.get("instanceTypes") or ()
        for row in itertools.chain(written["requirements"], *(way["requirements"] for way in written["offerings"]))
    )
    return {row["key"] for row in rows} - {HOSTNAME}


def _pod(written: Json, prefix: str, index: int) -> Pod:
    metadata = written.get("metadata") or {}
    namespace, name = metadata.get("namespace") or "default", metadata.get("name") or f"{prefix}-{index:06d}"
    return Pod(
        key=name if namespace == "default" else f"{namespace}/{name}",
        namespace=namespace,
        labels=metadata.get("labels") or {},
        spec=written["spec"],
        node=written["spec"].get("nodeName") or "",
        daemon=any(owner["kind"] == "DaemonSet" for owner in metadata.get("ownerReferences") or ()),
    )


def _daemon(written: Json) -> Pod:
    """The pod of a DaemonSet; a limit stands in for a missing request."""
    template = written["spec"]["template"]
    containers = []
    for container in template["spec"].get("containers", ()):
        resources = container.get("resources") or {}
        merged = {**(resources.get("limits") or {}), **(resources.get("requests") or {})}
        containers.append({**container, "resources": {**resources, "requests": merged}})
    namespace = written["metadata"].get("namespace") or "default"
    labels = (template.get("metadata") or {}).get("labels") or {}
    return Pod(
        written["metadata"]["name"], namespace, labels, {**template["spec"], "containers": containers}, daemon=True
    )


def _kinds(scenario: Json, pool: Json, overlays: list[Json], reservation_key: str, reference: bool) -> Iterable[Kind]:
    name = pool["metadata"]["name"]
    only = (scenario.get("instanceTypesByNodePool") or {}).get(name)
    template = pool["spec"]["template"]
    belongs = {
        NODEPOOL: exactly(name),
        "oracle.test/oraclenodeclass": exactly("default"),
        **of_labels((template.get("metadata") or {}).get("labels")),
    }
    promised = {} if reference else requirements((template.get("spec") or {}).get("requirements"))
    ranked = sorted(overlays, key=lambda item: (item["spec"].get("weight", 0), item["metadata"]["name"]), reverse=True)
    for written in scenario.get("instanceTypes") or ():
        if only is not None and written["name"] not in only:
            continue
        about = {**requirements(written["requirements"]), INSTANCE_TYPE: exactly(written["name"])}
        ways = [(way, {**about, **requirements(way["requirements"])}) for way in written["offerings"]]
        typed = joined(belongs, about)
        bought = [joined(belongs, promised, labels) for _, labels in ways]
        matching = [[i for i, item in enumerate(ranked) if _matches(item, one, typed, reference)] for one in bought]
        whole = sorted(set(itertools.chain.from_iterable(matching)))
        for (way, labels), mine in zip(ways, matching, strict=True):
            changes = [ranked[i]["spec"] for i in mine]
            enlarging = [ranked[i]["spec"] for i in whole] if reference else changes
            yield _kind(written, way, labels, _changed_price(way["price"], changes), enlarging, reservation_key)


def _kind(written: Json, way: Json, labels: Labels, price: float, enlarging: list[Json], reservation_key: str) -> Kind:
    capacity = amounts(written["capacity"])
    for spec in reversed(enlarging):  # the strongest writes last
        capacity.update(amounts(spec.get("capacity")))
    return Kind(
        name=written["name"],
        labels=labels,
        price=price,
        available=way["available"],
        reserved_left=way.get("reservationCapacity", 0),
        reservation=next(iter(labels[reservation_key].values()), "") if reservation_key in labels else "",
        capacity=capacity,
        allocatable=_allocatable(capacity, written.get("overhead") or {}),
    )


def _makes_sense(overlay: Json) -> bool:
    listing = [one for one in overlay["spec"].get("requirements") or () if one["operator"] in ("In", "NotIn")]
    return all(one.get("values") for one in listing)


def _matches(overlay: Json, bought: Labels, typed: Labels, reference: bool) -> bool:
    wanted = requirements(overlay["spec"].get("requirements"))
    if reference:
        return may_meet(typed, wanted) and may_meet(bought, {key: row for key, row in wanted.items() if key in bought})
    return meets(bought, wanted)


def _changed_price(price: float, specs: list[Json]) -> float:
    """The price after the strongest overlay that speaks of it; they never add up."""
    for spec in specs:
        if spec.get("price") is not None:
            return float(spec["price"])
        change = spec.get("priceAdjustment")
        if change is not None:
            changed = price * (1 + float(change[:-1]) / 100) if change.endswith("%") else price + float(change)
            return max(0.0, changed)
    return price


def _allocatable(capacity: Amounts, overhead: Json) -> Amounts:
    taken = total(amounts(overhead.get(part)) for part in ("kubeReserved", "systemReserved", "evictionThreshold"))
    left = {name: value - taken.get(name, Fraction(0)) for name, value in capacity.items()}
    pages = sum((value for name, value in capacity.items() if name.startswith("hugepages-")), Fraction(0))
    if "memory" in left:
        left["memory"] = max(Fraction(0), left["memory"] - pages)
    return left


def _nodes(scenario: Json, going: set[str]) -> Iterable[Node]:
    claims: dict[str, Json] = {}
    for claim in scenario.get("nodeClaims") or ():
        status = claim.get("status") or {}
        home = status.get("providerID") or f"oracle://{status.get('nodeName') or claim['metadata']['name']}"
        claims[home] = claim
    for written in scenario.get("nodes") or ():
        name = written["metadata"]["name"]
        claim = claims.pop((written.get("spec") or {}).get("providerID") or f"oracle://{name}", None)
        yield _node(name, written, claim, name in going)
    for claim in claims.values():
        yield _node(claim["metadata"]["name"], None, claim, False)


def _node(name: str, node: Json | None, claim: Json | None, deleting: bool) -> Node:
    """Which labels, taints and amounts count depends on how far the node has come."""
    labels: dict[str, str] = {}
    status: dict[str, Any] = {}
    taints: list[Json] = []
    if node:
        labels = dict(node["metadata"].get("labels") or {})
        if NODEPOOL in labels:
            labels = {REGISTERED: "true", INITIALIZED: "true", **labels}
        status, taints = node.get("status") or {}, list((node.get("spec") or {}).get("taints") or [])
    managed = claim is not None or NODEPOOL in labels
    registered = node is not None and (not managed or labels.get(REGISTERED) == "true")
    initialized = registered and (not managed or labels.get(INITIALIZED) == "true")
    capacity = amounts(status.get("capacity") or status.get("allocatable"))
    allocatable = amounts(status.get("allocatable") or status.get("capacity"))
    if claim and not registered:
        labels = {**(claim["metadata"].get("labels") or {})}
        taints = list(claim["spec"].get("taints") or [])
    if claim and not initialized:
        promised = claim.get("status") or {}
        capacity = {**amounts(promised.get("capacity")), **{k: v for k, v in capacity.items() if v}}
        allocatable = {**amounts(promised.get("allocatable")), **{k: v for k, v in allocatable.items() if v}}
    if not initialized:
        passing = EPHEMERAL | {
            (t["key"], t["effect"]) for t in (claim or {"spec": {}})["spec"].get("startupTaints") or ()
        }
        taints = [
            t for t in taints if (t["key"], t["effect"]) not in passing and not t["key"].startswith("readiness.k8s.io/")
        ]
    return Node(name, {HOSTNAME: name, **labels}, taints, capacity, allocatable, deleting)
