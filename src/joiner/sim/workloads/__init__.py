"""The pretend workload controllers: they keep as many pods as people asked for, the way those of Kubernetes do."""

from joiner.sim.workloads.assembly import INDEXES, controllers
from joiner.sim.workloads.podfactory import admit

__all__ = ["INDEXES", "admit", "controllers"]
