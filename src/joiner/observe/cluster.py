"""Metrics that are read off the state of the cluster when somebody scrapes, and cost nothing until then."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any, Final

from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from joiner.clock import Clock
from joiner.disruption import budgets
from joiner.model import labels, podrules, resources
from joiner.model.conditions import Condition
from joiner.model.labels import Vocabulary
from joiner.model.meta import KubeObject
from joiner.model.nodepool import NodePool
from joiner.model.pod import Pod, condition
from joiner.model.quantity import MILLI
from joiner.model.resources import Resources
from joiner.observe.families import PREFIX, Family
from joiner.state.cluster import Cluster
from joiner.state.members import StateNode

Objects = Callable[[], Iterable[Any]]
Price = Callable[[str, Mapping[str, str]], float | None]
"""Pool and labels of a machine to what it costs by the hour."""
REASONS: Final = ("Drifted", "Empty", "Underutilized", "Unhealthy")
"""Why nodes may be removed, as budgets name it; metrics write it in lower case."""

_NODE: Final = (
    ("nodes_allocatable", "What pods can use of a node."),
    ("nodes_total_pod_requests", "What the pods of a node ask for, those of DaemonSets among them."),
    ("nodes_total_pod_limits", "What the pods of a node may use at most, those of DaemonSets among them."),
    ("nodes_total_daemon_requests", "What the pods of DaemonSets on a node ask for."),
    ("nodes_total_daemon_limits", "What the pods of DaemonSets on a node may use at most."),
    ("nodes_system_overhead", "What of a node pods cannot use."),
)
_ALLOWED: Final = "How many nodes of a pool its budgets let go now."
_CONSUMED: Final = "Nodes of a pool that use up its budgets."
_COST: Final = "What the nodes of a pool cost by the hour, at the provider's prices."
_UNSYNCED: Final = "For how long the mirror has waited for a claim to be launched."
_LIFETIME: Final = ("nodes_current_lifetime_seconds", "How old a node is.")
_POD_LABELS: Final = (
    "name", "namespace", "owner", "node", "scheduled", "nodepool", "zone", "arch", "capacity_type", "instance_type", "phase",
    "ready", "managed",
)  # fmt: skip
_NAMED: Final = ("name", "namespace")
_OBJECT: Final = ("namespace", "name")
_BOUND: Final = (*_NAMED, "dynamic_resources")
_WAITS: Final = (
    ("pods_unstarted_time_seconds", _NAMED, "How long a pod that is not ready has been there."),
    ("pods_unbound_time_seconds", _BOUND, "How long a pod without a node has been there."),
    ("pods_provisioning_unbound_time_seconds", _BOUND, "How long a pod without a node has had a place in a plan."),
    ("pods_provisioning_unstarted_time_seconds", _NAMED, "How long a pod that is not ready has had a place in a plan."),
    (
        "pods_provisioning_scheduling_undecided_time_seconds",
        _NAMED,
        "How long a pod has been seen but not planned for.",
    ),
)


class ClusterCollector(Collector):
    """Nodes, pools and pods as the mirror knows them. Without `pods` nothing is told that names a single pod."""

    def __init__(
        self,
        *,
        cluster: Cluster,
        pools: Callable[[], Iterable[NodePool]],
        clock: Clock,
        vocabulary: Vocabulary,
        pods: bool,
        price: Price = lambda pool, known: None,
    ) -> None:
        self._cluster, self._pools, self._clock, self._pods, self._price = cluster, pools, clock, pods, price
        self._keys = tuple(sorted(vocabulary.well_known))
        self._names = tuple(_snake(key) for key in self._keys)

    def collect(self) -> Iterator[Metric]:
        """Everything, as of now."""
        now = self._clock.now()
        snapshot = self._cluster.snapshot(now)
        yield from self._nodes(snapshot.nodes, now)
        yield from _nodepools(self._pools(), snapshot.used)
        yield from self._budgets(snapshot.nodes, now)
        yield self._costs(snapshot.nodes)
        yield from self._summary(snapshot.nodes, now)
        if self._pods:
            yield from self._each_pod(snapshot.nodes, snapshot.waiting, now)

    def _nodes(self, nodes: Iterable[StateNode], now: datetime) -> Iterator[Metric]:
        known = (*self._names, "node_name", "phase", "managed")
        families = {
            name: GaugeMetricFamily(PREFIX + name, text, labels=(*known, "resource_type")) for name, text in _NODE
        }
        lifetime = GaugeMetricFamily(PREFIX + _LIFETIME[0], _LIFETIME[1], labels=known)
        for node in (each for each in nodes if each.node is not None):
            said = (
                *(node.labels.get(key, "") for key in self._keys),
                node.name,
                _phase(node),
                str(node.managed).lower(),
            )
            for (name, _), amounts in zip(_NODE, _amounts(node), strict=True):
                for resource in sorted(amounts):
                    families[name].add_metric((*said, _resource(resource)), amounts[resource] / MILLI)
            born = node.node.metadata.creation_timestamp if node.node is not None else None
            if born is not None:
                lifetime.add_metric(said, (now - born).total_seconds())
        yield from families.values()
        yield lifetime

    def _budgets(self, nodes: tuple[StateNode, ...], now: datetime) -> Iterator[Metric]:
        known = ("nodepool", "reason")
        allowed = GaugeMetricFamily(f"{PREFIX}nodepools_allowed_disruptions", _ALLOWED, labels=known)
        consumed = GaugeMetricFamily(f"{PREFIX}nodepools_nodes_consuming_budgets", _CONSUMED, labels=known)
        for pool in self._pools():
            own = [each for each in nodes if each.nodepool == pool.name and budgets.counts(each)]
            for reason in REASONS:
                allowed.add_metric((pool.name, reason.lower()), float(budgets.left(pool, own, reason, now)))
                away = sum(budgets.is_away(each, reason) for each in own)
                consumed.add_metric((pool.name, reason.lower()), float(away))
        yield allowed
        yield consumed

    def _costs(self, nodes: Iterable[StateNode]) -> Metric:
        totals: dict[str, float] = {}
        for each in nodes:
            if each.claim is not None and each.launched:
                cost = self._price(each.nodepool, each.claim.metadata.labels) or 0.0
                totals[each.nodepool] = totals.get(each.nodepool, 0.0) + cost
        family = GaugeMetricFamily(f"{PREFIX}nodepools_cost_total", _COST, labels=("nodepool",))
        for pool in sorted(totals):
            family.add_metric((pool,), totals[pool])
        return family

    def _summary(self, nodes: tuple[StateNode, ...], now: datetime) -> Iterator[Metric]:
        has = resources.add(*(each.allocatable for each in nodes))
        used = resources.add(*(each.used for each in nodes))
        share = GaugeMetricFamily(
            f"{PREFIX}cluster_utilization_percent",
            "How much of what pods can use is asked for.",
            labels=("resource_type",),
        )
        for resource in sorted(has):
            if has[resource]:
                share.add_metric((_resource(resource),), 100.0 * used.get(resource, 0) / has[resource])
        yield share
        synced = self._cluster.synced(now)
        yield GaugeMetricFamily(f"{PREFIX}cluster_state_node_count", "Nodes in the mirror.", value=len(nodes))
        born = [
            each.claim.metadata.creation_timestamp for each in nodes if each.claim is not None and not each.launched
        ]
        waited = max(((now - moment).total_seconds() for moment in born if moment is not None), default=0.0)
        yield GaugeMetricFamily(
            f"{PREFIX}cluster_state_unsynced_time_seconds", _UNSYNCED, value=0.0 if synced else waited
        )
        yield GaugeMetricFamily(f"{PREFIX}cluster_state_synced", "Whether the mirror is complete.", value=float(synced))

    def _each_pod(self, nodes: Iterable[StateNode], waiting: Iterable[Pod], now: datetime) -> Iterator[Metric]:
        state = GaugeMetricFamily(
            f"{PREFIX}pods_state", "A pod, its node and where it is in its life.", labels=_POD_LABELS
        )
        waits = [GaugeMetricFamily(PREFIX + name, text, labels=known) for name, known, text in _WAITS]
        for node in nodes:
            for pod in node.pods:
                state.add_metric(_pod_words(pod, node), 1.0)
                self._add_waits(waits, pod, now)
        for pod in waiting:
            state.add_metric(_pod_words(pod, None), 1.0)
            self._add_waits(waits, pod, now)
        yield state
        yield from waits

    def _add_waits(self, families: list[GaugeMetricFamily], pod: Pod, now: datetime) -> None:
        """Each of these exists only while the pod is in that state."""
        ready, bound = _is_ready(pod), bool(pod.spec.node_name)
        times = self._cluster.times(pod.metadata.namespace, pod.name)
        placed = times.schedulable if times is not None else None
        undecided = times.seen if times is not None and times.attempted is None else None
        born = pod.metadata.creation_timestamp
        since = (
            None if ready else born,
            None if bound else born,
            None if bound else placed,
            None if ready else placed,
            undecided,
        )
        named = (pod.name, pod.metadata.namespace, str(bool(pod.spec.resource_claims)).lower())
        for family, (_, known, _), moment in zip(families, _WAITS, since, strict=True):
            if moment is not None:
                family.add_metric(named[: len(known)], (now - moment).total_seconds())


def _amounts(node: StateNode) -> tuple[Resources, ...]:
    limits = {daemon: resources.add(*_limits(node.pods, daemon)) for daemon in (False, True)}
    return (
        node.allocatable,
        node.used,
        resources.add(*limits.values()),
        node.daemon_used,
        limits[True],
        resources.subtract(node.capacity, node.allocatable),
    )


def _limits(pods: Iterable[Pod], daemon: bool) -> Iterator[Resources]:
    for pod in pods:
        if podrules.is_daemon(pod) == daemon:
            yield from (dict(container.resources.limits) for container in pod.spec.containers)


def _phase(node: StateNode) -> str:
    if node.deleting:
        return "terminating"
    return "running" if node.initialized else "pending"


def _pod_words(pod: Pod, node: StateNode | None) -> tuple[str, ...]:
    known: Mapping[str, str] = node.labels if node is not None else {}
    owner = next((f"{each.kind}/{each.name}" for each in pod.metadata.owner_references), "")
    return (
        pod.name,
        pod.metadata.namespace,
        owner,
        pod.spec.node_name,
        str(bool(pod.spec.node_name)).lower(),
        known.get(labels.NODEPOOL, ""),
        known.get(labels.ZONE, ""),
        known.get(labels.ARCH, ""),
        known.get(labels.CAPACITY_TYPE, ""),
        known.get(labels.INSTANCE_TYPE, ""),
        pod.status.phase,
        str(_is_ready(pod)).lower(),
        str(node is not None and node.managed).lower(),
    )


def _is_ready(pod: Pod) -> bool:
    found = condition(pod, "Ready")
    return found is not None and found.status == "True"


def _nodepools(pools: Iterable[NodePool], used: Mapping[str, Resources]) -> Iterator[Metric]:
    known = ("resource_type", "nodepool")
    limit = GaugeMetricFamily(f"{PREFIX}nodepools_limit", "The most a pool may have.", labels=known)
    usage = GaugeMetricFamily(f"{PREFIX}nodepools_usage", "What the nodes of a pool have together.", labels=known)
    for pool in pools:
        for family, amounts in ((limit, pool.spec.limits), (usage, used.get(pool.name, {}))):
            for resource in sorted(amounts):
                family.add_metric((_resource(resource), pool.name), amounts[resource] / MILLI)
    yield limit
    yield usage


class ConditionCollector(Collector):
    """Status conditions of objects: how many are what, and for how long. In general and once for each kind."""

    def __init__(self, clock: Clock, kinds: Mapping[type[KubeObject], Objects]) -> None:
        self._clock, self._kinds = clock, kinds

    def collect(self) -> Iterator[Metric]:
        """Everything, as of now."""
        now = self._clock.now()
        together = _condition_families("operator", ("group", "kind"))
        for kind, objects in self._kinds.items():
            apart = _condition_families(f"operator_{kind.kind.lower()}", ())
            for thing in objects():
                for families, said in ((together, (kind.group, kind.kind)), (apart, ())):
                    _add_conditions(families, said, thing, now)
            yield from apart
        yield from together


def _condition_families(prefix: str, known: tuple[str, ...]) -> tuple[GaugeMetricFamily, ...]:
    named = (*known, *_OBJECT)
    told = (*named, "type", "status", "reason")
    return (
        GaugeMetricFamily(f"{prefix}_status_condition_count", "A condition as it stands.", labels=told),
        GaugeMetricFamily(
            f"{prefix}_status_condition_current_status_seconds", "For how long it has stood so.", labels=told
        ),
        GaugeMetricFamily(
            f"{prefix}_termination_current_time_seconds", "For how long it has been going.", labels=named
        ),
    )


def _add_conditions(families: tuple[GaugeMetricFamily, ...], known: tuple[str, ...], thing: Any, now: datetime) -> None:
    count, spans, going = families
    named = (*known, *_named(thing))
    for each in _conditions(thing):
        said = (*named, each.type, each.status, each.reason)
        count.add_metric(said, 1.0)
        if each.last_transition_time is not None:
            spans.add_metric(said, (now - each.last_transition_time).total_seconds())
    if thing.metadata.deletion_timestamp is not None:
        going.add_metric(named, (now - thing.metadata.deletion_timestamp).total_seconds())


def _conditions(thing: Any) -> Iterable[Condition]:
    found: Iterable[Condition] = thing.status.conditions
    return found


def _named(thing: KubeObject) -> tuple[str, str]:
    return (thing.metadata.namespace, thing.name)


def _resource(name: str) -> str:
    """The name of a resource as the value of a label."""
    return name.lower().replace("-", "_")


def _snake(key: str) -> str:
    """A label's key as a metric's label: the last part of it."""
    return key.rpartition("/")[2].replace("-", "_").replace(".", "_")


_NODE_LABELS: Final = ("well-known labels", "node_name", "phase", "managed")
CLUSTER_FAMILIES: Final[tuple[Family, ...]] = (
    *(Family(PREFIX + name, "gauge", (*_NODE_LABELS, "resource_type"), text) for name, text in _NODE),
    Family(PREFIX + _LIFETIME[0], "gauge", _NODE_LABELS, _LIFETIME[1]),
    Family(f"{PREFIX}cluster_utilization_percent", "gauge", ("resource_type",), "How much of what pods can use is asked for."),
    Family(f"{PREFIX}cluster_state_node_count", "gauge", (), "Nodes in the mirror."),
    Family(f"{PREFIX}cluster_state_synced", "gauge", (), "Whether the mirror is complete."),
    Family(f"{PREFIX}cluster_state_unsynced_time_seconds", "gauge", (), _UNSYNCED),
    Family(f"{PREFIX}nodepools_allowed_disruptions", "gauge", ("nodepool", "reason"), _ALLOWED),
    Family(f"{PREFIX}nodepools_nodes_consuming_budgets", "gauge", ("nodepool", "reason"), _CONSUMED),
    Family(f"{PREFIX}nodepools_cost_total", "gauge", ("nodepool",), _COST),
    Family(f"{PREFIX}nodepools_limit", "gauge", ("resource_type", "nodepool"), "The most a pool may have."),
    Family(f"{PREFIX}nodepools_usage", "gauge", ("resource_type", "nodepool"), "What the nodes of a pool have together."),
    Family(f"{PREFIX}pods_state", "gauge", _POD_LABELS, "A pod, its node and where it is in its life."),
    *(Family(PREFIX + name, "gauge", known, text) for name, known, text in _WAITS),
)  # fmt: skip
"""What `ClusterCollector` gives, for the reference page."""
