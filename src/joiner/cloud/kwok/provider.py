"""KWOK as a cloud: instance types out of a catalogue, chosen and bent by the KWOKNodeClass.

Beyond Karpenter's, its NodeClass names the catalogue, configures the kubelet and holds capacity reservations, so that
everything Joiner does can be tried without a cloud.
"""

from pathlib import Path
from typing import Final, NamedTuple

from joiner.admission.problem import Problem, nearest
from joiner.catalog.market import InstanceType
from joiner.clock import Clock
from joiner.cloud.errors import NodeClassNotReady
from joiner.cloud.kwok.nodeclass import DEFAULT_TYPES, EC2_PREFIX, KWOKNodeClass, KWOKNodeClassSpec
from joiner.cloud.provider import Details, NodeClasses
from joiner.cloud.repair import REBOOT, RepairPolicy
from joiner.cloud.sources import ec2, file, generated
from joiner.cloud.sources.catalogue import Catalogue, CatalogueError, Origin
from joiner.cloud.sources.reservation import DEFAULT_LABELS, Reservation, standings
from joiner.cloud.unavailable import Unavailable
from joiner.model.duration import Duration
from joiner.model.labels import Vocabulary
from joiner.model.meta import KubeObject
from joiner.model.nodeclaim import NodeClaim
from joiner.model.nodeclass import NodeClassReference
from joiner.model.nodepool import NodePool

NAME: Final = "kwok"
_TYPES_PATH: Final = "spec.instanceTypes"

_VOCABULARY: Final = (
    Vocabulary(offering_keys=Vocabulary().offering_keys | {DEFAULT_LABELS.id}, reservation_id=DEFAULT_LABELS.id)
    .extended(
        well_known=generated.LABELS | ec2.LABELS | set(DEFAULT_LABELS.names()),
        restricted_domains=("karpenter.kwok.sh", "karpenter.k8s.aws"),
    )
    .with_node_classes(NodeClassReference(group=KWOKNodeClass.group, kind=KWOKNodeClass.kind).label_key)
)

_REPAIR: Final = (
    RepairPolicy(
        condition_type="Ready",
        condition_status="False",
        toleration=Duration.parse("10m"),
        termination_grace_period=Duration(0),
    ),
    RepairPolicy(
        condition_type="Ready",
        condition_status="Unknown",
        reason_regex=".*",
        toleration=Duration.parse("10m"),
        termination_grace_period=Duration(0),
    ),
    RepairPolicy(
        condition_type="KWOKUnhealthy",
        condition_status="True",
        reason_regex=".*",
        toleration=Duration.parse("30s"),
        termination_grace_period=Duration.parse("45s"),
    ),
    RepairPolicy(
        condition_type="KWOKRebootRequired",
        condition_status="True",
        reason_regex=".*",
        toleration=Duration.parse("30s"),
        termination_grace_period=Duration.parse("1m"),
        action=REBOOT,
    ),
)


class Generation(NamedTuple):
    """Everything the instance types of a pool depend on. Compared part by part, never mixed."""

    node_class: tuple[str, int]
    """Which class, and how often we have seen it change."""
    reservations_ended: int
    unavailable: int


class KwokProvider:
    """Instance types for pools whose NodeClass is a KWOKNodeClass."""

    def __init__(self, node_classes: NodeClasses, clock: Clock) -> None:
        self._node_classes = node_classes
        self._clock = clock
        self.unavailable = Unavailable(clock)
        """Where launches that found nothing are remembered."""
        self._seen: dict[str, tuple[KWOKNodeClass | None, int]] = {}

    @property
    def name(self) -> str:
        """`kwok`."""
        return NAME

    def node_classes(self) -> tuple[type[KubeObject], ...]:
        """Only our own."""
        return (KWOKNodeClass,)

    def vocabulary(self) -> Vocabulary:
        """The labels of the generated set, of EC2 and of reservations."""
        return _VOCABULARY

    def repair_policies(self) -> tuple[RepairPolicy, ...]:
        """Ready, and two conditions that exist to try repair with."""
        return _REPAIR

    def generation(self, pool: NodePool) -> Generation:
        """Moves with the NodeClass, with the end of a reservation, and with shortages that come and go."""
        name = pool.spec.template.spec.node_class_ref.name
        node_class = self._node_classes.get(KWOKNodeClass, name)
        known, version = self._seen.get(name, (None, 0))
        if node_class is not known and node_class != known:
            version += 1
            self._seen[name] = (node_class, version)
        return Generation((name, version), self._ended(node_class), self.unavailable.generation())

    def _ended(self, node_class: KWOKNodeClass | None) -> int:
        if node_class is None or not node_class.spec.capacity_reservations:
            return 0
        return sum(reservation.ended(self._clock.now()) for reservation in _reservations(node_class))

    async def instance_types(self, pool: NodePool) -> tuple[InstanceType, ...]:
        """The types of the catalogue that the NodeClass names."""
        return self.unavailable.apply(self.catalogue(pool).types)

    def prices(self, pool: NodePool) -> str:
        """Whose prices these are, and of which day."""
        return _origin(self._ready(pool)).prices

    def details(self, pool: NodePool) -> Details:
        """Where the catalogue comes from, and how every reservation of the NodeClass stands."""
        node_class = self._ready(pool)
        sources = _origin(node_class).sources
        if not node_class.spec.capacity_reservations:
            return Details(sources=sources)
        known = standings(self.catalogue(pool).types, _reservations(node_class), self._clock.now())
        return Details(sources=sources, reservations=known)

    def node_class_problems(self, node_class: KubeObject) -> tuple[Problem, ...]:
        """Whether `spec.instanceTypes` names something that is there."""
        spec = node_class.spec if isinstance(node_class, KWOKNodeClass) else KWOKNodeClassSpec()
        if spec.ec2_region is not None and spec.ec2_region not in ec2.regions():
            allowed = (DEFAULT_TYPES, *(EC2_PREFIX + region for region in ec2.regions()), "the path of a file")
            message = f"region {spec.ec2_region!r} is not in the bundled EC2 catalogue"
            likely = nearest(spec.instance_types, allowed)
            return (Problem(path=_TYPES_PATH, message=message, allowed=allowed, nearest=likely),)
        if spec.file is not None and not Path(spec.file).is_file():
            message = f"there is no file {spec.file}; a relative path is seen from the folder of the manifest"
            return (Problem(path=_TYPES_PATH, message=message, severity="warning"),)
        return ()

    async def drift_reason(self, claim: NodeClaim) -> str:
        """A pretend machine is always what it was asked to be."""
        return ""

    def catalogue(self, pool: NodePool) -> Catalogue:
        """The catalogue behind a pool, before shortages."""
        node_class = self._ready(pool)
        now = self._clock.now()
        reservations = [each for each in _reservations(node_class) if not each.ended(now)]
        spec = node_class.spec
        try:
            if spec.ec2_region is not None:
                machine = ec2.Machine(kubelet=spec.kubelet)
                return ec2.catalogue(spec.ec2_region, machine=machine, reservations=reservations)
            if spec.file is not None:
                return file.catalogue(Path(spec.file), kubelet=spec.kubelet, reservations=reservations)
            return generated.catalogue(kubelet=spec.kubelet, reservations=reservations)
        except CatalogueError as error:
            raise NodeClassNotReady(node_class.name, f"{_TYPES_PATH}: {error}") from error

    def _ready(self, pool: NodePool) -> KWOKNodeClass:
        reference = pool.spec.template.spec.node_class_ref
        if (reference.group, reference.kind) != (KWOKNodeClass.group, KWOKNodeClass.kind):
            raise NodeClassNotReady(
                reference.name,
                f"NodePool {pool.name} refers to a {reference.kind} of {reference.group or 'no group'};"
                f" the kwok provider reads {KWOKNodeClass.kind} of {KWOKNodeClass.group}",
            )
        node_class = self._node_classes.get(KWOKNodeClass, reference.name)
        if node_class is None:
            raise NodeClassNotReady(reference.name, f"there is no {KWOKNodeClass.kind} of that name")
        for condition in node_class.status.conditions:
            if condition.type == "Ready" and condition.status == "False":
                raise NodeClassNotReady(reference.name, condition.message or condition.reason)
        return node_class


def _origin(node_class: KWOKNodeClass) -> Origin:
    spec = node_class.spec
    if spec.ec2_region is not None:
        return ec2.origin(spec.ec2_region)
    return generated.origin() if spec.file is None else file.origin(Path(spec.file))


def _reservations(node_class: KWOKNodeClass) -> list[Reservation]:
    return [
        Reservation(
            id=each.id,
            instance_type=each.instance_type,
            zone=each.zone,
            count=each.count,
            end_time=each.end_time,
            kind=each.type,
        )
        for each in node_class.spec.capacity_reservations
    ]


def connect(*, node_classes: NodeClasses, clock: Clock) -> KwokProvider:
    """The entry point: the provider over the NodeClasses it is given."""
    return KwokProvider(node_classes, clock)
