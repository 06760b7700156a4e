"""The provider door: what a cloud must be able to do, and what it may count on.

kwok is the example to read; `joiner.testing.provider` is the suite every provider must pass.
"""

from collections.abc import Hashable, Mapping, Sequence
from datetime import datetime
from typing import Final, Protocol, TypeVar

from joiner.admission.problem import FieldProblem
from joiner.catalog.market import InstanceType, Option
from joiner.clock import Clock
from joiner.cloud.errors import RebootNotSupported
from joiner.cloud.repair import NOT_READY, RepairPolicy
from joiner.cloud.sources.reservation import ReservationStanding
from joiner.kube.client import Client
from joiner.kube.tasks import Tasks
from joiner.model.labels import Vocabulary
from joiner.model.meta import KubeObject, Value
from joiner.model.nodeclaim import NodeClaim
from joiner.model.nodepool import NodePool
from joiner.model.resources import Resources

K = TypeVar("K", bound=KubeObject)

UNLISTED_S: Final = 60.0
"""So long `list`, `get` and `delete` may not know a machine that was bought: clouds answer from copies that are behind."""


class NodeClasses(Protocol):
    """The NodeClass objects there are, read without waiting."""

    def get(self, kind: type[K], name: str) -> K | None:
        """The NodeClass of that name, if there is one."""
        ...


class Details(Value):
    """What a person who looks into the matter wants to know about a pool's supply."""

    sources: tuple[str, ...] = ()
    """Where the types and prices come from, in full."""
    reservations: tuple[ReservationStanding, ...] = ()
    """The capacity reservations of the NodeClass, also those that are of no use."""


class Instance(Value):
    """A machine, as the cloud tells of it."""

    provider_id: str
    claim_name: str = ""
    """The claim it was bought for, as it was told at the launch."""
    claim_uid: str = ""
    image_id: str = ""
    labels: Mapping[str, str] = {}
    """What is settled by now: instance type, zone, capacity type, reservation, and whatever else the provider knows."""
    annotations: Mapping[str, str] = {}
    capacity: Resources = {}
    allocatable: Resources = {}
    launched_at: datetime | None = None
    terminating: bool = False
    """Whether it is on its way out; it still counts until it is gone."""


class CloudProvider(Protocol):
    """A cloud: what can be bought, and the buying.

    Everything is handed out frozen and may be shared by all callers. A provider caches nothing of what it derives: the
    catalogue cache in front of it does, by `generation`. It never decides what to buy: it chooses only among the options it is
    handed. A class that derives from it has what is the same for most clouds. One that has to do something with a machine before
    its node is registered has `registration_hooks`, too.
    """

    @property
    def name(self) -> str:
        """The name it is registered under."""
        ...

    def node_classes(self) -> tuple[type[KubeObject], ...]:
        """The kinds of NodeClass it reads; the first one is the default."""
        ...

    def vocabulary(self) -> Vocabulary:
        """The labels it knows, beside the well-known ones."""
        ...

    def repair_policies(self) -> tuple[RepairPolicy, ...]:
        """Which node conditions mean a broken machine."""
        return NOT_READY

    def generation(self, pool: NodePool) -> Hashable:
        """A value that differs whenever `instance_types` of the pool would. Cheap, and it never waits.

        It is compared, never mixed with anything by arithmetic. What expires with time moves it as well. It does not come back to
        what it was while types are fetched: what was read in between would be taken for current.
        """
        ...

    async def instance_types(self, pool: NodePool) -> tuple[InstanceType, ...]:
        """All types the pool's NodeClass can launch, also those with nothing available right now.

        Raises NodeClassNotReady when the class is missing or not ready, Transient when it is worth asking again.
        """
        ...

    def prices(self, pool: NodePool) -> str:
        """Where the pool's prices come from and how old they are, in a few words, to be shown beside them."""
        ...

    def details(self, pool: NodePool) -> Details:
        """The rest of what can be told about the pool's supply. Raises what `instance_types` raises."""
        return Details(sources=(self.prices(pool),))

    def node_class_problems(self, node_class: KubeObject) -> tuple[FieldProblem, ...]:
        """What is wrong with a NodeClass of ours that its schema cannot know, as far as it shows without a cloud."""
        return ()

    async def create(self, claim: NodeClaim, options: Sequence[Option]) -> Instance:
        """Buy a machine for the claim: one of the options, the first ones rather than the last.

        The UID of the claim stands for the purchase: asked again with the same one, it gives the machine it gave before, however
        often answers were lost. Raises InsufficientCapacity with everything that was tried in vain (and remembers that until it
        expires, moving the generation), NodeClassNotReady, LaunchFailed, Transient.
        """
        ...

    async def get(self, provider_id: str) -> Instance:
        """The machine as it is now. Raises InstanceNotFound when it is gone. May be as far behind as `list`."""
        ...

    async def list(self) -> tuple[Instance, ...]:
        """All machines that were bought for a claim of this cluster, terminating ones too, by provider id.

        Machines younger than `UNLISTED_S` may be missing.
        """
        ...

    async def delete(self, provider_id: str) -> None:
        """Ask for the machine to go. Repeated until it raises InstanceNotFound, which says that it is gone."""
        ...

    async def reboot(self, claim: NodeClaim, operation_id: str) -> None:
        """Restart the machine; gives back once that is accepted. The same operation id is safe to repeat.

        Raises RebootNotSupported, RebootRefused and InstanceNotFound, which are final; anything else is tried again.
        """
        raise RebootNotSupported(f"the provider {self.name} cannot restart machines")

    async def drift_reason(self, claim: NodeClaim) -> str:
        """Why the machine no longer is what its NodeClass asks for; empty when it is.

        Whatever can change the answer moves the `generation` of the claim's pool: claims are only looked at again when it has.
        """
        return ""


class HasBackground(Protocol):
    """A provider that does something by itself, and may write while it does."""

    def start(self, client: Client, tasks: Tasks) -> None:
        """Begin: this process leads now. It all ends with `tasks`."""
        ...


def begin(provider: object, client: Client, tasks: Tasks) -> None:
    """Let a provider begin with what it does by itself; nothing happens where it does not."""
    start = getattr(provider, "start", None)  # a wrapper may pass it through
    if start is not None:
        start(client, tasks)


class Connect(Protocol):
    """What a provider's entry point must be: given the outside, it gives the provider."""

    def __call__(
        self, *, node_classes: NodeClasses, clock: Clock, client: Client | None = None, tasks: Tasks | None = None
    ) -> CloudProvider:
        """The provider, ready to be asked.

        Commands that only look at what could be bought give no client; buying may then be refused. What a provider does in the
        background goes into `tasks`, so that it ends with everything else. Here that is only what writes nothing: a replica that
        stands by is connected, too. The rest begins with `HasBackground.start`.
        """
        ...
