"""Pods that leave because of their Node: evicted by a NoExecute taint, or removed when their Node is gone."""

from collections.abc import Iterable, Mapping
from typing import Final

from joiner.clock import Clock
from joiner.kube.client import Client, Key, key_of
from joiner.kube.controller import DONE, Change, Reconciler, Result, Watch
from joiner.kube.errors import NotFound
from joiner.kube.informer import Informers
from joiner.model.node import Node
from joiner.model.pod import Pod
from joiner.model.taints import Taint, Toleration
from joiner.sim.kubelet.kubelet import ALMOST_S, NOT_READY
from joiner.sim.kubelet.nodetaints import UNREACHABLE

_ENDURED_S: Final = 300
"""How long pods endure a node that is not ready or not to be reached, if they say nothing about it."""
_ENDURED: Final = tuple(
    Toleration(key=taint.key, operator="Exists", effect=taint.effect, toleration_seconds=_ENDURED_S)
    for taint in (NOT_READY[1], UNREACHABLE[1])
)


class TaintEviction(Reconciler):
    """Pods that do not tolerate a NoExecute taint of their node are deleted, at once or when their patience ends."""

    name = "taint-eviction"

    def __init__(self, *, client: Client, informers: Informers, clock: Clock) -> None:
        self._client = client
        self._informers = informers
        self._clock = clock
        self._since: dict[str, dict[Taint, float]] = {}
        """Node to its taints, and when each was first seen."""
        self.watches = (Watch(Pod, self._on_tainted), Watch(Node, self._concerned))

    def _on_tainted(self, change: Change) -> Iterable[Key]:
        pod = change.after
        node = self._informers.get(Node, pod.spec.node_name) if pod is not None and pod.spec.node_name else None
        return (key_of(pod),) if node is not None and _driving(node) else ()

    def _concerned(self, change: Change) -> Iterable[Key]:
        before = _driving(change.before) if change.before is not None else ()
        after = _driving(change.after) if change.after is not None else ()
        if before == after:
            return ()
        if not after:
            self._since.pop(change.latest.name, None)
        return [key_of(pod) for pod in self._informers.by(Pod, "node", change.latest.name)]

    async def reconcile(self, key: Key) -> Result:
        """Delete the pod if it must go."""
        pod = self._informers.get(Pod, key.name, key.namespace)
        node = self._informers.get(Node, pod.spec.node_name) if pod is not None else None
        if pod is None or node is None or pod.metadata.deletion_timestamp is not None:
            return DONE
        now = self._clock.monotonic()
        left = self._patience(pod, self._taints(node, now), now)
        if left is None or left > ALMOST_S:
            return Result(left)
        await self._client.delete(Pod, key.name, key.namespace, uid=pod.metadata.uid)
        return DONE

    def _taints(self, node: Node, now: float) -> Mapping[Taint, float]:
        known = self._since.get(node.name, {})
        found = {taint: known.get(taint, now) for taint in _driving(node)}
        if found:
            self._since[node.name] = found
        return found

    def _patience(self, pod: Pod, taints: Mapping[Taint, float], now: float) -> float | None:
        """Seconds until the pod must go; nothing if it may stay."""
        waits: list[float] = []
        for taint, since in taints.items():
            endures = [each for each in pod.spec.tolerations if each.tolerates(taint)]
            endures = endures or [each for each in _ENDURED if each.tolerates(taint)]
            if not endures:
                return 0.0
            bounded = [each.toleration_seconds for each in endures if each.toleration_seconds is not None]
            if bounded:
                waits.append(since + min(bounded) - now)
        return min(waits) if waits else None


def _driving(node: Node) -> tuple[Taint, ...]:
    return tuple(taint for taint in node.spec.taints if taint.effect == "NoExecute")


class PodGarbage(Reconciler):
    """Pods whose node is gone are removed by force: no kubelet is there to end them."""

    name = "pod-garbage"

    def __init__(self, *, client: Client, informers: Informers) -> None:
        self._client = client
        self._informers = informers
        self.watches = (Watch(Pod, self._bound), Watch(Node, self._left_behind))

    def _bound(self, change: Change) -> Iterable[Key]:
        pod = change.after
        if pod is None or not pod.spec.node_name or self._informers.get(Node, pod.spec.node_name) is not None:
            return ()
        return (key_of(pod),)

    def _left_behind(self, change: Change) -> Iterable[Key]:
        if change.after is not None:
            return ()
        return [key_of(pod) for pod in self._informers.by(Pod, "node", change.before.name)]

    async def reconcile(self, key: Key) -> Result:
        """Remove the pod, if its node is really gone: a cache may not have heard of a new one."""
        pod = self._informers.get(Pod, key.name, key.namespace)
        if pod is None or not pod.spec.node_name:
            return DONE
        try:
            await self._client.get(Node, pod.spec.node_name)
        except NotFound:
            await self._client.delete(Pod, key.name, key.namespace, uid=pod.metadata.uid, grace_period_s=0)
        return DONE
