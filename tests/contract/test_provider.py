"""What every provider must keep to. A provider joins by adding a bench of its own to `BENCHES`.

A bench builds the provider in a small world of its own and says how that world can be moved.
"""

import asyncio
from collections.abc import Callable, Coroutine, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any, Protocol, TypeVar

import pytest
from tests.builders import node_pool

from joiner.catalog.market import InstanceType, Option
from joiner.cloud import plugins
from joiner.cloud.errors import CloudError, InstanceNotFound, InsufficientCapacity, NodeClassNotReady
from joiner.cloud.kwok.nodeclass import KWOKNodeClass
from joiner.cloud.kwok.provider import KwokProvider
from joiner.cloud.provider import CloudProvider, Instance, K
from joiner.cloud.repair import policy_problems
from joiner.kube.tasks import Tasks
from joiner.model import labels
from joiner.model.codec import decode
from joiner.model.meta import KubeObject, replace
from joiner.model.node import Node
from joiner.model.nodeclaim import NodeClaim
from joiner.model.nodeclass import NodeClassReference
from joiner.model.nodepool import NodePool
from joiner.sim.apiserver.server import ApiServer
from joiner.sim.cloud.cloud import PretendCloud
from joiner.sim.cloud.provider import PretendProvider
from joiner.sim.trace import Trace
from joiner.sim.virtualtime import VirtualClock, VirtualLoop

T = TypeVar("T")


class Bench(Protocol):
    """A provider in a world that the suite can move."""

    provider: CloudProvider
    pool: NodePool
    reserved_pool: NodePool
    """A pool whose NodeClass has a capacity reservation of two machines that ends within the hour."""

    def run(self, work: Coroutine[Any, Any, T]) -> T: ...

    def edit_node_class(self) -> None: ...

    def remove_node_class(self) -> None: ...

    def run_dry(self, instance_type: InstanceType) -> None: ...

    def forward(self, time: timedelta) -> None: ...

    def boots(self, provider_id: str) -> str: ...

    def close(self) -> None: ...


class PretendBench:
    """The pretend cloud over two NodeClasses in memory, on virtual time."""

    def __init__(self) -> None:
        self._loop = VirtualLoop()
        self.clock = VirtualClock(self._loop, datetime(2030, 1, 1, tzinfo=UTC))
        self._classes: dict[str, KWOKNodeClass] = {}
        self._put("default", {"kubelet": {"maxPods": 50}})
        reservation = {
            "id": "cr-1", "instanceType": "m-2x-amd64-linux", "zone": "test-zone-a", "count": 2,
            "endTime": "2030-01-01T00:30:00Z",
        }  # fmt: skip
        self._put("reserved", {"capacityReservations": [reservation]})
        self.pool = node_pool()
        reference = replace(self.pool.spec.template.spec.node_class_ref, name="reserved")
        template = replace(
            self.pool.spec.template, spec=replace(self.pool.spec.template.spec, node_class_ref=reference)
        )
        self.reserved_pool = replace(self.pool, spec=replace(self.pool.spec, template=template))
        self.provider = self.connect()

    def connect(self) -> CloudProvider:
        self.cloud = PretendCloud(clock=self.clock, random=Random(1), trace=Trace())
        return PretendProvider(self.cloud, node_classes=self, clock=self.clock)

    def _put(self, name: str, spec: dict[str, object]) -> None:
        self._classes[name] = decode({"metadata": {"name": name}, "spec": spec}, KWOKNodeClass)

    def get(self, kind: type[K], name: str) -> K | None:
        found: KubeObject | None = self._classes.get(name)
        return found if isinstance(found, kind) else None

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self._loop.run_until_complete(work)

    def edit_node_class(self) -> None:
        self._put("default", {"kubelet": {"maxPods": 20}})

    def remove_node_class(self) -> None:
        del self._classes["default"]

    def run_dry(self, instance_type: InstanceType) -> None:
        self.cloud.limit(0, instance_type=instance_type.name)
        with pytest.raises(InsufficientCapacity):
            buy(self, "too-late", ways(instance_type))

    def forward(self, time: timedelta) -> None:
        self.run(asyncio.sleep(time.total_seconds()))

    def boots(self, provider_id: str) -> str:
        self.forward(timedelta(minutes=2))
        machine = self.cloud.machines.get(provider_id)
        return "" if machine is None else str(machine.boots)

    def close(self) -> None:
        self._loop.close()


class KwokBench(PretendBench):
    """The KWOK provider over a pretend API server."""

    def connect(self) -> CloudProvider:
        self.server = ApiServer(self.clock, Random(1), Trace())
        self.kwok = KwokProvider(self, self.clock, self.server.client("joiner"))
        return self.kwok

    def run_dry(self, instance_type: InstanceType) -> None:
        for offering in instance_type.offerings:
            self.kwok.unavailable.mark(instance_type.name, offering)

    def boots(self, provider_id: str) -> str:
        return self.server.get(Node, provider_id.removeprefix("kwok://")).status.node_info.boot_id


BENCHES: list[Callable[[], Bench]] = [KwokBench, PretendBench]


@pytest.fixture(params=BENCHES, ids=lambda make: str(make.__name__))
def bench(request: pytest.FixtureRequest) -> Iterator[Bench]:
    made: Bench = request.param()
    yield made
    made.close()


def types(bench: Bench, pool: NodePool | None = None) -> tuple[InstanceType, ...]:
    return bench.run(bench.provider.instance_types(pool or bench.pool))


def ways(instance_type: InstanceType) -> list[Option]:
    return [Option(name=instance_type.name, offering=each) for each in instance_type.offerings]


def reserved_ways(bench: Bench) -> list[Option]:
    return [option for each in types(bench, bench.reserved_pool) for option in ways(each) if option.offering.reserved]


def claim_for(uid: str, node_class: str = "default", **status: str) -> NodeClaim:
    reference = {"group": KWOKNodeClass.group, "kind": KWOKNodeClass.kind, "name": node_class}
    metadata = {"name": f"claim-{uid}", "uid": uid}
    return decode({"metadata": metadata, "spec": {"nodeClassRef": reference}, "status": status}, NodeClaim)


def buy(bench: Bench, uid: str, options: Sequence[Option], node_class: str = "default") -> Instance:
    return bench.run(bench.provider.create(claim_for(uid, node_class), options))


def remove(bench: Bench, provider_id: str) -> None:
    """As the controllers do: again and again until it is gone."""
    for _ in range(30):
        try:
            bench.run(bench.provider.delete(provider_id))
        except InstanceNotFound:
            return
        bench.forward(timedelta(seconds=5))
    raise AssertionError(f"{provider_id} is still there")


def test_it_is_registered_under_its_own_name(bench: Bench) -> None:
    assert bench.provider.name in plugins.names()


def test_type_names_are_unique_and_ordered_the_same_every_time(bench: Bench) -> None:
    names = [each.name for each in types(bench)]

    assert len(set(names)) == len(names) > 0
    assert [each.name for each in types(bench)] == names


def test_every_type_says_who_it_is_and_defines_the_well_known_labels_it_can(bench: Bench) -> None:
    for each in types(bench):
        assert each.requirements[labels.INSTANCE_TYPE].values == {each.name}
        assert {labels.ARCH, labels.OS, labels.ZONE, labels.CAPACITY_TYPE} <= set(each.requirements)


def test_every_offering_has_one_zone_and_one_known_capacity_type(bench: Bench) -> None:
    for each in types(bench, bench.reserved_pool):
        for offering in each.offerings:
            assert len(offering.requirements[labels.ZONE].values) == 1
            assert offering.requirements[labels.CAPACITY_TYPE].values <= set(labels.CAPACITY_TYPES)
            assert each.requirements.intersects(offering.requirements)


def test_offerings_of_a_type_can_be_told_apart(bench: Bench) -> None:
    for each in types(bench, bench.reserved_pool):
        assert len({offering.requirements for offering in each.offerings}) == len(each.offerings)


def test_prices_are_unknown_or_not_negative(bench: Bench) -> None:
    assert all(o.price is None or o.price >= 0 for each in types(bench) for o in each.offerings)


def test_capacity_is_positive_and_something_is_left_for_pods(bench: Bench) -> None:
    for each in types(bench):
        assert each.capacity["cpu"] > 0
        assert each.capacity["memory"] > 0
        assert each.capacity["pods"] > 0
        assert all(0 <= amount <= each.capacity[name] for name, amount in each.allocatable().items())


def test_every_label_it_uses_is_in_its_vocabulary(bench: Bench) -> None:
    known = bench.provider.vocabulary().well_known

    for each in types(bench, bench.reserved_pool):
        used = {*each.requirements, *(key for offering in each.offerings for key in offering.requirements)}
        assert used <= known


def test_its_vocabulary_holds_the_words_everybody_knows(bench: Bench) -> None:
    assert bench.provider.vocabulary().well_known >= labels.WELL_KNOWN
    assert bench.provider.vocabulary().is_restricted("karpenter.sh/anything")


def test_reserved_capacity_carries_an_id_and_a_count(bench: Bench) -> None:
    key = bench.provider.vocabulary().reservation_id

    reserved = [o for each in types(bench, bench.reserved_pool) for o in each.offerings if o.reserved]

    assert reserved
    assert all(o.available < 2**31 and len(o.requirements[key].values) == 1 for o in reserved)


def test_the_generation_rests_while_nothing_moves(bench: Bench) -> None:
    before = bench.provider.generation(bench.pool)
    types(bench)

    assert bench.provider.generation(bench.pool) == before
    assert hash(bench.provider.generation(bench.pool)) == hash(before)


def test_an_edit_of_the_node_class_moves_the_generation_and_the_types(bench: Bench) -> None:
    before, was = bench.provider.generation(bench.pool), types(bench)

    bench.edit_node_class()

    assert bench.provider.generation(bench.pool) != before
    assert types(bench) != was


def test_a_shortage_and_its_end_move_the_generation(bench: Bench) -> None:
    generations = [bench.provider.generation(bench.pool)]
    first = types(bench)[0]

    bench.run_dry(first)
    generations.append(bench.provider.generation(bench.pool))
    dry = types(bench)[0]
    bench.forward(timedelta(minutes=5))
    generations.append(bench.provider.generation(bench.pool))

    assert len(set(generations)) == 3
    assert not any(offering.launchable for offering in dry.offerings)
    assert types(bench)[0] == first


def test_a_type_that_ran_dry_is_still_listed(bench: Bench) -> None:
    before = [each.name for each in types(bench)]

    bench.run_dry(types(bench)[0])

    assert [each.name for each in types(bench)] == before


def test_the_end_of_a_reservation_moves_the_generation(bench: Bench) -> None:
    before = bench.provider.generation(bench.reserved_pool)

    bench.forward(timedelta(hours=1))

    assert bench.provider.generation(bench.reserved_pool) != before
    assert not any(o.reserved and o.launchable for t in types(bench, bench.reserved_pool) for o in t.offerings)


def test_a_missing_node_class_is_said_by_name(bench: Bench) -> None:
    before = bench.provider.generation(bench.pool)
    bench.remove_node_class()

    with pytest.raises(NodeClassNotReady, match="default"):
        types(bench)
    assert bench.provider.generation(bench.pool) != before
    assert issubclass(NodeClassNotReady, CloudError)


def test_what_it_hands_out_cannot_be_changed(bench: Bench) -> None:
    with pytest.raises(AttributeError):
        types(bench)[0].name = "other"


def test_repair_policies_make_sense_together(bench: Bench) -> None:
    assert policy_problems(bench.provider.repair_policies()) == ()


def test_drift_is_answered_in_words_or_not_at_all(bench: Bench) -> None:
    claim = decode({"metadata": {"name": "claim"}}, NodeClaim)

    assert isinstance(bench.run(bench.provider.drift_reason(claim)), str)


def test_node_classes_are_cluster_scoped_kinds_of_its_own_group(bench: Bench) -> None:
    for kind in bench.provider.node_classes():
        assert not kind.namespaced
        assert kind.group != labels.GROUP
        assert kind.kind.endswith("NodeClass")


def test_the_label_of_its_node_classes_is_known_and_given(bench: Bench) -> None:
    for kind in bench.provider.node_classes():
        key = NodeClassReference(group=kind.group, kind=kind.kind).label_key
        assert key in bench.provider.vocabulary().well_known & bench.provider.vocabulary().given


def test_prices_come_with_their_age_and_their_sources(bench: Bench) -> None:
    assert bench.provider.prices(bench.pool)
    assert bench.provider.details(bench.pool).sources


def test_a_reservation_is_told_of_also_when_it_has_ended(bench: Bench) -> None:
    assert [each.problem for each in bench.provider.details(bench.reserved_pool).reservations] == [""]

    bench.forward(timedelta(hours=1))

    assert [bool(each.problem) for each in bench.provider.details(bench.reserved_pool).reservations] == [True]


def test_a_sound_node_class_has_no_problem(bench: Bench) -> None:
    for kind in bench.provider.node_classes():
        assert bench.provider.node_class_problems(decode({"metadata": {"name": "default"}}, kind)) == ()


def test_the_first_option_is_bought_and_the_machine_says_what_it_is(bench: Bench) -> None:
    first = types(bench)[0]
    chosen = ways(first)[2]

    bought = buy(bench, "a", [chosen, *ways(first)])

    assert bought.labels[labels.INSTANCE_TYPE] == first.name
    assert bought.labels[labels.ZONE] == chosen.offering.zone
    assert bought.labels[labels.CAPACITY_TYPE] == chosen.offering.capacity_type
    assert (bought.claim_name, bought.claim_uid, bought.terminating) == ("claim-a", "a", False)
    assert bought.capacity["cpu"] == first.capacity["cpu"]


def test_one_claim_is_one_machine_however_often_it_is_asked_for(bench: Bench) -> None:
    first, second = types(bench)[:2]

    ids = {buy(bench, "a", ways(each)).provider_id for each in (first, first, second)}

    assert len(ids) == len(bench.run(bench.provider.list())) == 1


def test_what_was_bought_can_be_read_and_listed_in_order(bench: Bench) -> None:
    bought = [buy(bench, uid, ways(types(bench)[0])) for uid in ("b", "a", "c")]

    listed = bench.run(bench.provider.list())

    assert [each.provider_id for each in listed] == sorted(each.provider_id for each in bought)
    assert {each.claim_uid for each in listed} == {"a", "b", "c"}
    for each in bought:
        found = bench.run(bench.provider.get(each.provider_id))
        assert (found.claim_uid, found.labels) == (each.claim_uid, each.labels)


def test_a_machine_is_deleted_until_it_is_gone(bench: Bench) -> None:
    bought = buy(bench, "a", ways(types(bench)[0]))

    remove(bench, bought.provider_id)

    with pytest.raises(InstanceNotFound):
        bench.run(bench.provider.get(bought.provider_id))
    assert bench.run(bench.provider.list()) == ()


@pytest.mark.parametrize("provider_id", ["", "kwok://none", "sim://none", "aws:///a/i-1"])
def test_a_machine_that_never_was_is_not_found(bench: Bench, provider_id: str) -> None:
    for asked in (bench.provider.get(provider_id), bench.provider.delete(provider_id)):
        with pytest.raises(InstanceNotFound):
            bench.run(asked)


def test_what_ran_dry_is_named_and_the_next_option_is_taken(bench: Bench) -> None:
    dry, other = types(bench)[:2]
    options = ways(dry)
    bench.run_dry(dry)

    with pytest.raises(InsufficientCapacity) as caught:
        buy(bench, "a", options)

    assert caught.value.offerings == tuple((option.name, option.offering) for option in options)
    assert buy(bench, "a", [*options, *ways(other)]).labels[labels.INSTANCE_TYPE] == other.name


def test_a_reservation_is_never_sold_twice_and_shows_what_is_left(bench: Bench) -> None:
    (option,) = reserved_ways(bench)
    generations = [bench.provider.generation(bench.reserved_pool)]
    for uid in ("a", "b"):
        buy(bench, uid, [option], "reserved")
        generations.append(bench.provider.generation(bench.reserved_pool))

    with pytest.raises(InsufficientCapacity):
        buy(bench, "c", [option], "reserved")

    assert len(set(generations)) == 3
    assert [each.offering.available for each in reserved_ways(bench)] == [0]


async def all_at_once(works: Sequence[Coroutine[Any, Any, Instance]]) -> list[Instance | CloudError]:
    outcomes: dict[int, Instance | CloudError] = {}

    async def attempt(number: int, work: Coroutine[Any, Any, Instance]) -> None:
        try:
            outcomes[number] = await work
        except CloudError as error:
            outcomes[number] = error

    tasks = Tasks()
    for number, work in enumerate(works):
        tasks.start(str(number), attempt(number, work))
    await asyncio.sleep(60)
    return [outcomes[number] for number in range(len(works))]


def test_a_reservation_is_not_oversold_to_claims_that_ask_at_once(bench: Bench) -> None:
    (option,) = reserved_ways(bench)
    claims = [claim_for(uid, "reserved") for uid in "abcde"]

    outcomes = bench.run(all_at_once([bench.provider.create(each, [option]) for each in claims]))

    assert sum(isinstance(each, Instance) for each in outcomes) == 2
    assert sum(isinstance(each, InsufficientCapacity) for each in outcomes) == 3
    assert len(bench.run(bench.provider.list())) == 2


def test_a_claim_that_asks_twice_at_once_gets_one_machine(bench: Bench) -> None:
    options = ways(types(bench)[0])

    outcomes = bench.run(all_at_once([bench.provider.create(claim_for("a"), options) for _ in range(3)]))

    assert len({each.provider_id for each in outcomes if isinstance(each, Instance)}) == 1
    assert len(bench.run(bench.provider.list())) == 1


def test_a_place_in_a_reservation_is_free_again_when_its_machine_is_gone(bench: Bench) -> None:
    (option,) = reserved_ways(bench)
    first, _ = (buy(bench, uid, [option], "reserved") for uid in ("a", "b"))

    remove(bench, first.provider_id)

    assert [each.offering.available for each in reserved_ways(bench)] == [1]
    assert buy(bench, "c", [option], "reserved").labels[labels.CAPACITY_TYPE] == labels.RESERVED


def test_a_machine_outlives_its_reservation_as_one_on_demand(bench: Bench) -> None:
    bought = buy(bench, "a", reserved_ways(bench), "reserved")

    bench.forward(timedelta(hours=1))
    after = bench.run(bench.provider.get(bought.provider_id))

    assert bought.labels[bench.provider.vocabulary().reservation_id] == "cr-1"
    assert after.labels[labels.CAPACITY_TYPE] == labels.ON_DEMAND
    assert bench.provider.vocabulary().reservation_id not in after.labels


def test_a_claim_of_a_class_that_is_not_there_is_not_launched(bench: Bench) -> None:
    options = ways(types(bench)[0])

    with pytest.raises(NodeClassNotReady, match="nowhere"):
        buy(bench, "a", options, "nowhere")
    assert bench.run(bench.provider.list()) == ()


def test_a_reboot_happens_once_for_each_operation(bench: Bench) -> None:
    bought = buy(bench, "a", ways(types(bench)[0]))
    claim = claim_for("a", providerID=bought.provider_id, nodeName=bought.provider_id.removeprefix("kwok://"))
    seen = [bench.boots(bought.provider_id)]

    for operation in ("one", "one", "two"):
        bench.run(bench.provider.reboot(claim, operation))
        seen.append(bench.boots(bought.provider_id))

    assert len(set(seen)) == 3
    assert seen[1] == seen[2]


def test_a_machine_that_is_gone_cannot_be_rebooted(bench: Bench) -> None:
    with pytest.raises(InstanceNotFound):
        bench.run(bench.provider.reboot(claim_for("a", providerID="kwok://gone", nodeName="gone"), "one"))
