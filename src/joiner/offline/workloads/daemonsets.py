"""DaemonSets that are not in the files, inferred from their running pods: new nodes will run them as well."""

from collections.abc import Iterable

from joiner.model.meta import ObjectMeta, controller_of, replace
from joiner.model.pod import Pod, PodSpec, PodTemplateSpec
from joiner.model.workload import DaemonSet, DaemonSetSpec
from joiner.offline.ignored import listed


def inferred(pods: Iterable[Pod], known: Iterable[DaemonSet]) -> tuple[DaemonSet, ...]:
    """A DaemonSet for every owner of that kind that is not known, with the spec of its newest pod."""
    there = {(each.metadata.namespace, each.name) for each in known}
    newest: dict[tuple[str, str], Pod] = {}
    for pod in sorted(pods, key=lambda pod: (str(pod.metadata.creation_timestamp or ""), pod.name)):
        owner = controller_of(pod)
        if owner is not None and owner.kind == DaemonSet.kind:
            key = (pod.metadata.namespace, owner.name)
            if key not in there:
                newest[key] = pod
    return tuple(_daemon_set(namespace, name, pod) for (namespace, name), pod in sorted(newest.items()))


def note(found: Iterable[DaemonSet]) -> tuple[str, ...]:
    """What is said about inferred DaemonSets."""
    names = [each.name for each in found]
    if not names:
        return ()
    subject = "DaemonSet" if len(names) == 1 else "DaemonSets"
    return (
        f"{subject} {listed(names)} {'is' if len(names) == 1 else 'are'} not in these files: new nodes are planned with their"
        " running pods instead, on every node that tolerations and nodeSelector allow; give them for an exact answer"
        " (joiner dump prints the kubectl command)",
    )


def _daemon_set(namespace: str, name: str, pod: Pod) -> DaemonSet:
    template = PodTemplateSpec(metadata=ObjectMeta(labels=pod.metadata.labels), spec=_unbound(pod.spec))
    return DaemonSet(metadata=ObjectMeta(name=name, namespace=namespace), spec=DaemonSetSpec(template=template))


def _unbound(spec: PodSpec) -> PodSpec:
    """The spec without its node. The DaemonSet controller pins each pod by a required affinity for the node's name."""
    node_affinity = replace(spec.affinity.node_affinity, required=None)
    return replace(spec, node_name="", affinity=replace(spec.affinity, node_affinity=node_affinity))
