"""What consolidation would do to a cluster that is read from files: one move after the other, until none pays any more.

Nothing is changed anywhere. Each move is made in memory as if all pods landed where they were planned, and the next one is looked
for in the cluster that is left. All nodes count as quiet: `consolidateAfter` is over for each of them, unless it is Never.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from joiner.catalog.build import Catalog
from joiner.disruption.consolidation.memory import Memory
from joiner.disruption.consolidation.search import StayReason, consolidate, movable, still_pays
from joiner.disruption.decision import Move
from joiner.disruption.methods.emptiness import emptiness
from joiner.disruption.nodeprice import NodePrice, of_node, total
from joiner.disruption.situation import Rules, Situation
from joiner.model import labels
from joiner.model.duration import Duration
from joiner.model.meta import KubeObject, ObjectMeta
from joiner.model.meta import replace as edited
from joiner.model.node import Node, NodeCondition, NodeSpec, NodeStatus
from joiner.model.nodeclaim import NodeClaim, NodeClaimStatus
from joiner.model.pod import Pod
from joiner.model.quantity import Quantity
from joiner.model.resources import Resources
from joiner.offline.cluster import quiet
from joiner.offline.manifests import Manifests
from joiner.offline.problem import NO_PODS
from joiner.offline.report.plan import PlanOptions, PosedQuestion, pose
from joiner.offline.report.situation import situation, snapshot_of
from joiner.scheduling.bound.lowerbound import bound
from joiner.scheduling.plan import PlannedClaim
from joiner.state.cluster import Cluster
from joiner.state.snapshot import Snapshot

MOVES_MOST: Final = 1_000


@dataclass(frozen=True)
class ConsolidationReport:
    """The moves in order, and what is left in the end."""

    moves: tuple[Move, ...]
    before: NodePrice
    after: NodePrice
    nodes_before: int
    nodes_after: int
    bound: float
    """No cluster for the same pods costs less, with the nodes that may not go as they are."""
    stay: dict[str, StayReason]
    """Node that is left to why."""
    notes: tuple[str, ...]

    @property
    def gap(self) -> float | None:
        """By which fraction the end is above the bound."""
        return self.after.bill / self.bound - 1 if self.bound > 0 else None


def consolidation_report(
    manifests: Manifests,
    now: datetime,
    options: PlanOptions,
    *,
    horizon: Duration,
    eviction_cost: Duration,
    spot_to_spot: bool = False,
) -> ConsolidationReport:
    """Everything that consolidation would do. Raises Unsound where there is no node to look at."""
    posed = pose(manifests, now, options)
    seen = snapshot_of(posed)
    rules = Rules(
        policy=options.policy,
        vocabulary=posed.question.problem.vocabulary,
        eviction_cost=eviction_cost,
        horizon=horizon,
        spot_to_spot=spot_to_spot,
    )
    rehearsal = _Rehearsal(manifests, posed, seen, now, rules)
    rehearsal.play()
    return rehearsal.report()


class _Rehearsal:
    """The cluster in memory, changed by one move after the other."""

    def __init__(self, manifests: Manifests, posed: PosedQuestion, seen: Snapshot, now: datetime, rules: Rules) -> None:
        self._manifests, self._posed, self._now, self._rules = manifests, posed, now, rules
        self._daemons, self._bought = seen.daemons, 0
        self._objects: dict[str, tuple[Node, NodeClaim | None]] = {}
        self._pods: dict[str, Pod] = {}
        for state in seen.nodes:
            if state.node is not None and not state.deleting:
                claim = quiet(state.claim, now) if state.claim is not None else None
                self._objects[state.node.name] = (state.node, claim)
                self._pods.update({pod.key: pod for pod in state.pods})
        self.moves: list[Move] = []
        self._stay: dict[str, StayReason] = {}
        self._first = self._situation()

    def _situation(self) -> Situation:
        cluster = Cluster(self._rules.vocabulary)
        things: list[KubeObject] = [thing for pair in self._objects.values() for thing in pair if thing is not None]
        for thing in (*things, *self._pods.values()):
            cluster.apply(type(thing), None, thing)
        snapshot = edited(cluster.snapshot(self._now), daemons=self._daemons)
        return situation(self._manifests, self._posed, snapshot, self._now, self._rules)

    def play(self) -> None:
        """Move after move, until none is left."""
        memory = Memory()
        while len(self.moves) < MOVES_MOST:
            seen = self._situation()
            empty = emptiness(seen).moves
            if empty:
                self._make(empty[0])
                continue
            found = consolidate(seen, memory)
            self._stay.update(found.reasons)
            # The same second look as in a cluster; here nothing has happened meanwhile, so it only finds the best plan.
            moves = [still_pays(move, seen, Memory())[0] or move for move in found.decision.moves]
            if not moves:
                return
            for move in moves:
                self._make(move)
            memory = Memory()

    def _make(self, move: Move) -> None:
        self.moves.append(move)
        for each in move.candidates:
            del self._objects[each.name]
            self._stay.pop(each.name, None)
            moving = {pod.key for pod in each.pods}
            for pod in each.state.pods:
                if pod.key not in moving:
                    self._pods.pop(pod.key, None)
        if move.tried is None:
            return
        for name, placed in move.tried.plan.placements.items():
            self._bind(placed, name)
        for claim in move.claims:
            self._bind(claim.pods, self._buy(claim))

    def _bind(self, keys: tuple[str, ...], name: str) -> None:
        for key in keys:
            pod = self._pods.get(key)
            if pod is not None:
                self._pods[key] = edited(pod, spec=edited(pod.spec, node_name=name))

    def _buy(self, planned: PlannedClaim) -> str:
        self._bought += 1
        name = f"new-{self._bought}"
        option, catalog = planned.options[0], self._posed.catalogs[planned.nodepool]
        found = next(each for each in catalog.types if each.name == option.name)
        own = {
            **_settled(planned, catalog),
            labels.HOSTNAME: name,
            labels.REGISTERED: "true",
            labels.INITIALIZED: "true",
        }
        capacity, allocatable = _written(found.capacity), _written(found.allocatable(option.offering))
        ready = NodeCondition(type="Ready", status="True")
        node = Node(
            metadata=ObjectMeta(name=name, labels=own),
            spec=NodeSpec(provider_id=f"planned:///{name}", taints=planned.taints),
            status=NodeStatus(capacity=capacity, allocatable=allocatable, conditions=(ready,)),
        )
        status = NodeClaimStatus(node_name=name, provider_id=f"planned:///{name}", allocatable=allocatable)
        claim = NodeClaim(metadata=ObjectMeta(name=name, uid=name, labels=own), status=status)
        self._objects[name] = (node, quiet(claim, self._now))
        return name

    def report(self) -> ConsolidationReport:
        """What came of it."""
        last = self._situation()
        return ConsolidationReport(
            moves=tuple(self.moves),
            before=_price(self._first),
            after=_price(last),
            nodes_before=len(self._first.by_claim),
            nodes_after=len(last.by_claim),
            bound=self._bound(),
            stay=dict(sorted(self._stay.items())),
            notes=(*self._posed.missed, *(each for each in self._posed.question.notes if each != NO_PODS)),
        )

    def _bound(self) -> float:
        """The least for the pods that may move, and the price of what stays whatever is done."""
        seen = self._first
        movers = {each.name: each for each in movable(seen)}
        pods = tuple(edited(pod, spec=edited(pod.spec, node_name="")) for each in movers.values() for pod in each.pods)
        staying = [each for each in seen.snapshot.nodes if each.name not in movers]
        question = edited(self._posed.question.problem, pods=pods, nodes=tuple(each.existing for each in staying))
        fixed = total(
            of_node(each.labels, seen.catalogs.get(each.nodepool)) for each in staying if each.claim is not None
        )
        return bound(question).price + fixed.bill


def _price(seen: Situation) -> NodePrice:
    return total(
        of_node(each.labels, seen.catalogs.get(each.nodepool)) for each in seen.snapshot.nodes if each.claim is not None
    )


def _written(amounts: Resources) -> dict[str, Quantity]:
    return {name: Quantity(amount) for name, amount in amounts.items()}


def _settled(planned: PlannedClaim, catalog: Catalog) -> dict[str, str]:
    """The labels that the node will have."""
    option = planned.options[0]
    found = next(each for each in catalog.types if each.name == option.name)
    return {
        **found.requirements.labels(),
        **planned.requirements.labels(),
        **option.offering.requirements.labels(),
        labels.INSTANCE_TYPE: option.name,
        labels.NODEPOOL: planned.nodepool,
    }
