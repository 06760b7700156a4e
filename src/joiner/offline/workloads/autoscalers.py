"""HorizontalPodAutoscalers of the files: how many replicas a workload is planned for with."""

from collections.abc import Iterable
from typing import Literal

from joiner.model.meta import replace
from joiner.model.workload import HorizontalPodAutoscaler, Job
from joiner.offline.workloads.expand import Workload

Load = Literal["stated", "min", "max"]
"""Plan for the replicas that are stated, within the autoscaler's bounds; for its minimum; or for its maximum."""


class Autoscalers:
    """The autoscalers of the files, by what they scale."""

    def __init__(self, autoscalers: Iterable[HorizontalPodAutoscaler], load: Load) -> None:
        self._load = load
        self._by_target = {
            (each.spec.scale_target_ref.kind, each.metadata.namespace, each.spec.scale_target_ref.name): each
            for each in autoscalers
        }
        self.notes: list[str] = []
        """Workloads that are planned for with another number than they state."""

    def scaled(self, workload: Workload) -> Workload:
        """The workload with the replicas to plan for. Stated replicas of 0 switch an autoscaler off."""
        target = (workload.kind, workload.metadata.namespace, workload.name)
        autoscaler = self._by_target.get(target)
        if autoscaler is None or isinstance(workload, Job) or not workload.spec.replicas:
            return workload
        least, most = autoscaler.spec.min_replicas, autoscaler.spec.max_replicas
        stated = workload.spec.replicas
        replicas = {"stated": min(max(stated, least), most), "min": least, "max": most}[self._load]
        if replicas == stated:
            return workload
        self.notes.append(
            f"{workload.kind} {workload.name} is planned for with {replicas} replicas, not {stated}:"
            f" HorizontalPodAutoscaler {autoscaler.name} keeps it between {least} and {most}"
        )
        scaled: Workload = replace(workload, spec=replace(workload.spec, replicas=replicas))
        return scaled
