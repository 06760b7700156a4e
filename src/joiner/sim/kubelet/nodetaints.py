"""The taints of a Node: they follow its conditions and whether it is cordoned; startup taints go when their agent is done."""

from collections.abc import Iterable
from typing import Final

from joiner.clock import Clock
from joiner.kube.client import Client, Key
from joiner.kube.controller import DONE, Reconciler, Result, Watch
from joiner.kube.informer import Informers
from joiner.model.meta import replace
from joiner.model.node import Node, condition
from joiner.model.nodeclaim import NodeClaim
from joiner.model.taints import Taint, is_among, merged, without
from joiner.sim.kubelet.kubelet import ALMOST_S, NOT_READY, NodeTiming

UNREACHABLE: Final = (
    Taint(key="node.kubernetes.io/unreachable", effect="NoSchedule"),
    Taint(key="node.kubernetes.io/unreachable", effect="NoExecute"),
)
UNSCHEDULABLE: Final = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")
_BY_CONDITION: Final = (*NOT_READY, *UNREACHABLE, UNSCHEDULABLE)


class NodeTaints(Reconciler):
    """Taints follow the conditions of a node, and whether it is cordoned; startup taints go when what they wait for is done."""

    name = "node-lifecycle"
    watches = (Watch(Node),)

    def __init__(self, *, client: Client, informers: Informers, clock: Clock, habits: NodeTiming) -> None:
        self._client = client
        self._informers = informers
        self._clock = clock
        self._habits = habits
        informers.of(NodeClaim)
        self._seen: dict[str, dict[str, float]] = {}
        """Node to its startup taints by key, and when each was first seen."""

    async def reconcile(self, key: Key) -> Result:
        """Bring the taints in line."""
        node = self._informers.get(Node, key.name)
        if node is None:
            self._seen.pop(key.name, None)
            return DONE
        kept, result = self._unprepared(node)
        taints = merged(without(kept, _BY_CONDITION), _wanted(node))
        if not _same(taints, node.spec.taints):
            await self._client.patch(node, replace(node, spec=replace(node.spec, taints=taints)), locked=True)
        return result

    def _unprepared(self, node: Node) -> tuple[tuple[Taint, ...], Result]:
        """The taints without those whose time has come, and when the next one's comes."""
        now, waits, kept = self._clock.monotonic(), [], []
        for taint in node.spec.taints:
            after_s = self._prepared_after(node, taint)
            if after_s is None:
                kept.append(taint)
                continue
            first = self._seen.setdefault(node.name, {}).setdefault(taint.key, now)
            left = first + after_s - now
            if left > ALMOST_S:
                kept.append(taint)
                waits.append(left)
        return tuple(kept), Result(min(waits)) if waits else DONE

    def _prepared_after(self, node: Node, taint: Taint) -> float | None:
        if taint.key in self._habits.prepares:
            return self._habits.prepares[taint.key]
        owners = [each.name for each in node.metadata.owner_references if each.kind == NodeClaim.kind]
        claims = [self._informers.get(NodeClaim, name) for name in owners]
        startup = (each for claim in claims if claim is not None for each in claim.spec.startup_taints)
        return self._habits.prepares_s if is_among(taint, startup) else None


def _wanted(node: Node) -> tuple[Taint, ...]:
    ready = condition(node, "Ready")
    cordoned = (UNSCHEDULABLE,) if node.spec.unschedulable else ()
    if ready is None or ready.status == "True":
        return cordoned
    return (*(NOT_READY if ready.status == "False" else UNREACHABLE), *cordoned)


def _same(left: Iterable[Taint], right: Iterable[Taint]) -> bool:
    return sorted((t.key, t.effect, t.value) for t in left) == sorted((t.key, t.effect, t.value) for t in right)
