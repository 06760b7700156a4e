"""Metrics that are read off the state of the cluster when they are scraped, and cost nothing until then."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from typing import Final

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from joiner.clock import Clock
from joiner.disruption import budgets
from joiner.model import labels, podrules, resources
from joiner.model.budget import BudgetError, allowed
from joiner.model.labels import Vocabulary
from joiner.model.nodepool import NodePool
from joiner.model.podrequests import limits
from joiner.model.quantity import MILLI
from joiner.model.resources import PODS, Resources
from joiner.observe.declare import PREFIX, Family
from joiner.state.cluster import Cluster
from joiner.state.statenode import StateNode

Pools = Callable[[], Iterable[NodePool]]
Price = Callable[[str, Mapping[str, str]], float | None]
"""Pool and labels of a machine to what it costs by the hour."""
REASONS: Final = ("Drifted", "Empty", "Underutilized", "Unhealthy")
"""Why nodes may be removed, as budgets name it; metrics write it in lower case."""

_WELL_KNOWN: Final = ("well-known labels", "node_name", "phase", "managed")
_NODE: Final = tuple(
    Family(f"{PREFIX}nodes_{name}", "gauge", (*_WELL_KNOWN, "resource_type"), text)
    for name, text in (
        ("allocatable", "What pods can use of a node."),
        ("total_pod_requests", "What the pods of a node ask for, those of DaemonSets among them."),
        ("total_pod_limits", "What the pods of a node may use at most, those of DaemonSets among them."),
        ("total_daemon_requests", "What the pods of DaemonSets on a node ask for."),
        ("total_daemon_limits", "What the pods of DaemonSets on a node may use at most."),
        ("system_overhead", "What of a node pods cannot use."),
    )
)


def _gauge(name: str, meaning: str, *known: str) -> Family:
    return Family(PREFIX + name, "gauge", known, meaning)


_LIFETIME: Final = _gauge("nodes_current_lifetime_seconds", "How old a node is.", *_WELL_KNOWN)
_UTILIZATION: Final = _gauge(
    "cluster_utilization_percent", "How much of what pods can use is asked for.", "resource_type"
)
_LIMIT: Final = _gauge("nodepools_limit", "The most a pool may have.", "resource_type", "nodepool")
_USAGE: Final = _gauge("nodepools_usage", "What the nodes of a pool have together.", "resource_type", "nodepool")
_COST: Final = _gauge(
    "nodepools_cost_total", "What the nodes of a pool cost by the hour, at the provider's prices.", "nodepool"
)
_UNPRICED: Final = Family(
    f"{PREFIX}nodepools_cost_tracker_errors_total", "counter", ("nodepool",), "Nodes whose price could not be found."
)
_COUNT: Final = _gauge("cluster_state_node_count", "Nodes in the mirror.")
_SYNCED: Final = _gauge("cluster_state_synced", "Whether the mirror is complete.")
_UNSYNCED: Final = _gauge(
    "cluster_state_unsynced_time_seconds", "For how long the mirror has waited for a claim to be launched."
)
_ALLOWED: Final = _gauge(
    "nodepools_allowed_disruptions", "How many nodes of a pool its budgets let be away at once.", "nodepool", "reason"
)
_CONSUMED: Final = _gauge(
    "nodepools_nodes_consuming_budgets", "Nodes of a pool that use up its budgets.", "nodepool", "reason"
)
STATE_FAMILIES: Final = (_COUNT, _SYNCED, _UNSYNCED, _ALLOWED, _CONSUMED)
"""What `StateCollector` gives, for the reference page."""
CLUSTER_FAMILIES: Final = (*_NODE, _LIFETIME, _UTILIZATION, _LIMIT, _USAGE, _COST, _UNPRICED)
"""What `ClusterCollector` gives, for the reference page."""


class StateCollector(Collector):
    """The mirror as a whole, and what budgets allow. It names no node, and is never left out."""

    def __init__(self, *, cluster: Cluster, pools: Pools, clock: Clock) -> None:
        self._cluster, self._pools, self._clock = cluster, pools, clock

    def collect(self) -> Iterator[Metric]:
        """Everything, as of now."""
        now = self._clock.now()
        nodes, synced = self._cluster.snapshot(now).nodes, self._cluster.synced(now)
        yield GaugeMetricFamily(_COUNT.name, _COUNT.meaning, value=sum(each.launched for each in nodes))
        yield GaugeMetricFamily(_SYNCED.name, _SYNCED.meaning, value=float(synced))
        yield GaugeMetricFamily(_UNSYNCED.name, _UNSYNCED.meaning, value=0.0 if synced else _waited(nodes, now))
        yield from self._budgets(nodes, now)

    def _budgets(self, nodes: Iterable[StateNode], now: datetime) -> Iterator[Metric]:
        most, consumed = (
            GaugeMetricFamily(each.name, each.meaning, labels=each.labels) for each in (_ALLOWED, _CONSUMED)
        )
        counted: dict[str, list[StateNode]] = {}
        for each in nodes:
            if budgets.counts(each):
                counted.setdefault(each.nodepool, []).append(each)
        for pool in self._pools():
            own = counted.get(pool.name, [])
            for reason in REASONS:
                said = (pool.name, reason.lower())
                most.add_metric(said, float(_allowed(pool, reason, len(own), now)))
                consumed.add_metric(said, float(sum(budgets.is_away(each, reason) for each in own)))
        yield most
        yield consumed


def _allowed(pool: NodePool, reason: str, total: int, now: datetime) -> int:
    try:
        return allowed(pool.spec.disruption.budgets, reason, total, now)
    except BudgetError:
        return 0


def _waited(nodes: Iterable[StateNode], now: datetime) -> float:
    born = (each.claim.metadata.creation_timestamp for each in nodes if each.claim is not None and not each.launched)
    return max(((now - moment).total_seconds() for moment in born if moment is not None), default=0.0)


class ClusterCollector(Collector):
    """Nodes and pools as the mirror knows them."""

    def __init__(
        self,
        *,
        cluster: Cluster,
        pools: Pools,
        clock: Clock,
        vocabulary: Vocabulary,
        price: Price = lambda pool, known: None,
    ) -> None:
        self._cluster, self._pools, self._clock, self._price = cluster, pools, clock, price
        self._keys = _well_known(vocabulary)
        self._amounts: dict[str, tuple[StateNode, tuple[Resources, ...]]] = {}
        """What a node came to when it was last scraped: most nodes are as they were."""
        self._unpriced: frozenset[str] = frozenset()
        """The claims that had no price when it was last looked."""
        self._errors: Counter[str] = Counter()

    def collect(self) -> Iterator[Metric]:
        """Everything, as of now."""
        now = self._clock.now()
        nodes = self._cluster.snapshot(now).nodes
        joined = [each for each in nodes if each.node is not None]
        yield from self._nodes(joined, now)
        yield _utilization(joined)
        yield from _nodepools(self._pools())
        yield from self._costs(nodes)

    def _nodes(self, nodes: Iterable[StateNode], now: datetime) -> Iterator[Metric]:
        known = (*self._keys, *_WELL_KNOWN[1:])
        families = [GaugeMetricFamily(each.name, each.meaning, labels=(*known, "resource_type")) for each in _NODE]
        lifetime = GaugeMetricFamily(_LIFETIME.name, _LIFETIME.meaning, labels=known)
        before, self._amounts = self._amounts, {}
        for each in nodes:
            assert each.node is not None
            said = self._words(each)
            same = before.get(each.key)
            amounts = same[1] if same is not None and same[0] is each else _amounts(each)
            self._amounts[each.key] = (each, amounts)
            for family, found in zip(families, amounts, strict=True):
                for resource in sorted(found):
                    family.add_metric((*said, _resource(resource)), found[resource] / MILLI)
            born = each.node.metadata.creation_timestamp
            if born is not None:
                lifetime.add_metric(said, (now - born).total_seconds())
        yield from families
        yield lifetime

    def _words(self, node: StateNode) -> tuple[str, ...]:
        known = (next(filter(None, map(node.labels.get, keys)), "") for keys in self._keys.values())
        return (*known, node.name, _phase(node), str(node.managed).lower())

    def _costs(self, nodes: Iterable[StateNode]) -> Iterator[Metric]:
        totals = {pool.name: 0.0 for pool in self._pools()}
        unpriced: dict[str, str] = {}
        for each in nodes:
            if each.claim is None or not each.launched:
                continue
            cost = self._price(each.nodepool, each.claim.metadata.labels)
            if cost is None:
                unpriced[each.claim.metadata.uid] = each.nodepool
            totals[each.nodepool] = totals.get(each.nodepool, 0.0) + (cost or 0.0)
        family = GaugeMetricFamily(_COST.name, _COST.meaning, labels=_COST.labels)
        for pool in sorted(totals):
            family.add_metric((pool,), totals[pool])
        yield family
        errors = CounterMetricFamily(_UNPRICED.name, _UNPRICED.meaning, labels=_UNPRICED.labels)
        self._errors.update(pool for uid, pool in unpriced.items() if uid not in self._unpriced)
        self._unpriced = frozenset(unpriced)
        for pool in sorted(self._errors):
            errors.add_metric((pool,), float(self._errors[pool]))
        yield errors


def _well_known(vocabulary: Vocabulary) -> dict[str, tuple[str, ...]]:
    """The labels of metrics to the labels of nodes they stand for. What class a node is of is no label of its own."""
    found: dict[str, tuple[str, ...]] = {}
    for key in sorted(vocabulary.well_known - (vocabulary.given - {labels.NODEPOOL})):
        name = key.rpartition("/")[2].lower().replace("-", "_").replace(".", "_")
        found[name] = (*found.get(name, ()), key)
    return found


def _amounts(node: StateNode) -> tuple[Resources, ...]:
    """In the order of the families."""
    return (
        node.allocatable,
        node.used,
        _limits(node, daemons=False),
        node.daemon_used,
        _limits(node, daemons=True),
        resources.subtract(node.capacity, node.allocatable),
    )


def _limits(node: StateNode, *, daemons: bool) -> Resources:
    pods = [pod for pod in node.pods if not daemons or podrules.is_daemon(pod)]
    return {**resources.add(*(limits(pod.spec) for pod in pods)), PODS: len(pods) * MILLI}


def _phase(node: StateNode) -> str:
    if node.deleting:
        return "Terminating"
    return "Running" if node.initialized else "Pending"


def _utilization(nodes: Iterable[StateNode]) -> Metric:
    known = tuple(nodes)
    has, used = resources.add(*(each.allocatable for each in known)), resources.add(*(each.used for each in known))
    share = GaugeMetricFamily(_UTILIZATION.name, _UTILIZATION.meaning, labels=_UTILIZATION.labels)
    for resource in sorted(has):
        if has[resource]:
            share.add_metric((_resource(resource),), 100.0 * used.get(resource, 0) / has[resource])
    return share


def _nodepools(pools: Iterable[NodePool]) -> Iterator[Metric]:
    limit, usage = (GaugeMetricFamily(each.name, each.meaning, labels=each.labels) for each in (_LIMIT, _USAGE))
    for pool in pools:
        for family, amounts in ((limit, pool.spec.limits), (usage, pool.status.resources)):
            for resource in sorted(amounts):
                family.add_metric((_resource(resource), pool.name), amounts[resource] / MILLI)
    yield limit
    yield usage


def _resource(name: str) -> str:
    """The name of a resource as the value of a label."""
    return name.lower().replace("-", "_")
