"""CapacityBuffers: what they imitate is looked up, their virtual pods are handed to the planner, and status tells how it went."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Final

from joiner.controllers.provisioning.batcher import Batcher
from joiner.controllers.shared import Shared
from joiner.kube.client import Key, key_of
from joiner.kube.controller import DONE, Change, Reconciler, Result, Watch
from joiner.kube.errors import Conflict, NotFound
from joiner.model.capacitybuffer import CapacityBuffer, CapacityBufferStatus, PodTemplateReference
from joiner.model.conditions import Condition, Conditions, Status, find
from joiner.model.meta import KubeObject, replace
from joiner.model.pod import Pod
from joiner.model.podrequests import of_spec
from joiner.model.workload import Deployment, PodTemplate, ReplicaSet, StatefulSet
from joiner.scheduling.plan import Plan
from joiner.state.virtualpods import (
    BUFFER_NAME,
    BUFFER_NAMESPACE,
    Imitated,
    imitated,
    is_virtual,
    replicas,
    virtual_pods,
)

READY: Final = "ReadyForProvisioning"
PROVISIONING: Final = "Provisioning"

Scalable = Deployment | StatefulSet | ReplicaSet
SCALABLE: Final[Mapping[str, type[Scalable]]] = {kind.kind: kind for kind in (Deployment, StatefulSet, ReplicaSet)}


class VirtualPods:
    """The virtual pods of all buffers, made anew only where something changed."""

    def __init__(self, shared: Shared) -> None:
        self._client, self._informers, self._cluster = shared.client, shared.informers, shared.cluster
        self._clock = shared.clock
        self._made: dict[Key, tuple[CapacityBuffer, Imitated | None, tuple[Pod, ...]]] = {}
        for kind in (CapacityBuffer, PodTemplate, *SCALABLE.values()):
            shared.informers.of(kind)

    def pod_template(self, namespace: str, name: str) -> Imitated | None:
        """The PodTemplate, if it is there."""
        found = self._informers.get(PodTemplate, name, namespace)
        return Imitated(found.template, 0, found.metadata.generation) if found is not None else None

    def workload(self, namespace: str, kind: str, name: str) -> Imitated | None:
        """The workload, if it is there and of a kind that can be imitated."""
        known = SCALABLE.get(kind)
        found = self._informers.get(known, name, namespace) if known is not None else None
        if found is None:
            return None
        return Imitated(found.spec.template, max(0, found.spec.replicas), found.metadata.generation)

    def pods(self) -> tuple[Pod, ...]:
        """Everything that room is to be kept for, by buffer."""
        buffers = self._informers.all(CapacityBuffer)
        made: dict[Key, tuple[CapacityBuffer, Imitated | None, tuple[Pod, ...]]] = {}
        for buffer in buffers:
            key, like = key_of(buffer), imitated(buffer, self)
            known = self._made.get(key)
            if known is None or known[0].spec != buffer.spec or known[1] != like:
                known = (buffer, like, virtual_pods(buffer, self) or ())
            made[key] = known
        self._made = made
        return tuple(pod for _, _, pods in made.values() for pod in pods)

    async def tell(self, plan: Plan, pods: Iterable[Pod]) -> None:
        """A plan was made: say at each buffer whether its room is there, and remember which nodes it is on."""
        virtual = {pod.key: pod for pod in pods if is_virtual(pod)}
        counts: dict[str, int] = {}
        here: set[str] = set()
        for node, placed in plan.placements.items():
            found = [key for key in placed if key in virtual]
            here.update(found)
            if found:
                counts[node] = len(found)
        self._cluster.buffer(counts)
        lacking = {_buffer_of(pod) for key, pod in virtual.items() if key not in here}
        present = {_buffer_of(pod) for pod in virtual.values()}
        for buffer in self._informers.all(CapacityBuffer):
            key = key_of(buffer)
            await self._write(buffer, _outcome(buffer, lacks=key in lacking, keeps=key in present))

    async def _write(self, buffer: CapacityBuffer, condition: Condition) -> None:
        status = replace(
            buffer.status,
            conditions=with_condition(
                buffer.status.conditions, condition, buffer.metadata.generation, self._clock.now()
            ),
        )
        if status != buffer.status:
            try:
                await self._client.patch_status(buffer, replace(buffer, status=status), locked=True)
            except (Conflict, NotFound):
                return  # whatever changed it triggers another plan


def _buffer_of(pod: Pod) -> Key:
    return Key(pod.metadata.annotations[BUFFER_NAMESPACE], pod.metadata.annotations[BUFFER_NAME])


def _outcome(buffer: CapacityBuffer, *, lacks: bool, keeps: bool) -> Condition:
    ready = find(buffer.status.conditions, READY)
    if ready is None or ready.status != "True":
        return _said("False", "NotReadyForProvisioning", "it is not known what room is to be kept for")
    if not keeps:
        return _said("False", "BufferEmpty", "there is no room to keep")
    if lacks:
        return _said("False", "RequiresNewCapacity", "some of the room is not there yet")
    return _said("True", "FitsExistingCapacity", "all of the room is there")


def _said(status: Status, reason: str, message: str, kind: str = PROVISIONING) -> Condition:
    return Condition(type=kind, status=status, reason=reason, message=message)


def with_condition(conditions: Conditions, wanted: Condition, generation: int, now: datetime) -> Conditions:
    """The conditions with one of them set; it keeps its time as long as its status does."""
    old = find(conditions, wanted.type)
    since = old.last_transition_time if old is not None and old.status == wanted.status else now
    new = replace(wanted, observed_generation=generation, last_transition_time=since)
    if new == old:
        return conditions
    return tuple(sorted((*(c for c in conditions if c.type != wanted.type), new), key=lambda each: each.type))


class CapacityBuffers(Reconciler):
    """Looks up what a buffer imitates, writes that down, and triggers a plan whenever it changes or can no longer be found."""

    name = "capacitybuffer"

    def __init__(self, shared: Shared, *, batcher: Batcher, room: VirtualPods) -> None:
        self._client, self._informers, self._clock = shared.client, shared.informers, shared.clock
        self._batcher, self._room = batcher, room
        imitated_kinds = (PodTemplate, *SCALABLE.values())
        self.watches = (Watch(CapacityBuffer), *(Watch(kind, self._imitating) for kind in imitated_kinds))

    def _imitating(self, change: Change) -> Iterable[Key]:
        """The buffers that name an object whose making changed."""
        thing: KubeObject = change.latest
        before, after = change.before, change.after
        if before is not None and after is not None and before.metadata.generation == after.metadata.generation:
            return ()
        return [
            key_of(buffer)
            for buffer in self._informers.all(CapacityBuffer)
            if buffer.metadata.namespace == thing.metadata.namespace and _names(buffer, thing)
        ]

    async def reconcile(self, key: Key) -> Result:
        """Resolve one buffer."""
        buffer = self._informers.get(CapacityBuffer, key.name, key.namespace)
        self._batcher.trigger(f"{CapacityBuffer.kind}/{key}")  # also when it is gone: nodes may be empty now
        if buffer is None:
            return DONE
        status = self._resolved(buffer)
        if status != buffer.status:
            await self._client.patch_status(buffer, replace(buffer, status=status), locked=True)
        return DONE

    def _resolved(self, buffer: CapacityBuffer) -> CapacityBufferStatus:
        found = imitated(buffer, self._room)
        said = _resolution(buffer, found)
        conditions = with_condition(buffer.status.conditions, said, buffer.metadata.generation, self._clock.now())
        if found is None:
            return replace(buffer.status, conditions=conditions)
        name = buffer.spec.pod_template_ref
        return CapacityBufferStatus(
            pod_template_ref=PodTemplateReference(name=name.name) if name is not None else None,
            pod_template_generation=found.generation if name is not None else None,
            replicas=replicas(buffer, found.replicas, of_spec(found.template.spec)),
            provisioning_strategy=buffer.spec.provisioning_strategy,
            conditions=conditions,
        )


def _names(buffer: CapacityBuffer, thing: KubeObject) -> bool:
    spec = buffer.spec
    if isinstance(thing, PodTemplate):
        return spec.pod_template_ref is not None and spec.pod_template_ref.name == thing.name
    return spec.scalable_ref is not None and (spec.scalable_ref.kind, spec.scalable_ref.name) == (
        thing.kind,
        thing.name,
    )


def _resolution(buffer: CapacityBuffer, found: Imitated | None) -> Condition:
    spec = buffer.spec
    if found is not None:
        return _said("True", "Resolved", "", READY)
    if spec.pod_template_ref is not None:
        message = f"there is no PodTemplate {spec.pod_template_ref.name}"
        return _said("False", "PodTemplateNotFound", message, READY)
    if spec.scalable_ref is None:
        return _said("False", "ResolutionFailed", "neither podTemplateRef nor scalableRef is set", READY)
    kind, name = spec.scalable_ref.kind, spec.scalable_ref.name
    if kind not in SCALABLE:
        message = f"a {kind} cannot be imitated; use one of {', '.join(sorted(SCALABLE))}"
        return _said("False", "ResolutionFailed", message, READY)
    return _said("False", "ScalableRefNotFound", f"there is no {kind} {name}", READY)
