"""Amazon EC2 as a provider: instance types as EC2NodeClasses make them, and machines bought with CreateFleet.

Without a Kubernetes client only what can be bought is told, from the catalogue that comes with Joiner: no account is asked.
"""

import asyncio
import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final, NamedTuple, Protocol

from joiner.admission.problem import FieldProblem
from joiner.catalog.market import InstanceType, Option
from joiner.clock import Clock
from joiner.cloud.aws import instancetypes, offline, settings
from joiner.cloud.aws.nodeclass.ec2nodeclass import EC2NodeClass
from joiner.cloud.aws.nodeclass.placement import LABELS as PLACEMENT_LABELS
from joiner.cloud.aws.nodeclass.placement import PlacementGroup
from joiner.cloud.aws.nodeclass.problems import problems
from joiner.cloud.aws.reservations import offered
from joiner.cloud.aws.settings import AwsSettings
from joiner.cloud.errors import CloudError, NodeClassNotReady, RebootNotSupported
from joiner.cloud.provider import Details, Instance, NodeClasses
from joiner.cloud.repair import RepairPolicy
from joiner.cloud.sources import ec2, facts
from joiner.cloud.sources.catalogue import CatalogueError, Origin
from joiner.cloud.sources.facts import Facts
from joiner.cloud.sources.reservation import DEFAULT_LABELS, Reservation, standings
from joiner.cloud.unavailable import Unavailable
from joiner.kube.client import Client
from joiner.kube.tasks import Tasks
from joiner.model.conditions import READY, find
from joiner.model.duration import Duration
from joiner.model.labels import ALIASES, Vocabulary
from joiner.model.meta import KubeObject, replace
from joiner.model.nodeclaim import NodeClaim
from joiner.model.nodeclass import NodeClassReference
from joiner.model.nodepool import NodePool

NAME: Final = "aws"
_CLASS_LABEL: Final = NodeClassReference(group=EC2NodeClass.group, kind=EC2NodeClass.kind).label_key

VOCABULARY: Final = (
    Vocabulary(
        aliases={**ALIASES, **ec2.ALIASES},
        offering_keys=Vocabulary().offering_keys | {DEFAULT_LABELS.id},
        reservation_id=DEFAULT_LABELS.id,
    )
    .extended(
        well_known=ec2.LABELS | PLACEMENT_LABELS | set(DEFAULT_LABELS.names()), restricted_domains=(EC2NodeClass.group,)
    )
    .with_node_classes(_CLASS_LABEL)
)

_TOGETHER: Final = 100
"""How many types are derived before others may go on."""
_HALF_AN_HOUR: Final = Duration.parse("30m")
_REPAIR: Final = (
    RepairPolicy(condition_type="Ready", condition_status="False", toleration=_HALF_AN_HOUR),
    RepairPolicy(condition_type="Ready", condition_status="Unknown", reason_regex=".*", toleration=_HALF_AN_HOUR),
    RepairPolicy(
        condition_type="AcceleratedHardwareReady",
        condition_status="False",
        reason_regex=".*",
        toleration=Duration.parse("10m"),
    ),
    *(
        RepairPolicy(condition_type=kind, condition_status="False", reason_regex=".*", toleration=_HALF_AN_HOUR)
        for kind in ("StorageReady", "NetworkingReady", "KernelReady", "ContainerRuntimeReady")
    ),
)


class Generation(NamedTuple):
    """Everything the instance types of a pool depend on. Compared part by part, never mixed."""

    node_class: tuple[str, int]
    """Which class, and how often it was seen to change, in its spec or in its status."""
    inventory: int
    """How often types, zones or prices changed."""
    reservations: tuple[tuple[str, int], ...]
    """What is left of each reservation of the class."""
    unavailable: int
    placement_group: PlacementGroup
    memory: int
    """How often nodes showed another memory than was known of their type."""


class Inventory(Protocol):
    """Where types, zones and prices come from."""

    def version(self) -> int:
        """Moves whenever any of it changes."""
        ...

    def facts(self, node_class: EC2NodeClass) -> tuple[Facts, str]:
        """All types, and the region of the class. Raises `NodeClassNotReady`."""
        ...

    def origin(self, node_class: EC2NodeClass) -> Origin:
        """How old the data is."""
        ...


class BundledInventory:
    """The catalogue that comes with Joiner."""

    def __init__(self, known: AwsSettings) -> None:
        self._settings = known

    def version(self) -> int:
        """It never changes."""
        return 0

    def facts(self, node_class: EC2NodeClass) -> tuple[Facts, str]:
        """The whole catalogue."""
        return facts.load(), offline.region_or_refuse(node_class, self._settings.region)

    def origin(self, node_class: EC2NodeClass) -> Origin:
        """The dates of the catalogue."""
        return ec2.origin(offline.region_or_refuse(node_class, self._settings.region))


class AwsProvider:
    """Instance types for pools whose NodeClass is an EC2NodeClass."""

    def __init__(
        self, node_classes: NodeClasses, clock: Clock, known: AwsSettings, inventory: Inventory | None = None
    ) -> None:
        self._node_classes = node_classes
        self._clock = clock
        self._settings = known
        self._inventory = inventory or BundledInventory(known)
        self.unavailable = Unavailable(clock)
        """Where launches that found nothing are remembered."""
        self._seen: dict[str, tuple[EC2NodeClass | None, int]] = {}

    @property
    def name(self) -> str:
        """`aws`."""
        return NAME

    def node_classes(self) -> tuple[type[KubeObject], ...]:
        """Only our own."""
        return (EC2NodeClass,)

    def vocabulary(self) -> Vocabulary:
        """The labels of EC2 and of its reservations."""
        return VOCABULARY

    def repair_policies(self) -> tuple[RepairPolicy, ...]:
        """What the kubelet and the node monitoring agent of EKS report."""
        return _REPAIR

    def node_class_problems(self, node_class: KubeObject) -> tuple[FieldProblem, ...]:
        """What the schema cannot know: kubelet settings that the AMI family does not take."""
        return tuple(problems(node_class.spec)) if isinstance(node_class, EC2NodeClass) else ()

    def generation(self, pool: NodePool) -> Generation:
        """Moves with the class and its status, with types and prices, with reservations, and with shortages."""
        name = pool.spec.template.spec.node_class_ref.name
        node_class = self._node_classes.get(EC2NodeClass, name)
        known, version = self._seen.get(name, (None, 0))
        if node_class is not known and node_class != known:
            version += 1
            self._seen[name] = (node_class, version)
        held = self._reservations(node_class) if node_class is not None else ()
        now = self._clock.now()
        left = tuple((each.id, 0 if each.ended(now) else each.count) for each in held)
        group = self._placement_group(node_class) if node_class is not None else PlacementGroup()
        return Generation(
            (name, version),
            self._inventory.version(),
            left,
            self.unavailable.generation(),
            group,
            self._memory_version(),
        )

    async def instance_types(self, pool: NodePool) -> tuple[InstanceType, ...]:
        """The types of the region as the class makes them, less what was found dry."""
        node_class = self._ready(pool)
        try:
            types = await slowly(self._deriving(node_class))
        except CatalogueError as error:
            raise NodeClassNotReady(node_class.name, str(error)) from error
        return self.unavailable.apply(types)

    def _types(self, node_class: EC2NodeClass, names: Collection[str] | None = None) -> tuple[InstanceType, ...]:
        """The types of a class, or only those of these names, at once."""
        try:
            return tuple(self._deriving(node_class, names))
        except CatalogueError as error:
            raise NodeClassNotReady(node_class.name, str(error)) from error

    def _deriving(self, node_class: EC2NodeClass, names: Collection[str] | None = None) -> Iterator[InstanceType]:
        known, region = self._inventory.facts(node_class)
        if names is not None:
            known = replace(known, types=tuple(each for each in known.types if each.name in names))
        now = self._clock.now()
        held = [each for each in self._reservations(node_class) if not each.ended(now)]
        resolved = node_class if node_class.status.subnets else offline.resolved(node_class, region)
        return instancetypes.deriving(
            known,
            region,
            resolved,
            self._settings,
            reservations=held,
            group=self._placement_group(node_class),
            discovered_memory=self._discovered_memory(node_class),
        )

    def _discovered_memory(self, node_class: EC2NodeClass) -> Mapping[str, int]:
        """What nodes of the class showed of their memory, by type; not known without an account."""
        return {}

    def _memory_version(self) -> int:
        """Moves with what nodes showed of their memory."""
        return 0

    def _placement_group(self, node_class: EC2NodeClass) -> PlacementGroup:
        """The placement group of the class; not known without an account."""
        return PlacementGroup()

    def _reservations(self, node_class: EC2NodeClass) -> tuple[Reservation, ...]:
        now = self._clock.now()
        return tuple(
            offered(each, each.available_instance_count or 0, now) for each in node_class.status.capacity_reservations
        )

    def prices(self, pool: NodePool) -> str:
        """Whose prices these are, and of which day."""
        return self._inventory.origin(self._ready(pool)).prices

    def details(self, pool: NodePool) -> Details:
        """Where the data comes from, and how every reservation stands."""
        node_class = self._ready(pool)
        held = self._reservations(node_class)
        return Details(
            sources=self._inventory.origin(node_class).sources,
            reservations=standings(self._types(node_class), held, self._clock.now()) if held else (),
        )

    async def create(self, claim: NodeClaim, options: Sequence[Option]) -> Instance:
        """Refused: nothing is bought without a cluster."""
        raise _no_account()

    async def get(self, provider_id: str) -> Instance:
        """Refused: no account is asked without a cluster."""
        raise _no_account()

    async def list(self) -> tuple[Instance, ...]:
        """Refused: no account is asked without a cluster."""
        raise _no_account()

    async def delete(self, provider_id: str) -> None:
        """Refused: no account is asked without a cluster."""
        raise _no_account()

    async def reboot(self, claim: NodeClaim, operation_id: str) -> None:
        """Refused: machines are replaced."""
        raise RebootNotSupported("machines of EC2 are not restarted; the node is replaced")

    async def drift_reason(self, claim: NodeClaim) -> str:
        """Nothing drifts where nothing was bought."""
        return ""

    def _ready(self, pool: NodePool) -> EC2NodeClass:
        return self.ready(pool.spec.template.spec.node_class_ref, f"NodePool {pool.name}")

    def ready(self, reference: NodeClassReference, asking: str) -> EC2NodeClass:
        """The NodeClass that a pool or claim refers to. Raises NodeClassNotReady."""
        if (reference.group, reference.kind) != (EC2NodeClass.group, EC2NodeClass.kind):
            raise NodeClassNotReady(
                reference.name,
                f"{asking} refers to a {reference.kind} of {reference.group or 'no group'};"
                f" the aws provider reads {EC2NodeClass.kind} of {EC2NodeClass.group}",
            )
        node_class = self._node_classes.get(EC2NodeClass, reference.name)
        if node_class is None:
            raise NodeClassNotReady(reference.name, f"there is no {EC2NodeClass.kind} of that name")
        condition = find(node_class.status.conditions, READY)
        if condition is not None and condition.status == "False":
            raise NodeClassNotReady(reference.name, why_not_ready(node_class))
        return node_class


def why_not_ready(node_class: EC2NodeClass) -> str:
    """What the conditions of a class say that are not met."""
    wrong = [each for each in node_class.status.conditions if each.status != "True"]
    causes = [f"{each.type}: {each.message or each.reason}" for each in wrong if each.type != READY]
    return "; ".join(causes or [each.message or each.reason for each in wrong])


async def slowly(types: Iterator[InstanceType]) -> tuple[InstanceType, ...]:
    """All of them, with a pause after every hundred in which others go on."""
    made: list[InstanceType] = []
    for each in types:
        made.append(each)
        if len(made) % _TOGETHER == 0:
            await asyncio.sleep(0)
    return tuple(made)


def _no_account() -> CloudError:
    return CloudError("the aws provider was connected without a Kubernetes API, so it only tells what could be bought")


def connect(
    *, node_classes: NodeClasses, clock: Clock, client: Client | None = None, tasks: Tasks | None = None
) -> AwsProvider:
    """The entry point: the provider over the EC2NodeClasses it is given, with a client over a real account."""
    known = settings.read(os.environ)
    if client is None:
        return AwsProvider(node_classes, clock, known)
    from joiner.cloud.aws import live  # what only a real account needs

    return live.connect(node_classes, clock, known, client, tasks or Tasks())
