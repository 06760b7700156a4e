"""A provisioner at work, over a pretend API server and a shop with a small shelf; nobody launches anything unless a test does."""

import asyncio
from collections.abc import Awaitable, Callable, Hashable, Iterable
from random import Random
from typing import Any

from tests.apiworld import Served, served
from tests.builders import SHELF, VOCABULARY, node_pool, pod
from tests.unit.controllers.sharedparts import shared

from joiner.catalog.build import Adjustments
from joiner.catalog.market import InstanceType
from joiner.clock import Clock
from joiner.cloud.catalogcache import Catalogs
from joiner.cloud.kwok.nodeclass import KWOKNodeClass
from joiner.cloud.unavailable import Unavailable
from joiner.controllers import mirror
from joiner.controllers.indexes import INDEXES
from joiner.controllers.provisioning.batcher import Batcher
from joiner.controllers.provisioning.buffers import VirtualPods
from joiner.controllers.provisioning.claimwriter import ClaimWriter, Unseen
from joiner.controllers.provisioning.launchretries import LaunchRetries
from joiner.controllers.provisioning.provisioner import NodeTrigger, PodTrigger, Provisioner
from joiner.kube.client import Key
from joiner.kube.controller import Controller
from joiner.kube.informer import Informers
from joiner.kube.manager import Manager
from joiner.kube.tasks import Tasks
from joiner.model.codec import decode
from joiner.model.conditions import Condition, Status
from joiner.model.labels import INITIALIZED, NODEPOOL, REGISTERED, Vocabulary
from joiner.model.meta import KubeObject, replace
from joiner.model.node import Node
from joiner.model.nodeclaim import NodeClaim
from joiner.model.nodepool import NodePool
from joiner.model.pod import Pod, PodCondition, PodStatus
from joiner.observe.events import Recorder
from joiner.observe.metrics import Metrics
from joiner.options import Options
from joiner.scheduling.effort import Effort
from joiner.scheduling.plan import Plan
from joiner.scheduling.pods.defaultspread import Defaults
from joiner.scheduling.problem import Problem
from joiner.scheduling.schedule import schedule
from joiner.sim.apiserver.client import Interceptor
from joiner.sim.virtualtime import EPOCH
from joiner.state.cluster import Cluster
from joiner.state.managed import Managed

WAITING = PodStatus(
    phase="Pending", conditions=(PodCondition(type="PodScheduled", status="False", reason="Unschedulable"),)
)
READY = Condition(type="Ready", status="True", reason="Ready", last_transition_time=EPOCH)


class Shop:
    """A provider that is only ever asked what it has; errors and shortages are in the hands of the test."""

    name = "shop"

    def __init__(self, clock: Clock, types: Iterable[InstanceType] = SHELF) -> None:
        self.types = tuple(types)
        self.unavailable = Unavailable(clock)
        self.errors: dict[str, Exception] = {}
        self.moves = 0

    def vocabulary(self) -> Vocabulary:
        return VOCABULARY

    def generation(self, pool: NodePool) -> Hashable:
        return (self.moves, pool.name in self.errors, self.unavailable.generation())

    async def instance_types(self, pool: NodePool) -> tuple[InstanceType, ...]:
        if pool.name in self.errors:
            raise self.errors[pool.name]
        return self.unavailable.apply(self.types)

    def sell_out(self, capacity_type: str = "") -> None:
        """Nothing is left of anything, or of one capacity type, for a while."""
        for each in self.types:
            for offering in each.offerings:
                if capacity_type in ("", offering.capacity_type):
                    self.unavailable.mark(each.name, offering)


class Workshop:
    """Everything that provisions."""

    def __init__(
        self,
        world: Served,
        options: Options,
        more: Callable[["Workshop"], Iterable[Controller]],
        *,
        buffered: bool = False,
        spread: Defaults | None = None,
    ) -> None:
        self.world, self.server, self.clock, self.client = world, world.server, world.clock, world.client
        self.options = options
        self.shop = Shop(world.clock)
        self.informers = Informers(self.client, INDEXES)
        self.managed = Managed((KWOKNodeClass,))
        self.cluster = Cluster(VOCABULARY, self.managed)
        mirror.connect(self.informers, self.cluster)
        self.recorder = Recorder(self.client, self.clock)
        self.metrics = Metrics()
        self.adjustments = Adjustments()
        self.catalogs = Catalogs(self.shop, lambda: self.adjustments, self.clock)
        self.batcher = Batcher(idle_s=options.batch_idle_duration, most_s=options.batch_max_duration)
        self.shared = shared(
            self.client,
            self.informers,
            self.clock,
            self.shop,
            cluster=self.cluster,
            catalogs=self.catalogs,
            recorder=self.recorder,
            metrics=self.metrics,
            options=options,
            default_spread=spread or {},
            compute=self._compute,
        )
        retries = LaunchRetries(self.clock)
        self.cluster.on_settled(retries.learn)
        self.claims_writer = ClaimWriter(self.shared, retries=retries, random=Random(1))
        self.room = VirtualPods(self.shared) if buffered else None
        self.failures: list[tuple[str, Key, Exception]] = []
        self.plans = 0
        controllers: list[Controller] = [
            PodTrigger(self.shared, batcher=self.batcher),
            NodeTrigger(batcher=self.batcher),
            Provisioner(self.shared, claims=self.claims_writer, batcher=self.batcher, room=self.room, retries=retries),
            Unseen(self.shared, claims=self.claims_writer),
            *more(self),
        ]
        for kind in (NodePool, NodeClaim):
            self.informers.of(kind)
        self.manager = Manager(self.informers, controllers, lambda *failure: self.failures.append(failure))

    async def _compute(self, problem: Problem, effort: Effort | None) -> Plan:
        self.plans += 1
        return schedule(problem, effort=effort)

    # -- the world ----------------------------------------------------------------------------------------------------

    def load(self, *things: KubeObject) -> None:
        """Let objects in as they are."""
        self.server.load(things)

    def remove(self, thing: KubeObject) -> None:
        """Delete an object, whoever wants to keep it."""
        found = self.server.get(type(thing), thing.name, thing.metadata.namespace)
        if found.metadata.finalizers:
            self.server.patch("test", found, replace(found, metadata=replace(found.metadata, finalizers=())))
        if found.metadata.deletion_timestamp is None:
            self.server.delete("test", type(thing), thing.name, thing.metadata.namespace)

    def claims(self) -> list[NodeClaim]:
        """The claims there are, by name."""
        return sorted(self.server.objects(NodeClaim), key=lambda claim: claim.name)

    def told(self, reason: str) -> list[str]:
        """Which objects something was told about."""
        return sorted(each.thing for each in self.recorder.recent if each.reason == reason)

    def launch(self, claim: NodeClaim, cpu: int = 4, zone: str = "a") -> NodeClaim:
        """The machine of a claim is there."""
        amounts = {"cpu": cpu, "memory": f"{4 * cpu}Gi", "pods": 8 * cpu}
        made = decode({"status": {"capacity": amounts, "allocatable": amounts}}, NodeClaim).status
        launched = self._condition("True", "Launched")
        status = replace(made, provider_id=f"shop://{claim.name}", conditions=(launched,))
        labelled = {**claim.metadata.labels, "topology.kubernetes.io/zone": zone, "kubernetes.io/arch": "amd64"}
        claim = self.server.patch(
            "test",
            claim,
            replace(claim, metadata=replace(claim.metadata, labels={**labelled, "kubernetes.io/os": "linux"})),
        )
        return self.server.patch_status("test", claim, replace(claim, status=status))

    def join(self, claim: NodeClaim) -> None:
        """The node of a claim is there and complete."""
        self.launch(claim)
        done = {REGISTERED: "true", INITIALIZED: "true", NODEPOOL: claim.metadata.labels[NODEPOOL]}
        made = own_node(f"node-{claim.name}", 4, **done)
        self.load(replace(made, spec=replace(made.spec, provider_id=f"shop://{claim.name}")))

    def _condition(self, status: Status, reason: str) -> Condition:
        return Condition(type="Launched", status=status, reason=reason, last_transition_time=self.clock.now())

    def fail_launch(self, claim: NodeClaim) -> NodeClaim:
        """The provider does not want to."""
        failed = self._condition("Unknown", "LaunchFailed")
        return self.server.patch_status(
            "test", claim, replace(claim, status=replace(claim.status, conditions=(failed,)))
        )


async def seconds(count: float) -> None:
    """Let time pass."""
    await asyncio.sleep(count)


def at_work(
    test: Callable[[Workshop], Awaitable[None]],
    *,
    more: Callable[[Workshop], Iterable[Controller]] = lambda shop: (),
    interceptor: Interceptor | None = None,
    buffered: bool = False,
    spread: Defaults | None = None,
    may_fail: bool = False,
    **options: Any,
) -> None:
    """Run a test with everything at work; controllers may fail only where the test makes them."""

    async def main(world: Served) -> None:
        shop = Workshop(world, Options(**options), more, buffered=buffered, spread=spread)
        tasks = Tasks()
        tasks.start("manager", shop.manager.run())
        tasks.start("recorder", shop.recorder.run())
        await test(shop)
        await tasks.close()
        assert may_fail or not shop.failures, shop.failures

    served(main, interceptor=interceptor)


def ready_pool(name: str = "default", **more: Any) -> NodePool:
    """A pool that can be used."""
    pool = node_pool(name, **more)
    return replace(pool, status=replace(pool.status, conditions=(READY,)))


def waiting_pod(name: str = "web", cpu: str = "1", **more: Any) -> Pod:
    """A pod that no node would take."""
    made = replace(pod(name, cpu, **more), status=WAITING)
    return replace(made, metadata=replace(made.metadata, uid=""))


def own_node(name: str, cpu: int = 4, **labels: str) -> Node:
    """A node that nobody claimed."""
    amounts = {"cpu": cpu, "memory": f"{4 * cpu}Gi", "pods": 8 * cpu}
    plain = {"topology.kubernetes.io/zone": "a", "kubernetes.io/arch": "amd64", "kubernetes.io/os": "linux", **labels}
    return decode(
        {"metadata": {"name": name, "labels": plain}, "status": {"capacity": amounts, "allocatable": amounts}}, Node
    )
