"""The parts of a picture, each made anew only when something in it moved."""

from bisect import bisect_left, insort
from collections.abc import Iterable, Mapping
from itertools import chain
from typing import TypeVar

from joiner.model.meta import replace
from joiner.model.pod import Pod
from joiner.model.resources import NODES, Resources
from joiner.scheduling.problem import ExistingNode
from joiner.state.statenode import StateNode, with_hostname

P = TypeVar("P")


def kept(before: P, after: P) -> P:
    """The part as it was, if it did not change."""
    return before if before == after else after


class SnapshotParts:
    """The nodes by name, and what they come to together."""

    def __init__(self) -> None:
        self._by_key: dict[str, StateNode] = {}
        self._order: list[tuple[str, str]] = []
        """Name and key."""
        self._used: dict[str, dict[str, int]] = {}
        self._going: dict[str, None] = {}
        self._unlaunched: dict[str, None] = {}
        self._elsewhere: dict[str, None] = {}
        self._nodes: tuple[StateNode, ...] | None = ()
        self._existing: tuple[ExistingNode, ...] | None = ()
        self._pods: tuple[Pod, ...] | None = ()

    def put(self, key: str, new: StateNode | None) -> None:
        """Take in a node, or that it is gone."""
        old = self._by_key.get(key)
        if old is not None and new is not None and old.existing == new.existing:
            new = replace(new, existing=old.existing)
        self._nodes = None
        if _place(old) is not _place(new):
            self._existing = None
        if old is None or new is None or old.pods != new.pods or old.name != new.name:
            self._pods = None
        if old is not None:
            self._take_out(key, old)
        if new is not None:
            self._put_in(key, new)

    def _take_out(self, key: str, old: StateNode) -> None:
        del self._by_key[key]
        del self._order[bisect_left(self._order, (old.name, key))]
        self._count(old, -1)
        for table in (self._going, self._unlaunched, self._elsewhere):
            table.pop(key, None)

    def _put_in(self, key: str, new: StateNode) -> None:
        self._by_key[key] = new
        insort(self._order, (new.name, key))
        self._count(new, 1)
        if new.deleting:
            self._going[key] = None
        if not new.launched:
            self._unlaunched[key] = None
        if new.node is not None and (new.deleting or new.name != new.node.name):
            self._elsewhere[key] = None

    def _count(self, node: StateNode, sign: int) -> None:
        """What the pools have, as exact sums: what is taken out again leaves nothing behind."""
        if node.deleting or not node.nodepool:
            return
        used = self._used.setdefault(node.nodepool, {})
        for name, amount in node.pool_usage.items():
            total = used.get(name, 0) + sign * amount
            if total:
                used[name] = total
            else:
                del used[name]
        if not used.get(NODES):
            del self._used[node.nodepool]

    def nodes(self) -> tuple[StateNode, ...]:
        """Everything, by name."""
        if self._nodes is None:
            self._nodes = tuple(self._by_key[key] for _, key in self._order)
        return self._nodes

    def existing(self) -> tuple[ExistingNode, ...]:
        """The places for pods, by name."""
        if self._existing is None:
            self._existing = tuple(each.existing for each in self.nodes() if not each.deleting)
        return self._existing

    def bound(self, moving: Iterable[Pod]) -> tuple[Pod, ...]:
        """The pods on nodes, by name of the node; without those that move."""
        if self._pods is None:
            self._pods = tuple(chain.from_iterable(each.pods for each in self.nodes()))
        gone = {id(pod) for pod in moving}
        return tuple(pod for pod in self._pods if id(pod) not in gone) if gone else self._pods

    def bound_nodes(self) -> Mapping[str, Mapping[str, str]]:
        """Labels of the nodes that host pods but are no place for others, by name."""
        nodes = (self._by_key[key].node for key in self._elsewhere)
        found = {node.name: with_hostname(node.metadata.labels, node.name) for node in nodes if node is not None}
        return dict(sorted(found.items()))

    def going(self) -> tuple[StateNode, ...]:
        """The nodes that go, by name."""
        return tuple(sorted((self._by_key[key] for key in self._going), key=lambda each: (each.name, each.key)))

    def unlaunched(self) -> tuple[StateNode, ...]:
        """The claims whose machine is not bought yet, by name."""
        return tuple(sorted((self._by_key[key] for key in self._unlaunched), key=lambda each: each.name))

    def used(self) -> Mapping[str, Resources]:
        """Pool to what its nodes have together, by name."""
        return {pool: self.used_by(pool) for pool in sorted(self._used)}

    def used_by(self, pool: str) -> Resources:
        """What the nodes of one pool have together."""
        return dict(sorted(self._used.get(pool, {}).items()))


def _place(node: StateNode | None) -> ExistingNode | None:
    return None if node is None or node.deleting else node.existing
