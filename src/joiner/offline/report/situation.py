"""The situation that decisions about nodes are made in, as files tell it."""

from datetime import datetime
from typing import Final

from joiner.disruption.situation import Rules, Situation
from joiner.model.meta import replace
from joiner.model.nodepool import NodePool
from joiner.model.podpolicy import PodDisruptionBudget
from joiner.offline.manifests import Manifests, Unsound
from joiner.offline.report.plan import PosedQuestion
from joiner.state.snapshot import Snapshot
from joiner.state.virtualpods import is_virtual

_NO_NODES: Final = (
    "there is no node of a NodePool; of a cluster that is given as files the Nodes, NodeClaims and Pods must be there, as by the"
    " command that joiner dump prints"
)


def snapshot_of(posed: PosedQuestion) -> Snapshot:
    """What is there. Raises Unsound where there is no node to look at."""
    seen = posed.question.snapshot
    if seen is None or not any(each.claim is not None and each.nodepool for each in seen.nodes):
        raise Unsound(_NO_NODES)
    return seen


def situation(manifests: Manifests, posed: PosedQuestion, snapshot: Snapshot, now: datetime, rules: Rules) -> Situation:
    """The nodes of the snapshot with the pods that wait, and what the files say about pools and budgets."""
    question, budgets = posed.question.problem, dict[str, tuple[PodDisruptionBudget, ...]]()
    for each in manifests.all(PodDisruptionBudget):
        budgets[each.metadata.namespace] = (*budgets.get(each.metadata.namespace, ()), each)
    evicted = {pod.key for pod in snapshot.evicted}
    queue = [pod for pod in question.pods if pod.key not in evicted]
    return Situation(
        snapshot=replace(
            snapshot,
            waiting=tuple(pod for pod in queue if not is_virtual(pod)),
            namespaces=question.namespaces,
            storage=question.storage,
        ),
        now=now,
        pools={pool.name: pool for pool in manifests.all(NodePool)},
        options=question.pools,
        catalogs=posed.catalogs,
        pod_budgets=budgets,
        virtual=tuple(filter(is_virtual, queue)),
        storage=question.storage,
        rules=rules,
    )
