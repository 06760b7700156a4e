"""The situation that decisions about nodes are made in, put together from caches, state, catalogues and the command queue."""

from collections.abc import Callable, Iterable

from joiner.catalog.build import Catalog
from joiner.cloud.errors import CloudError
from joiner.controllers.disruption.queue import CommandQueue
from joiner.controllers.provisioning.pools import Pools, SpreadDefaults, policy_of
from joiner.controllers.shared import Shared
from joiner.disruption.situation import Rules, Situation
from joiner.model import podrules
from joiner.model.duration import Duration
from joiner.model.nodepool import NodePool
from joiner.model.pod import Pod
from joiner.model.podpolicy import PodDisruptionBudget
from joiner.options import Options
from joiner.scheduling.problem import Storage
from joiner.state.snapshot import Snapshot

VirtualPods = Callable[[], tuple[Pod, ...]]
"""Tells the virtual pods of all CapacityBuffers."""


def rules_of(shared: Shared) -> Rules:
    """How nodes are judged, by the options."""
    options: Options = shared.options
    gates = options.gates
    return Rules(
        policy=policy_of(options),
        vocabulary=shared.vocabulary,
        eviction_cost=Duration.of_seconds(options.eviction_cost),
        longest_horizon=Duration.of_seconds(options.longest_horizon),
        spot_to_spot=gates.spot_to_spot_consolidation,
        terminate_first_drift=gates.terminate_first_drift,
        deletion_cost_is_ours=gates.pod_deletion_cost_management,
    )


class Observation:
    """Looks at the cluster."""

    def __init__(self, shared: Shared, commands: CommandQueue, virtual: VirtualPods | None = None) -> None:
        self._informers, self._cluster, self._catalogs = shared.informers, shared.cluster, shared.catalogs
        self._managed, self._clock, self._commands = shared.managed, shared.clock, commands
        self._pools, self._spread = Pools(shared), SpreadDefaults(shared)
        self._rules, self._virtual = rules_of(shared), virtual or (lambda: ())
        self._storage: tuple[Snapshot, Storage] | None = None
        shared.informers.of(PodDisruptionBudget)

    async def situation(self) -> Situation:
        """The cluster as it is now. What takes time is asked first, so that all the rest is of one moment."""
        options, _ = await self._pools.options(self._cluster.snapshot(self._clock.now()))
        catalogs: dict[str, Catalog] = {each.pool.name: each.catalog for each in options}
        unknown: dict[str, str] = {}
        pools = {pool.name: pool for pool in self._informers.all(NodePool) if self._managed.pool(pool)}
        for pool in pools.values():
            if pool.name not in catalogs:
                try:
                    catalogs[pool.name] = await self._catalogs.get(pool)
                except CloudError as error:
                    unknown[pool.name] = str(error)
        now = self._clock.now()
        snapshot = self._cluster.snapshot(now)
        claims = [each.claim.name for each in snapshot.nodes if each.claim is not None]
        return Situation(
            snapshot=snapshot,
            now=now,
            pools=pools,
            options=options,
            catalogs=catalogs,
            unknown=unknown,
            pod_budgets=_by_namespace(self._informers.all(PodDisruptionBudget)),
            nominated=frozenset(name for name in claims if self._cluster.is_nominated(name, now)),
            queued=self._commands.owned,
            virtual=self._virtual(),
            storage=self._storage_of(snapshot),
            stale_since=self._pools.stale_since(options),
            spread=self._spread.applied,
            rules=self._rules,
        )

    def _storage_of(self, snapshot: Snapshot) -> Storage:
        """What the volumes of all pods lead to that may need another node."""
        if self._storage is None or self._storage[0] is not snapshot:
            moving = (
                pod
                for each in snapshot.nodes
                if each.claim is not None
                for pod in each.pods
                if pod.spec.volumes and podrules.is_reschedulable(pod)
            )
            pods = (*snapshot.waiting, *snapshot.evicted, *moving)
            self._storage = (snapshot, self._cluster.storage_of(pods))
        return self._storage[1]


def _by_namespace(budgets: Iterable[PodDisruptionBudget]) -> dict[str, tuple[PodDisruptionBudget, ...]]:
    found: dict[str, tuple[PodDisruptionBudget, ...]] = {}
    for budget in budgets:
        found[budget.metadata.namespace] = (*found.get(budget.metadata.namespace, ()), budget)
    return found
