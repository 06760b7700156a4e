"""NodePools: whether they can be used.

| Controller | Woken by | Guarantees |
| --- | --- | --- |
| `nodepool.readiness` | the pool, its NodeClass | `NodeClassReady` says what the NodeClass says of itself |
| `nodepool.validation` | the pool | `ValidationSucceeded` lists everything that is wrong with it |
| `nodepool.hash` | the pool | pool and claims carry the template's hash by today's rules; what an edit replaces is told first |
"""

from collections.abc import Iterable
from typing import Any

from joiner.admission.runtime import nodepool_problems
from joiner.controllers.indexes import using_class
from joiner.controllers.shared import Shared
from joiner.controllers.status import StatusEdit
from joiner.disruption.pooldrift import pool_drift, told
from joiner.kube.client import Key
from joiner.kube.controller import DONE, Change, Reconciler, Result, Watch
from joiner.model import conditions, labels
from joiner.model.claimconditions import DRIFTED, LAUNCHED, holds, is_leaving
from joiner.model.meta import replace
from joiner.model.nodeclaim import NodeClaim
from joiner.model.nodeclass import NodeClassReference
from joiner.model.nodepool import NodePool
from joiner.model.nodepoolhash import HASH_VERSION, nodepool_hash

NODE_CLASS_READY = "NodeClassReady"
VALIDATION_SUCCEEDED = "ValidationSucceeded"


class Readiness(Reconciler):
    """Tells on every pool whether its NodeClass can be launched from."""

    name = "nodepool.readiness"

    def __init__(self, shared: Shared) -> None:
        kinds = shared.provider.node_classes()
        self._client, self._informers, self._clock = shared.client, shared.informers, shared.clock
        self._kinds = {kind.kind: kind for kind in kinds}
        self._managed = shared.managed
        self.watches = (Watch(NodePool), *(Watch(kind, self._pools_of) for kind in kinds))

    def _pools_of(self, change: Change) -> Iterable[Key]:
        return using_class(self._informers, NodePool, change)

    async def reconcile(self, key: Key) -> Result:
        """Repeat on the pool what its NodeClass says."""
        pool = self._informers.get(NodePool, key.name)
        if pool is None or not self._managed.pool(pool):
            return DONE
        edit = StatusEdit(pool, self._clock.now())
        reference = pool.spec.template.spec.node_class_ref
        node_class: Any = self._informers.get(self._kinds[reference.kind], reference.name)
        if node_class is None:
            edit.false(
                NODE_CLASS_READY, reason="NodeClassNotFound", message=f"{reference.kind} {reference.name} is missing"
            )
        elif node_class.metadata.deletion_timestamp is not None:
            edit.false(
                NODE_CLASS_READY, reason="NodeClassTerminating", message=f"{reference.kind} {reference.name} goes"
            )
        else:
            self._repeat(edit, conditions.find(node_class.status.conditions, conditions.READY), reference)
        await edit.write(self._client)
        return DONE

    def _repeat(
        self, edit: StatusEdit[NodePool], said: conditions.Condition | None, reference: NodeClassReference
    ) -> None:
        if said is None or said.status == "Unknown":
            message = f"{reference.kind} {reference.name} does not say yet whether it is ready"
            edit.false(NODE_CLASS_READY, reason="NodeClassReadinessUnknown", message=message)
        elif said.status == "False":
            edit.false(NODE_CLASS_READY, reason=said.reason, message=said.message)
        else:
            edit.true(NODE_CLASS_READY)


class Validation(Reconciler):
    """Tells on every pool what is wrong with it that its schema could not know."""

    name = "nodepool.validation"
    watches = (Watch(NodePool),)

    def __init__(self, shared: Shared) -> None:
        self._client, self._informers, self._clock = shared.client, shared.informers, shared.clock
        self._vocabulary, self._managed = shared.vocabulary, shared.managed

    async def reconcile(self, key: Key) -> Result:
        """Judge the pool."""
        pool = self._informers.get(NodePool, key.name)
        if pool is None or not self._managed.pool(pool):
            return DONE
        edit = StatusEdit(pool, self._clock.now())
        wrong = [str(each) for each in nodepool_problems(pool, self._vocabulary) if each.is_error]
        if wrong:
            edit.false(VALIDATION_SUCCEEDED, reason="NodePoolValidationFailed", message="; ".join(wrong)[:32_768])
        else:
            edit.true(VALIDATION_SUCCEEDED)
        await edit.write(self._client)
        return DONE


class Hash(Reconciler):
    """Keeps the hash of a pool's template on the pool.

    When the rules of hashing change with a release, claims first take over the new hash, so that none drifts by our doing.
    """

    name = "nodepool.hash"
    watches = (Watch(NodePool),)

    def __init__(self, shared: Shared) -> None:
        self._client, self._informers, self._managed = shared.client, shared.informers, shared.managed
        self._vocabulary, self._recorder, self._clock = shared.vocabulary, shared.recorder, shared.clock
        self._seen: dict[str, int] = {}
        """The UID of a pool to the generation of it that was looked at last."""

    async def reconcile(self, key: Key) -> Result:
        """Write hash and version where they differ."""
        pool = self._informers.get(NodePool, key.name)
        if pool is None or not self._managed.pool(pool):
            return DONE
        self._tell_of_drift(pool)
        known = pool.metadata.annotations
        wanted = {labels.NODEPOOL_HASH: nodepool_hash(pool), labels.NODEPOOL_HASH_VERSION: HASH_VERSION}
        if known.get(labels.NODEPOOL_HASH_VERSION) != HASH_VERSION:
            for claim in self._informers.by(NodeClaim, "nodepool", pool.name):
                await self._take_over(claim, wanted)
        if any(known.get(name) != value for name, value in wanted.items()):
            await self._client.patch(pool, _annotated(pool, wanted))
        return DONE

    def _tell_of_drift(self, pool: NodePool) -> None:
        """Tell how many nodes an edit will have replaced, before the first of them is."""
        own, generation = pool.metadata.uid, pool.metadata.generation
        edited = self._seen.get(own, generation) != generation
        self._seen[own] = generation
        claims = {each.name: each for each in self._informers.by(NodeClaim, "nodepool", pool.name) if _stays(each)}
        drifted = pool_drift(pool, claims.values(), self._vocabulary)
        if drifted and (edited or not all(holds(claims[name], DRIFTED) for name in drifted)):
            message = told(drifted, pool, len(claims), self._clock.now())
            self._recorder.publish(pool, "DriftExpected", message, dedupe=(str(generation),))

    async def _take_over(self, claim: NodeClaim, wanted: dict[str, str]) -> None:
        if claim.metadata.annotations.get(labels.NODEPOOL_HASH_VERSION) == HASH_VERSION:
            return
        if conditions.is_true(claim.status.conditions, "Drifted"):  # why it drifted stays true by the old rules
            wanted = {labels.NODEPOOL_HASH_VERSION: HASH_VERSION}
        await self._client.patch(claim, _annotated(claim, wanted))


def _stays(claim: NodeClaim) -> bool:
    return holds(claim, LAUNCHED) and not is_leaving(claim)


def _annotated(thing: Any, added: dict[str, str]) -> Any:
    metadata = thing.metadata
    return replace(thing, metadata=replace(metadata, annotations={**metadata.annotations, **added}))
