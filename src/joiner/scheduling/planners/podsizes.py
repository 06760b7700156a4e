"""Pods by what they cost: shares of classes that ask for the same, and sizes, whose pods differ in nothing but labels."""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from joiner.model.labels import HOSTNAME
from joiner.requirements import Requirements
from joiner.scheduling.nodes.nodekinds import PLENTY
from joiner.scheduling.nodes.openclaim import Claim
from joiner.scheduling.nodes.template import Template
from joiner.scheduling.pods.podclass import PodClass, Step
from joiner.scheduling.topology.group import AFFINITY, ANTI_AFFINITY, SPREAD, Group


class Share:
    """Pods of one class that ask for the same, and wait."""

    __slots__ = ("alike", "by_itself", "groups", "host_groups", "plain", "pod_class", "positions", "size", "step")

    size: "Size"
    groups: int
    """A number for the groups they must satisfy: the same for all shares with the same groups."""

    def __init__(self, pod_class: PodClass, step: Step, positions: list[int]) -> None:
        self.pod_class = pod_class
        self.step = step
        self.positions = positions
        """The next one is the last."""
        self.by_itself = by_itself(pod_class, step)
        """Whether nothing beyond a node has a say in whether they can go there."""
        self.plain = self.by_itself and countable(pod_class, step)
        """Whether many can be placed at once: nothing changes from one to the next but counts by host."""
        self.alike = not (
            step.groups
            or pod_class.kept_out
            or step.marks
            or pod_class.ports
            or pod_class.volumes.attachments
            or any(step.places)
        ) and not any(group.key == HOSTNAME for group in pod_class.counted)
        """Whether they differ from others of their size in nothing that matters to a node."""
        self.host_groups = tuple(group for group, chosen in step.groups if chosen)

    def next(self, count: int) -> list[int]:
        """The next pods, who wait no longer."""
        chosen = self.positions[: -count - 1 : -1]
        del self.positions[-count:]
        return chosen

    def room_on(self, claim: Claim) -> int:
        """How many of them can go to a claim at once, as far as spread and anti-affinity by host say; one can be asked for."""
        if not self.plain:
            return 1
        most = len(self.positions)
        for group in self.host_groups:
            room = group.room_on_host(claim.host)
            if room is not None:
                most = min(most, room)
        return max(1, most)


def countable(pod_class: PodClass, step: Step) -> bool:
    """Whether pods bring nothing to a node that the next of them would mind, but for counts by host."""
    return not (
        pod_class.ports or pod_class.volumes.attachments or any(group in step.marks for group in pod_class.kept_out)
    )


def by_itself(pod_class: PodClass, step: Step) -> bool:
    """Whether it does not matter to pods what else there is, as long as it is not on the same node."""
    meets = [*[group for group, _ in step.groups], *pod_class.kept_out, *step.marks]
    return all(group.key == HOSTNAME and group.kind != AFFINITY for group in meets)


class Size:
    """Pods that cost the same: equal amounts, equal node rules, one pool; labels may differ."""

    def __init__(self, number: int, template: Template, amounts: tuple[int, ...], requirements: Requirements) -> None:
        self.number = number
        self.template = template
        self.amounts = np.array(amounts, dtype=np.float64)
        self._asked = np.flatnonzero(self.amounts)
        self._needs = self.amounts[self._asked, None]
        self.requirements = requirements
        """What pool and pod demand together."""
        self.shares: list[Share] = []
        """The next one is the last."""
        self.alike = True
        """Whether none of its pods differ in anything that matters to a node."""
        self.left = 0
        self.worth = 0.0
        self.host_group: Group | None = None
        self.host_most = PLENTY
        """How many of them one node takes, if spread or anti-affinity by host say so."""

    def take(self, share: Share) -> None:
        """More pods of this size."""
        share.size = self
        self.shares.append(share)
        self.alike = self.alike and share.alike
        self.left += len(share.positions)

    def waiting(self) -> Iterator[Share]:
        """The shares with pods that still wait, the next one first."""
        self.shares = [share for share in self.shares if share.positions]
        return reversed(self.shares)

    def often(self, room: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """How many of them go into each column of room, resource by node."""
        if len(self._asked) < len(room):
            room = room[self._asked]
        if not len(self._asked):
            return np.full(room.shape[1], PLENTY)
        found: npt.NDArray[np.float64] = np.minimum.reduce(room / self._needs)
        return np.floor(found, found)


def host_limit(step: Step) -> tuple[Group | None, float]:
    """The tightest limit by host that pods have on their own kind."""
    limits = [
        (group.max_skew if group.kind == SPREAD else 1, group)
        for group, chosen in step.groups
        if chosen and group.key == HOSTNAME and group.kind in (SPREAD, ANTI_AFFINITY)
    ]
    if not limits:
        return None, PLENTY
    most, group = min(limits, key=lambda limit: limit[0])
    return group, float(most)
