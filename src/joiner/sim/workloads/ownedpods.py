"""What every workload controller does with its pods: find them, make them, let them go, and remember what is not visible yet."""

import asyncio
from collections.abc import Coroutine, Iterable, Mapping
from typing import Any, Final

from joiner.clock import Clock
from joiner.kube.client import Client, Key, key_of
from joiner.kube.controller import Change
from joiner.kube.errors import NotFound
from joiner.kube.informer import Index, Informers
from joiner.model.meta import KubeObject, controller_of
from joiner.model.pod import Pod
from joiner.model.podpolicy import PriorityClass, RuntimeClass
from joiner.model.workload import ReplicaSet
from joiner.sim.workloads.podfactory import admit, is_active, is_ready

OWNER: Final = "owner"
"""Index: the UID of the controller."""
PLACE: Final = "place"
"""Index of daemons' pods: the UID of the set and the node."""
FORGET_S: Final = 300.0
"""What has not shown up by then never will: it came and went while no watch was open."""
BURST: Final = 500


def _owner(thing: KubeObject) -> Iterable[str]:
    owner = controller_of(thing)
    return (owner.uid,) if owner is not None else ()


def node_meant(pod: Pod) -> str:
    """The node a daemon's pod is on or was made for."""
    if pod.spec.node_name:
        return pod.spec.node_name
    required = pod.spec.affinity.node_affinity.required
    terms = required.node_selector_terms if required is not None else ()
    fields = terms[0].match_fields if terms else ()
    return fields[0].values[0] if fields else ""


def place(uid: str, node: str) -> str:
    """The entry of a daemon set's node in the index."""
    return f"{uid}/{node}"


def _place(pod: Pod) -> Iterable[str]:
    owner = controller_of(pod)
    return (place(owner.uid, node_meant(pod)),) if owner is not None and owner.kind == "DaemonSet" else ()


INDEXES: Final[Mapping[type[KubeObject], Mapping[str, Index]]] = {
    Pod: {OWNER: _owner, PLACE: _place},
    ReplicaSet: {OWNER: _owner},
}


async def all_of(work: Iterable[Coroutine[Any, Any, None]]) -> None:
    """Do everything abreast, to the end; then raise the first error if there was one."""
    for outcome in await asyncio.gather(*work, return_exceptions=True):
        if isinstance(outcome, BaseException):
            raise outcome


def keys_by_owner(kind: str, change: Change) -> Iterable[Key]:
    """The workload of that kind whose pod, or other object, has changed."""
    owner = controller_of(change.latest)
    return (Key(change.latest.metadata.namespace, owner.name),) if owner is not None and owner.kind == kind else ()


class Pods:
    """The pods of workloads as they are, ahead of the cache by what was just written."""

    def __init__(self, client: Client, informers: Informers, clock: Clock) -> None:
        self._client = client
        self._informers = informers
        self._clock = clock
        self._made: dict[str, dict[Key, float]] = {}
        self._going: dict[Key, tuple[str, float]] = {}
        self._active: dict[str, dict[Key, bool]] = {}
        self._ready: dict[str, int] = {}
        informers.of(Pod).listen(self._see)

    def _see(self, change: Change) -> None:
        pod: Pod = change.latest
        key = key_of(pod)
        going = self._going.get(key)
        if going is not None and (
            change.after is None or pod.metadata.deletion_timestamp or pod.metadata.uid != going[0]
        ):
            del self._going[key]
        for owner in _owner(pod):
            self._count(owner, pod, counts=change.after is not None)
        for entry in (*_owner(pod), *_place(pod)) if self._made else ():
            made = self._made.get(entry)
            if made is not None and made.pop(key, None) is not None and not made:
                del self._made[entry]

    def _count(self, owner: str, pod: Pod, *, counts: bool = True) -> None:
        """Keep the numbers, so that a thousand pods need not be looked through whenever one of them changes."""
        key = key_of(pod)
        counts = counts and is_active(pod) and not self.is_going(pod)
        active, ready = self._active.setdefault(owner, {}), counts and is_ready(pod)
        self._ready[owner] = self._ready.get(owner, 0) + ready - active.pop(key, False)
        if counts:
            active[key] = ready
        elif not active:
            del self._active[owner], self._ready[owner]

    def numbers(self, owner: str) -> tuple[int, int]:
        """How many pods of an owner count, and how many of them are ready."""
        return len(self._active.get(owner, ())), self._ready.get(owner, 0)

    def unseen(self, entry: str) -> tuple[Key, ...]:
        """Pods that were made for the entry of an index and that the cache does not show."""
        made = self._made.get(entry, {})
        late = self._clock.monotonic() - FORGET_S
        for key in [key for key, since in made.items() if since <= late]:
            del made[key]
        return tuple(made)

    def of(self, entry: str, index: str = OWNER) -> tuple[Pod, ...]:
        """Those that the cache shows and that no client has asked to go."""
        return tuple(pod for pod in self._informers.by(Pod, index, entry) if not self.is_going(pod))

    def is_going(self, pod: Pod) -> bool:
        """Whether it was deleted, though the cache does not show it."""
        going = self._going.get(key_of(pod))
        return going is not None and going[0] == pod.metadata.uid and going[1] > self._clock.monotonic() - FORGET_S

    async def make(self, entry: str, pod: Pod) -> None:
        """Bring a pod into the cluster, and remember for which entry of an index until the cache shows it."""
        classes = self._informers.all(RuntimeClass), self._informers.all(PriorityClass)
        made = await self._client.create(admit(pod, *classes))
        if self._informers.get(Pod, made.name, made.metadata.namespace) is None:
            self._made.setdefault(entry, {})[key_of(made)] = self._clock.monotonic()

    async def remove(self, pod: Pod, *, at_once: bool = False) -> None:
        """Ask a pod to go. One that has gone already is fine."""
        try:
            await self._client.delete(
                Pod, pod.name, pod.metadata.namespace, uid=pod.metadata.uid, grace_period_s=0 if at_once else None
            )
        except NotFound:
            return
        known = self._informers.get(Pod, pod.name, pod.metadata.namespace)
        if known is not None and known.metadata.uid == pod.metadata.uid and known.metadata.deletion_timestamp is None:
            self._going[key_of(pod)] = (pod.metadata.uid, self._clock.monotonic())
            for owner in _owner(pod):
                self._count(owner, known)
