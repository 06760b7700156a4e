"""The pretend kube-scheduler: gives pods their nodes, or says why none will do.

    waiting ──place──▶ assumed ──▶ (volumes made where the node can reach them) ──▶ bound
       ▲                  │
       └── node or claim gone

One pass looks at the pods that wait, those of highest priority first, and places as many as it can; the writes of a pass go out
together. A pod that was refused is looked at again only when something happened that may help it. A pod that was placed counts on
its node at once, before the server has said so.
Not done: extenders, profiles, in-place resizing, devices, spread by default, volumes that exist already and wait for a claim.
"""

import asyncio
from collections.abc import Iterable
from heapq import heapify, heappop, heapreplace
from math import inf
from typing import Final, NamedTuple

from joiner.clock import Clock
from joiner.kube.client import Client, Key, key_of
from joiner.kube.controller import ALONE, DONE, Change, Reconciler, Result, Watch
from joiner.kube.errors import Conflict, KubeError, NotFound
from joiner.kube.informer import Informers
from joiner.model.clusterobjects import Namespace
from joiner.model.meta import replace
from joiner.model.node import Node
from joiner.model.pod import Pod, PodCondition, condition
from joiner.model.storage import CSINode, PersistentVolume, PersistentVolumeClaim, StorageClass
from joiner.sim.scheduler.clusterindex import ClusterIndex, claims_of, is_finished, signature
from joiner.sim.scheduler.nodefit import named_nodes
from joiner.sim.scheduler.predicates import PodPredicates
from joiner.sim.scheduler.preemption import Eviction, is_under_way, preempt
from joiner.sim.scheduler.queue import Lines, Waiting
from joiner.sim.scheduler.scoring import PodWeights, Views, choose, class_signature
from joiner.sim.scheduler.volumefit import SELECTED_NODE, claim_problem, is_bound, volume_refusals

NAME: Final = "default-scheduler"
RETRY_S: Final = 1.0
MAKING_S: Final = 10.0
"""How often volumes that are being made are looked after, if nothing is heard of them."""
REPEAT_S: Final = 60.0
"""A refusal in new words, the reason being the same, is written no more often than this."""

SCHEDULED: Final = "PodScheduled"
UNSCHEDULABLE: Final = "Unschedulable"


class _Stamp(NamedTuple):
    """How far the world had come when a class of pods was refused."""

    nodes: int
    departures: int
    arrivals: int
    storage: int


class _Told(NamedTuple):
    """What a line of pods was told, and when one of them may be told again."""

    message: str
    again_at: float
    """The same, to those who have not heard it yet."""
    other_at: float
    """Something else."""


class _Assumed(NamedTuple):
    """A pod whose node has been decided, until the server shows it."""

    pod: Pod
    node: str


class _Decided(NamedTuple):
    """What a pass has to write, besides the bindings."""

    selected: dict[Key, str]
    """Claims whose volume is to be made for a node."""
    refused: dict[Key, tuple[Pod, str, str]]
    """Pods, with the message and the node they are promised."""
    evictions: dict[Key, Eviction]
    """Pods, with those who have to make room for them."""


class Binder(Reconciler):
    """Places every pod that asks for the default scheduler."""

    name = "binder"
    workers = 1

    def __init__(self, *, client: Client, informers: Informers, clock: Clock) -> None:
        self._client = client
        self._clock = clock
        self._places = ClusterIndex()
        self._views = Views(self._places)
        self._waiting = Lines()
        self._assumed: dict[Key, _Assumed] = {}
        self._due: dict[Key, None] = {}
        """Assumed pods whose binding has to be written."""
        self._making: dict[Key, float] = {}
        """Assumed pods whose volumes are not there yet, and since when."""
        self._promised: dict[Key, Eviction] = {}
        """Pods for which others were asked to leave a node. No less important pod may take the place meanwhile."""
        self._refused: dict[bytes, tuple[_Stamp, str]] = {}
        self._said: dict[Key, float] = {}
        self._told: dict[bytes, _Told] = {}
        self._fresh = False
        self._seen = self._stamp(True, True)
        others = (Node, Namespace, PersistentVolumeClaim, PersistentVolume, StorageClass, CSINode)
        self.watches = (Watch(Pod, self._pod_changed), *(Watch(kind, self._changed) for kind in others))
        for watch in self.watches:
            informers.of(watch.kind)

    # -- taking in what happens

    def _changed(self, change: Change) -> Iterable[Key]:
        self._places.apply(change.before, change.after)
        return self._stirred()

    def _pod_changed(self, change: Change) -> Iterable[Key]:
        pod: Pod = change.latest
        key = key_of(pod)
        waits = change.after is not None and _waits(pod)
        held = self._held(key)
        if waits and held is not None and held.metadata.uid == pod.metadata.uid:
            if key in self._waiting:
                self._wait(pod)
            return self._stirred()
        bound = change.after is not None and bool(pod.spec.node_name)
        self._forget(key, seen=bound)
        self._places.apply(change.before, change.after)
        if waits:
            self._wait(pod)
        else:
            self._waiting.pop(key)
            self._said.pop(key, None)
        return self._stirred()

    def _held(self, key: Key) -> Pod | None:
        """The pod for which a place is held on a node, although the server has not given it one."""
        if key in self._assumed:
            return self._assumed[key].pod
        return self._waiting[key].pod if key in self._promised else None

    def _wait(self, pod: Pod) -> None:
        key = key_of(pod)
        like = signature(class_signature(pod), pod.spec.priority, claims_of(pod))
        known = self._waiting.get(key)
        made = pod.metadata.creation_timestamp
        assert made is not None
        self._waiting.put(Waiting(pod, like, (-(pod.spec.priority or 0), made, key)))
        if known is None or known.like != like or known.pod.metadata.uid != pod.metadata.uid:
            self._fresh = True

    def _forget(self, key: Key, *, seen: bool = False) -> None:
        """No place is held for the pod any more: the server has given it one, or it needs none, or another one."""
        held = self._assumed.pop(key, None) is not None
        held = self._promised.pop(key, None) is not None or held
        if held and not seen:
            self._places.drop_pod(key)
        self._due.pop(key, None)
        self._making.pop(key, None)

    def _stirred(self) -> Iterable[Key]:
        anew = self._waiting and (self._fresh or self._stamp(True, True) != self._seen)
        return (ALONE,) if anew or self._making or self._due else ()

    def _stamp(self, arrivals: bool, storage: bool) -> _Stamp:
        places = self._places
        return _Stamp(
            places.node_changes,
            places.departures,
            places.arrivals if arrivals else 0,
            places.storage_changes if storage else 0,
        )

    # -- one pass

    async def reconcile(self, key: Key) -> Result:
        """Place what can be placed, and write it."""
        self._look_after_volumes()
        decided = self._decide()
        writes = [
            *(self._select(claim, node) for claim, node in decided.selected.items()),
            *(self._refuse(*refusal) for refusal in decided.refused.values()),
            *(self._evict(pod, eviction) for pod, eviction in decided.evictions.items()),
            *(self._bind(key, *self._assumed[key]) for key in self._due),
        ]
        again = False
        for outcome in await asyncio.gather(*writes, return_exceptions=True):
            if isinstance(outcome, BaseException):
                if not isinstance(outcome, KubeError):
                    raise outcome
                again = True
        if again or self._due:
            return Result(RETRY_S)
        return Result(MAKING_S) if self._making else DONE

    def _decide(self) -> _Decided:
        """A place or a refusal for every pod that waits. Pods that need company get another chance when it came."""
        decided = _Decided({}, {}, {})
        while True:
            self._fresh = False
            self._seen = self._stamp(True, True)
            self._go_through(decided)
            if self._stamp(True, True) == self._seen:
                break
        if not self._waiting:
            self._refused.clear()
            self._told.clear()
        return decided

    def _go_through(self, decided: _Decided) -> None:
        """Ask for the pods in order. Where one is refused, so are all pods behind it in the line."""
        heads = self._waiting.heads()
        heapify(heads)
        while heads:
            order, like = heads[0]
            following = self._waiting.after(order, like)
            if not self._place(self._waiting[order[2]], decided):
                self._tell(like, self._refused[like][1], decided)
                heappop(heads)
            elif following is None:
                heappop(heads)
            else:
                heapreplace(heads, (following, like))

    def _place(self, waiting: Waiting, decided: _Decided) -> bool:
        """Whether the pod has a node now."""
        pod, key = waiting.pod, key_of(waiting.pod)
        stamp = self._stamp(_heeds_others(pod), bool(pod.spec.volumes))
        refused = self._refused.get(waiting.like)
        if refused is not None and refused[0] == stamp:
            return False
        with self._places.without((key,)):
            node, message = self._find(pod)
        if node is not None:
            decided.refused.pop(key, None)
            decided.evictions.pop(key, None)
            self._assume(pod, node, decided)
            return True
        self._refused[waiting.like] = (stamp, message)
        promise = self._promised.get(key)
        if promise is None or not is_under_way(promise, self._places):
            self._break_promise(key)
            self._preempt(pod, decided)
        return False

    def _preempt(self, pod: Pod, decided: _Decided) -> None:
        eviction = preempt(pod, self._places)
        if eviction is None:
            return
        decided.evictions[key_of(pod)] = eviction
        self._promised[key_of(pod)] = eviction
        with self._places.without(()):
            self._places.put_pod(replace(pod, spec=replace(pod.spec, node_name=eviction.node)))

    def _break_promise(self, key: Key) -> None:
        if self._promised.pop(key, None) is not None:
            self._places.drop_pod(key)

    def _tell(self, like: bytes, message: str, decided: _Decided) -> None:
        """Tell all who stand in a line that they are refused, as far as it is news. Mostly it is not, and nothing is asked."""
        now, told = self._clock.monotonic(), self._told.get(like)
        if told is not None and like not in self._waiting.stirred and not self._promised:
            due = told.again_at if told.message == message else told.other_at
            if now < due:
                return
        again_at = other_at = inf
        for pod in self._waiting.line(like):
            self._refuse_if_news(pod, message, decided)
            known = condition(pod, SCHEDULED)
            heard = known is not None and known.status == "False" and known.reason == UNSCHEDULABLE
            said = now if key_of(pod) in decided.refused else self._said.get(key_of(pod), -REPEAT_S)
            next_at = said + (REPEAT_S if heard else RETRY_S)
            other_at = min(other_at, next_at)
            if known is None or not heard or known.message != message:
                again_at = min(again_at, next_at)
        self._waiting.stirred.discard(like)
        self._told[like] = _Told(message, again_at, other_at)

    def _refuse_if_news(self, pod: Pod, message: str, decided: _Decided) -> None:
        promise = self._promised.get(key_of(pod))
        nominated = promise.node if promise is not None else ""
        if pod.status.nominated_node_name != nominated or self._is_news(pod, message):
            decided.refused[key_of(pod)] = (pod, message, nominated)

    def _find(self, pod: Pod) -> tuple[str | None, str]:
        problem = claim_problem(pod, self._places)
        if problem is not None:
            return None, f"0/{self._total()} nodes are available: {problem}."
        question = PodPredicates(pod, self._places)
        names = named_nodes(pod)
        if names is not None:
            return self._find_among(question, names)
        view = self._views.of(pod, class_signature(pod))
        node, refused = choose(question, view, PodWeights(pod, self._places))
        if node is not None:
            return node, ""
        return None, _message(self._total(), [*view.refused.values(), *refused.values()])

    def _total(self) -> int:
        return sum(1 for _ in self._places.nodes())

    def _find_among(self, question: PodPredicates, names: Iterable[str]) -> tuple[str | None, str]:
        whys: list[tuple[str, ...]] = []
        for name in names:
            entry = self._places.entries.get(name)
            if entry is not None and entry.node is not None:
                why = tuple(question.refusals(entry))
                if not why:
                    return name, ""
                whys.append(why)
        return None, _message(self._total(), whys)

    def _assume(self, pod: Pod, node: str, decided: _Decided) -> None:
        key = key_of(pod)
        self._waiting.pop(key)
        self._promised.pop(key, None)
        self._assumed[key] = _Assumed(pod, node)
        self._places.put_pod(replace(pod, spec=replace(pod.spec, node_name=node)))
        missing = [each for each in claims_of(pod) if not is_bound(each, self._places)]
        decided.selected.update(dict.fromkeys(missing, node))
        if missing:
            self._making[key] = self._clock.monotonic()
        else:
            self._due[key] = None

    def _look_after_volumes(self) -> None:
        """Bind pods whose volumes have been made; choose anew for those whose volumes will not be."""
        for key in tuple(self._making):
            pod, node = self._assumed[key]
            entry = self._places.entries.get(node)
            made = all(is_bound(claim, self._places) for claim in claims_of(pod))
            lost = entry is None or entry.node is None or self._is_hopeless(key, pod, node)
            if lost or (made and entry is not None and any(volume_refusals(pod, entry, self._places))):
                self._start_over(key)
            elif made:
                del self._making[key]
                self._due[key] = None

    def _is_hopeless(self, key: Key, pod: Pod, node: str) -> bool:
        """Whether a claim is gone, or the provisioner of volumes has declined the node."""
        if claim_problem(pod, self._places) is not None:
            return True
        claims = [self._places.claims[each] for each in claims_of(pod) if not is_bound(each, self._places)]
        declined = any(each.metadata.annotations.get(SELECTED_NODE) != node for each in claims)
        return declined and self._clock.monotonic() - self._making[key] >= MAKING_S

    def _start_over(self, key: Key) -> None:
        pod = self._assumed[key].pod
        self._forget(key)
        self._wait(pod)

    # -- writing

    async def _select(self, key: Key, node: str) -> None:
        claim = self._places.claims.get(key)
        if claim is None:
            return  # the next pass will find out
        marks = {**claim.metadata.annotations, SELECTED_NODE: node}
        try:
            await self._client.patch(claim, replace(claim, metadata=replace(claim.metadata, annotations=marks)))
        except KubeError:
            self._unselect(key)
            raise

    def _unselect(self, claim: Key) -> None:
        """The claim could not be written: its pods start over."""
        for key in tuple(self._making):
            if claim in claims_of(self._assumed[key].pod):
                self._start_over(key)

    async def _bind(self, key: Key, pod: Pod, node: str) -> None:
        try:
            await self._client.bind(key.namespace, key.name, node=node, uid=pod.metadata.uid)
        except (Conflict, NotFound):
            if await self._is_still_unbound(pod):
                return  # it is not known why; the next pass tries again
        current = self._assumed.get(key)
        if current is not None and current.pod.metadata.uid == pod.metadata.uid:
            self._due.pop(key, None)

    async def _is_still_unbound(self, pod: Pod) -> bool:
        try:
            found = await self._client.get(Pod, pod.name, pod.metadata.namespace)
        except NotFound:
            return False
        return found.metadata.uid == pod.metadata.uid and _waits(found)

    def _is_news(self, pod: Pod, message: str) -> bool:
        known = condition(pod, SCHEDULED)
        said = self._clock.monotonic() - self._said.get(key_of(pod), -REPEAT_S)
        if known is None or known.status != "False" or known.reason != UNSCHEDULABLE:
            return said >= RETRY_S  # else it is on its way
        return known.message != message and said >= REPEAT_S

    async def _refuse(self, pod: Pod, message: str, nominated: str) -> None:
        known = condition(pod, SCHEDULED)
        since = known.last_transition_time if known is not None and known.status == "False" else self._clock.now()
        refusal = PodCondition(
            type=SCHEDULED, status="False", reason=UNSCHEDULABLE, message=message, last_transition_time=since
        )
        others = tuple(each for each in pod.status.conditions if each.type != SCHEDULED)
        status = replace(pod.status, conditions=(*others, refusal), nominated_node_name=nominated)
        self._said[key_of(pod)] = self._clock.monotonic()
        try:
            await self._client.patch_status(pod, replace(pod, status=status))
        except NotFound:
            return
        except KubeError:
            self._said.pop(key_of(pod), None)
            self._told.clear()
            raise

    async def _evict(self, key: Key, eviction: Eviction) -> None:
        for victim in eviction.victims:
            if key_of(victim) in self._promised:
                continue  # it is not there, it only waits for the place
            try:
                await self._client.delete(Pod, victim.name, victim.metadata.namespace, uid=victim.metadata.uid)
            except NotFound:
                continue
            except KubeError:
                self._break_promise(key)
                raise


def _waits(pod: Pod) -> bool:
    spec = pod.spec
    return (
        not spec.node_name
        and spec.scheduler_name == NAME
        and not spec.scheduling_gates
        and pod.metadata.deletion_timestamp is None
        and not is_finished(pod)
    )


def _heeds_others(pod: Pod) -> bool:
    """Whether a pod that comes somewhere may make room for this one: company, or a fuller domain elsewhere."""
    return bool(pod.spec.affinity.pod_affinity.required or pod.spec.topology_spread_constraints)


def _message(total: int, refusals: Iterable[tuple[str, ...]]) -> str:
    counts: dict[str, int] = {}
    for why in refusals:
        for reason in why:
            counts[reason] = counts.get(reason, 0) + 1
    told = ", ".join(f"{counts[reason]} {reason}" for reason in sorted(counts))
    return f"0/{total} nodes are available{': ' + told if told else ''}."
