"""The steps of a story, carried out: by users of the cluster, and by the cloud."""

import asyncio
import math
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any, Final

from joiner.kube.errors import NotFound
from joiner.kube.tasks import Tasks
from joiner.model.meta import KubeObject, replace
from joiner.model.node import Node, NodeCondition
from joiner.sim.cloud.cloud import DefectRule
from joiner.sim.cloud.machines import CloudMachine, MachineDefects
from joiner.sim.story import objects
from joiner.sim.story.document.format import (
    Apply,
    Delete,
    EndReservation,
    NeverJoin,
    OtherCluster,
    Outage,
    PodWords,
    Price,
    PublishImages,
    Reclaim,
    Restart,
    Restore,
    Scale,
    SetClockBack,
    Shortage,
    Sicken,
    Traffic,
    Vanish,
    Withdraw,
)
from joiner.sim.story.document.given import MarketWords
from joiner.sim.story.document.manifests import StoryManifests, decoded
from joiner.sim.story.outages import Outages
from joiner.sim.world import World

SPOT: Final = "spot"


class Unplayable(ValueError):
    """A step that cannot be carried out, because of what the story says elsewhere."""


class StepRunner:
    """Carries out steps. What goes on for a while goes on in tasks."""

    def __init__(
        self,
        world: World,
        tasks: Tasks,
        outages: Outages,
        manifests: StoryManifests | None = None,
        say: Callable[[str], None] = lambda text: None,
    ) -> None:
        self._world, self._tasks, self._outages, self._manifests = world, tasks, outages, manifests
        self._say = say
        """Told when there are fewer machines than a step is about."""
        self._coming: list[asyncio.Future[None]] = []
        """Objects on their way to the server: who scales or deletes at the same moment comes after them."""

    async def play(self, step: Any, path: str = "") -> None:
        """Carry out one step, which stands at a path of the story."""
        if isinstance(step, PodWords):
            await self._bring(objects.workload(step))
        elif isinstance(step, Apply):
            await self._bring(self._applied(step.apply, path))
        elif isinstance(step, Scale):
            await self._scale(step.scale, step.replicas)
        elif isinstance(step, Traffic):
            self._tasks.start(f"traffic of {step.traffic}", self._wave(step))
        elif isinstance(step, Delete):
            await self._brought()
            found = self._named(step.delete)
            await self._world.user.delete(type(found), found.name, found.metadata.namespace)
        elif isinstance(step, Sicken):
            await self._sicken(step)
        elif isinstance(step, Outage):
            await self._outage(step)
        elif isinstance(step, Restart):
            await self._restart(step)
        elif isinstance(step, SetClockBack):
            self._world.clock.step(-step.set_clock_back.seconds)
        else:
            self._befall(step)

    # -- people ---------------------------------------------------------------------------------------------------

    def _applied(self, given: Mapping[str, Any] | str, path: str) -> Iterable[KubeObject]:
        """The objects of a step `apply`; without a story there is only what the step itself writes."""
        if self._manifests is not None:
            return self._manifests.brought_by(path)
        assert not isinstance(given, str)
        return (decoded(given, self._world.kinds[str(given["kind"]).lower()]),)

    async def _bring(self, wanted: Iterable[KubeObject]) -> None:
        done = asyncio.get_running_loop().create_future()
        self._coming.append(done)
        try:
            for each in wanted:
                await self._put(each)
        finally:
            self._coming.remove(done)
            done.set_result(None)

    async def _brought(self) -> None:
        for each in tuple(self._coming):
            await each

    async def _put(self, wanted: KubeObject) -> None:
        """Create the object, or make it what it should be."""
        user, metadata = self._world.user, wanted.metadata
        try:
            known = await user.get(type(wanted), wanted.name, metadata.namespace)
        except NotFound:
            await user.create(wanted)
            return
        marks = replace(
            known.metadata,
            labels={**known.metadata.labels, **metadata.labels},
            annotations={**known.metadata.annotations, **metadata.annotations},
        )
        changes = {
            name: getattr(wanted, name) for name in known.__struct_fields__ if name not in ("metadata", "status")
        }
        await user.patch(known, replace(known, metadata=marks, **changes))

    async def _scale(self, name: str, replicas: int) -> None:
        await self._brought()
        found: Any = self._named(name)
        if not hasattr(found.spec, "replicas"):
            raise Unplayable(f"{found.kind} {found.name} has no replicas to scale")
        await self._world.user.patch(found, replace(found, spec=replace(found.spec, replicas=replicas)))

    async def _wave(self, step: Traffic) -> None:
        began = self._world.clock.monotonic()
        last = None
        while step.until is None or self._world.clock.monotonic() - began < step.until.seconds:
            turn = 2 * math.pi * (self._world.clock.monotonic() - began) / step.period.seconds
            wanted = round(step.low + (step.high - step.low) * (1 - math.cos(turn)) / 2)
            if wanted != last:
                await self._scale(step.traffic, wanted)
                last = wanted
            await asyncio.sleep(step.every.seconds)

    def _named(self, word: str) -> KubeObject:
        """The object that is meant: `web` for a workload, `kind/name` for anything."""
        kind, slash, name = word.rpartition("/")
        kinds = self._world.kinds
        if slash and kind.lower() not in kinds:
            raise Unplayable(f"{word!r}: kind {kind!r} is not known")
        wanted = (
            [kinds[kind.lower()]]
            if slash
            else [kinds[each] for each in ("deployment", "statefulset", "nodepool", "job")]
        )
        for each in wanted:
            found = objects.called(self._world.server, each, name)
            if found:
                return found[0]
        raise Unplayable(f"there is no {word!r} at this time")

    async def _sicken(self, step: Sicken) -> None:
        kind, _, status = step.sicken.partition("=")
        machines = self._chosen(step.nodes, step.nodepool, "fall ill")
        for each in machines:
            birth = replace(each.birth, incurable=step.incurable, refuses_reboot=step.refuses_reboot)
            self._world.cloud.machines.alter(each.provider_id, birth)
        struck = [each.node_name for each in machines]
        for name in struck:
            await self._condition(name, kind, status or "True")
        if step.lasts is not None:
            await asyncio.sleep(step.lasts.seconds)
            for name in struck:
                await self._condition(name, kind, "True" if kind == "Ready" else "False")

    async def _condition(self, name: str, kind: str, status: str) -> None:
        node = self._world.server.find(Node, name)
        if node is None:
            return
        told = NodeCondition(type=kind, status=status, reason="Story", last_transition_time=self._world.clock.now())
        others = tuple(each for each in node.status.conditions if each.type != kind)
        await self._world.user.patch_status(
            node, replace(node, status=replace(node.status, conditions=(*others, told)))
        )

    # -- mishaps -----------------------------------------------------------------------------------------------------

    async def _restart(self, step: Restart) -> None:
        if not step.away:
            await self._world.restart()
            return
        await self._world.leave()
        await asyncio.sleep(step.away.seconds)
        await self._world.come_back()

    async def _outage(self, step: Outage) -> None:
        self._outages.begin(step.outage)
        if step.lasts is not None:
            await asyncio.sleep(step.lasts.seconds)
            self._outages.end(step.outage)

    def _befall(self, step: Any) -> None:
        cloud, now = self._world.cloud, self._world.clock.now()
        if isinstance(step, Shortage):
            until = now + timedelta(seconds=step.lasts.seconds) if step.lasts is not None else None
            cloud.limit(step.shortage.count, **_lot(step.shortage), since=now, until=until)
        elif isinstance(step, Price):
            cloud.scale_price(step.factor, **_lot(step.price))
        elif isinstance(step, Withdraw):
            cloud.withdraw(**_lot(step.withdraw))
        elif isinstance(step, Restore):
            cloud.restore(**_lot(step.restore))
        elif isinstance(step, EndReservation):
            cloud.cancel_reservation(step.end_reservation)
        elif isinstance(step, OtherCluster | PublishImages):
            self._befall_account(step, now)
        elif isinstance(step, NeverJoin):
            cloud.add_defect_rule(DefectRule(birth=MachineDefects(never_joins=True), times=step.never_join))
        elif isinstance(step, Reclaim):
            for machine in self._chosen(step.reclaim, step.nodepool, "be taken back", SPOT):
                cloud.machines.reclaim(machine.provider_id)
        elif isinstance(step, Vanish):
            for machine in self._chosen(step.vanish, step.nodepool, "vanish"):
                cloud.machines.vanish(machine.provider_id)
        else:
            raise Unplayable(f"there is no way to play {step}")

    def _befall_account(self, step: OtherCluster | PublishImages, now: datetime) -> None:
        account = self._world.account
        assert account is not None, "the validation of stories has seen to it"
        if isinstance(step, PublishImages):
            account.publish(step.publish_images, account.cluster["version"], now.isoformat())
            return
        held = account.reservations[step.other_cluster]
        ours = account.cloud.machines.in_reservation(held.id)
        held.elsewhere = min(step.machines, held.count - ours)
        if held.elsewhere < step.machines:
            self._say(f"reservation {held.id} has room for {held.elsewhere} of {step.machines} machines of others")

    def _chosen(self, number: int, pool: str, verb: str, capacity_type: str = "") -> list[CloudMachine]:
        """So many of the machines that run, the oldest first; of all, or of those of a pool or a capacity type."""
        running = [
            each
            for each in self._world.cloud.machines.alive()
            if each.state == "running" and pool in ("", each.pool) and capacity_type in ("", each.capacity_type)
        ]
        if len(running) < number:
            whose = " ".join(part for part in (capacity_type, "machines", f"of pool {pool}" if pool else "") if part)
            self._say(f"only {len(running)} of {number} {whose} can {verb}: no more of them run")
        return sorted(running, key=lambda each: (each.launched_at, each.provider_id))[:number]


def _lot(part: MarketWords) -> dict[str, str]:
    return {"instance_type": part.instance_type, "zone": part.zone, "capacity_type": part.capacity_type}
