"""The state of the cluster: changes of API objects and our own decisions go in, frozen snapshots come out.

A snapshot costs what changed since the last one. It depends on what the objects are, never on the order in which they came, and
all of it but the bookkeeping is there again as soon as the objects have been listed.
"""

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple

from joiner.model import labels, podrequests, podrules, resources
from joiner.model.claimconditions import REGISTERED
from joiner.model.clusterobjects import Namespace
from joiner.model.conditions import AWAITING_RECONCILIATION, find, is_true
from joiner.model.labels import Vocabulary
from joiner.model.meta import KubeObject, replace
from joiner.model.node import Node
from joiner.model.nodeclaim import NodeClaim
from joiner.model.pod import Pod
from joiner.model.podpolicy import PodDisruptionBudget
from joiner.model.resources import Resources
from joiner.model.storage import CSINode, PersistentVolume, PersistentVolumeClaim, StorageClass
from joiner.model.workload import DaemonSet
from joiner.scheduling.plan import Plan
from joiner.scheduling.problem import Storage
from joiner.state.bookkeeping import Bookkeeping, PodTimes, SettledClaim
from joiner.state.managed import Managed
from joiner.state.podindex import PodIndex, PodKey
from joiner.state.pods import daemon, must_move, protected_until
from joiner.state.snapshot import Snapshot
from joiner.state.snapshotparts import SnapshotParts, kept
from joiner.state.statenode import BoundPod, NodeWithClaim, StateNode, state_node
from joiner.state.storage import LiveVolumeIndex

METADATA_NAME: Final = "kubernetes.io/metadata.name"
"""The label that every namespace carries."""
LAUNCH_PATIENCE: Final = timedelta(seconds=30)
"""How long plans wait for a claim to be launched, so that its room is known. After that they are made without it."""

DISAPPOINTMENTS_ALLOWED: Final = 2
"""So often a pod may be disappointed before it has to wait."""
REST_LEAST: Final = timedelta(minutes=2)
REST_MOST: Final = timedelta(hours=1)

_NO_LIMITS: Final[Mapping[str, int]] = {}


class _Unseen(NamedTuple):
    """A claim that we wrote and that no watch has told of."""

    written: datetime
    doubted: bool
    """Whether it is not known that it was written: the answer was lost."""


class _Slot:
    """The nodes and claims that have one provider id: one of each, unless something is wrong."""

    __slots__ = ("claims", "nodes")

    def __init__(self) -> None:
        self.nodes: dict[str, None] = {}
        self.claims: dict[str, None] = {}


class Cluster:
    """Everything that is known of the cluster. The one big mutable thing.

    Without saying which claims are ours, all are, and everything is taken as it is.
    """

    def __init__(self, vocabulary: Vocabulary, managed: Managed | None = None) -> None:
        self._vocabulary = vocabulary
        self._managed = managed
        self._nodes: dict[str, Node] = {}
        self._claims: dict[str, NodeClaim] = {}
        self._unseen: dict[str, _Unseen] = {}
        self._slots: dict[str, _Slot] = {}
        self._node_at: dict[str, str] = {}
        self._claim_at: dict[str, str] = {}
        self._of_pool: dict[str, dict[str, None]] = {}
        self._unlaunched: dict[str, None] = {}
        self._pods = PodIndex()
        self._volumes = LiveVolumeIndex(vocabulary)
        self._volume_limits: dict[str, Mapping[str, int]] = {}
        self._budgets: dict[str, dict[str, PodDisruptionBudget]] = {}
        self._daemon_sets: dict[PodKey, DaemonSet] = {}
        self._namespaces: dict[str, Mapping[str, str]] = {}
        self._bookkeeping = Bookkeeping()
        self._dirty: dict[str, None] = {}
        self._view = SnapshotParts()
        self._generation = 0
        self._last: Snapshot | None = None
        self._holds_until: datetime | None = None
        self._folds: dict[type[KubeObject], Callable[[PodKey, Any], None]] = {
            Node: self._fold_node,
            NodeClaim: self._fold_claim,
            Pod: self._fold_pod,
            DaemonSet: self._fold_daemon_set,
            PersistentVolumeClaim: self._fold_volume_claim,
            PersistentVolume: self._fold_volume,
            StorageClass: self._fold_storage_class,
            CSINode: self._fold_csi_node,
            PodDisruptionBudget: self._fold_budget,
            Namespace: self._fold_namespace,
        }

    @property
    def kinds(self) -> tuple[type[KubeObject], ...]:
        """The kinds of objects that the state is made of."""
        return tuple(self._folds)

    def apply(self, kind: type[KubeObject], before: KubeObject | None, after: KubeObject | None) -> None:
        """An object came, changed or went. The same change may be told more than once."""
        latest = before if after is None else after
        assert latest is not None
        self._folds[kind]((latest.metadata.namespace, latest.name), after)

    # -- nodes and claims ---------------------------------------------------------------------------------------------

    def _fold_node(self, key: PodKey, node: Node | None) -> None:
        name = key[1]
        old = self._nodes.get(name)
        if old is not None and node is not None and _same_node(old, node):
            return
        if node is None:
            if self._nodes.pop(name, None) is not None and name not in self._claims:
                self._bookkeeping.forget(name)
        else:
            self._nodes[name] = node
        awaits_labels = self._managed is not None  # of nodes in a file no more is heard later
        self._move(name, self._node_at, _node_key(node, awaits_labels=awaits_labels), lambda slot: slot.nodes)

    def _fold_claim(self, key: PodKey, claim: NodeClaim | None) -> None:
        name = key[1]
        self._unseen.pop(name, None)
        if claim is not None and self._managed is not None and not self._managed.claim(claim):
            claim = None
        old = self._claims.get(name)
        if old is not None:
            self._of_pool[_pool_of(old)].pop(name, None)
            self._unlaunched.pop(name, None)
        if old is not None and not old.status.provider_id and (claim is None or claim.status.provider_id):
            self._bookkeeping.launched(name, failed=claim is None)
        if claim is None:
            if self._claims.pop(name, None) is not None:
                if old is not None and is_true(old.status.conditions, REGISTERED):
                    self._disappoint(name)
                self._bookkeeping.forget(name)
        else:
            self._claims[name] = claim
            self._of_pool.setdefault(_pool_of(claim), {})[name] = None
            if not claim.status.provider_id:
                self._unlaunched[name] = None
        if old is not None or claim is not None:
            self._move(name, self._claim_at, _claim_key(claim), lambda slot: slot.claims)

    def _move(self, name: str, table: dict[str, str], key: str, side: Callable[[_Slot], dict[str, None]]) -> None:
        """An object stands now at a key, or nowhere if that is empty."""
        old = table.pop(name, "")
        if old:
            slot = self._slots[old]
            side(slot).pop(name, None)
            if not slot.nodes and not slot.claims:
                del self._slots[old]
            self._touch(old)
        if key:
            table[name] = key
            side(self._slots.setdefault(key, _Slot()))[name] = None
            self._touch(key)

    def _touch(self, key: str) -> None:
        self._dirty[key] = None
        self._generation += 1

    def _touch_node(self, name: str) -> None:
        key = self._node_at.get(name)
        if key:
            self._touch(key)

    # -- pods and what belongs to them --------------------------------------------------------------------------------

    def _fold_pod(self, key: PodKey, pod: Pod | None) -> None:
        old = self._pods.get(key)
        if not self._pods.put(key, pod):
            return
        self._generation += 1
        for each in (old, pod):
            if each is not None and each.spec.node_name:
                self._touch_node(each.spec.node_name)
        times = self._bookkeeping.times(key)
        if times is None:
            return
        if times.claim in self._claim_at:
            self._touch(self._claim_at[times.claim])
        if pod is None or pod.metadata.uid != times.uid:
            self._bookkeeping.forget_pod(key)

    def _fold_daemon_set(self, key: PodKey, daemon_set: DaemonSet | None) -> None:
        old = self._daemon_sets.pop(key, None)
        if daemon_set is not None:
            self._daemon_sets[key] = daemon_set
        if old is None or daemon_set is None or old.spec != daemon_set.spec:
            self._generation += 1

    def _fold_volume_claim(self, key: PodKey, claim: PersistentVolumeClaim | None) -> None:
        if self._volumes.put_claim(key, claim):
            self._storage_moved(self._pods.users((key,)))

    def _fold_volume(self, key: PodKey, volume: PersistentVolume | None) -> None:
        claims = self._volumes.put_volume(key[1], volume)
        if claims:
            self._storage_moved(self._pods.users(claims))

    def _fold_storage_class(self, key: PodKey, storage_class: StorageClass | None) -> None:
        self._volumes.put_class(key[1], storage_class)
        self._storage_moved(self._pods.with_volumes())

    def _storage_moved(self, pods: Iterable[Pod]) -> None:
        self._generation += 1
        for pod in pods:
            self._touch_node(pod.spec.node_name)

    def _fold_csi_node(self, key: PodKey, node: CSINode | None) -> None:
        drivers = node.spec.drivers if node is not None else ()
        found = {each.name: each.allocatable.count for each in drivers if each.allocatable.count is not None}
        if self._volume_limits.get(key[1], _NO_LIMITS) != found:
            self._volume_limits[key[1]] = found
            self._touch_node(key[1])

    def _fold_budget(self, key: PodKey, budget: PodDisruptionBudget | None) -> None:
        budgets = self._budgets.setdefault(key[0], {})
        old = budgets.pop(key[1], None)
        if budget is not None:
            budgets[key[1]] = budget
        if old is None or budget is None or old.spec != budget.spec:
            self._generation += 1

    def _fold_namespace(self, key: PodKey, namespace: Namespace | None) -> None:
        name = key[1]
        found = {**namespace.metadata.labels, METADATA_NAME: name} if namespace is not None else None
        if self._namespaces.get(name) == found:
            return
        self._namespaces = {each: told for each, told in self._namespaces.items() if each != name}
        if found is not None:
            self._namespaces = dict(sorted({**self._namespaces, name: found}.items()))
        self._generation += 1

    # -- what we did --------------------------------------------------------------------------------------------------

    def created(self, claim: NodeClaim, pods: Iterable[Pod], now: datetime, *, doubted: bool = False) -> None:
        """A claim was written for these pods, or may have been. It counts at once, though no watch has told of it yet."""
        self._bookkeeping.launching(claim.name)
        known = self._claims.get(claim.name)
        if known is not None and known.status.provider_id:  # the watch was faster than the answer
            self._bookkeeping.launched(claim.name)
        if known is None:
            self._fold_claim(("", claim.name), claim)
            self._unseen[claim.name] = _Unseen(now, doubted)
        for pod in pods:
            self.promise(pod, claim.name, now)

    def unseen(self, now: datetime, age: timedelta) -> tuple[str, ...]:
        """Claims that were written so long ago and that no watch has told of, by name. Clocks may be set back."""
        return tuple(sorted(name for name, each in self._unseen.items() if abs(now - each.written) >= age))

    def has_unseen(self, pool: str) -> bool:
        """Whether claims of a pool count that no watch has told of."""
        return any(name in self._unseen for name in self._of_pool.get(pool, ()))

    def forget_unseen(self, name: str) -> None:
        """A claim that no watch has told of is gone: it was deleted before the cache saw it, or never was there."""
        if name in self._unseen:
            if self._unseen[name].doubted:
                self._bookkeeping.never_was(name)
            self._fold_claim(("", name), None)

    def promise(self, pod: Pod, claim: str, now: datetime) -> None:
        """The pod has its place on the node of a claim. While that is not launched the pod is not planned for again."""
        known = self._pods.get((pod.metadata.namespace, pod.name))
        if known is None or known.metadata.uid != pod.metadata.uid:
            return
        if known.spec.node_name and podrules.is_provisionable(pod):
            return  # it waited when the plan was made, and has found another node while the claim was written
        self._bookkeeping.promise(
            pod, claim, now, known.spec.node_name, again=not known.spec.node_name and self._is_disappointed(pod, claim)
        )
        if claim in self._claim_at:
            self._touch(self._claim_at[claim])

    def _disappoint(self, claim: str) -> None:
        """The node of a claim had joined and is gone: pods that it did not take meanwhile remember that."""
        for pod in self.promised(claim):
            times = self._bookkeeping.times((pod.metadata.namespace, pod.name))
            if times is not None and times.uid == pod.metadata.uid:
                times.disappointed += 1

    def _is_disappointed(self, pod: Pod, claim: str) -> bool:
        times = self._bookkeeping.times((pod.metadata.namespace, pod.name))
        before = self._claims.get(times.claim) if times is not None and times.claim != claim else None
        return (
            before is not None
            and is_true(before.status.conditions, REGISTERED)
            and not self._is_full(before, podrequests.of_pod(pod))
        )

    def _is_full(self, claim: NodeClaim, wanted: Resources) -> bool:
        """Whether others took the room of a pod on the node of a claim: then they wait no more, and nothing is wrong with it."""
        taken = resources.add(*(each.requests for each in self._pods.on(claim.status.node_name)))
        return not resources.fits(resources.add(wanted, taken), claim.status.allocatable)

    def rests_until(self, pod: Pod, now: datetime) -> datetime | None:
        """Until when nothing is bought for a pod, because nodes that were did not take it, once and again.

        Their catalogue or their node is wrong about what such nodes have, and buying more of them at once would only cost money.
        """
        times = self._bookkeeping.times((pod.metadata.namespace, pod.name))
        if (
            times is None
            or times.uid != pod.metadata.uid
            or times.disappointed < DISAPPOINTMENTS_ALLOWED
            or times.promised_at is None
            or times.promised_at > now  # the clock was set back
        ):
            return None
        doublings = min(times.disappointed - DISAPPOINTMENTS_ALLOWED, 10)
        return times.promised_at + min(REST_MOST, REST_LEAST * (1 << doublings))

    def promised(self, claim: str) -> tuple[Pod, ...]:
        """The living pods without a node that were promised to a claim."""
        found = (self._pods.get(key) for key in self._bookkeeping.promised(claim))
        return tuple(pod for pod in found if pod is not None and not pod.spec.node_name)

    def nominate(self, name: str, until: datetime, now: datetime) -> None:
        """Pods were promised room on a node, or on the node of a claim: it is left alone from now until then."""
        self._bookkeeping.nominate(self._known_as(name), until, now)

    def nominate_all(self, plan: Plan, pods: Mapping[str, Pod], until: datetime, now: datetime) -> None:
        """Nominate the nodes that a plan gives to any of these pods, by their name in the plan."""
        for name, placed in plan.placements.items():
            if any(pod in pods for pod in placed):
                self.nominate(name, until, now)

    def record(self, plan: Plan, pods: Mapping[str, Pod], now: datetime, until: datetime) -> tuple[timedelta, ...]:
        """Remember what a plan gives these pods; tells how long those had waited that no plan had tried before."""
        placed = {key for keys in plan.placements.values() for key in keys}
        placed.update(key for claim in plan.claims for key in claim.pods)
        waited: list[timedelta] = []
        for key, pod in pods.items():
            times = self.acknowledge(pod, now)
            if times.attempted is None:
                times.attempted = now
                waited.append(now - times.seen)
            if key in placed and times.schedulable is None:
                times.schedulable = now
        self.nominate_all(plan, pods, until, now)
        unlaunched = {each.name for each in self.snapshot(now).unlaunched}
        for name, keys in plan.placements.items():
            for key in keys:
                if name in unlaunched and key in pods:
                    self.promise(pods[key], name, now)
        return tuple(waited)

    def is_nominated(self, name: str, now: datetime) -> bool:
        """Whether pods were promised room there not long ago."""
        return self._bookkeeping.is_nominated(self._known_as(name), now)

    def mark_for_deletion(self, *names: str) -> None:
        """A controller has decided to remove these, by name of claim or node or by provider id: their pods need other places."""
        for name in names:
            self._bookkeeping.marked.add(self._known_as(name))
            self._touch(self._key_of(name))

    def unmark_for_deletion(self, *names: str) -> None:
        """They stay after all."""
        for name in names:
            self._bookkeeping.marked.discard(self._known_as(name))
            self._touch(self._key_of(name))

    def is_marked(self, name: str) -> bool:
        """Whether a controller has decided to remove it."""
        return self._known_as(name) in self._bookkeeping.marked

    def _key_of(self, name: str) -> str:
        return self._claim_at.get(name) or self._node_at.get(name) or name

    def _known_as(self, name: str) -> str:
        """The name a node has in the bookkeeping: its claim's, if it has one."""
        slot = self._slots.get(self._key_of(name))
        if slot is None:
            return name
        return min(slot.claims) if slot.claims else min(slot.nodes)

    def acknowledge(self, pod: Pod, now: datetime) -> PodTimes:
        """A pod waits for us; gives how far we have come with it."""
        return self._bookkeeping.seen(pod, now)

    def times(self, namespace: str, name: str) -> PodTimes | None:
        """How far we have come with a pod, if we know it."""
        return self._bookkeeping.times((namespace, name))

    def all_times(self) -> tuple[tuple[PodKey, PodTimes], ...]:
        """How far we have come with every pod that waited for us, by namespace and name."""
        return tuple(sorted(self._bookkeeping.all_times(), key=lambda each: each[0]))

    def buffer(self, counts: Mapping[str, int]) -> None:
        """How many virtual pods of buffers count on each node."""
        self._bookkeeping.buffered = dict(counts)

    def buffered(self, name: str) -> int:
        """How many virtual pods of buffers count on a node."""
        return self._bookkeeping.buffered.get(name, 0)

    def claims_of(self, pool: str) -> tuple[NodeClaim, ...]:
        """The claims of a pool, by name; those that go among them."""
        return tuple(self._claims[name] for name in sorted(self._of_pool.get(pool, ())))

    def on_settled(self, listener: Callable[[SettledClaim], None]) -> None:
        """Have a listener told what became of every claim that we wrote, in order."""
        self._bookkeeping.on_settled.append(listener)

    def reserve(self, pool: str, wanted: int, limit: int | None) -> int:
        """Take up to so many nodes of what a pool's limit leaves, claims that go counted; gives how many were left."""
        left = wanted if limit is None else limit - len(self._of_pool.get(pool, ()))
        return self._bookkeeping.reserve(pool, wanted, left) if limit is not None else wanted

    def release(self, pool: str, count: int) -> None:
        """Give back what was reserved: the claims are written, or will not be."""
        self._bookkeeping.release(pool, count)

    # -- snapshots --------------------------------------------------------------------------------------------------

    def synced(self, now: datetime) -> bool:
        """Whether what is known of every claim is enough to plan by.

        No plan waits for a claim whose launch fails or takes long: one bad pool must not hold up the others.
        """
        return not any(_awaits_launch(self._claims[name], now) for name in self._unlaunched)

    def usage(self, pool: str) -> Resources:
        """What the nodes of a pool have together, `nodes` among it, without taking a whole snapshot."""
        self._refresh()
        return self._view.used_by(pool)

    def storage_of(self, pods: Iterable[Pod]) -> Storage:
        """What the volumes of some pods lead to."""
        return self._volumes.storage_of(pods)

    def snapshot(self, now: datetime) -> Snapshot:
        """The snapshot of this moment. It moves with every change, and when a pod's protection ends with time."""
        if self._last is not None and self._last.generation == self._generation:
            if self._holds_until is None or now < self._holds_until:
                return self._last
            self._generation += 1
        self._refresh()
        self._last = self._taken(now)
        return self._last

    def _refresh(self) -> None:
        for key in self._dirty:
            slot = self._slots.get(key)
            self._view.put(key, self._built(key, slot) if slot is not None else None)
        self._dirty.clear()

    def _built(self, key: str, slot: _Slot) -> StateNode:
        node = self._nodes[min(slot.nodes)] if slot.nodes else None
        claim = self._claims[min(slot.claims)] if slot.claims else None
        here = self._pods.on(node.name) if node is not None else ()
        member = NodeWithClaim(node, claim)
        if claim is not None and not member.launched:
            here = (*here, *self._held(claim))
        known_as = claim.name if claim is not None else node.name if node is not None else ""
        return state_node(
            key,
            member,
            here,
            marked=known_as in self._bookkeeping.marked,
            index=self._volumes,
            volume_limits=self._volume_limits.get(node.name, _NO_LIMITS) if node is not None else _NO_LIMITS,
            vocabulary=self._vocabulary,
        )

    def _held(self, claim: NodeClaim) -> Iterable[BoundPod]:
        """The pods that wait for the node of a claim, as if they were there."""
        if claim.metadata.deletion_timestamp is None and claim.name not in self._bookkeeping.marked:
            for key in self._bookkeeping.promised(claim.name):
                pod = self._pods.get(key)
                if pod is not None and self._is_held(key, pod):
                    yield BoundPod(pod).bound_to(claim.name)

    def _taken(self, now: datetime) -> Snapshot:
        view, before = self._view, self._last or Snapshot(generation=-1)
        moving, self._holds_until = self._moving(now)
        waiting, held = self._waiting()
        evicted = tuple(
            replace(pod, spec=replace(pod.spec, node_name="")) for pod in moving if not self._is_held(_key(pod), pod)
        )
        bound = view.bound(moving)
        daemons = tuple(daemon(self._daemon_sets[key], self._pods.newest(key)) for key in sorted(self._daemon_sets))
        return Snapshot(
            generation=self._generation,
            nodes=view.nodes(),
            existing=kept(before.existing, view.existing()),
            bound=kept(before.bound, bound),
            bound_nodes=kept(before.bound_nodes, view.bound_nodes()),
            daemons=kept(before.daemons, daemons),
            waiting=kept(before.waiting, waiting),
            held=kept(before.held, (*held, *(pod for pod in moving if self._is_held(_key(pod), pod)))),
            evicted=kept(before.evicted, evicted),
            used=kept(before.used, view.used()),
            unlaunched=view.unlaunched(),
            namespaces=self._namespaces,
            storage=kept(before.storage, self._volumes.storage_of((*waiting, *evicted))),
        )

    def _moving(self, now: datetime) -> tuple[tuple[Pod, ...], datetime | None]:
        """The pods of nodes that go which need another place now, and until when that is so."""
        found: list[Pod] = []
        ends: list[datetime] = []
        for each in self._view.going():
            for pod in each.pods:
                if must_move(pod, self._budgets.get(pod.metadata.namespace, {}).values(), now):
                    found.append(pod)
                elif until := protected_until(pod, now):
                    ends.append(until)
        return tuple(found), min(ends, default=None)

    def _waiting(self) -> tuple[tuple[Pod, ...], tuple[Pod, ...]]:
        """The pods that wait, and of these apart those that a machine is being bought for."""
        waiting: list[Pod] = []
        held: list[Pod] = []
        for key, pod in sorted(self._pods.waiting.items(), key=lambda each: each[0]):
            (held if self._is_held(key, pod) else waiting).append(pod)
        return tuple(waiting), tuple(held)

    def _is_held(self, key: PodKey, pod: Pod) -> bool:
        """Whether a machine is being bought for the pod."""
        times = self._bookkeeping.times(key)
        if times is None or times.claim not in self._unlaunched or times.claim in self._bookkeeping.marked:
            return False
        if pod.spec.node_name != times.moved_from or not podrules.is_reschedulable(pod):
            return False
        return self._claims[times.claim].metadata.deletion_timestamp is None


def _key(pod: Pod) -> PodKey:
    return (pod.metadata.namespace, pod.name)


def _node_key(node: Node | None, *, awaits_labels: bool) -> str:
    """Where a node stands. One of ours is not looked at before it says which machine and of which type it is."""
    if node is None:
        return ""
    own = node.metadata.labels
    if not own.get(labels.NODEPOOL) or not awaits_labels:
        return node.spec.provider_id or f"node/{node.name}"
    known = own.get(labels.INSTANCE_TYPE) or own.get(labels.INITIALIZED)
    return node.spec.provider_id if known else ""


def _claim_key(claim: NodeClaim | None) -> str:
    if claim is None:
        return ""
    return claim.status.provider_id or f"claim/{claim.name}"


def _pool_of(claim: NodeClaim) -> str:
    return claim.metadata.labels.get(labels.NODEPOOL, "")


def _same_node(old: Node, new: Node) -> bool:
    """Whether nothing but heartbeats came."""
    before, after = old.metadata, new.metadata
    return (
        before.uid == after.uid
        and before.labels == after.labels
        and before.annotations == after.annotations
        and before.deletion_timestamp == after.deletion_timestamp
        and old.spec == new.spec
        and _node_status(old) == _node_status(new)
    )


def _node_status(node: Node) -> tuple[object, ...]:
    status = node.status
    told = [(each.type, each.status, each.reason, each.last_transition_time) for each in status.conditions]
    return (status.capacity, status.allocatable, status.node_info, told)


def _awaits_launch(claim: NodeClaim, now: datetime) -> bool:
    """Whether the machine of a claim is about to be bought."""
    if claim.metadata.deletion_timestamp is not None:
        return False
    launched = find(claim.status.conditions, "Launched")
    if launched is not None and (launched.status == "False" or launched.reason not in ("", AWAITING_RECONCILIATION)):
        return False
    born = claim.metadata.creation_timestamp
    return born is None or abs(now - born) < LAUNCH_PATIENCE  # clocks may be set back
