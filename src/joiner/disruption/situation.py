"""Everything that decisions about nodes may know, as one frozen value."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property

from joiner.catalog.build import Catalog
from joiner.disruption.candidates import Budgets as PodBudgets
from joiner.model import labels
from joiner.model.claimconditions import CONSOLIDATABLE, holds
from joiner.model.duration import NEVER, Duration, DurationError
from joiner.model.evictioncost import eviction_cost_of
from joiner.model.labels import Vocabulary
from joiner.model.meta import Value
from joiner.model.nodepool import NodePool
from joiner.model.pod import Pod
from joiner.scheduling.plan import Plan
from joiner.scheduling.problem import Policy, PoolOption, Problem, Storage
from joiner.scheduling.schedule import first_plan
from joiner.state.problem import problem
from joiner.state.snapshot import Snapshot
from joiner.state.statenode import StateNode


def _as_it_is(question: Problem) -> Problem:
    return question


class Rules(Value):
    """How nodes are judged, as the options say."""

    policy: Policy = Policy()
    vocabulary: Vocabulary = Vocabulary()
    eviction_cost: Duration = Duration.parse("10m")
    """What an eviction costs, in time of the pod's own price, where the NodePool says nothing."""
    horizon: Duration = Duration.parse("1h")
    """Within which time a move has to be paid back."""
    longest_horizon: Duration = Duration.parse("1h")
    """The same where nothing has changed for as long; not more than `horizon`: it never grows."""
    spot_to_spot: bool = False
    terminate_first_drift: bool = False
    deletion_cost_is_ours: bool = False


@dataclass(frozen=True, kw_only=True)
class Situation:
    """The cluster at one moment, what can be bought, and what controllers know about single nodes."""

    snapshot: Snapshot
    now: datetime
    pools: Mapping[str, NodePool] = field(default_factory=dict)
    """Every NodePool of ours, by name; those with replicas among them."""
    options: tuple[PoolOption, ...] = ()
    """The pools that nodes for pods may be bought of."""
    catalogs: Mapping[str, Catalog] = field(default_factory=dict)
    """Pool to what it can buy, where that is known."""
    unknown: Mapping[str, str] = field(default_factory=dict)
    """Pool to why it is not."""
    pod_budgets: PodBudgets = field(default_factory=dict)
    nominated: frozenset[str] = frozenset()
    """Claims that pods were promised room on."""
    queued: frozenset[str] = frozenset()
    """Claims that a command is about already."""
    virtual: tuple[Pod, ...] = ()
    """The virtual pods of CapacityBuffers."""
    storage: Storage = field(default_factory=Storage)
    """What the volumes of all pods lead to."""
    stale_since: datetime | None = None
    spread: Callable[[Problem], Problem] = _as_it_is
    """Gives pods the default spread constraints of the cluster's scheduler."""
    rules: Rules = field(default_factory=Rules)

    @cached_property
    def by_claim(self) -> Mapping[str, StateNode]:
        """Every node of ours by the name of its claim."""
        return {each.claim.name: each for each in self.snapshot.nodes if each.claim is not None}

    @cached_property
    def things(self) -> tuple[object, ...]:
        """What decisions name of this, for those who make them in another process: none of it need be sent back."""
        snapshot = self.snapshot
        return (
            *snapshot.nodes,
            *(pod for each in snapshot.nodes for pod in each.pods),
            *snapshot.existing,
            *snapshot.bound,
            *(snapshot, snapshot.bound, snapshot.bound_nodes, snapshot.existing, self.storage, self.rules),
            *self.options,
            *self.pools.values(),
            *self.catalogs.values(),
        )

    @cached_property
    def buffered(self) -> frozenset[str]:
        """Nodes that hold room for a CapacityBuffer, as planning would place its virtual pods now."""
        if not self.virtual:
            return frozenset()
        names = {pod.key for pod in self.virtual}
        placements = self._pending.placements.items()
        return frozenset(node for node, placed in placements if not names.isdisjoint(placed))

    @cached_property
    def hopeless(self) -> frozenset[str]:
        """Pods that wait and find no place with all nodes there: no node has to be kept for them."""
        return frozenset(each.pod for each in self._pending.refusals)

    @cached_property
    def _pending(self) -> Plan:
        """The plan for everything that waits, as provisioning would make it."""
        if not (self.virtual or self.snapshot.waiting or self.snapshot.evicted):
            return Plan()
        question = problem(
            self.snapshot,
            self.options,
            virtual=self.virtual,
            policy=self.rules.policy,
            vocabulary=self.rules.vocabulary,
            stale_since=self.stale_since,
        )
        return first_plan(self.spread(question))

    def pool_of(self, state_node: StateNode) -> NodePool | None:
        """The pool of a node, if it is there."""
        return self.pools.get(state_node.nodepool)

    def eviction_cost(self, pool: str) -> Duration:
        """What evicting a pod of a pool costs."""
        found = self.pools.get(pool)
        text = found.metadata.annotations.get(labels.EVICTION_COST) if found is not None else None
        try:
            return self.rules.eviction_cost if text is None else eviction_cost_of(text)
        except DurationError:
            return self.rules.eviction_cost  # no node of such a pool is consolidated

    def is_settling(self, state_node: StateNode) -> bool:
        """Whether a node is within its pool's `consolidateAfter`: consolidation moves no pod there, and none away."""
        pool = self.pool_of(state_node)
        if pool is None or state_node.claim is None or pool.spec.replicas is not None:
            return False
        after = pool.spec.disruption.consolidate_after
        return after != NEVER and after.seconds > 0 and not holds(state_node.claim, CONSOLIDATABLE)
