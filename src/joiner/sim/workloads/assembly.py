"""All workload controllers together, and the indexes their caches need."""

from joiner.clock import Clock
from joiner.kube.client import Client
from joiner.kube.controller import Controller
from joiner.kube.informer import Informers
from joiner.model.podpolicy import PriorityClass, RuntimeClass
from joiner.sim.workloads.daemonset import DaemonSets
from joiner.sim.workloads.deployment import Deployments, ReplicaSets
from joiner.sim.workloads.job import Jobs
from joiner.sim.workloads.ownedpods import INDEXES, Pods
from joiner.sim.workloads.statefulset import StatefulSets

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
