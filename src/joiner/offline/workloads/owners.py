"""Which workload a pod belongs to."""

from collections.abc import Iterable

from joiner.model.meta import controller_of
from joiner.model.pod import Pod
from joiner.model.selector import chooses
from joiner.model.workload import Deployment, ReplicaSet


class WorkloadFamilies:
    """Which workload a pod belongs to, also by way of a ReplicaSet, and also when that is not in the files."""

    def __init__(self, replica_sets: Iterable[ReplicaSet], deployments: Iterable[Deployment] = ()) -> None:
        self._between = {(each.metadata.namespace, each.name): controller_of(each) for each in replica_sets}
        self._deployments: dict[str, dict[str, Deployment]] = {}
        for each in deployments:
            self._deployments.setdefault(each.metadata.namespace, {})[each.name] = each

    def head(self, pod: Pod) -> tuple[str, str, str]:
        """Kind, namespace and name of the workload; of the pod itself when it has no owner."""
        owner = controller_of(pod)
        namespace = pod.metadata.namespace
        if owner is None:
            return (Pod.kind, namespace, pod.name)
        if owner.kind == ReplicaSet.kind:
            if (namespace, owner.name) not in self._between:
                found = self._by_name_or_labels(owner.name, pod)
                return (
                    (ReplicaSet.kind, namespace, owner.name) if found is None else (Deployment.kind, namespace, found)
                )
            owner = self._between[namespace, owner.name] or owner
        return (owner.kind, namespace, owner.name)

    def _by_name_or_labels(self, replica_set: str, pod: Pod) -> str | None:
        """The Deployment of a ReplicaSet that is not there: called like it but for the hash, else the only one that fits."""
        siblings = self._deployments.get(pod.metadata.namespace, {})
        named = siblings.get(replica_set.rpartition("-")[0])
        if named is not None and (named.spec.selector is None or named.spec.selector.matches(pod.metadata.labels)):
            return named.name
        fitting = [name for name, each in siblings.items() if chooses(each.spec.selector, pod.metadata.labels)]
        return fitting[0] if len(fitting) == 1 else None
