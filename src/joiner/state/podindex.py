"""All pods of the cluster by what is asked about them: on which node, waiting, of which DaemonSet, with which volumes."""

from collections.abc import Iterable, Iterator

from joiner.model import podrules
from joiner.model.pod import Pod
from joiner.state.pods import age_order, daemon_owner
from joiner.state.statenode import BoundPod
from joiner.state.storage import ClaimKey, claims_of

PodKey = tuple[str, str]
"""Namespace and name."""


class PodIndex:
    """The pods, indexed as they change. Nothing here depends on the order in which they came."""

    def __init__(self) -> None:
        self._pods: dict[PodKey, Pod] = {}
        self._on: dict[str, dict[PodKey, BoundPod]] = {}
        self._using: dict[ClaimKey, dict[PodKey, None]] = {}
        self._of_daemon: dict[PodKey, dict[PodKey, Pod]] = {}
        self._newest: dict[PodKey, Pod] = {}
        self.waiting: dict[PodKey, Pod] = {}
        """Pods that wait for a node that we could bring."""

    def get(self, key: PodKey) -> Pod | None:
        """The pod of that name, as far as it matters."""
        return self._pods.get(key)

    def on(self, node: str) -> tuple[BoundPod, ...]:
        """The pods of a node that have not ended, by namespace and name."""
        here = self._on.get(node)
        return tuple(here[key] for key in sorted(here)) if here else ()

    def users(self, claims: Iterable[ClaimKey]) -> Iterator[Pod]:
        """The pods on nodes that use some volume claims."""
        for claim in claims:
            for key in self._using.get(claim, ()):
                yield self._pods[key]

    def with_volumes(self) -> Iterator[Pod]:
        """The pods on nodes that use any volume claim."""
        return self.users(tuple(self._using))

    def newest(self, daemon_set: PodKey) -> Pod | None:
        """The youngest living pod of a DaemonSet."""
        return self._newest.get(daemon_set)

    def put(self, key: PodKey, pod: Pod | None) -> bool:
        """Take in a pod, or that it is gone; gives whether anything that matters changed."""
        old = self._pods.get(key)
        if old is not None and pod is not None and same(old, pod):
            return False
        was = self._on.get(old.spec.node_name, {}).get(key) if old is not None else None
        if old is not None:
            self._leave(key, old)
        if pod is not None:
            self._arrive(key, pod, was)
        return old is not None or pod is not None

    def _leave(self, key: PodKey, pod: Pod) -> None:
        del self._pods[key]
        self.waiting.pop(key, None)
        if podrules.is_terminal(pod):
            return
        owner = daemon_owner(pod)
        if owner:
            self._leave_daemon((key[0], owner), key)
        node = pod.spec.node_name
        if not node:
            return
        del self._on[node][key]
        if not self._on[node]:
            del self._on[node]
        for claim in dict.fromkeys(claims_of(pod)):
            del self._using[claim][key]
            if not self._using[claim]:
                del self._using[claim]

    def _leave_daemon(self, daemon_set: PodKey, key: PodKey) -> None:
        living = self._of_daemon[daemon_set]
        gone = living.pop(key)
        if not living:
            del self._of_daemon[daemon_set], self._newest[daemon_set]
        elif self._newest[daemon_set] is gone:
            self._newest[daemon_set] = max(living.values(), key=age_order)

    def _arrive(self, key: PodKey, pod: Pod, was: BoundPod | None) -> None:
        self._pods[key] = pod
        if podrules.is_terminal(pod):
            return
        self._arrive_daemon(key, pod)
        node = pod.spec.node_name
        if not node:
            if podrules.is_provisionable(pod) and podrules.is_active(pod):
                self.waiting[key] = pod
            return
        self._on.setdefault(node, {})[key] = BoundPod(pod, was)
        for claim in claims_of(pod):
            self._using.setdefault(claim, {})[key] = None

    def _arrive_daemon(self, key: PodKey, pod: Pod) -> None:
        """One that has no node yet counts too: where no node has room for it, the next one should."""
        owner = daemon_owner(pod)
        if owner:
            daemon_set = (key[0], owner)
            self._of_daemon.setdefault(daemon_set, {})[key] = pod
            newest = self._newest.get(daemon_set)
            if newest is None or age_order(pod) > age_order(newest):
                self._newest[daemon_set] = pod


def same(old: Pod, new: Pod) -> bool:
    """Whether a pod changed in nothing that is asked about here: times of probes and messages come and go."""
    before, after = old.metadata, new.metadata
    return (
        before.uid == after.uid
        and before.labels == after.labels
        and before.annotations == after.annotations
        and before.deletion_timestamp == after.deletion_timestamp
        and before.owner_references == after.owner_references
        and old.spec == new.spec
        and old.status.phase == new.status.phase
        and _status(old) == _status(new)
    )


def _status(pod: Pod) -> tuple[object, ...]:
    status = pod.status
    told = sorted((each.type, each.status, each.reason) for each in status.conditions)
    given = [each for each in status.container_statuses if each.allocated_resources or each.resources is not None]
    started = [
        each for each in status.init_container_statuses if each.allocated_resources or each.resources is not None
    ]
    return (status.nominated_node_name, status.start_time, told, given, started)
