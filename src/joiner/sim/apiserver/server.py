"""A pretend Kubernetes API server: versions, conflicts, generations, finalizers, graceful deletion, binding, status apart.

It stores the typed values themselves. Every effect happens at once and whole; waiting, latency and faults are the client's.
Whatever is written is told to the trace and to those who observe, so that checkers see every step.
"""

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timedelta
from functools import cache
from random import Random
from typing import Any, Final, NamedTuple, TypeVar

from joiner.clock import Clock
from joiner.kube.client import DELETED, Key, Listing, key_of
from joiner.kube.errors import AlreadyExists, Conflict, Invalid, NotFound
from joiner.model.meta import KubeObject, replace
from joiner.model.pod import Pod, PodCondition
from joiner.sim.apiserver import admission
from joiner.sim.apiserver.changetext import difference
from joiner.sim.apiserver.client import Interceptor, Latency, SimClient
from joiner.sim.apiserver.disruptionbudgets import Budgets
from joiner.sim.apiserver.garbagecollector import OwnerGarbageCollector
from joiner.sim.apiserver.mergepatch import as_written, merged
from joiner.sim.apiserver.selectors import chosen
from joiner.sim.apiserver.store import HISTORY, ObjectStore, happening_of
from joiner.sim.trace import Trace

K = TypeVar("K", bound=KubeObject)

LETTERS: Final = "bcdfghjklmnpqrstvwxz2456789"
"""What generated names end with: no vowels, so that no words come out, and nothing that looks like something else."""
BOOKMARK_EVERY: Final = 1000
"""After so many writes of any kind all who watch are told how far the history has come."""
TERMINAL: Final = ("Succeeded", "Failed")
_WRITABLE_METADATA: Final = frozenset({"labels", "annotations", "finalizers", "owner_references"})
_STATUS: Final = frozenset({"status"})


class Write(NamedTuple):
    """One thing that was written. `before` is missing at birth, `after` when the object is gone."""

    actor: str
    verb: str
    before: Any
    after: Any


Observer = Callable[[Write], None]


class ApiServer:
    """The server. Ask it for a `client`; its own methods are for the client, the checkers and the builder of a world."""

    def __init__(
        self,
        clock: Clock,
        random: Random,
        trace: Trace,
        *,
        history: int = HISTORY,
        bookmark_every: int = BOOKMARK_EVERY,
    ) -> None:
        self.clock = clock
        self.trace = trace
        self.version = 1
        self.observers: list[Observer] = []
        """Told of every write, after it."""
        self._random = random
        self._seed = random.getrandbits(64)
        self._clients = 0
        self._history = history
        self._bookmark_every = bookmark_every
        self._stores: dict[type[KubeObject], ObjectStore[Any]] = {}
        self._garbage = OwnerGarbageCollector(self)
        self._budgets = Budgets(self)

    def store(self, kind: type[K]) -> ObjectStore[K]:
        """Where the objects of a kind are."""
        store: Any = self._stores.get(kind)
        if store is None:
            store = self._stores[kind] = ObjectStore(kind, self._history)
        return store  # type: ignore[no-any-return]

    def find(self, kind: type[K], name: str, namespace: str = "") -> K | None:
        """The object, if there is one."""
        key: Any = (namespace, name)  # as good as a key, and made sooner
        return self.store(kind).objects.get(key)

    def get(self, kind: type[K], name: str, namespace: str = "") -> K:
        """The object. Raises NotFound."""
        found = self.find(kind, name, namespace)
        if found is None:
            raise NotFound(f"there is no {kind.kind} {Key(namespace, name)}")
        return found

    def objects(self, kind: type[K]) -> Iterable[K]:
        """All objects of a kind, the oldest first."""
        return self.store(kind).objects.values()

    def list(
        self,
        kind: type[K],
        *,
        namespace: str = "",
        labels: Mapping[str, str] | None = None,
        fields: Mapping[str, str] | None = None,
        version: int | None = None,
    ) -> Listing[K]:
        """The objects that are chosen, by key; with a version as they were then, as far back as is remembered."""
        objects, as_of = self.store(kind).objects, self.version
        if version is not None and version < self.version:
            objects, as_of = self.store(kind).as_of(version, self.version)
        found = chosen(objects, namespace, labels, fields)
        return Listing(found, str(as_of))

    def create(self, actor: str, thing: K) -> K:
        """Let an object in."""
        thing = as_written(self._named(thing))
        store = self.store(type(thing))
        if key_of(thing) in store.objects:
            raise AlreadyExists(f"{thing.kind} {key_of(thing)} already exists")
        return self._born(actor, admission.fresh(thing))

    def load(self, things: Iterable[KubeObject], actor: str = "world") -> None:
        """Let objects in as they are, with their status: how a world begins."""
        for thing in things:
            self._born(actor, as_written(self._named(thing)))

    def _named(self, thing: K) -> K:
        metadata = thing.metadata
        changes: dict[str, Any] = {}
        if not metadata.name and metadata.generate_name:
            ending = "".join(self._random.choice(LETTERS) for _ in range(5))
            changes["name"] = metadata.generate_name[: 63 - 5] + ending
        if thing.namespaced and not metadata.namespace:
            changes["namespace"] = "default"
        return replace(thing, metadata=replace(metadata, **changes)) if changes else thing

    def _born(self, actor: str, thing: K) -> K:
        return self._store(
            actor,
            "create",
            None,
            thing,
            uid=self._uid(),
            generation=1,
            creation_timestamp=self.clock.now().replace(microsecond=0),
            deletion_timestamp=None,
            deletion_grace_period_seconds=None,
        )

    def _uid(self) -> str:
        text = f"{self._random.getrandbits(128):032x}"
        return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))

    def patch(self, actor: str, before: K, after: K, *, locked: bool = False) -> K:
        """Bring the difference into the object, all but its status."""
        stored = self._for_change(before, after, locked)
        metadata = merged(stored.metadata, before.metadata, after.metadata, _WRITABLE_METADATA)
        wanted = merged(stored, before, after, _body_fields(type(stored)))
        spec_changed = wanted != stored
        if not spec_changed and metadata == stored.metadata:
            return stored
        wanted = admission.changed(stored, replace(wanted, metadata=metadata))
        if _may_go(wanted):
            self._remove(actor, wanted, stored)
            return wanted
        return self._store(actor, "patch", stored, wanted, generation=metadata.generation + spec_changed)

    def patch_status(self, actor: str, before: K, after: K, *, locked: bool = False) -> K:
        """Bring the difference of the status into the object."""
        stored = self._for_change(before, after, locked)
        if not admission.has_status(type(stored)):
            raise Invalid(f"{stored.kind} has no status of its own")
        wanted = merged(stored, before, after, _STATUS)
        if wanted == stored:
            return stored
        admission.check_status(wanted)
        return self._store(actor, "status", stored, wanted)

    def _for_change(self, before: K, after: K, locked: bool) -> K:
        stored = self.get(type(before), before.metadata.name, before.metadata.namespace)
        _same_uid(stored, before.metadata.uid)
        if before.metadata is not after.metadata:
            for name in ("name", "namespace", "uid"):
                if getattr(before.metadata, name) != getattr(after.metadata, name):
                    raise Invalid(f"{stored.kind} {key_of(stored)}: metadata.{name} cannot be changed")
        if before.metadata.uid and before.metadata.uid != stored.metadata.uid:
            raise Conflict(f"{stored.kind} {key_of(stored)} is another one than was read, of the same name")
        if locked and before.metadata.resource_version != stored.metadata.resource_version:
            raise Conflict(
                f"{stored.kind} {key_of(stored)} is at version {stored.metadata.resource_version}"
                f" and was read at {before.metadata.resource_version}: read it again"
            )
        return stored

    def delete(
        self,
        actor: str,
        kind: type[K],
        name: str,
        namespace: str = "",
        *,
        uid: str = "",
        grace_s: int | None = None,
        verb: str = "delete",
    ) -> None:
        """Remove the object, or mark it as going while a finalizer holds it."""
        thing = self.get(kind, name, namespace)
        _same_uid(thing, uid)
        grace = _grace(thing, grace_s) if isinstance(thing, Pod) else 0
        if grace == 0 and not thing.metadata.finalizers:
            self._remove(actor, thing)
            return
        known = thing.metadata.deletion_grace_period_seconds
        if thing.metadata.deletion_timestamp is not None and grace >= (known or 0):
            return  # a second wish can only shorten the first
        self._store(
            actor,
            verb,
            thing,
            thing,
            detail=f"grace={grace}s" if isinstance(thing, Pod) else "",
            generation=thing.metadata.generation + (thing.metadata.deletion_timestamp is None),
            deletion_timestamp=self._gone_at(thing, grace),
            deletion_grace_period_seconds=grace,
        )

    def _gone_at(self, thing: KubeObject, grace: int) -> datetime:
        first = thing.metadata.deletion_timestamp
        if first is None:
            return self.clock.now().replace(microsecond=0) + timedelta(seconds=grace)
        return first - timedelta(seconds=(thing.metadata.deletion_grace_period_seconds or 0) - grace)

    def evict(self, actor: str, namespace: str, name: str, *, uid: str = "") -> None:
        """Delete a pod if its disruption budgets allow."""
        pod = self.get(Pod, name, namespace)
        _same_uid(pod, uid)
        if pod.status.phase not in (*TERMINAL, "Pending") and pod.metadata.deletion_timestamp is None:
            self._budgets.let_go(pod)
        self.delete(actor, Pod, name, namespace, verb="evict")

    def bind(self, actor: str, namespace: str, name: str, *, node: str, uid: str = "") -> None:
        """Give a pod its node."""
        pod = self.get(Pod, name, namespace)
        _same_uid(pod, uid)
        if pod.spec.node_name:
            raise Conflict(f"Pod {key_of(pod)} is already on node {pod.spec.node_name}")
        if pod.metadata.deletion_timestamp is not None:
            raise Conflict(f"Pod {key_of(pod)} is being deleted and cannot be bound")
        if pod.spec.scheduling_gates:
            raise Conflict(f"Pod {key_of(pod)} has scheduling gates and cannot be bound")
        scheduled = PodCondition(
            type="PodScheduled", status="True", last_transition_time=self.clock.now().replace(microsecond=0)
        )
        others = tuple(each for each in pod.status.conditions if each.type != scheduled.type)
        bound = replace(
            pod,
            spec=replace(pod.spec, node_name=node),
            status=replace(pod.status, conditions=(*others, scheduled)),
        )
        self._store(actor, "bind", pod, bound, detail=node, generation=pod.metadata.generation + 1)

    def hang_up(self, kind: type[KubeObject] | None = None) -> None:
        """End every watch, or every watch of one kind."""
        for store in [self.store(kind)] if kind is not None else tuple(self._stores.values()):
            store.hang_up()

    def write_status(self, actor: str, before: K, after: K) -> None:
        """For the parts of the server that keep a status themselves."""
        self._store(actor, "status", before, after)

    def _store(
        self, actor: str, verb: str, before: K | None, after: K, *, detail: str | None = None, **metadata: Any
    ) -> K:
        self.version += 1
        after = replace(after, metadata=replace(after.metadata, resource_version=str(self.version), **metadata))
        self.store(type(after)).put(self.version, happening_of(before), after)
        self._told(verb, actor, after, difference(before, after) if detail is None else detail)
        self._heard(Write(actor, verb, before, after))
        return after

    def _remove(self, actor: str, thing: K, before: K | None = None) -> None:
        self.version += 1
        last = replace(thing, metadata=replace(thing.metadata, resource_version=str(self.version)))
        self.store(type(last)).put(self.version, DELETED, last)
        self._told("remove", actor, last, "")
        self._heard(Write(actor, "remove", before or last, None))

    def _told(self, verb: str, actor: str, thing: KubeObject, detail: str) -> None:
        self.trace.record(self.clock.monotonic(), actor, verb, thing.kind, key_of(thing), detail)

    def _heard(self, write: Write) -> None:
        self._garbage.heard(write.before, write.after)
        self._budgets.heard(write.before, write.after)
        for observer in self.observers:
            observer(write)
        if self.version % self._bookmark_every == 0:
            for store in self._stores.values():
                store.bookmark(self.version)

    def client(self, actor: str, latency_s: Latency | None = None, interceptor: Interceptor | None = None) -> SimClient:
        """A client for an actor of that name, as every actor has one of its own."""
        self._clients += 1
        chance = Random(f"{self._seed} {actor} {self._clients}")
        return SimClient(self, actor, chance, latency_s, interceptor)


@cache
def _body_fields(kind: type[KubeObject]) -> frozenset[str]:
    return frozenset(kind.__struct_fields__) - {"metadata", "status"}


def _same_uid(thing: KubeObject, uid: str) -> None:
    if uid and uid != thing.metadata.uid:
        raise Conflict(f"{thing.kind} {key_of(thing)} is another one: its uid is {thing.metadata.uid}, not {uid}")


def _may_go(thing: KubeObject) -> bool:
    metadata = thing.metadata
    return (
        metadata.deletion_timestamp is not None
        and not metadata.finalizers
        and not metadata.deletion_grace_period_seconds
    )


def _grace(pod: Pod, asked: int | None) -> int:
    """How long a pod may take to go. One that is on no node, or has ended, needs no time."""
    if not pod.spec.node_name or pod.status.phase in TERMINAL:
        return 0
    if asked is not None:
        return asked
    if pod.metadata.deletion_timestamp is not None:
        return pod.metadata.deletion_grace_period_seconds or 0
    own = pod.spec.termination_grace_period_seconds
    return admission.GRACE_S if own is None else own
