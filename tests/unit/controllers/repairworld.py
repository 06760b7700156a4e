"""A whole pretend world with a few nodes, and a test that makes them ill."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from joiner.assembly import Joiner
from joiner.cloud.provider import CloudProvider, NodeClasses
from joiner.cloud.repair import RepairPolicy
from joiner.kube.client import Client
from joiner.kube.controller import Result
from joiner.kube.tasks import Tasks
from joiner.model.conditions import Condition, find
from joiner.model.duration import NEVER
from joiner.model.meta import KubeObject, replace
from joiner.model.node import Node, NodeCondition
from joiner.model.nodeclaim import NodeClaim
from joiner.model.pod import Pod
from joiner.options import read
from joiner.sim.apiserver.client import Interceptor
from joiner.sim.cloud.cloud import CloudInterceptor
from joiner.sim.cloud.machines import CloudMachine, CloudTiming
from joiner.sim.cloud.provider import PretendProvider
from joiner.sim.kubelet.kubelet import NodeTiming
from joiner.sim.story import objects
from joiner.sim.story.document.format import Deploy
from joiner.sim.story.document.given import Given, PoolWords, ReservationWords
from joiner.sim.virtualtime import VirtualLoop, run
from joiner.sim.world import World

SETTLED_S = 120.0
PACE = CloudTiming(call_s=(0.1, 0.1), starts_s=(5.0, 5.0), stops_s=(10.0, 10.0), reboots_s=(30.0, 30.0))
HABITS = NodeTiming(joins_s=(10.0, 10.0), ready_s=(5.0, 5.0))


class Clinic:
    """What tests look at and do."""

    def __init__(self, world: World) -> None:
        self.world, self.server, self.clock = world, world.server, world.clock
        self.machines = world.cloud.machines

    @property
    def joiner(self) -> Joiner:
        assert self.world.joiner is not None
        return self.world.joiner

    async def wait(self, seconds: float) -> None:
        await asyncio.sleep(seconds)
        self.world.healthy()

    def now(self) -> datetime:
        return self.clock.now()

    # -- looking ------------------------------------------------------------------------------------------------------

    def claims(self) -> list[NodeClaim]:
        """The claims there are, the oldest first."""
        born = {each.claim_name: number for number, each in enumerate(self.machines.alive())}
        return sorted(self.server.objects(NodeClaim), key=lambda claim: (born.get(claim.name, 99), claim.name))

    def node(self, number: int = 0) -> Node:
        """The node of a machine, the oldest first."""
        return self.server.get(Node, self.machine(number).node_name)

    def machine(self, number: int = 0) -> CloudMachine:
        return self.machines.alive()[number]

    def condition(self, kind: str, claim: NodeClaim | None = None) -> Condition | None:
        known = claim or self.claims()[0]
        return find(self.server.get(NodeClaim, known.name).status.conditions, kind)

    def said(self, kind: str) -> str:
        """Status and reason of a condition of the first claim."""
        found = self.condition(kind)
        return "none" if found is None else f"{found.status} {found.reason}"

    def taints(self, number: int = 0) -> list[str]:
        return [taint.key.removeprefix("karpenter.sh/") for taint in self.node(number).spec.taints]

    def told(self, reason: str) -> list[str]:
        """What was said for that reason."""
        return [each.message for each in self.joiner.recorder.recent if each.reason == reason]

    def counted(self, metric: Any) -> dict[str, float]:
        """What a counter counted, by the values of its labels."""
        samples = next(iter(metric.collect())).samples
        return {" ".join(each.labels.values()): each.value for each in samples if each.name.endswith("_total")}

    # -- doing --------------------------------------------------------------------------------------------------------

    def sicken(self, number: int = 0, kind: str = "KWOKUnhealthy", status: str = "True", reason: str = "Test") -> None:
        node = self.node(number)
        told = NodeCondition(type=kind, status=status, reason=reason, last_transition_time=self.now())
        others = tuple(each for each in node.status.conditions if each.type != kind)
        self.server.patch_status("test", node, replace(node, status=replace(node.status, conditions=(*others, told))))

    def retell(self, told: NodeCondition, **changes: str) -> None:
        """Say a condition of the first node again, in other words, as of the same moment."""
        node = self.node()
        others = tuple(each for each in node.status.conditions if each.type != told.type)
        conditions = (*others, replace(told, **changes))
        self.server.patch_status("test", node, replace(node, status=replace(node.status, conditions=conditions)))

    def alter(self, number: int = 0, **birth: Any) -> None:
        machine = self.machine(number)
        self.machines.alter(machine.provider_id, replace(machine.birth, **birth))

    def annotate(self, claim: NodeClaim, **annotations: str) -> NodeClaim:
        known = self.server.get(NodeClaim, claim.name)
        marked = {f"karpenter.sh/{key.replace('_', '-')}": value for key, value in annotations.items()}
        metadata = replace(known.metadata, annotations={**known.metadata.annotations, **marked})
        return self.server.patch("test", known, replace(known, metadata=metadata))

    def mark(self, thing: KubeObject, annotation: str, value: str) -> None:
        """Annotate an object as somebody else would."""
        metadata = replace(thing.metadata, annotations={**thing.metadata.annotations, annotation: value})
        self.server.patch("test", thing, replace(thing, metadata=metadata))

    def say(self, kind: str, reason: str, claim: NodeClaim | None = None) -> NodeClaim:
        """Set a condition of a claim to True, as a process that is gone might have left it."""
        known = self.server.get(NodeClaim, (claim or self.claims()[0]).name)
        conditions, _ = known.condition_set.set_true(
            known.status.conditions, kind, known.metadata, self.now(), reason=reason
        )
        return self.server.patch_status(
            "test", known, replace(known, status=replace(known.status, conditions=conditions))
        )

    def pods(self) -> list[Pod]:
        return sorted(self.server.objects(Pod), key=lambda pod: pod.name)


class Opinionated(PretendProvider):
    """A provider with other ideas of what a broken machine is."""

    policies: tuple[RepairPolicy, ...] = ()

    def repair_policies(self) -> tuple[RepairPolicy, ...]:
        return self.policies or super().repair_policies()


class Hospital(World):
    """A world where the test says what a broken machine is."""

    policies: tuple[RepairPolicy, ...] = ()

    def _connect(self, node_classes: NodeClasses, client: Client, tasks: Tasks) -> CloudProvider:
        provider = Opinionated(self.cloud, node_classes=node_classes, clock=self.clock)
        provider.policies = self.policies
        return provider


def in_clinic(
    test: Callable[[Clinic], Awaitable[None]],
    *,
    nodes: int = 1,
    gates: str = "NodeRepair=true",
    flags: Sequence[str] = (),
    interceptor: Interceptor | None = None,
    cloud_interceptor: CloudInterceptor | None = None,
    pod: dict[str, Any] | None = None,
    reservations: tuple[ReservationWords, ...] = (),
    policies: tuple[RepairPolicy, ...] = (),
    **pool: Any,
) -> None:
    """Run a test in a world where each of so many nodes has one pod. A pool with `replicas` has as many nodes instead."""

    async def main(loop: VirtualLoop) -> None:
        world = Hospital(
            loop,
            seed=1,
            options=read([f"--feature-gates={gates}", *flags], {}),
            pace=PACE,
            habits=HABITS,
            interceptor=interceptor,
            cloud_interceptor=cloud_interceptor,
        )
        world.policies = policies
        words = {"name": "default", "capacity_types": ("on-demand",), "consolidate_after": NEVER, **pool}
        given = Given(nodepools=(PoolWords(**words),), reservations=reservations)
        web = Deploy(deploy="web", replicas=0 if "replicas" in pool else nodes, apart="hostname", **(pod or {}))
        world.load((objects.node_class(given, Path()), *objects.pools(given), *objects.workload(web)))
        await world.start()
        await asyncio.sleep(SETTLED_S)
        await test(Clinic(world))
        await world.stop()

    run(main)


class Counted:
    """A controller's `reconcile`, counted."""

    def __init__(self, controller: Any) -> None:
        self.calls = 0
        self._reconcile = controller.reconcile
        controller.reconcile = self

    async def __call__(self, key: Any) -> Result:
        self.calls += 1
        result: Result = await self._reconcile(key)
        return result
