"""KWOK as a cloud: instance types out of a catalogue, chosen and changed by the KWOKNodeClass, and Nodes without a kubelet.

Beyond Karpenter's, its NodeClass names the catalogue, configures the kubelet and holds capacity reservations, so that
everything Joiner does can be tried without a cloud.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

from joiner.admission.problem import FieldProblem, nearest
from joiner.catalog.market import InstanceType, Offering, Option
from joiner.clock import Clock
from joiner.cloud.errors import CloudError, InsufficientCapacity, NodeClassNotReady, Transient
from joiner.cloud.kwok import supply
from joiner.cloud.kwok.fleet import Fleet
from joiner.cloud.kwok.nodeclass import DEFAULT_TYPES, EC2_PREFIX, SMALL, KWOKNodeClass, KWOKNodeClassSpec
from joiner.cloud.kwok.supply import TYPES_PATH
from joiner.cloud.provider import Details, Instance, NodeClasses
from joiner.cloud.repair import REBOOT, RepairPolicy
from joiner.cloud.sources import ec2, generated
from joiner.cloud.sources.catalogue import Catalogue
from joiner.cloud.sources.reservation import DEFAULT_LABELS, Reservation, standings
from joiner.cloud.unavailable import Unavailable
from joiner.kube.client import Client
from joiner.kube.tasks import Tasks
from joiner.model import labels
from joiner.model.duration import Duration
from joiner.model.labels import ALIASES, Vocabulary
from joiner.model.meta import KubeObject, replace
from joiner.model.nodeclaim import NodeClaim
from joiner.model.nodeclass import NodeClassReference
from joiner.model.nodepool import NodePool

NAME: Final = "kwok"
_CLASS_LABEL: Final = NodeClassReference(group=KWOKNodeClass.group, kind=KWOKNodeClass.kind).label_key

_VOCABULARY: Final = (
    Vocabulary(
        aliases={**ALIASES, **ec2.ALIASES},
        offering_keys=Vocabulary().offering_keys | {DEFAULT_LABELS.id},
        reservation_id=DEFAULT_LABELS.id,
    )
    .extended(
        well_known=generated.LABELS | ec2.LABELS | set(DEFAULT_LABELS.names()),
        restricted_domains=("karpenter.kwok.sh", "karpenter.k8s.aws"),
    )
    .with_node_classes(_CLASS_LABEL)
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
    """Which class, and how often we have seen it, or the file of its catalogue, change."""
    reservations_ended: int
    reservations_used: tuple[int, ...]
    """How many machines run in each reservation of the class."""
    unavailable: int


class KwokProvider:
    """Instance types for pools whose NodeClass is a KWOKNodeClass, and with a client machines that are only Node objects."""

    def __init__(
        self, node_classes: NodeClasses, clock: Clock, client: Client | None = None, tasks: Tasks | None = None
    ) -> None:
        self._node_classes = node_classes
        self._clock = clock
        self.unavailable = Unavailable(clock)
        """Where launches that found nothing are remembered."""
        self._seen: dict[str, tuple[tuple[KWOKNodeClass | None, supply.FileStamp | None], int]] = {}
        self._machines = Fleet(client, clock, tasks or Tasks()) if client is not None else None

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
        """Moves with the NodeClass, with reservations that fill, empty and end, and with shortages that come and go."""
        name = pool.spec.template.spec.node_class_ref.name
        node_class = self._node_classes.get(KWOKNodeClass, name)
        known, version = self._seen.get(name, ((None, None), 0))
        seen = (node_class, None if node_class is None else supply.file_stamp(node_class))
        if seen != known:
            version += 1
            self._seen[name] = (seen, version)
        ended, used = 0, tuple[int, ...]()
        if node_class is not None and node_class.spec.capacity_reservations:
            ended = sum(each.ended(self._clock.now()) for each in supply.reservations(node_class))
            used = tuple(self._used(node_class).values())
        return Generation((name, version), ended, used, self.unavailable.generation())

    def _used(self, node_class: KWOKNodeClass) -> dict[str, int]:
        machines = self._machines
        ids = (each.id for each in node_class.spec.capacity_reservations)
        return {} if machines is None else {each: machines.used(each) for each in ids}

    async def instance_types(self, pool: NodePool) -> tuple[InstanceType, ...]:
        """The types of the catalogue that the NodeClass names."""
        return self.unavailable.apply(self.catalogue(pool).types)

    def prices(self, pool: NodePool) -> str:
        """Whose prices these are, and of which day."""
        return supply.origin(self._ready(pool)).prices

    def details(self, pool: NodePool) -> Details:
        """Where the catalogue comes from, and how every reservation of the NodeClass stands."""
        node_class = self._ready(pool)
        sources = supply.origin(node_class).sources
        if not node_class.spec.capacity_reservations:
            return Details(sources=sources)
        known = standings(self.catalogue(pool).types, self._reservations(node_class), self._clock.now())
        return Details(sources=sources, reservations=known)

    def node_class_problems(self, node_class: KubeObject) -> tuple[FieldProblem, ...]:
        """Whether `spec.instanceTypes` names something that is there."""
        spec = node_class.spec if isinstance(node_class, KWOKNodeClass) else KWOKNodeClassSpec()
        if spec.ec2_region is not None and spec.ec2_region not in ec2.regions():
            allowed = (DEFAULT_TYPES, SMALL, *(EC2_PREFIX + region for region in ec2.regions()), "the path of a file")
            message = f"region {spec.ec2_region!r} is not in the bundled EC2 catalogue"
            likely = nearest(spec.instance_types, allowed)
            return (FieldProblem(path=TYPES_PATH, message=message, allowed=allowed, nearest=likely),)
        if spec.file is not None and not Path(spec.file).is_file():
            message = f"there is no file {spec.file}; a relative path is seen from the folder of the manifest"
            return (FieldProblem(path=TYPES_PATH, message=message, severity="warning"),)
        return ()

    async def create(self, claim: NodeClaim, options: Sequence[Option]) -> Instance:
        """Make a Node for the claim, after the delay that the class asks for."""
        machines = self._with_machines()
        node_class = self.ready(claim.spec.node_class_ref, f"NodeClaim {claim.name}")
        known = await machines.bought_for(claim)
        if known is not None:
            return self._as_of_now(known)
        if node_class.spec.capacity_reservations:
            await machines.list()  # another process may have filled a reservation before us
        chosen = self._chosen(node_class, options)
        if chosen is None:
            tried = tuple((option.name, option.offering) for option in options)
            raise InsufficientCapacity(f"NodeClaim {claim.name}: none of {len(tried)} options can be bought now", tried)
        delay = node_class.spec.node_registration_delay
        return await machines.start(claim, *chosen, delay.seconds if delay is not None else 0.0)

    def _chosen(self, node_class: KWOKNodeClass, options: Sequence[Option]) -> tuple[InstanceType, Offering] | None:
        types = {each.name: each for each in self.unavailable.apply(self._catalogue(node_class).types)}
        found = (supply.offered(types, option) for option in options)
        return next((each for each in found if each is not None and each[1].launchable), None)

    async def get(self, provider_id: str) -> Instance:
        """The Node as a machine."""
        return self._as_of_now(await self._with_machines().get(provider_id))

    async def list(self) -> tuple[Instance, ...]:
        """All Nodes that were made here, and those that will be."""
        return tuple(map(self._as_of_now, await self._with_machines().list()))

    async def delete(self, provider_id: str) -> None:
        """Delete the Node, which is all there is."""
        await self._with_machines().delete(provider_id)

    async def reboot(self, claim: NodeClaim, operation_id: str) -> None:
        """Give the Node a new boot id."""
        if not claim.status.node_name:
            raise Transient(f"NodeClaim {claim.name} has no Node yet that could be restarted")
        await self._with_machines().reboot(claim.status.provider_id, operation_id)

    async def drift_reason(self, claim: NodeClaim) -> str:
        """A machine in a reservation that its NodeClass no longer lists is not what the class asks for."""
        node_class = self._node_classes.get(KWOKNodeClass, claim.spec.node_class_ref.name)
        own = claim.metadata.labels
        if node_class is None or own.get(labels.CAPACITY_TYPE) != labels.RESERVED:
            return ""
        listed = (each.id for each in node_class.spec.capacity_reservations)
        return "" if own.get(DEFAULT_LABELS.id, "") in listed else "CapacityReservationDrift"

    def catalogue(self, pool: NodePool) -> Catalogue:
        """The catalogue behind a pool, before shortages."""
        return self._catalogue(self._ready(pool))

    def _catalogue(self, node_class: KWOKNodeClass) -> Catalogue:
        now = self._clock.now()
        return supply.catalogue(node_class, [r for r in self._reservations(node_class) if not r.ended(now)])

    def _reservations(self, node_class: KWOKNodeClass) -> tuple[Reservation, ...]:
        return supply.reservations(node_class, self._used(node_class))

    def _as_of_now(self, instance: Instance) -> Instance:
        """The machine with the labels it should have: one whose reservation has ended is on demand."""
        identity = instance.labels.get(DEFAULT_LABELS.id)
        node_class = self._node_classes.get(KWOKNodeClass, instance.labels.get(_CLASS_LABEL, ""))
        if identity is None or node_class is None:
            return instance
        now = self._clock.now()
        over = any(each.id == identity and each.ended(now) for each in supply.reservations(node_class))
        return replace(instance, labels=supply.demoted(instance.labels)) if over else instance

    def _with_machines(self) -> Fleet:
        if self._machines is None:
            raise CloudError(
                "the kwok provider makes Nodes, and it was connected without a Kubernetes API to make them in"
            )
        return self._machines

    def _ready(self, pool: NodePool) -> KWOKNodeClass:
        return self.ready(pool.spec.template.spec.node_class_ref, f"NodePool {pool.name}")

    def ready(self, reference: NodeClassReference, asking: str) -> KWOKNodeClass:
        """The NodeClass that is referred to. Raises NodeClassNotReady."""
        if (reference.group, reference.kind) != (KWOKNodeClass.group, KWOKNodeClass.kind):
            raise NodeClassNotReady(
                reference.name,
                f"{asking} refers to a {reference.kind} of {reference.group or 'no group'};"
                f" the kwok provider reads {KWOKNodeClass.kind} of {KWOKNodeClass.group}",
            )
        node_class = self._node_classes.get(KWOKNodeClass, reference.name)
        if node_class is None:
            raise NodeClassNotReady(reference.name, f"there is no {KWOKNodeClass.kind} of that name")
        for condition in node_class.status.conditions:
            if condition.type == "Ready" and condition.status == "False":
                raise NodeClassNotReady(reference.name, condition.message or condition.reason)
        return node_class


def connect(
    *, node_classes: NodeClasses, clock: Clock, client: Client | None = None, tasks: Tasks | None = None
) -> KwokProvider:
    """The entry point: the provider over the NodeClasses it is given."""
    return KwokProvider(node_classes, clock, client, tasks)
