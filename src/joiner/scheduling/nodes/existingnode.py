"""Nodes that are there: the first place a pod is tried on."""

from collections.abc import Sequence

from joiner.model import podrequests, resources
from joiner.model.labels import HOSTNAME, Vocabulary
from joiner.model.pod import Pod
from joiner.model.taints import kept_off, untolerated
from joiner.requirements import Requirements
from joiner.scheduling.nodes.openclaim import PORTS, REQUIREMENTS, RESOURCES, TAINTS, TOPOLOGY, VOLUMES, Refused
from joiner.scheduling.pods.noderules import node_rules
from joiner.scheduling.pods.podclass import PodClass, Step
from joiner.scheduling.problem import Amounts, ExistingNode


class OpenNode:
    """A node with what is left on it."""

    number = -1

    def __init__(
        self, node: ExistingNode, daemons: Sequence[Pod], names: Sequence[str], vocabulary: Vocabulary
    ) -> None:
        self.node = node
        labels = node.labels if HOSTNAME in node.labels else {**node.labels, HOSTNAME: node.name}
        self.requirements = Requirements.of_labels(labels, vocabulary)
        left = resources.subtract(node.allocatable, node.used)
        to_come = resources.subtract(self._daemons(daemons, vocabulary), node.daemon_used)
        left = resources.subtract(left, resources.at_least_zero(to_come))
        self.left: Amounts = tuple(left.get(name, 0) for name in names)
        self.ports = list(node.ports)
        self.attached = dict(node.volumes)
        self.members: list[int] = []

    def at(self, number: int) -> "OpenNode":
        """The same node with its place in the order in which they are tried."""
        if self.number == number:
            return self
        made = self.fresh()
        made.number = number
        return made

    def fresh(self) -> "OpenNode":
        """The same node for another run to fill."""
        made = object.__new__(OpenNode)
        made.__dict__.update(self.__dict__)
        made.ports, made.attached, made.members = list(self.ports), dict(self.attached), []
        return made

    def _daemons(self, daemons: Sequence[Pod], vocabulary: Vocabulary) -> dict[str, int]:
        """What the daemons that belong here ask for."""
        running = [
            podrequests.of_pod(pod)
            for pod in daemons
            if not kept_off(self.node.taints, pod.spec.tolerations)
            and any(self.requirements.compatible(rule) for rule in node_rules(pod, vocabulary))
        ]
        return resources.add(*running)

    def refused(self, pod_class: PodClass, step: Step) -> Refused | None:
        """Which rule forbids the pod; nothing when it can go here."""
        if untolerated(self.node.taints, step.tolerations):
            return Refused(TAINTS)
        if not self._has_room(pod_class):
            return Refused(RESOURCES)
        if not self.requirements.compatible(step.requirements):
            return Refused(REQUIREMENTS)
        if pod_class.ports and any(port.conflicts(other) for port in pod_class.ports for other in self.ports):
            return Refused(PORTS)
        for driver, volumes in pod_class.volumes.attachments.items():
            count = len(self.attached.get(driver, frozenset()) | volumes)
            if self.node.volume_limits.get(driver, count) < count:
                return Refused(VOLUMES)
        if not any(self.requirements.compatible(place) for place in step.places):
            return Refused(VOLUMES)
        return None if self._topology_allows(pod_class, step) else Refused(TOPOLOGY)

    def _has_room(self, pod_class: PodClass) -> bool:
        return all(wanted <= left for wanted, left in zip(pod_class.amounts, self.left, strict=True) if wanted)

    def _topology_allows(self, pod_class: PodClass, step: Step) -> bool:
        for group, chosen in (*step.groups, *((group, False) for group in pod_class.kept_out)):
            here = self.requirements.get(group.key)
            if here is None or group.narrowed(step.strict.at(group.key), here, chosen) is None:
                return False
        return True

    def take(self, pod_class: PodClass, position: int, step: Step) -> None:
        """A pod of the class comes here."""
        self.left = tuple(map(int.__sub__, self.left, pod_class.amounts))
        self.ports.extend(pod_class.ports)
        for driver, volumes in pod_class.volumes.attachments.items():
            self.attached[driver] = self.attached.get(driver, frozenset()) | volumes
        self.members.append(position)
        for group in pod_class.counted:
            here = self.requirements.get(group.key)
            if here is not None and group.node_filter.matches(self.requirements, self.node.taints):
                group.record(min(here.values))
        for group in step.marks:
            here = self.requirements.get(group.key)
            if here is not None:
                group.record(min(here.values))
