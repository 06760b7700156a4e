"""`nodepool.counter`: what the nodes of each pool have together, in its status.

Woken by nodes and claims, it counts at most every five seconds: what a pool has changes in bursts, and nothing is decided by it.
"""

from collections.abc import Iterable
from typing import Final

from joiner.controllers.shared import Shared
from joiner.kube.client import Key
from joiner.kube.controller import DONE, Change, Reconciler, Result, Watch
from joiner.model import labels, resources
from joiner.model.meta import replace
from joiner.model.node import Node
from joiner.model.nodeclaim import NodeClaim
from joiner.model.nodepool import NodePool
from joiner.model.quantity import MILLI, Quantity

EVERY_S: Final = 5.0
_ALWAYS: Final = (
    resources.CPU, resources.MEMORY, resources.PODS, resources.EPHEMERAL_STORAGE, resources.NODES,
)  # fmt: skip
"""Told also where they are zero."""


def _pool(change: Change) -> Iterable[Key]:
    name = change.latest.metadata.labels.get(labels.NODEPOOL, "")
    return (Key("", name),) if name else ()


class Counter(Reconciler):
    """Keeps `status.resources` and `status.nodes` of every pool."""

    name = "nodepool.counter"
    watches = (Watch(NodePool), Watch(NodeClaim, _pool), Watch(Node, _pool))

    def __init__(self, shared: Shared) -> None:
        self._client, self._informers, self._cluster = shared.client, shared.informers, shared.cluster
        self._clock, self._managed = shared.clock, shared.managed
        self._looked: dict[str, float] = {}

    async def reconcile(self, key: Key) -> Result:
        """Count, and write what differs."""
        pool = self._informers.get(NodePool, key.name)
        if pool is None or not self._managed.pool(pool):
            self._looked.pop(key.name, None)
            return DONE
        wait = self._looked.get(pool.name, float("-inf")) + EVERY_S - self._clock.monotonic()
        if wait > 0:
            return Result(wait)
        self._looked[pool.name] = self._clock.monotonic()
        used = self._cluster.usage(pool.name)
        counted = {name: Quantity(used.get(name, 0)) for name in dict.fromkeys((*_ALWAYS, *sorted(used)))}
        status = replace(pool.status, resources=counted, nodes=counted[resources.NODES] // MILLI)
        await self._client.patch_status(pool, replace(pool, status=status))
        return DONE
