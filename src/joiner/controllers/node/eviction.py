"""The eviction queue: pods that have to leave their node, asked one by one until they go.

It holds nothing that matters: the controllers that drain nodes ask again after a restart.
"""

from datetime import datetime
from typing import Final

from joiner.controllers.shared import Shared
from joiner.disruption import drain
from joiner.kube.client import Key, key_of
from joiner.kube.controller import DONE, Backoff, Reconciler, Result
from joiner.kube.errors import Conflict, EvictionBlocked, NotFound
from joiner.model import podrules
from joiner.model.meta import Value, replace
from joiner.model.node import Node
from joiner.model.pod import Pod

SETTLING_S: Final = 5.0
"""So long a pod that was just told to go is not told again, unless the cache has heard something of it meanwhile."""


class Order(Value):
    """Which pod has to leave which node, why, and by when."""

    uid: str
    node: str
    reason: str
    deadline: datetime | None
    refused: int = 0
    """How often it was asked in vain."""


class EvictionQueue(Reconciler):
    """Evicts pods with patience, and deletes them when there is no time left for it. It works only when it is asked."""

    name = "eviction-queue"
    workers = 20
    backoff = Backoff(0.1, 10.0)

    def __init__(self, shared: Shared) -> None:
        self._client, self._informers, self._clock = shared.client, shared.informers, shared.clock
        self._recorder, self._metrics = shared.recorder, shared.metrics
        self._orders: dict[Key, Order] = {}
        self._settling: dict[str, tuple[str, float]] = {}
        shared.informers.of(Pod)
        shared.informers.of(Node)

    def ask(self, pod: Pod, *, node: str, reason: str, deadline: datetime | None) -> None:
        """Have the pod leave its node. Asked again it is not hurried unless its time is over; the earliest deadline holds."""
        key, uid = key_of(pod), pod.metadata.uid
        version, until = self._settling.get(uid, ("", 0.0))
        if version == pod.metadata.resource_version and self._clock.monotonic() < until:
            return
        known = self._orders.get(key)
        if known is not None and known.uid != uid:
            known = None
        if known is not None and known.deadline is not None:
            deadline = known.deadline if deadline is None else min(deadline, known.deadline)
        refused = 0 if known is None else known.refused
        self._orders[key] = Order(uid=uid, node=node, reason=reason, deadline=deadline, refused=refused)
        if known is None or drain.must_be_forced(pod, deadline, self._clock.now()):
            self.wake(key)

    def drop(self, node: str) -> None:
        """Ask the pods of a node no longer."""
        self._orders = {key: order for key, order in self._orders.items() if order.node != node}

    async def reconcile(self, key: Key) -> Result:
        """Do what can be done about the pod now; come back only if it was refused."""
        order = self._orders.get(key)
        if order is None:
            return DONE
        pod = self._informers.get(Pod, key.name, key.namespace)
        node = self._informers.get(Node, order.node)
        now = self._clock.now()
        if pod is not None and node is not None and pod.metadata.uid == order.uid:
            if order.deadline is not None and drain.must_be_forced(pod, order.deadline, now):
                await self._delete(pod, order, order.deadline, now)
            elif podrules.is_evictable(pod, now) and not await self._evict(pod, node, order):
                self._orders[key] = replace(order, refused=order.refused + 1)
                return Result(self.backoff.after(order.refused + 1))
        # A pod that is not evictable yet is asked again by the controller that drains the node: it knows when it will be.
        if key in self._orders and self._orders[key].uid == order.uid:
            del self._orders[key]
        return DONE

    async def _delete(self, pod: Pod, order: Order, deadline: datetime, now: datetime) -> None:
        grace = drain.forced_grace_s(deadline, now)
        try:
            await self._client.delete(Pod, pod.name, pod.metadata.namespace, uid=pod.metadata.uid, grace_period_s=grace)
        except NotFound:
            return
        message = f"deleted with {grace} s of grace: its node must be gone by {deadline:%Y-%m-%d %H:%M:%S} UTC"
        self._recorder.publish(pod, "Disrupted", message)
        self._metrics.pods_drained_total.labels(reason=order.reason).inc()
        self._settle(pod)

    async def _evict(self, pod: Pod, node: Node, order: Order) -> bool:
        """Whether the pod goes, or is gone. After a conflict that is unknown: the cache will tell if it is another pod by now."""
        code = "200"
        try:
            await self._client.evict(pod.metadata.namespace, pod.name, uid=pod.metadata.uid)
        except NotFound:
            code = "404"
        except Conflict:
            code = "409"
        except EvictionBlocked as error:
            code = "429"
            message = f"pod {key_of(pod)} cannot be evicted: {error}"
            # The controller that drains the node uses the same reason: that must not drown which pod is held, and by what.
            self._recorder.publish(node, "FailedDraining", message, dedupe=(message,))
        self._metrics.pods_eviction_requests_total.labels(code=code).inc()
        if code == "200":
            self._metrics.pods_drained_total.labels(reason=order.reason).inc()
            self._recorder.publish(pod, "Evicted", f"evicted from node {node.name}: {order.reason}")
            self._settle(pod)
        return code in ("200", "404")

    def _settle(self, pod: Pod) -> None:
        now = self._clock.monotonic()
        if len(self._settling) >= 1_000:
            self._settling = {uid: told for uid, told in self._settling.items() if told[1] > now}
        self._settling[pod.metadata.uid] = (pod.metadata.resource_version, now + SETTLING_S)
