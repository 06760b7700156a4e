"""The soft taint of consolidation: nodes that should go sooner or later have `joiner.dev/to-be-removed:PreferNoSchedule`.

The kube-scheduler then puts pods elsewhere where it can, so that they need not move again. Planning for pending pods ignores it.
It is written only where it changes, a limited number of times a minute, and taken off every node that is no longer meant, those
that an earlier process tainted among them.
"""

from collections.abc import Collection
from typing import Final

from joiner.controllers.shared import Shared
from joiner.kube.errors import KubeError
from joiner.model import labels, taints
from joiner.model.meta import replace
from joiner.model.node import Node

A_MINUTE: Final = 50
"""So many nodes are written at most in a minute."""


class SoftTaint:
    """Writes the taint."""

    def __init__(self, shared: Shared) -> None:
        self._client, self._informers, self._clock = shared.client, shared.informers, shared.clock
        self._began, self._written = float("-inf"), 0
        shared.informers.of(Node)

    async def write(self, target: Collection[str]) -> bool:
        """Have exactly these nodes tainted; whether that is so now. What cannot be written now is written later."""
        wrong = [node for node in self._informers.all(Node) if _is_wrong(node, node.name in target)]
        for node in sorted(wrong, key=lambda each: each.name):
            if not self._may_write():
                return False
            try:
                await self._turn(node.name, node.name in target)
            except KubeError:
                return False
        return True

    def _may_write(self) -> bool:
        now = self._clock.monotonic()
        if now - self._began >= 60.0:
            self._began, self._written = now, 0
        self._written += 1
        return self._written <= A_MINUTE

    async def _turn(self, name: str, on: bool) -> None:
        node = await self._client.get(Node, name)
        if not _is_wrong(node, on):
            return
        others = taints.without(node.spec.taints, (taints.TO_BE_REMOVED,))
        wanted = (*others, taints.TO_BE_REMOVED) if on else others
        await self._client.patch(node, replace(node, spec=replace(node.spec, taints=wanted)), locked=True)


def _is_wrong(node: Node, wanted: bool) -> bool:
    if node.metadata.deletion_timestamp is not None or not node.metadata.labels.get(labels.NODEPOOL):
        return False
    return taints.is_among(taints.TO_BE_REMOVED, node.spec.taints) != wanted
