"""The provider door: what a cloud must be able to do, and what it may count on.

kwok is the example to read; `tests/contract/test_provider.py` is the suite every provider must pass.
"""

from collections.abc import Hashable
from typing import Protocol, TypeVar

from joiner.admission.problem import Problem
from joiner.catalog.market import InstanceType
from joiner.clock import Clock
from joiner.cloud.repair import RepairPolicy
from joiner.cloud.sources.reservation import Standing
from joiner.model.labels import Vocabulary
from joiner.model.meta import KubeObject, Value
from joiner.model.nodeclaim import NodeClaim
from joiner.model.nodepool import NodePool

K = TypeVar("K", bound=KubeObject)


class NodeClasses(Protocol):
    """The NodeClass objects there are, read without waiting."""

    def get(self, kind: type[K], name: str) -> K | None:
        """The NodeClass of that name, if there is one."""
        ...


class Details(Value):
    """What a person who looks into the matter wants to know about a pool's supply."""

    sources: tuple[str, ...] = ()
    """Where the types and prices come from, in full."""
    reservations: tuple[Standing, ...] = ()
    """The capacity reservations of the NodeClass, also those that are of no use."""


class CloudProvider(Protocol):
    """A cloud, as far as choosing what to buy is concerned.

    Everything is handed out frozen and may be shared by all callers. A provider caches nothing of what it derives: the
    catalogue cache in front of it does, by `generation`.
    """

    @property
    def name(self) -> str:
        """The name it is registered under."""
        ...

    def node_classes(self) -> tuple[type[KubeObject], ...]:
        """The kinds of NodeClass it reads; the first one is the default."""
        ...

    def vocabulary(self) -> Vocabulary:
        """The labels it knows, over the ones everybody knows."""
        ...

    def repair_policies(self) -> tuple[RepairPolicy, ...]:
        """Which node conditions mean a broken machine."""
        ...

    def generation(self, pool: NodePool) -> Hashable:
        """A value that differs whenever `instance_types` of the pool would. Cheap, and it never waits.

        It is compared, never mixed with anything by arithmetic. What expires with time moves it as well.
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
        ...

    def node_class_problems(self, node_class: KubeObject) -> tuple[Problem, ...]:
        """What is wrong with a NodeClass of ours that its schema cannot know, as far as it shows without a cloud."""
        ...

    async def drift_reason(self, claim: NodeClaim) -> str:
        """Why the machine no longer is what its NodeClass asks for; empty when it is."""
        ...


class Connect(Protocol):
    """What a provider's entry point must be: given the outside, it gives the provider."""

    def __call__(self, *, node_classes: NodeClasses, clock: Clock) -> CloudProvider:
        """The provider, ready to be asked."""
        ...
