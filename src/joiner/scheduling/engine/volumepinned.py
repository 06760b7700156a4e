"""Pods that their volumes hold in one place, and that have to wait until spread lets them go there."""

from joiner.model.labels import HOSTNAME
from joiner.requirements import Requirements
from joiner.scheduling.pods.podclass import PodClass
from joiner.scheduling.topology.group import SPREAD, Group


class VolumePinnedQueue:
    """Pods that wait for a domain where their volumes are, by group and place.

    A pod that may go anywhere takes any domain that is as empty as the others, also the only one that a pinned pod may use. So
    pinned pods are tried again as soon as one more pod of the group is placed, before any other pod.
    """

    def __init__(self) -> None:
        self._waiting: dict[Group, dict[tuple[Requirements, ...], list[int]]] = {}

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def wait(self, pod_class: PodClass, position: int) -> None:
        """A pod was refused; only one that is held somewhere and must spread is called back."""
        for group in _spread(pod_class):
            self._waiting.setdefault(group, {}).setdefault(pod_class.volumes.places, []).append(position)

    def go(self, pod_class: PodClass, position: int) -> None:
        """A pod waits no longer."""
        for group in _spread(pod_class):
            self._waiting[group][pod_class.volumes.places].remove(position)

    def beside(self, placed: PodClass) -> list[int]:
        """One pod for each place that pods of the same group wait for: where it is refused, so are the others."""
        places = [there for group in placed.counted for there in self._waiting.get(group, {}).values()]
        return list(dict.fromkeys(positions[0] for positions in places if positions))


def _spread(pod_class: PodClass) -> list[Group]:
    if not pod_class.held or not pod_class.steps:
        return []
    return [group for group, _ in pod_class.steps[0].groups if group.kind == SPREAD and group.key != HOSTNAME]
