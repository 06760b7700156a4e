"""`nodepool.registrationhealth`: whether machines of a pool join the cluster, as its condition `NodeRegistrationHealthy`.

It decides nothing; it tells users that something is wrong with a pool's images, network or permissions.
"""

from collections.abc import Iterable
from typing import Any, Final

from joiner.controllers.indexes import using_class
from joiner.controllers.nodepool.outcomes import Outcomes
from joiner.controllers.shared import Shared
from joiner.controllers.status import StatusEdit
from joiner.kube.client import Key
from joiner.kube.controller import DONE, Change, Reconciler, Result, Watch
from joiner.model import conditions
from joiner.model.nodepool import NodePool

HEALTHY: Final = "NodeRegistrationHealthy"


class RegistrationHealth(Reconciler):
    """Gathers outcomes from the life cycle of claims, and writes the condition when it turns."""

    name = "nodepool.registrationhealth"

    def __init__(self, shared: Shared) -> None:
        kinds = shared.provider.node_classes()
        self._client, self._informers, self._clock = shared.client, shared.informers, shared.clock
        self._kinds = {kind.kind: kind for kind in kinds}
        self._managed = shared.managed
        self._outcomes: dict[str, Outcomes] = {}
        self._reasons: dict[str, tuple[str, str]] = {}
        self._forgot: dict[str, tuple[int, int | None]] = {}
        self.watches = (Watch(NodePool), *(Watch(kind, self._pools_of) for kind in kinds))

    def _pools_of(self, change: Change) -> Iterable[Key]:
        return using_class(self._informers, NodePool, change)

    def success(self, pool: str, pool_uid: str) -> None:
        """A machine of the pool joined. The UID is the owner's of the claim: a pool made anew starts anew."""
        self._take(pool, pool_uid, joined=True)

    def failure(self, pool: str, pool_uid: str, reason: str, message: str) -> None:
        """A machine of the pool never joined, or was never launched."""
        self._reasons[pool_uid] = (reason, message)
        self._take(pool, pool_uid, joined=False)

    def _take(self, name: str, pool_uid: str, *, joined: bool) -> None:
        pool = self._informers.get(NodePool, name)
        if pool is not None and pool.metadata.uid == pool_uid:
            self._of(pool).add(joined)
            self.wake(Key("", name))

    def _of(self, pool: NodePool) -> Outcomes:
        uid = pool.metadata.uid
        if uid not in self._outcomes:
            said = conditions.find(pool.status.conditions, HEALTHY)
            known = None if said is None or said.status == "Unknown" else said.status == "True"
            self._outcomes[uid] = Outcomes(known)
        return self._outcomes[uid]

    async def reconcile(self, key: Key) -> Result:
        """Write what the outcomes say; forget them when pool or NodeClass change, for the cause may be mended."""
        pool = self._informers.get(NodePool, key.name)
        if pool is None or not self._managed.pool(pool):
            return DONE
        reference = pool.spec.template.spec.node_class_ref
        node_class: Any = self._informers.get(self._kinds[reference.kind], reference.name)
        generation = node_class.metadata.generation if node_class is not None else None
        said = conditions.find(pool.status.conditions, HEALTHY)
        edit = StatusEdit(pool, self._clock.now())
        if (
            said is None
            or said.observed_generation != pool.metadata.generation
            or (generation is not None and pool.status.node_class_observed_generation != generation)
        ):
            self._forget(pool, generation)
            edit.unknown(HEALTHY, reason=conditions.AWAITING_RECONCILIATION)
        healthy = self._of(pool).healthy
        if healthy:
            edit.true(HEALTHY)
        elif healthy is False:
            reason, message = self._reasons.get(pool.metadata.uid, ("RegistrationFailed", "machines do not join"))
            edit.false(HEALTHY, reason=reason, message=message)
        await edit.write(self._client, node_class_observed_generation=generation)
        return DONE

    def _forget(self, pool: NodePool, generation: int | None) -> None:
        """Start anew, once for each change: the cache may be behind our own write of it."""
        change = (pool.metadata.generation, generation)
        if self._forgot.get(pool.metadata.uid) != change:
            self._forgot[pool.metadata.uid] = change
            self._outcomes[pool.metadata.uid] = Outcomes()
