"""Builds every controller and what they share, once. Two minutes of reading show the whole system.

The same function builds the controllers for a real cluster and for a simulated one: only the doors differ.
"""

import socket
import uuid
from collections.abc import Callable, Mapping
from random import Random
from typing import Any, TypeVar

from joiner import __version__
from joiner.clock import Clock
from joiner.cloud.catalogcache import Catalogs
from joiner.cloud.counts import counts_of
from joiner.cloud.interruption import interruptions_of
from joiner.cloud.provider import CloudProvider, NodeClasses, begin
from joiner.cloud.repair import policy_problems
from joiner.cloud.telling import HasEvents
from joiner.controllers import mirror
from joiner.controllers.decisionlog import DecisionLog
from joiner.controllers.disruption.controller import Disruption
from joiner.controllers.disruption.deletioncost import PodDeletionCost
from joiner.controllers.disruption.observation import Observation
from joiner.controllers.disruption.queue import CommandQueue
from joiner.controllers.disruption.repair import Repair
from joiner.controllers.indexes import INDEXES
from joiner.controllers.market.adjustments import LiveAdjustments
from joiner.controllers.market.status import OverlayStatus, SettingsStatus
from joiner.controllers.metrics import ConditionWatch, PodWatch
from joiner.controllers.node.eviction import EvictionQueue
from joiner.controllers.node.health import Health
from joiner.controllers.node.reboot import Reboot
from joiner.controllers.node.termination import Termination
from joiner.controllers.nodeclaim.conditions import ClaimConditions
from joiner.controllers.nodeclaim.consistency import Consistency
from joiner.controllers.nodeclaim.expiration import Expiration
from joiner.controllers.nodeclaim.garbagecollection import ClaimGarbageCollection
from joiner.controllers.nodeclaim.hydration import ClaimHydration, NodeHydration
from joiner.controllers.nodeclaim.interruption import Interruption
from joiner.controllers.nodeclaim.lifecycle import Lifecycle
from joiner.controllers.nodeclaim.podevents import PodEvents
from joiner.controllers.nodeclaim.reservationends import ReservationEnds
from joiner.controllers.nodepool.counter import Counter
from joiner.controllers.nodepool.readiness import Hash, Readiness, Validation
from joiner.controllers.nodepool.registrationhealth import RegistrationHealth
from joiner.controllers.nodepool.static import StaticDeprovisioning, StaticProvisioning
from joiner.controllers.planning import Compute, Offload, here, inline
from joiner.controllers.provisioning.batcher import Batcher
from joiner.controllers.provisioning.buffers import CapacityBuffers, VirtualPods
from joiner.controllers.provisioning.claimwriter import ClaimWriter, Unseen
from joiner.controllers.provisioning.launchretries import LaunchRetries
from joiner.controllers.provisioning.provisioner import NodeTrigger, PodTrigger, Provisioner
from joiner.controllers.shared import Shared
from joiner.kube.client import Client, Key
from joiner.kube.controller import Change, Controller
from joiner.kube.informer import Informers
from joiner.kube.manager import Manager
from joiner.kube.tasks import Tasks
from joiner.model import labels
from joiner.model.meta import KubeObject
from joiner.model.node import Node
from joiner.model.nodeclaim import NodeClaim
from joiner.model.nodepool import NodePool
from joiner.model.pod import Pod
from joiner.observe.catalogs import CatalogCollector, OfferingCollector
from joiner.observe.cluster import ClusterCollector, StateCollector
from joiner.observe.conditions import ConditionCollector, Transitions, watched_kinds
from joiner.observe.counts import CountsCollector
from joiner.observe.events import Recorder
from joiner.observe.logs import Log
from joiner.observe.metrics import Metrics
from joiner.observe.pods import PodCollector
from joiner.observe.provider import Metered
from joiner.options import Options, OptionsError
from joiner.scheduling.pods.defaultspread import ConfigProblem, Defaults, configured
from joiner.state.cluster import Cluster
from joiner.state.managed import Managed

K = TypeVar("K", bound=KubeObject)
Connect = Callable[[NodeClasses, Client, Tasks], CloudProvider]
"""Builds the provider from the client and the cache of NodeClasses."""
Failed = Callable[[str, Key, Exception], None]


Spread = Defaults
"""How pods are spread that say nothing about it themselves."""


def replica_identity(environment: Mapping[str, str]) -> str:
    """Who this replica is in the election: its pod, else its machine, and something that no other process has."""
    return f"{environment.get('POD_NAME') or socket.gethostname()}_{uuid.uuid4()}"


def chance() -> Random:
    """Random numbers that no seed repeats: for names and for the spreading of retries in a real process."""
    return Random()


def spread_of(configuration: Any) -> Spread:
    """What a kube-scheduler's configuration says about spreading pods. Raises OptionsError with every problem."""
    try:
        return configured(configuration)
    except ConfigProblem as problem:
        raise OptionsError(problem.problems) from None


class _CachedClasses:
    """NodeClasses out of the caches."""

    def __init__(self, informers: Informers) -> None:
        self._informers = informers

    def get(self, kind: type[K], name: str) -> K | None:
        """The NodeClass of that name, if there is one."""
        return self._informers.get(kind, name)


class Joiner:
    """All controllers with everything they share, ready to run. Thrown away, nothing is lost that the server does not have."""

    def __init__(
        self,
        *,
        options: Options,
        client: Client,
        connect: Connect,
        clock: Clock,
        random: Random,
        spread: Spread | None = None,
        failed: Failed = lambda controller, key, error: None,
        log: Log | None = None,
        compute: Compute = inline,
        apart: Offload = here,
        jitter: Random | None = None,
    ) -> None:
        """`spread` is what the scheduler's configuration says about pods that say nothing themselves.

        `compute` is where plans are made, `apart` where other long computations run; with `jitter` caches that lost their watch
        do not all come back at the same moment.
        """
        self.options, self.client, self.clock = options, client, clock
        self._chance = random.getrandbits(64)
        self.tasks = Tasks()
        self.metrics = Metrics(clock)
        self.metrics.build_info.labels(version=__version__, goversion="", goarch="", commit="").set(1)
        self.recorder = Recorder(client, clock)
        # A plan that does not know of a claim buys for its pods again, and beyond the limits of its pool.
        self.informers = Informers(client, INDEXES, latest=frozenset({NodeClaim}), jitter=jitter)
        self._bare = provider = connect(_CachedClasses(self.informers), client, self.tasks)
        if isinstance(provider, HasEvents):
            provider.tell_with(self.recorder.publish)
        self.provider = Metered(provider, clock, self.metrics, self._pool_of)
        self.vocabulary = self.provider.vocabulary()
        self.managed = Managed(self.provider.node_classes())
        self.cluster = Cluster(self.vocabulary, self.managed)
        mirror.connect(self.informers, self.cluster)
        self.adjustments = LiveAdjustments(self.informers, self.vocabulary, overlays=options.gates.node_overlay)
        self.catalogs = Catalogs(self.provider, self.adjustments, clock)
        for kind in self.provider.node_classes():
            self.informers.of(kind)
        self._shared = Shared(
            client=client,
            informers=self.informers,
            cluster=self.cluster,
            provider=self.provider,
            catalogs=self.catalogs,
            vocabulary=self.vocabulary,
            managed=self.managed,
            clock=clock,
            recorder=self.recorder,
            metrics=self.metrics,
            options=options,
            default_spread=spread or {},
            compute=compute,
            apart=apart,
            log=log or Log(clock),
        )
        self._observe()
        if log is not None:
            self.recorder.listeners.append(DecisionLog(self.informers, log).told)
        self.controllers = (*self._provisioning(), *self._lives(), *self._disruption(), *self._pools())
        self._told = failed
        self.manager = Manager(self.informers, self.controllers, self._failed)

    def _failed(self, controller: str, key: Key, error: Exception) -> None:
        self.metrics.reconcile_errors_total.labels(controller, type(error).__name__).inc()
        self._told(controller, key, error)

    def _observe(self) -> None:
        """Metrics and events by which nothing is decided. Most are only read when they are scraped."""
        register = self.metrics.registry.register
        register(CatalogCollector(self.catalogs.stats))
        register(CountsCollector(counts_of(self._bare)))
        register(StateCollector(cluster=self.cluster, pools=self._own_pools, clock=self.clock))
        self.informers.of(NodePool).listen(self._pool_gone)
        if not self.options.disable_detailed_metrics:
            register(OfferingCollector(self.catalogs.supplies))
        if self.options.disable_cluster_state_observability:
            return
        register(
            ClusterCollector(
                cluster=self.cluster,
                pools=self._own_pools,
                clock=self.clock,
                vocabulary=self.vocabulary,
                price=self.catalogs.price,
            )
        )
        self._observe_conditions()
        pods = PodWatch(self.informers, self.cluster, self.metrics)
        if not self.options.disable_detailed_metrics:
            register(
                PodCollector(
                    pods=self.informers.of(Pod).store.all,
                    nodes=self.informers.of(Node).store.all,
                    times=self.cluster.times,
                    starting=pods.is_starting,
                    clock=self.clock,
                )
            )

    def _observe_conditions(self) -> None:
        gates, registry = self.options.gates, self.metrics.registry
        kinds = watched_kinds(self.provider.node_classes(), overlays=gates.node_overlay, buffers=gates.capacity_buffer)
        ConditionWatch(self.informers, Transitions(registry, self.clock, kinds), self.recorder, kinds)
        objects = {each: self.informers.of(each.kind).store.all for each in kinds}
        registry.register(ConditionCollector(self.clock, objects))

    def _own_pools(self) -> tuple[NodePool, ...]:
        return tuple(pool for pool in self.informers.all(NodePool) if self.managed.pool(pool))

    def _pool_gone(self, change: Change) -> None:
        """Nothing is told of a pool that is gone."""
        if change.after is None:
            self.catalogs.forget(change.before.name)

    def _pool_of(self, machine: str) -> str:
        claims = self.informers.by(NodeClaim, "provider-id", machine)
        return claims[0].metadata.labels.get(labels.NODEPOOL, "") if claims else ""

    def _provisioning(self) -> tuple[Controller, ...]:
        """Pods in, claims out."""
        shared, gates, batcher = self._shared, self.options.gates, self._batcher()
        retries = LaunchRetries(self.clock)
        self.cluster.on_settled(retries.learn)
        self.claims = ClaimWriter(shared, retries=retries, random=self._random("names of claims"))
        self._room = room = VirtualPods(shared) if gates.capacity_buffer else None
        buffers = (CapacityBuffers(shared, batcher=batcher, room=room),) if room is not None else ()
        static = (StaticProvisioning(shared, claims=self.claims), StaticDeprovisioning(shared))
        return (
            PodTrigger(shared, batcher=batcher),
            NodeTrigger(batcher=batcher),
            Provisioner(shared, claims=self.claims, retries=retries, batcher=batcher, room=room),
            Unseen(shared, claims=self.claims),
            *buffers,
            *(static if gates.static_capacity else ()),
        )

    def _random(self, name: str) -> Random:
        """Chance for one user of it: a new draw in one place does not shift all others."""
        return Random(f"{self._chance}/{name}")

    def _batcher(self) -> Batcher:
        return Batcher(idle_s=self.options.batch_idle_duration, most_s=self.options.batch_max_duration)

    def _lives(self) -> tuple[Controller, ...]:
        """Claims and nodes, from the first day to the last."""
        shared = self._shared
        health, evictions = RegistrationHealth(shared), EvictionQueue(shared)
        notices = interruptions_of(self.provider)
        return (
            Lifecycle(shared, health=health, planned_pods=self.cluster.promised),
            health,
            evictions,
            Termination(shared, evictions=evictions),
            Expiration(shared),
            ClaimGarbageCollection(shared),
            Consistency(shared),
            ClaimHydration(shared),
            NodeHydration(shared),
            PodEvents(shared),
            ReservationEnds(shared),
            ClaimConditions(shared),
            Reboot(shared, evictions=evictions),
            *((Interruption(shared, notices=notices),) if notices is not None else ()),
        )

    def _disruption(self) -> tuple[Controller, ...]:
        """Nodes that have to go: the queue that carries that out, and the two controllers that decide it."""
        commands = CommandQueue(self._shared, claims=self.claims)
        virtual = self._room.pods if self._room is not None else None
        self._deciding = deciding = Disruption(self._shared, commands=commands, virtual=virtual)
        costs: tuple[Controller, ...] = ()
        if self.options.gates.pod_deletion_cost_management:
            costs = (PodDeletionCost(self._shared, observation=Observation(self._shared, commands, virtual)),)
        if not self.options.gates.node_repair:
            return (commands, deciding, *costs)
        policies = self.provider.repair_policies()
        problems = policy_problems(policies) if policies else ("it has no repair policies",)
        if problems:
            raise OptionsError(
                f"feature gate NodeRepair cannot be on with the provider {self.provider.name}: {problem}"
                for problem in problems
            )
        if self.options.legacy_node_repair:
            return commands, deciding, *costs, Health(self._shared, policies=policies)
        return commands, deciding, *costs, Repair(self._shared, commands=commands, policies=policies)

    def _pools(self) -> tuple[Controller, ...]:
        """Pools, overlays and InstanceType settings."""
        shared = self._shared
        return (
            Readiness(shared),
            Validation(shared),
            Hash(shared),
            Counter(shared),
            *((OverlayStatus(shared),) if self.options.gates.node_overlay else ()),
            SettingsStatus(shared),
        )

    async def proposed(self) -> tuple[str, ...]:
        """What would be done about nodes now, in words, without doing it: nothing in a cluster that is at rest."""
        return await self._deciding.proposed()

    async def run(self) -> None:
        """Run until cancelled."""
        self.tasks.start("events", self.recorder.run())
        begin(self._bare, self.client, self.tasks)
        try:
            await self.manager.run()
        finally:
            await self.tasks.close()
