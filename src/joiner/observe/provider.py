"""A provider that counts: how long every call takes, and which errors it ends with. It changes nothing else."""

from collections.abc import Awaitable, Callable, Hashable, Sequence
from typing import Final, TypeVar

from joiner.admission.problem import FieldProblem
from joiner.catalog.market import InstanceType, Option
from joiner.clock import Clock
from joiner.cloud.errors import CloudError, InstanceNotFound, InsufficientCapacity, NodeClassNotReady
from joiner.cloud.interruption import NoticeQueue, interruptions_of
from joiner.cloud.provider import CloudProvider, Details, Instance
from joiner.cloud.registration import RegistrationHook, hooks_of
from joiner.cloud.repair import RepairPolicy
from joiner.kube.controller import AT_WORK
from joiner.model import labels
from joiner.model.labels import Vocabulary
from joiner.model.meta import KubeObject
from joiner.model.nodeclaim import NodeClaim
from joiner.model.nodepool import NodePool
from joiner.observe.metrics import Metrics

T = TypeVar("T")
_NOBODY: Final = str
"""Makes the empty name: the call is about no pool, or it is not known about which."""

_ERRORS: Final = (
    (InsufficientCapacity, "InsufficientCapacityError"),
    (InstanceNotFound, "NodeClaimNotFoundError"),
    (NodeClassNotReady, "NodeClassNotReadyError"),
)


class Metered:
    """Another provider, with a meter on every call that goes out. `pool_of` tells whose machine an id is."""

    def __init__(
        self,
        provider: CloudProvider,
        clock: Clock,
        metrics: Metrics,
        pool_of: Callable[[str], str] = lambda machine: "",
    ) -> None:
        self._provider, self._clock, self._metrics, self._pool_of = provider, clock, metrics, pool_of

    @property
    def name(self) -> str:
        """The other's."""
        return self._provider.name

    def node_classes(self) -> tuple[type[KubeObject], ...]:
        """The other's."""
        return self._provider.node_classes()

    def vocabulary(self) -> Vocabulary:
        """The other's."""
        return self._provider.vocabulary()

    def repair_policies(self) -> tuple[RepairPolicy, ...]:
        """The other's."""
        return self._provider.repair_policies()

    def registration_hooks(self) -> tuple[RegistrationHook, ...]:
        """The other's, if it has any."""
        return hooks_of(self._provider)

    def interruptions(self) -> NoticeQueue | None:
        """The other's, if it has any."""
        return interruptions_of(self._provider)

    def generation(self, pool: NodePool) -> Hashable:
        """The other's."""
        return self._provider.generation(pool)

    def prices(self, pool: NodePool) -> str:
        """The other's."""
        return self._provider.prices(pool)

    def details(self, pool: NodePool) -> Details:
        """The other's."""
        return self._provider.details(pool)

    def node_class_problems(self, node_class: KubeObject) -> tuple[FieldProblem, ...]:
        """The other's."""
        return self._provider.node_class_problems(node_class)

    async def instance_types(self, pool: NodePool) -> tuple[InstanceType, ...]:
        """The other's, counted."""
        return await self._counted("GetInstanceTypes", lambda: pool.name, self._provider.instance_types(pool))

    async def create(self, claim: NodeClaim, options: Sequence[Option]) -> Instance:
        """The other's, counted."""
        return await self._counted("Create", lambda: _pool(claim), self._provider.create(claim, options))

    async def get(self, provider_id: str) -> Instance:
        """The other's, counted."""
        return await self._counted("Get", _NOBODY, self._provider.get(provider_id))

    async def list(self) -> tuple[Instance, ...]:
        """The other's, counted."""
        return await self._counted("List", _NOBODY, self._provider.list())

    async def delete(self, provider_id: str) -> None:
        """The other's, counted."""
        await self._counted("Delete", lambda: self._pool_of(provider_id), self._provider.delete(provider_id))

    async def reboot(self, claim: NodeClaim, operation_id: str) -> None:
        """The other's, counted."""
        await self._counted("Reboot", lambda: _pool(claim), self._provider.reboot(claim, operation_id))

    async def drift_reason(self, claim: NodeClaim) -> str:
        """The other's, counted."""
        return await self._counted("IsDrifted", lambda: _pool(claim), self._provider.drift_reason(claim))

    async def _counted(self, method: str, pool: Callable[[], str], call: Awaitable[T]) -> T:
        controller, started = AT_WORK.get(), self._clock.monotonic()
        try:
            return await call
        except CloudError as error:
            named = next((name for kind, name in _ERRORS if isinstance(error, kind)), "unknown")
            self._metrics.cloudprovider_errors_total.labels(controller, method, self.name, named, pool()).inc()
            raise
        finally:
            took = self._clock.monotonic() - started
            self._metrics.cloudprovider_duration_seconds.labels(controller, method, self.name).observe(took)


def _pool(claim: NodeClaim) -> str:
    return claim.metadata.labels.get(labels.NODEPOOL, "")
