"""All workload controllers together, and the indexes their caches need."""

from joiner.clock import Clock
from joiner.kube.client import Client
from joiner.kube.controller import Controller
from joiner.kube.informer import Informers
from joiner.model.policy import PriorityClass, RuntimeClass
from joiner.sim.workloads.daemons import DaemonSets
from joiner.sim.workloads.jobs import Jobs
from joiner.sim.workloads.owned import INDEXES, Pods
from joiner.sim.workloads.replicas import Deployments, ReplicaSets
from joiner.sim.workloads.stateful import StatefulSets

__all__ = ["INDEXES", "controllers"]


def controllers(*, client: Client, informers: Informers, clock: Clock) -> tuple[Controller, ...]:
    """The controllers. The informers must have `INDEXES`."""
    for kind in (PriorityClass, RuntimeClass):
        informers.of(kind)
    pods = Pods(client, informers, clock)
    return (
        Deployments(client=client, informers=informers),
        ReplicaSets(client=client, informers=informers, pods=pods),
        StatefulSets(client=client, informers=informers, pods=pods),
        DaemonSets(client=client, informers=informers, pods=pods),
        Jobs(client=client, informers=informers, clock=clock, pods=pods),
    )
