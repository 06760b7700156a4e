"""The kubelets and the controllers of nodes, put together."""

from collections.abc import Iterable, Mapping
from random import Random
from typing import Final

from joiner.clock import Clock
from joiner.kube.client import Client
from joiner.kube.controller import Controller
from joiner.kube.informer import Index, Informers
from joiner.kube.tasks import Tasks
from joiner.model.meta import KubeObject
from joiner.model.pod import Pod
from joiner.model.storage import VolumeAttachment
from joiner.sim.cloud.machines import Machines
from joiner.sim.kubelet.kubelet import Kubelets, NodeTiming
from joiner.sim.kubelet.nodemonitor import NodeMonitor
from joiner.sim.kubelet.nodetaints import NodeTaints
from joiner.sim.kubelet.podeviction import PodGarbage, TaintEviction
from joiner.sim.kubelet.podlifecycle import PodLifecycle


def _node_of(thing: Pod | VolumeAttachment) -> Iterable[str]:
    return (thing.spec.node_name,) if thing.spec.node_name else ()


INDEXES: Final[Mapping[type[KubeObject], Mapping[str, Index]]] = {
    Pod: {"node": _node_of},
    VolumeAttachment: {"node": _node_of},
}
"""The indexes that their caches must have."""


def node_people(
    *,
    client: Client,
    informers: Informers,
    machines: Machines,
    clock: Clock,
    random: Random,
    tasks: Tasks,
    habits: NodeTiming | None = None,
) -> tuple[Controller, ...]:
    """The controllers for a manager. Kubelets themselves are tasks that begin when a machine comes up."""
    usual = habits or NodeTiming()
    for_machines, for_pods = Random(random.getrandbits(64)), Random(random.getrandbits(64))
    Kubelets(client=client, machines=machines, clock=clock, random=for_machines, habits=usual, tasks=tasks)
    NodeMonitor(client=client, machines=machines, clock=clock, habits=usual, tasks=tasks)
    return (
        NodeTaints(client=client, informers=informers, clock=clock, habits=usual),
        TaintEviction(client=client, informers=informers, clock=clock),
        PodGarbage(client=client, informers=informers),
        PodLifecycle(client=client, informers=informers, machines=machines, clock=clock, random=for_pods, habits=usual),
    )
