"""Writes deletion costs on pods (feature gate PodDeletionCostManagement), so that fewer replicas leave the right nodes empty.

Once a minute, if anything changed. A pod that changed or went meanwhile is left for the next time.
"""

from collections import Counter
from collections.abc import Iterable
from typing import Final

from joiner.controllers.disruption.observation import Observation
from joiner.controllers.shared import Shared
from joiner.disruption.cost import DELETION_COST
from joiner.disruption.deletioncost import FIRST, costs, is_managed
from joiner.kube.client import Key
from joiner.kube.controller import ALONE, Reconciler, Result
from joiner.kube.errors import Conflict, KubeError, NotFound
from joiner.model.meta import replace
from joiner.model.pod import Pod
from joiner.state.snapshot import Snapshot
from joiner.state.statenode import StateNode

PERIOD_S: Final = 60.0
NODES_AT_ONCE: Final = 50
"""The pods of so many nodes are written at most in one pass, beside those of nodes that go."""


class PodDeletionCost(Reconciler):
    """Keeps the deletion costs of pods as their nodes are ranked."""

    name = "pod.deletioncost"
    workers = 1
    keys_at_start = (ALONE,)

    def __init__(self, shared: Shared, *, observation: Observation) -> None:
        self._client, self._cluster, self._clock = shared.client, shared.cluster, shared.clock
        self._metrics, self._observation = shared.metrics, observation
        self._done: Snapshot | None = None
        """The state of the cluster in which nothing was left to write."""
        self._told: set[str] = set()

    async def reconcile(self, key: Key) -> Result:
        """One pass."""
        now = self._clock.now()
        if not self._cluster.synced(now) or self._cluster.snapshot(now) is self._done:
            return Result(PERIOD_S)
        situation = await self._observation.situation()
        wanted = costs(situation)
        nodes = {each.name: each for each in situation.snapshot.nodes if each.name in wanted}
        wrong = [name for name in _order(wanted) if _wrong(nodes[name], wanted[name])]
        urgent = [name for name in wrong if wanted[name] == FIRST]
        chosen = [*urgent, *[name for name in wrong if wanted[name] != FIRST][:NODES_AT_ONCE]]
        self._tell_pending(nodes[name].nodepool for name in wrong)
        failed = 0
        for name in chosen:
            for pod in _wrong(nodes[name], wanted[name]):
                failed += not await self._write(pod, wanted[name])
        self._tell_pending(nodes[name].nodepool for name in wrong if name not in chosen)
        self._done = situation.snapshot if not wrong and not failed else None
        return Result(PERIOD_S)

    def _tell_pending(self, pools: Iterable[str]) -> None:
        counts = Counter(pools)
        gauge = self._metrics.pod_deletion_cost_nodes_with_pending_annotation_writes
        for pool in sorted(self._told | counts.keys()):
            gauge.labels(nodepool=pool).set(counts[pool])
        self._told |= counts.keys()

    async def _write(self, known: Pod, cost: int | None) -> bool:
        """Write one pod; whether that was done, or need not be."""
        result = "updated"
        try:
            pod = await self._client.get(Pod, known.name, known.metadata.namespace)
            if pod.metadata.uid != known.metadata.uid:
                result = "skipped_notfound"
            elif not _is_wrong(pod, cost):
                result = "skipped_unchanged"
            else:
                await self._client.patch(pod, _with(pod, cost), locked=True)
        except NotFound:
            result = "skipped_notfound"
        except Conflict:
            result = "skipped_conflict"
        except KubeError:
            result = "error"
        self._metrics.pod_deletion_cost_pod_annotation_writes_total.labels(result=result).inc()
        return result in ("updated", "skipped_unchanged")


def _order(wanted: dict[str, int | None]) -> list[str]:
    """The lowest cost first, then nodes whose pods should have none."""
    return sorted(wanted, key=lambda name: (wanted[name] is None, wanted[name] or 0, name))


def _wrong(node: StateNode, cost: int | None) -> list[Pod]:
    return [pod for pod in node.pods if is_managed(pod) and _is_wrong(pod, cost)]


def _is_wrong(pod: Pod, cost: int | None) -> bool:
    going = pod.metadata.deletion_timestamp is not None
    return not going and pod.metadata.annotations.get(DELETION_COST) != (None if cost is None else str(cost))


def _with(pod: Pod, cost: int | None) -> Pod:
    others = {key: value for key, value in pod.metadata.annotations.items() if key != DELETION_COST}
    annotations = others if cost is None else {**others, DELETION_COST: str(cost)}
    return replace(pod, metadata=replace(pod.metadata, annotations=annotations))
