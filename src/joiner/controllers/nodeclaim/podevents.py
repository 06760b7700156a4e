"""When a pod last came to a node or left it, written on the claim: consolidation waits until a node has been quiet."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Final

from joiner.controllers.shared import Shared
from joiner.kube.client import Key
from joiner.kube.controller import DONE, Change, Reconciler, Result, Watch
from joiner.kube.errors import NotFound
from joiner.model import claimconditions, podrules
from joiner.model.meta import replace
from joiner.model.node import Node
from joiner.model.nodeclaim import NodeClaim
from joiner.model.pod import Pod, condition

APART: Final = timedelta(seconds=10)
"""A claim is not written more often than this."""


class PodEvents(Reconciler):
    """Notes on a claim when a pod was bound to its node, ended there, or was told to leave. Its keys are nodes.

    After a restart, moments that the pods themselves tell are caught up with.
    """

    name = "nodeclaim.podevents"

    def __init__(self, shared: Shared) -> None:
        self._client, self._informers, self._clock = shared.client, shared.informers, shared.clock
        self._managed = shared.managed
        self._latest: dict[str, datetime] = {}
        shared.informers.of(Node)
        shared.informers.of(NodeClaim)
        self.watches = (Watch(Pod, self._noticed),)

    def _noticed(self, change: Change) -> Iterable[Key]:
        name = change.latest.spec.node_name
        if not name or podrules.is_daemon(change.latest):
            return ()
        now = self._clock.now()
        moment = _moment(change, now)
        if moment is None:
            return ()
        self._latest[name] = max(self._latest.get(name, moment), min(moment, now))
        return (Key("", name),)

    async def reconcile(self, key: Key) -> Result:
        """Write the latest moment, unless it is hardly later than what is written."""
        node, moment = self._informers.get(Node, key.name), self._latest.get(key.name)
        found = self._informers.by(NodeClaim, "provider-id", node.spec.provider_id) if node is not None else ()
        if moment is not None and len(found) == 1 and self._managed.claim(found[0]):
            await self._note(found[0], moment)
        if self._latest.get(key.name) == moment:
            self._latest.pop(key.name, None)
        return DONE

    async def _note(self, claim: NodeClaim, moment: datetime) -> None:
        known = claim.status.last_pod_event_time
        if claimconditions.is_leaving(claim) or (known is not None and abs(moment - known) < APART):
            return
        try:
            status = replace(claim.status, last_pod_event_time=moment)
            await self._client.patch_status(claim, replace(claim, status=status))
        except NotFound:
            return


def _moment(change: Change, now: datetime) -> datetime | None:
    """When the pod came or went, if that is what the change tells."""
    before: Pod | None = change.before
    after: Pod | None = change.after
    if after is None:
        assert before is not None
        return now if podrules.is_active(before) else None
    if podrules.is_terminating(after):
        return _told_to_go(after, now) if before is None or not podrules.is_terminating(before) else None
    if podrules.is_terminal(after):
        return now if before is not None and not podrules.is_terminal(before) else None
    if before is not None and before.spec.node_name:
        return None
    scheduled = condition(after, "PodScheduled")
    bound = scheduled.last_transition_time if scheduled is not None and scheduled.status == "True" else None
    return bound or (now if before is not None else after.status.start_time)


def _told_to_go(pod: Pod, now: datetime) -> datetime:
    """When the pod was deleted: its deletion timestamp lies ahead by its grace."""
    ends = pod.metadata.deletion_timestamp or now
    return ends - timedelta(seconds=pod.metadata.deletion_grace_period_seconds or 0)
