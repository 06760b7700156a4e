"""The pretend workload controllers: they keep as many pods as people asked for, the way those of Kubernetes do."""

from joiner.sim.workloads.making import admit
from joiner.sim.workloads.staff import INDEXES, controllers

__all__ = ["INDEXES", "admit", "controllers"]
