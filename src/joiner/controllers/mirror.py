"""Connects the caches with `state.Cluster`: it is told of every change before any controller is."""

from joiner.kube.controller import Change
from joiner.kube.informer import Informers
from joiner.model.meta import KubeObject
from joiner.state.cluster import Cluster


def connect(informers: Informers, cluster: Cluster) -> None:
    """Let the cluster hear of every kind it is made of. Called before any controller listens, so that none finds it behind."""
    for kind in cluster.kinds:
        _follow(informers, kind, cluster)


def _follow(informers: Informers, kind: type[KubeObject], cluster: Cluster) -> None:
    def fold(change: Change) -> None:
        cluster.apply(kind, change.before, change.after)

    informers.of(kind).listen(fold)
