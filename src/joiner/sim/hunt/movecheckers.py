"""Checkers for nodes that the controllers remove of their own accord: within budgets, for less money, and never in circles.

Nothing here is shared with the code that is watched: budgets, prices and chains of moves are reckoned anew, from what is written.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from typing import Any, Final

from joiner.cloud.sources.reservation import DEFAULT_LABELS
from joiner.model import labels
from joiner.model.duration import NEVER
from joiner.model.node import Node
from joiner.model.nodeclaim import NodeClaim
from joiner.model.nodeoverlay import NodeOverlay
from joiner.model.nodepool import NodePool
from joiner.model.pod import Pod
from joiner.sim.apiserver.server import Write
from joiner.sim.world import JOINER, World

VOLUNTARY: Final = frozenset({"Empty", "Drifted", "Underutilized"})
CONSOLIDATION: Final = "Underutilized"
DO_NOT_DISRUPT: Final = "karpenter.sh/do-not-disrupt"
REPLACES: Final = "joiner.dev/replaces"
TAINTS: Final = frozenset({"karpenter.sh/disrupted", "joiner.dev/to-be-removed"})
RULES: Final = ("disruption budget", "do-not-disrupt node", "replacement first", "price", "chain", "leftover taint")
RECENT: Final = timedelta(minutes=2)
"""A node that has gone within that time may still have counted when the next one was chosen."""

Fail = Callable[[str, str], None]


class _Going:
    """A node that the controllers began to remove."""

    def __init__(self, claim: NodeClaim, reason: str, life: int, at: float) -> None:
        self.claim, self.reason, self.life, self.at = claim, reason, life, at


class MoveChecks:
    """Watches every write about nodes that go."""

    def __init__(self, world: World, fail: Fail, counts: Counter[str]) -> None:
        self._world, self._fail, self._counts = world, fail, counts
        self._going: dict[str, _Going] = {}
        """UID of a claim to when and why it was marked."""
        self._left: dict[str, list[tuple[datetime, str]]] = {}
        """Pool to the claims that went, and when."""
        self._evicted: dict[str, list[tuple[float, str]]] = {}
        """UID of a pod's owner to when which move evicted a pod of it: by the claim that went."""
        self._priced: set[str] = set()
        self._deleted_nodes: set[str] = set()
        """UIDs of Nodes that others than the controllers deleted."""

    def written(self, write: Write) -> None:
        """Look at a write."""
        thing: Any = write.after if write.after is not None else write.before
        if isinstance(thing, NodeClaim):
            self._claim(write)
        elif isinstance(thing, Pod) and write.actor == JOINER and write.before is not None:
            self._pod(write)
        elif isinstance(thing, Node) and write.actor != JOINER and _is_deleted_by(write):
            self._deleted_nodes.add(thing.metadata.uid)

    # -- nodes ----------------------------------------------------------------------------------------------------

    def _claim(self, write: Write) -> None:
        before, after = write.before, write.after
        if before is None:
            return
        if after is None:
            pool = before.metadata.labels.get(labels.NODEPOOL, "")
            self._left.setdefault(pool, []).append((self._world.clock.now(), before.metadata.uid))
            self._going.pop(before.metadata.uid, None)
            return
        reason = _reason(after)
        if write.actor == JOINER and reason and reason != _reason(before):
            self._marked(after, reason)
        if not reason and after.metadata.deletion_timestamp is None:
            self._going.pop(after.metadata.uid, None)
        began = after.metadata.deletion_timestamp is not None and before.metadata.deletion_timestamp is None
        known = self._going.get(after.metadata.uid)
        if write.actor == JOINER and began and known is not None and reason == known.reason:
            self._deleted(after)

    def _marked(self, claim: NodeClaim, reason: str) -> None:
        uid = claim.metadata.uid
        self._going[uid] = _Going(claim, reason, self._world.restarts, self._world.clock.monotonic())
        if reason not in VOLUNTARY:
            return
        self._within_budget(claim, reason)
        self._counts["do-not-disrupt node"] += 1
        node = self._world.server.find(Node, claim.status.node_name)
        if node is not None and node.metadata.annotations.get(DO_NOT_DISRUPT) == "true":
            self._fail("do-not-disrupt node", f"node {node.name} is to go for reason {reason}")

    def _within_budget(self, claim: NodeClaim, reason: str) -> None:
        """Never more nodes of a pool on their way out than its budgets allow for the reason of the last one."""
        pool = self._world.server.find(NodePool, claim.metadata.labels.get(labels.NODEPOOL, ""))
        if pool is None:
            return
        self._counts["disruption budget"] += 1
        mine = [
            each
            for each in self._world.server.objects(NodeClaim)
            if each.metadata.labels.get(labels.NODEPOOL) == pool.name and _initialized(each) and not _ends(each)
        ]
        away = sum(self._is_away(each) for each in mine)
        now = self._world.clock.now()
        recent = sum(abs(now - at) < RECENT for at, _ in self._left.get(pool.name, ()))
        allowed = _allowed(pool, reason, len(mine) + recent)
        if away > allowed:
            self._fail("disruption budget", f"{away} nodes of pool {pool.name} go, {allowed} may for reason {reason}")

    def _is_away(self, claim: NodeClaim) -> bool:
        """Whether this life of the controllers means it to go: what an earlier one had marked may stay after all."""
        known = self._going.get(claim.metadata.uid)
        return known is not None and known.reason in VOLUNTARY and known.life == self._world.restarts

    def _deleted(self, claim: NodeClaim) -> None:
        """What takes its place is complete before a node is removed, and together they are cheaper."""
        known = self._going[claim.metadata.uid]
        if self._goes_anyway(claim):
            return
        claims = self._world.server.objects(NodeClaim)
        new = [each for each in claims if claim.name in _replaced(each) and _is_since(each, known, self._world)]
        self._counts["replacement first"] += bool(new)
        for each in new:
            if not _initialized(each):
                self._fail("replacement first", f"claim {claim.name} goes, {each.name} is not complete")
        if known.reason != CONSOLIDATION or claim.metadata.uid in self._priced:
            return
        names = {name for each in new for name in _replaced(each)} | {claim.name}
        gone = [each for each in claims if each.name in names]
        self._priced.update(each.metadata.uid for each in gone)
        before, after = self._price(gone), self._price(new)
        self._counts["thousandths of a dollar an hour saved by consolidation"] += round(1000 * (before - after))
        lost = any(not self._runs(each) for each in (*gone, *new)) or any(self._is_over(each) for each in new)
        if not lost and not self._world.server.objects(NodeOverlay) and not self._world.cloud.market.repriced:
            self._counts["price"] += 1
            if after > before + 1e-9:
                self._fail(
                    "price", f"a move from {sorted(names)} raised the price from {before:.4f} to {after:.4f} $/h"
                )

    def _goes_anyway(self, claim: NodeClaim) -> bool:
        """Whether it would go just the same: it is too old, its machine is lost or asked back, or its Node was deleted."""
        node = self._world.server.find(Node, claim.status.node_name)
        if node is not None and node.metadata.uid in self._deleted_nodes:
            return True
        machine = self._world.cloud.machines.of_claim(claim.metadata.uid)
        if machine is None or not machine.alive or machine.notice_at is not None:
            return True
        born, most = claim.metadata.creation_timestamp, claim.spec.expire_after
        return born is not None and most != NEVER and self._world.clock.now() - born >= most.timedelta

    def _runs(self, claim: NodeClaim) -> bool:
        machine = self._world.cloud.machines.of_claim(claim.metadata.uid)
        return machine is not None and machine.alive

    def _is_over(self, claim: NodeClaim) -> bool:
        """Whether the reservation that it was bought out of has ended meanwhile."""
        wanted = (each for each in claim.spec.requirements if each.key == DEFAULT_LABELS.id)
        return any(self._world.cloud.over(name) for each in wanted for name in each.values)

    def _price(self, claims: list[NodeClaim]) -> float:
        """Dollars an hour, at the prices of the purchases; what is reserved is paid for anyway."""
        return self._world.cloud.ledger.rate(self._world.clock.now(), {each.metadata.uid for each in claims})

    # -- pods -----------------------------------------------------------------------------------------------------

    def _pod(self, write: Write) -> None:
        pod = write.before
        going = write.after is None or write.after.metadata.deletion_timestamp is not None
        if not going or pod.metadata.deletion_timestamp is not None or not pod.metadata.owner_references:
            return
        owner = pod.metadata.owner_references[0]
        claim = next((each for each in self._going.values() if each.claim.status.node_name == pod.spec.node_name), None)
        if claim is None or claim.reason != CONSOLIDATION or owner.kind == "DaemonSet":
            return
        self._counts["pods evicted by consolidation"] += 1
        self._counts["chain"] += 1
        # A pod that has come in the place of one that was evicted must not be evicted by a move decided meanwhile.
        for at, other in self._evicted.get(owner.uid, ()):
            under_way = self._going.get(other)
            if other == claim.claim.metadata.uid or under_way is None or under_way.life != claim.life:
                continue
            if self._born(pod) >= at and claim.at > at:
                self._fail(
                    "chain", f"pod {pod.name} is evicted again while {under_way.claim.name}, which it left, still goes"
                )
        self._evicted.setdefault(owner.uid, []).append((self._world.clock.monotonic(), claim.claim.metadata.uid))

    def _born(self, pod: Pod) -> float:
        """When the pod was made, by the clock that is never set."""
        made = pod.metadata.creation_timestamp
        now, clock = self._world.clock.now(), self._world.clock.monotonic()
        return clock - (now - made).total_seconds() if made is not None else -math.inf

    # -- the end --------------------------------------------------------------------------------------------------

    def left_over(self) -> Iterator[str]:
        """No node that stays has a taint that says it will go."""
        for node in self._world.server.objects(Node):
            self._counts["leftover taint"] += 1
            found = sorted(each.key for each in node.spec.taints if each.key in TAINTS)
            if found and node.metadata.deletion_timestamp is None:
                yield f"leftover taint: node {node.name} stays and has {', '.join(found)}"


def _is_deleted_by(write: Write) -> bool:
    before, after = write.before, write.after
    was_there = before is not None and before.metadata.deletion_timestamp is None
    return was_there and (after is None or after.metadata.deletion_timestamp is not None)


def _reason(claim: NodeClaim) -> str:
    told = (each for each in claim.status.conditions if each.type == "DisruptionReason" and each.status == "True")
    return next((each.reason for each in told), "")


def _ends(claim: NodeClaim) -> bool:
    """Whether its machine is on its way out: such a node counts neither way."""
    return any(each.type == "InstanceTerminating" and each.status == "True" for each in claim.status.conditions)


def _initialized(claim: NodeClaim) -> bool:
    return any(each.type == "Initialized" and each.status == "True" for each in claim.status.conditions)


def _replaced(claim: NodeClaim) -> frozenset[str]:
    return frozenset(filter(None, claim.metadata.annotations.get(REPLACES, "").split(",")))


def _is_since(claim: NodeClaim, known: _Going, world: World) -> bool:
    """Whether the claim was made for this attempt to remove the node, and not for an earlier one that failed."""
    made = claim.metadata.creation_timestamp
    if made is None:
        return False
    return world.clock.monotonic() - (world.clock.now() - made).total_seconds() >= known.at - 1.0


def _allowed(pool: NodePool, reason: str, total: int) -> int:
    """What the strictest budget for a reason allows; those of hunts have no schedule."""
    allowed = total
    for budget in pool.spec.disruption.budgets:
        if not budget.reasons or reason in budget.reasons:
            text = budget.nodes
            allowed = min(allowed, math.ceil(total * int(text[:-1]) / 100) if text.endswith("%") else int(text))
    return allowed
