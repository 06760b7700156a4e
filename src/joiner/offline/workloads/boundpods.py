"""Why a pod that was asked about is not pending: it is bound, finished, or not ours to serve."""

from typing import Final

from joiner.model import podrules
from joiner.model.pod import Pod
from joiner.model.workload import DaemonSet
from joiner.offline.manifests import Manifests

_DAEMON: Final = "belongs to a DaemonSet, whose pods come with every node"
_DAEMON_SET: Final = "is a DaemonSet, and its pods come with every node"


def reasons(manifests: Manifests) -> dict[str, str]:
    """Pod (`namespace/name`) to what it does; DaemonSets are there as well, as people ask for them by name."""
    sets = {f"{each.metadata.namespace}/{each.name}": _DAEMON_SET for each in manifests.all(DaemonSet)}
    return sets | {pod.key: why for pod in manifests.all(Pod) if (why := _reason(pod))}


def _reason(pod: Pod) -> str:
    if podrules.is_terminal(pod):
        return f"has run to its end ({pod.status.phase})"
    if pod.spec.node_name:
        return f"is on node {pod.spec.node_name} already"
    if pod.spec.scheduling_gates:
        return f"is held back by scheduling gates: {', '.join(gate.name for gate in pod.spec.scheduling_gates)}"
    if podrules.is_terminating(pod):
        return "is being deleted"
    if podrules.is_daemon(pod):
        return _DAEMON
    return "stands for a static pod of a node" if podrules.is_mirror(pod) else ""
