"""Disruption budgets of the pretend server: their status is kept current, and evictions ask them.

For every budget the pods it covers are remembered, so that a change of one pod costs the budgets of its namespace and nothing
else.
"""

import asyncio
import math
from typing import TYPE_CHECKING, Final, NamedTuple

from joiner.kube.client import Key, key_of
from joiner.kube.errors import EvictionBlocked
from joiner.model import pod as pods
from joiner.model import selector
from joiner.model.meta import KubeObject, OwnerReference, controller_of, replace
from joiner.model.pod import Pod
from joiner.model.podpolicy import PodDisruptionBudget, PodDisruptionBudgetStatus
from joiner.model.workload import Deployment, ReplicaSet, ReplicationController, StatefulSet

if TYPE_CHECKING:
    from joiner.sim.apiserver.server import ApiServer

ACTOR: Final = "disruption"
REFRESH_S: Final = 0.1
"""How long changes gather before a status is written."""
_SCALED: Final[dict[str, type[KubeObject]]] = {
    kind.kind: kind for kind in (Deployment, ReplicaSet, StatefulSet, ReplicationController)
}


class _Member(NamedTuple):
    """A pod that a budget covers."""

    healthy: bool
    controller: OwnerReference | None


class _Covered:
    """The pods of one budget."""

    def __init__(self) -> None:
        self.members: dict[Key, _Member] = {}
        self.healthy = 0
        self.owners: dict[OwnerReference, int] = {}
        """Controllers of the pods, and how many each has."""

    def put(self, key: Key, member: _Member | None) -> bool:
        """Take in how a pod is now, or that it is none of the budget's; gives whether that is new."""
        before = self.members.get(key)
        if before == member:
            return False
        if (before and before.controller) != (member and member.controller):
            self._count(before, -1)
            self._count(member, 1)
        self.healthy += (member is not None and member.healthy) - (before is not None and before.healthy)
        if member is None:
            del self.members[key]
        else:
            self.members[key] = member
        return True

    def _count(self, member: _Member | None, number: int) -> None:
        owner = member.controller if member is not None else None
        if owner is not None:
            self.owners[owner] = self.owners.get(owner, 0) + number
            if not self.owners[owner]:
                del self.owners[owner]


class Budgets:
    """Every budget of the server with the pods it covers."""

    def __init__(self, server: "ApiServer") -> None:
        self._server = server
        self._covered: dict[str, dict[str, _Covered]] = {}
        """By namespace and name."""
        self._stale: dict[Key, None] = {}

    def heard(self, before: KubeObject | None, after: KubeObject | None) -> None:
        """An object came, changed or went."""
        latest = after if after is not None else before
        if isinstance(latest, Pod):
            if self._covered.get(latest.metadata.namespace) and not _counts_the_same(before, after):
                self._pod(latest, gone=after is None)
        elif isinstance(latest, PodDisruptionBudget):
            if after is None:
                self._covered.get(latest.metadata.namespace, {}).pop(latest.name, None)
            elif before is None or before.metadata.generation != after.metadata.generation:
                self._budget(latest)
        elif latest is not None and latest.kind in _SCALED:
            for name in self._covered.get(latest.metadata.namespace, ()):
                self._refresh(Key(latest.metadata.namespace, name))

    def _pod(self, pod: Pod, *, gone: bool) -> None:
        namespace = pod.metadata.namespace
        for name, covered in self._covered.get(namespace, {}).items():
            budget = self._server.get(PodDisruptionBudget, name, namespace)
            mine = not gone and selector.chooses(budget.spec.selector, pod.metadata.labels)
            if covered.put(key_of(pod), _member(pod) if mine else None):
                self._refresh(key_of(budget))

    def _budget(self, budget: PodDisruptionBudget) -> None:
        covered = self._covered.setdefault(budget.metadata.namespace, {})[budget.name] = _Covered()
        for pod in self._server.objects(Pod):
            if pod.metadata.namespace == budget.metadata.namespace and selector.chooses(
                budget.spec.selector, pod.metadata.labels
            ):
                covered.put(key_of(pod), _member(pod))
        self._refresh(key_of(budget))

    def _refresh(self, key: Key) -> None:
        if not self._stale:
            asyncio.get_running_loop().call_later(REFRESH_S, self._refresh_all)
        self._stale[key] = None

    def _refresh_all(self) -> None:
        stale, self._stale = self._stale, {}
        for key in stale:
            budget = self._server.find(PodDisruptionBudget, key.name, key.namespace)
            if budget is not None:
                self._write(budget, self._status(budget))

    def _write(self, budget: PodDisruptionBudget, status: PodDisruptionBudgetStatus) -> None:
        if status != budget.status:
            self._server.write_status(ACTOR, budget, replace(budget, status=status))

    def _status(self, budget: PodDisruptionBudget) -> PodDisruptionBudgetStatus:
        covered = self._covered[budget.metadata.namespace][budget.name]
        expected, desired = self._wanted(budget, covered)
        allowed = covered.healthy - desired if expected > 0 else 0
        return PodDisruptionBudgetStatus(
            disruptions_allowed=max(allowed, 0),
            current_healthy=covered.healthy,
            desired_healthy=desired,
            expected_pods=expected,
            observed_generation=budget.metadata.generation,
        )

    def _wanted(self, budget: PodDisruptionBudget, covered: _Covered) -> tuple[int, int]:
        """How many pods there should be, and how many of them must be healthy."""
        most_away, least = budget.spec.max_unavailable, budget.spec.min_available
        if most_away is not None:
            expected = self._replicas(budget.metadata.namespace, covered)
            return expected, max(expected - _amount(most_away, expected), 0)
        if isinstance(least, str):
            expected = self._replicas(budget.metadata.namespace, covered)
            return expected, _amount(least, expected)
        return len(covered.members), 1 if least is None else least

    def _replicas(self, namespace: str, covered: _Covered) -> int:
        """What the controllers of the pods were asked for. How many pods without one there should be is not known.

        Pods of a controller that has no number of replicas count as themselves.
        """
        asked: dict[str, int] = {}
        for owner, number in covered.owners.items():
            uid, replicas = self._scale(namespace, owner)
            asked[uid] = asked.get(uid, 0) + number if replicas is None else replicas
        return sum(asked.values())

    def _scale(self, namespace: str, owner: OwnerReference) -> tuple[str, int | None]:
        kind = _SCALED.get(owner.kind)
        found = self._server.find(kind, owner.name, namespace) if kind is not None else None
        if found is None:
            return owner.uid, None
        above = controller_of(found)
        if above is not None and above.kind in _SCALED:
            return self._scale(namespace, above)
        return owner.uid, int(found.spec.replicas)  # type: ignore[attr-defined]

    def let_go(self, pod: Pod) -> None:
        """Take one from the budget of a pod that is to be evicted. Raises EvictionBlocked when there is none to take."""
        namespace = pod.metadata.namespace
        over = [name for name, covered in self._covered.get(namespace, {}).items() if key_of(pod) in covered.members]
        if not over:
            return
        if len(over) > 1:
            raise EvictionBlocked(
                f"Pod {key_of(pod)} is covered by more than one PodDisruptionBudget ({', '.join(sorted(over))}),"
                " which eviction does not support: leave it to one of them"
            )
        budget = self._server.get(PodDisruptionBudget, over[0], namespace)
        status = self._status(budget)
        if not pods.is_ready(pod) and (
            budget.lets_unready_go or (status.current_healthy >= status.desired_healthy and status.desired_healthy > 0)
        ):
            return
        if status.disruptions_allowed <= 0:
            raise EvictionBlocked(
                f"PodDisruptionBudget {key_of(budget)} needs {status.desired_healthy} healthy pods"
                f" and has {status.current_healthy}: Pod {key_of(pod)} cannot go now"
            )
        self._write(budget, replace(status, disruptions_allowed=status.disruptions_allowed - 1))


def _counts_the_same(before: KubeObject | None, after: KubeObject | None) -> bool:
    """Whether a pod changed in nothing that a budget looks at."""
    if not isinstance(before, Pod) or not isinstance(after, Pod) or before.metadata.uid != after.metadata.uid:
        return False
    return before.metadata.labels == after.metadata.labels and _member(before) == _member(after)


def _member(pod: Pod) -> _Member:
    return _Member(pod.metadata.deletion_timestamp is None and pods.is_ready(pod), controller_of(pod))


def _amount(number: int | str, total: int) -> int:
    """A number as it is, or a share of the total, rounded up."""
    if isinstance(number, str) and number.endswith("%"):
        return math.ceil(int(number[:-1]) * total / 100)
    return int(number)
