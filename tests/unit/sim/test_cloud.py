import asyncio
from collections.abc import Callable, Coroutine
from datetime import timedelta
from random import Random
from typing import Any

import pytest
from tests.builders import node_pool

from joiner.catalog.market import InstanceType, Option
from joiner.cloud.errors import InstanceNotFound, InsufficientCapacity, RebootRefused, Transient
from joiner.cloud.kwok import supply
from joiner.cloud.kwok.nodeclass import KWOKNodeClass
from joiner.cloud.provider import Instance, K
from joiner.model import labels
from joiner.model.codec import decode
from joiner.model.nodeclaim import NodeClaim
from joiner.sim.cloud.cloud import DefectRule, Device, PretendCloud, allocatable
from joiner.sim.cloud.machines import CloudMachine, MachineDefects
from joiner.sim.cloud.market import MarketSlice
from joiner.sim.cloud.provider import PretendProvider
from joiner.sim.trace import Trace
from joiner.sim.virtualtime import EPOCH, VirtualClock, VirtualLoop, run

SMALL, LARGE = "c-1x-amd64-linux", "c-2x-amd64-linux"
ZONE = "test-zone-a"
HOUR = timedelta(hours=1)


class World:
    """A cloud, one door to it, and a class with a reservation of one machine that ends after two hours."""

    def __init__(self, loop: VirtualLoop) -> None:
        self.clock = VirtualClock(loop)
        self.trace = Trace()
        self.cloud = PretendCloud(clock=self.clock, random=Random(7), trace=self.trace)
        self.reservation: dict[str, Any] = {
            "id": "cr-1", "instanceType": SMALL, "zone": ZONE, "count": 1, "endTime": "2030-01-07T02:00:00Z",
        }  # fmt: skip
        self.pool = node_pool()
        self.door = self.connect()

    def connect(self) -> PretendProvider:
        return PretendProvider(self.cloud, node_classes=self, clock=self.clock)

    def get(self, kind: type[K], name: str) -> K | None:
        spec = {"capacityReservations": [self.reservation] if self.reservation else []}
        found = decode({"metadata": {"name": name}, "spec": spec}, KWOKNodeClass)
        return found if isinstance(found, kind) else None

    async def types(self) -> dict[str, InstanceType]:
        return {each.name: each for each in await self.door.instance_types(self.pool)}

    async def options(self, name: str = SMALL, capacity_type: str = "on-demand", zone: str = ZONE) -> list[Option]:
        found = (await self.types())[name].offerings
        return [
            Option(name=name, offering=each)
            for each in found
            if each.capacity_type == capacity_type and each.zone == zone
        ]

    async def buy(self, uid: str, options: list[Option] | None = None) -> Instance:
        return await self.door.create(claim(uid), options or await self.options())

    def machine(self, instance: Instance) -> CloudMachine:
        found = self.cloud.machines.get(instance.provider_id)
        assert found is not None
        return found


def claim(uid: str, pool: str = "default", **status: str) -> NodeClaim:
    raw = {
        "metadata": {"name": f"claim-{uid}", "uid": uid, "labels": {labels.NODEPOOL: pool}},
        "spec": {"nodeClassRef": {"group": KWOKNodeClass.group, "kind": KWOKNodeClass.kind, "name": "default"}},
        "status": status,
    }
    return decode(raw, NodeClaim)


def in_world(tell: Callable[[World], Coroutine[Any, Any, None]]) -> Callable[[], None]:
    """A test that runs in a world of its own, on virtual time."""

    def test() -> None:
        run(lambda loop: tell(World(loop)))

    test.__name__ = tell.__name__
    return test


@in_world
async def test_a_price_that_changes_moves_the_generation(world: World) -> None:
    before = world.door.generation(world.pool)

    spot = {o.price for o in (await world.types())[SMALL].offerings if o.capacity_type == "spot"}

    world.cloud.scale_price(9.0, instance_type=SMALL, capacity_type="spot")
    world.cloud.scale_price(2.0, instance_type=LARGE)

    types, usual = await world.types(), (await world.options(LARGE))[0].offering.price
    assert world.door.generation(world.pool) != before
    assert {o.price for o in types[SMALL].offerings if o.capacity_type == "spot"} == {
        9.0 * (price or 0) for price in spot
    }
    world.cloud.scale_price(1.0, instance_type=LARGE)
    assert usual == 2 * ((await world.options(LARGE))[0].offering.price or 0)


@in_world
async def test_the_reserved_price_follows_the_price_on_demand(world: World) -> None:
    (usual,) = await world.options(capacity_type="reserved")
    world.cloud.scale_price(5.0, instance_type=SMALL, capacity_type="on-demand")

    (reserved,) = await world.options(capacity_type="reserved")

    assert reserved.offering.price == 5.0 * (usual.offering.price or 0)


@in_world
async def test_what_is_withdrawn_is_not_sold_until_it_is_back(world: World) -> None:
    options = await world.options()
    world.cloud.withdraw(instance_type=LARGE)
    world.cloud.withdraw(zone=ZONE)

    types = await world.types()
    assert LARGE not in types
    assert ZONE not in types[SMALL].requirements[labels.ZONE].values
    with pytest.raises(InsufficientCapacity):
        await world.buy("a", options)

    world.cloud.restore(zone=ZONE)
    assert await world.buy("a", options)


@in_world
async def test_a_pool_of_machines_is_finite_and_fills_again(world: World) -> None:
    world.cloud.limit(2, instance_type=SMALL, zone=ZONE)
    first, _ = await world.buy("a"), await world.buy("b")
    with pytest.raises(InsufficientCapacity):
        await world.buy("c")

    await world.door.delete(first.provider_id)
    await asyncio.sleep(240)

    assert await world.buy("c")


@in_world
async def test_a_shortage_begins_and_ends(world: World) -> None:
    now, options = world.clock.now(), await world.options()
    world.cloud.limit(zone=ZONE, since=now + HOUR, until=now + 2 * HOUR)
    outcomes = []

    for uid in ("before", "during", "after"):
        try:
            await world.buy(uid, options)
            outcomes.append("bought")
        except InsufficientCapacity:
            outcomes.append("dry")
        await asyncio.sleep(HOUR.total_seconds())

    assert outcomes == ["bought", "dry", "bought"]


@in_world
async def test_what_is_found_dry_is_not_offered_for_three_minutes(world: World) -> None:
    dry, other = await world.options(), await world.options(LARGE)
    world.cloud.limit(instance_type=SMALL)
    generations = [world.door.generation(world.pool)]

    bought = await world.buy("a", dry + other)

    generations.append(world.door.generation(world.pool))
    assert bought.labels[labels.INSTANCE_TYPE] == LARGE
    assert not (await world.options())[0].offering.launchable
    await asyncio.sleep(180)
    generations.append(world.door.generation(world.pool))
    assert (await world.options())[0].offering.launchable
    assert len(set(generations)) == 3


@in_world
async def test_a_new_door_has_forgotten_what_was_dry_but_not_what_was_bought(world: World) -> None:
    bought = await world.buy("a")
    world.cloud.limit(instance_type=SMALL)
    with pytest.raises(InsufficientCapacity):
        await world.buy("b")

    world.door = world.connect()

    assert (await world.options())[0].offering.launchable
    assert [each.provider_id for each in await world.door.list()] == [bought.provider_id]


@in_world
async def test_reserved_machines_take_nothing_from_the_market(world: World) -> None:
    world.cloud.limit(1, instance_type=SMALL)

    await world.buy("a", await world.options(capacity_type="reserved"))

    assert await world.buy("b")


@in_world
async def test_a_machine_starts_runs_stops_and_is_gone(world: World) -> None:
    bought = await world.buy("a")
    states = [world.machine(bought).state]
    for step in range(3):
        await asyncio.sleep(20)
        states.append(world.machine(bought).state)
        if step == 0:
            await world.door.delete(bought.provider_id)
            assert (await world.door.get(bought.provider_id)).terminating
            states.append(world.machine(bought).state)

    assert list(dict.fromkeys(states)) == ["pending", "running", "shutting-down", "gone"]
    with pytest.raises(InstanceNotFound):
        await world.door.delete(bought.provider_id)


@in_world
async def test_a_spot_machine_is_gone_two_minutes_after_the_notice(world: World) -> None:
    bought = await world.buy("a", await world.options(capacity_type="spot"))
    world.cloud.machines.reclaim(bought.provider_id)

    await asyncio.sleep(119)
    assert world.machine(bought).alive
    await asyncio.sleep(2)

    assert not world.machine(bought).alive


class Spoiler:
    """Raises at one side of the first calls of a kind."""

    def __init__(self, side: str, call: str) -> None:
        self.side, self.call, self.left = side, call, 1

    def before(self, call: str, about: str) -> float:
        return self._spoil("before", call)

    def after(self, call: str, about: str) -> float:
        return self._spoil("after", call)

    def _spoil(self, side: str, call: str) -> float:
        if (side, call) == (self.side, self.call) and self.left:
            self.left -= 1
            raise Transient("lost")
        return 0.5


@pytest.mark.parametrize(("side", "machines"), [("before", 0), ("after", 1)], ids=["request", "answer"])
def test_a_purchase_whose_request_or_answer_was_lost_is_made_once(side: str, machines: int) -> None:
    async def tell(world: World) -> None:
        options = await world.options()
        world.cloud.interceptor = Spoiler(side, "create")

        with pytest.raises(Transient):
            await world.buy("a", options)

        assert len(world.cloud.machines.alive()) == machines
        await world.buy("a", options)
        assert len(world.cloud.machines.alive()) == len(world.cloud.ledger.purchases()) == 1

    run(lambda loop: tell(World(loop)))


@in_world
async def test_a_claim_whose_machine_vanished_does_not_get_another_one(world: World) -> None:
    bought = await world.buy("a")
    world.cloud.machines.vanish(bought.provider_id)

    again = await world.buy("a")

    assert (again.provider_id, again.terminating) == (bought.provider_id, True)
    assert world.cloud.machines.alive() == ()


@in_world
async def test_the_bill_tells_pools_and_capacity_types_apart(world: World) -> None:
    spot = await world.buy("a", await world.options(capacity_type="spot"))
    await world.door.create(claim("b", pool="other"), await world.options())
    price = {each.provider_id: each.price for each in world.cloud.ledger.purchases()}[spot.provider_id]
    launched = world.machine(spot).launched_at
    await asyncio.sleep(7200)

    bill = world.cloud.bill(launched + 2 * HOUR)
    second_hour = world.cloud.bill(launched + 2 * HOUR, since=launched + HOUR)

    assert [(each.pool, each.capacity_type, each.machines) for each in bill] == [
        ("default", "spot", 1),
        ("other", "on-demand", 1),
    ]
    assert bill[0].dollars == pytest.approx(2 * price)
    assert second_hour[0].hours == pytest.approx(1.0)


@in_world
async def test_nobody_pays_for_a_machine_that_was_shut_down(world: World) -> None:
    bought = await world.buy("a")
    await asyncio.sleep(600)
    await world.door.delete(bought.provider_id)
    stopped = world.clock.now()
    await asyncio.sleep(7200)

    (cost,) = world.cloud.bill(world.clock.now())

    assert cost.hours == pytest.approx((stopped - world.machine(bought).launched_at) / HOUR, abs=0.001)


@in_world
async def test_a_reserved_machine_is_paid_on_demand_when_the_reservation_has_ended(world: World) -> None:
    await world.buy("a", await world.options(capacity_type="reserved"))
    await asyncio.sleep(3 * 3600)

    hours = {each.capacity_type: each.hours for each in world.cloud.bill(EPOCH + 3 * HOUR)}
    (use,) = world.cloud.reservation_use(EPOCH + 3 * HOUR)

    assert hours == pytest.approx({"reserved": 2.0, "on-demand": 1.0}, abs=0.01)
    assert (use.count, use.most) == (1, 1)
    assert use.hours_used == pytest.approx(use.hours, abs=0.01)


@in_world
async def test_a_reservation_can_be_cancelled_under_its_machines(world: World) -> None:
    bought = await world.buy("a", await world.options(capacity_type="reserved"))

    await asyncio.sleep(3600)
    world.cloud.cancel_reservation("cr-1")
    await asyncio.sleep(3600)

    (use,) = world.cloud.reservation_use(world.clock.now())
    assert (use.count, use.hours, use.hours_used) == pytest.approx((1, 1.0, 1.0), abs=0.01)
    after = await world.door.get(bought.provider_id)
    assert after.labels[labels.CAPACITY_TYPE] == "on-demand"
    assert await world.options(capacity_type="reserved") == []
    assert await world.door.drift_reason(claim("a", providerID=bought.provider_id)) == ""


@in_world
async def test_a_reservation_that_has_ended_does_not_come_back_with_the_clock(world: World) -> None:
    bought = await world.buy("a", await world.options(capacity_type="reserved"))
    await asyncio.sleep(2 * 3600)
    assert (await world.door.get(bought.provider_id)).labels[labels.CAPACITY_TYPE] == "on-demand"

    world.clock.step(-1800)

    assert (await world.door.get(bought.provider_id)).labels[labels.CAPACITY_TYPE] == "on-demand"
    assert await world.options(capacity_type="reserved") == []


@in_world
async def test_a_machine_drifts_when_its_class_no_longer_lists_the_reservation(world: World) -> None:
    bought = await world.buy("a", await world.options(capacity_type="reserved"))
    owner, before = claim("a", providerID=bought.provider_id), world.door.generation(world.pool)
    assert await world.door.drift_reason(owner) == ""

    world.reservation = {}

    assert await world.door.drift_reason(owner) == "CapacityReservationDrift"
    assert world.door.generation(world.pool) != before


@in_world
async def test_a_fate_strikes_as_often_as_it_says_and_only_whom_it_means(world: World) -> None:
    world.cloud.add_defect_rule(
        DefectRule(
            birth=MachineDefects(never_joins=True), lot=MarketSlice(instance_type=SMALL), pool="default", times=1
        )
    )

    bought = [await world.buy("a", await world.options(LARGE)), await world.buy("b"), await world.buy("c")]

    assert [world.machine(each).birth.never_joins for each in bought] == [False, True, False]


@in_world
async def test_who_is_spared_has_no_fate(world: World) -> None:
    world.cloud.add_defect_rule(DefectRule(birth=MachineDefects(never_joins=True), times=2))

    struck = await world.buy("a")
    world.cloud.spare()
    spared = await world.buy("b")

    assert [world.machine(each).birth.never_joins for each in (struck, spared)] == [True, False]


@in_world
async def test_a_device_is_on_the_machines_of_its_lot_and_the_catalogue_says_nothing_of_it(world: World) -> None:
    world.cloud.equip(Device(MarketSlice(instance_type=SMALL), "example.com/chip", 2000, after_s=9.0))

    small, large = await world.buy("a"), await world.buy("b", await world.options(LARGE))

    assert world.machine(small).capacity["example.com/chip"] == 2000
    assert world.machine(small).birth.late == {"example.com/chip": 9.0}
    assert "example.com/chip" not in world.machine(large).capacity


@in_world
async def test_some_machines_refuse_to_be_rebooted(world: World) -> None:
    world.cloud.add_defect_rule(DefectRule(birth=MachineDefects(refuses_reboot=True)))
    bought = await world.buy("a")

    with pytest.raises(RebootRefused):
        await world.door.reboot(claim("a", providerID=bought.provider_id), "one")


def test_the_same_seed_gives_the_same_trace() -> None:
    async def tell(world: World) -> str:
        for uid in ("a", "b", "c"):
            bought = await world.buy(uid)
            await world.door.delete(bought.provider_id)
        await asyncio.sleep(100)
        return world.trace.digest()

    assert len({run(lambda loop: tell(World(loop))) for _ in range(2)}) == 1


@pytest.mark.parametrize("source", ["kwok", "ec2/us-east-1"])
def test_machines_keep_back_what_their_type_says(source: str) -> None:
    raw = {"metadata": {"name": "a"}, "spec": {"instanceTypes": source, "kubelet": {"systemReserved": {"cpu": "70m"}}}}

    for each in supply.catalogue(decode(raw, KWOKNodeClass)).types:
        assert allocatable(each) == each.allocatable()
