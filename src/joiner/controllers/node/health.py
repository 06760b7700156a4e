"""Node repair as older releases did it: a broken node is deleted at once, by force, and whatever it held finds other places."""

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from joiner.cloud.repair import REPLACE, RepairPolicy
from joiner.controllers.deadlines import hurried
from joiner.controllers.shared import Shared
from joiner.controllers.waits import Waits, in_time
from joiner.disruption import repair
from joiner.kube.client import Key
from joiner.kube.controller import DONE, Reconciler, Result, Watch
from joiner.kube.errors import NotFound
from joiner.model import claimconditions, labels
from joiner.model.duration import Duration
from joiner.model.meta import replace
from joiner.model.node import Node
from joiner.model.nodeclaim import NodeClaim
from joiner.model.pod import Pod
from joiner.observe.claims import count_disrupted, count_unhealthy

BLOCKED_S: Final = 300.0
"""How soon it is looked again while too many nodes are broken."""


class Health(Reconciler):
    """Deletes the claims of nodes that have been broken for too long. Only policies that replace count."""

    name = "node.health"
    watches = (Watch(Node),)

    def __init__(self, shared: Shared, *, policies: Sequence[RepairPolicy]) -> None:
        self._client, self._informers, self._clock = shared.client, shared.informers, shared.clock
        self._recorder, self._metrics, self._managed = shared.recorder, shared.metrics, shared.managed
        self._waits = Waits(shared.clock)
        shared.informers.of(Pod)
        # Here an empty regex means any reason, not a fallback.
        self._policies = tuple(
            each if each.reason_regex else replace(each, reason_regex=".*")
            for each in policies
            if each.action == REPLACE
        )

    async def reconcile(self, key: Key) -> Result:
        """Delete the claim of a broken node, or come back when its time has come."""
        node = self._informers.get(Node, key.name)
        if node is None or not repair.is_broken(node, self._policies):
            return DONE
        claims = self._informers.by(NodeClaim, "provider-id", node.spec.provider_id) if node.spec.provider_id else ()
        if len(claims) != 1 or not self._managed.claim(claims[0]) or claimconditions.is_leaving(claims[0]):
            return DONE
        now = self._clock.now()
        found = in_time(self._waits, node, repair.ailments(node, None, self._policies))
        first = min(found, key=lambda each: (each.since, each.condition.type), default=None)
        if first is None:
            return DONE
        if now < first.since:
            return Result((first.since - now).total_seconds())
        if self._is_frozen(node, claims[0]):
            return Result(BLOCKED_S)
        await self._remove(claims[0], first.condition.type, now)
        return DONE

    def _is_frozen(self, node: Node, claim: NodeClaim) -> bool:
        pool = claim.metadata.labels.get(labels.NODEPOOL, "")
        alike = [each for each in self._informers.all(Node) if pool in ("", each.metadata.labels.get(labels.NODEPOOL))]
        broken = sum(repair.is_broken(each, self._policies) for each in alike)
        if not repair.too_many(broken, len(alike)):
            return False
        where = f"of NodePool {pool}" if pool else "of the cluster"
        message = f"{broken} of {len(alike)} nodes {where} are broken, more than {repair.MOST_BROKEN_PERCENT}%"
        for thing in (node, claim):
            self._recorder.publish(thing, "NodeRepairBlocked", f"{message}: none is repaired")
        return True

    async def _remove(self, claim: NodeClaim, condition: str, now: datetime) -> None:
        """A moment that is over already means: by force."""
        try:
            claim = await hurried(self._client, claim, Duration(0), now)
            await self._client.delete(NodeClaim, claim.name, uid=claim.metadata.uid)
        except NotFound:
            return
        pods = self._informers.by(Pod, "node", claim.status.node_name)
        count_disrupted(self._metrics, claim, repair.REASON.lower(), pods=pods)
        count_unhealthy(self._metrics, claim, condition, Duration(0))
