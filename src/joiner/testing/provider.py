"""The contract of a provider, as a suite for pytest: derive a class from `ProviderContract` and give it a fixture `bench`.

    class TestMyCloud(ProviderContract):
        @pytest.fixture
        def bench(self) -> Iterator[MyBench]: ...

A bench has the provider in a small world that the suite can move. What a provider cannot do is declared in `Bench.lacks`: the
suite then checks that it says so itself, instead of failing.
"""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from datetime import UTC, datetime, timedelta
from functools import wraps
from typing import Any, Literal, TypeVar

import pytest

from joiner.catalog.market import InstanceType, Option
from joiner.cloud.errors import (
    CloudError,
    InstanceNotFound,
    InsufficientCapacity,
    NodeClassNotReady,
    RebootNotSupported,
)
from joiner.cloud.provider import CloudProvider, Instance, K
from joiner.cloud.repair import policy_problems
from joiner.kube.tasks import Tasks
from joiner.model import labels
from joiner.model.codec import decode, encode
from joiner.model.meta import KubeObject
from joiner.model.nodeclaim import NodeClaim
from joiner.model.nodeclass import NodeClassReference
from joiner.model.nodepool import NodePool
from joiner.sim.virtualtime import VirtualClock, VirtualLoop

T = TypeVar("T")
Capability = Literal["reservations", "reboot", "shortages"]
"""`shortages`: offerings that were found without capacity are not offered for a while. Not for those who know all counts."""
BEGINNING = datetime(2030, 1, 1, tzinfo=UTC)
"""The moment at which every bench begins."""


class Bench:
    """A provider in a world that the suite can move, on virtual time. Derive from it.

    `NodeClasses` as providers read them: `put` and `remove` NodeClasses, and give the bench to the provider.
    """

    provider: CloudProvider
    pool: NodePool
    """Its NodeClass must offer at least two instance types."""
    reserved_pool: NodePool | None = None
    """A pool whose NodeClass has one capacity reservation, `cr-1`, of two machines, which ends within the hour."""
    lacks: frozenset[Capability] = frozenset()
    """What the provider cannot do."""

    def __init__(self) -> None:
        self.loop = VirtualLoop()
        self.clock = VirtualClock(self.loop, BEGINNING)
        self._classes: dict[tuple[type[KubeObject], str], KubeObject] = {}

    # -- NodeClasses ----------------------------------------------------------------------------------------------

    def get(self, kind: type[K], name: str) -> K | None:
        """The NodeClass of that name, if there is one."""
        found = self._classes.get((kind, name))
        return found if isinstance(found, kind) else None

    def put(self, node_class: KubeObject) -> None:
        """Create a NodeClass, or change it."""
        self._classes[type(node_class), node_class.name] = node_class

    def remove(self, kind: type[KubeObject], name: str) -> None:
        """Delete a NodeClass."""
        del self._classes[kind, name]

    # -- what the suite does to the world -------------------------------------------------------------------------

    def edit_node_class(self) -> None:
        """Change the NodeClass of `pool` so that its instance types are others."""
        raise NotImplementedError

    def remove_node_class(self) -> None:
        """Delete the NodeClass of `pool`."""
        reference = self.pool.spec.template.spec.node_class_ref
        kind = next(kind for kind in self.provider.node_classes() if kind.kind == reference.kind)
        self.remove(kind, reference.name)

    def run_dry(self, instance_type: InstanceType) -> None:
        """Let the cloud have none of a type, and let the provider find that out."""
        raise NotImplementedError

    def boots(self, provider_id: str) -> str:
        """Something that differs after every restart of a machine. Not needed where `lacks` has `reboot`."""
        raise NotImplementedError

    def node_name(self, provider_id: str) -> str:
        """The name of a machine's Node: the last part of its provider id, unless the provider names nodes otherwise."""
        return provider_id.rpartition("/")[2]

    def forward(self, time: timedelta) -> None:
        """Let time go by."""
        self.run(asyncio.sleep(time.total_seconds()))

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Wait for a call of the provider."""
        return self.loop.run_until_complete(work)

    def close(self) -> None:
        """The test is over."""
        self.loop.close()

    # -- what the suite asks --------------------------------------------------------------------------------------

    @property
    def every_pool(self) -> NodePool:
        """The pool with the most kinds of offerings."""
        return self.reserved_pool or self.pool

    @staticmethod
    def options(instance_type: InstanceType) -> list[Option]:
        """Every way to buy a type."""
        return [Option(name=instance_type.name, offering=each) for each in instance_type.offerings]

    def claim(self, uid: str, pool: NodePool | None = None, **status: str) -> NodeClaim:
        """A claim for a machine of a pool's NodeClass."""
        reference = encode((pool or self.pool).spec.template.spec.node_class_ref)
        metadata = {"name": f"claim-{uid}", "uid": uid}
        return decode({"metadata": metadata, "spec": {"nodeClassRef": reference}, "status": status}, NodeClaim)


def types(bench: Bench, pool: NodePool | None = None) -> tuple[InstanceType, ...]:
    """The instance types of a pool."""
    return bench.run(bench.provider.instance_types(pool or bench.pool))


def ways(instance_type: InstanceType) -> list[Option]:
    """Every way to buy a type."""
    return Bench.options(instance_type)


def reserved_ways(bench: Bench) -> list[Option]:
    """Every way to buy out of a reservation."""
    return [option for each in types(bench, bench.every_pool) for option in ways(each) if option.offering.reserved]


def buy(bench: Bench, uid: str, options: Sequence[Option], pool: NodePool | None = None) -> Instance:
    """Buy a machine for a new claim."""
    return bench.run(bench.provider.create(bench.claim(uid, pool), options))


def remove(bench: Bench, provider_id: str) -> None:
    """As the controllers do: again and again until it is gone."""
    for _ in range(30):
        try:
            bench.run(bench.provider.delete(provider_id))
        except InstanceNotFound:
            return
        bench.forward(timedelta(seconds=5))
    raise AssertionError(f"{provider_id} is still there")


async def all_at_once(works: Sequence[Coroutine[Any, Any, Instance]]) -> list[Instance | CloudError]:
    """What came of calls that were made at the same time."""
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


def needs(capability: Capability) -> Callable[[Callable[[Any, Bench], None]], Callable[[Any, Bench], None]]:
    """A test that is left out where the provider declares that it lacks something."""

    def wrapped(test: Callable[[Any, Bench], None]) -> Callable[[Any, Bench], None]:
        @wraps(test)
        def perhaps(self: Any, bench: Bench) -> None:
            if capability in bench.lacks:
                pytest.skip(f"declared: the provider lacks {capability}")
            test(self, bench)

        return perhaps

    return wrapped


class CatalogueContract:
    """What can be bought, and when it is said to have changed."""

    def test_type_names_are_unique_and_ordered_the_same_every_time(self, bench: Bench) -> None:
        names = [each.name for each in types(bench)]

        assert len(set(names)) == len(names) > 0
        assert [each.name for each in types(bench)] == names

    def test_every_type_says_who_it_is_and_defines_the_well_known_labels_it_can(self, bench: Bench) -> None:
        for each in types(bench):
            assert each.requirements[labels.INSTANCE_TYPE].values == {each.name}
            assert {labels.ARCH, labels.OS, labels.ZONE, labels.CAPACITY_TYPE} <= set(each.requirements)

    def test_every_offering_has_one_zone_and_one_known_capacity_type(self, bench: Bench) -> None:
        for each in types(bench, bench.every_pool):
            for offering in each.offerings:
                assert len(offering.requirements[labels.ZONE].values) == 1
                assert offering.requirements[labels.CAPACITY_TYPE].values <= set(labels.CAPACITY_TYPES)
                assert each.requirements.intersects(offering.requirements)

    def test_offerings_of_a_type_can_be_told_apart(self, bench: Bench) -> None:
        for each in types(bench, bench.every_pool):
            assert len({offering.requirements for offering in each.offerings}) == len(each.offerings)

    def test_prices_are_unknown_or_not_negative(self, bench: Bench) -> None:
        assert all(o.price is None or o.price >= 0 for each in types(bench) for o in each.offerings)

    def test_capacity_is_positive_and_something_is_left_for_pods(self, bench: Bench) -> None:
        for each in types(bench):
            assert each.capacity["cpu"] > 0
            assert each.capacity["memory"] > 0
            assert each.capacity["pods"] > 0
            assert all(0 <= amount <= each.capacity[name] for name, amount in each.allocatable().items())

    def test_every_label_it_uses_is_in_its_vocabulary(self, bench: Bench) -> None:
        known = bench.provider.vocabulary().well_known

        for each in types(bench, bench.every_pool):
            used = {*each.requirements, *(key for offering in each.offerings for key in offering.requirements)}
            assert used <= known

    def test_its_vocabulary_holds_the_words_everybody_knows(self, bench: Bench) -> None:
        assert bench.provider.vocabulary().well_known >= labels.WELL_KNOWN
        assert bench.provider.vocabulary().is_restricted("karpenter.sh/anything")

    def test_the_generation_rests_while_nothing_moves(self, bench: Bench) -> None:
        before = bench.provider.generation(bench.pool)
        types(bench)

        assert bench.provider.generation(bench.pool) == before
        assert hash(bench.provider.generation(bench.pool)) == hash(before)

    def test_an_edit_of_the_node_class_moves_the_generation_and_the_types(self, bench: Bench) -> None:
        before, was = bench.provider.generation(bench.pool), types(bench)

        bench.edit_node_class()

        assert bench.provider.generation(bench.pool) != before
        assert types(bench) != was

    @needs("shortages")
    def test_a_shortage_and_its_end_move_the_generation(self, bench: Bench) -> None:
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

    def test_a_type_that_ran_dry_is_still_listed(self, bench: Bench) -> None:
        before = [each.name for each in types(bench)]

        bench.run_dry(types(bench)[0])

        assert [each.name for each in types(bench)] == before

    def test_a_missing_node_class_is_said_by_name(self, bench: Bench) -> None:
        before = bench.provider.generation(bench.pool)
        bench.remove_node_class()

        with pytest.raises(NodeClassNotReady, match=bench.pool.spec.template.spec.node_class_ref.name):
            types(bench)
        assert bench.provider.generation(bench.pool) != before
        assert issubclass(NodeClassNotReady, CloudError)

    def test_what_it_hands_out_cannot_be_changed(self, bench: Bench) -> None:
        with pytest.raises(AttributeError):
            types(bench)[0].name = "other"

    def test_repair_policies_make_sense_together(self, bench: Bench) -> None:
        assert policy_problems(bench.provider.repair_policies()) == ()

    def test_drift_is_answered_in_words_or_not_at_all(self, bench: Bench) -> None:
        claim = decode({"metadata": {"name": "claim"}}, NodeClaim)

        assert isinstance(bench.run(bench.provider.drift_reason(claim)), str)

    def test_node_classes_are_cluster_scoped_kinds_of_its_own_group(self, bench: Bench) -> None:
        for kind in bench.provider.node_classes():
            assert not kind.namespaced
            assert kind.group != labels.GROUP
            assert kind.kind.endswith("NodeClass")

    def test_the_label_of_its_node_classes_is_known_and_given(self, bench: Bench) -> None:
        for kind in bench.provider.node_classes():
            key = NodeClassReference(group=kind.group, kind=kind.kind).label_key
            assert key in bench.provider.vocabulary().well_known & bench.provider.vocabulary().given

    def test_prices_come_with_their_age_and_their_sources(self, bench: Bench) -> None:
        assert bench.provider.prices(bench.pool)
        assert bench.provider.details(bench.pool).sources

    def test_a_sound_node_class_has_no_problem(self, bench: Bench) -> None:
        for kind in bench.provider.node_classes():
            assert bench.provider.node_class_problems(decode({"metadata": {"name": "default"}}, kind)) == ()


class MachineContract:
    """Buying, reading, listing and deleting machines."""

    def test_the_first_option_is_bought_and_the_machine_says_what_it_is(self, bench: Bench) -> None:
        first = types(bench)[0]
        chosen = ways(first)[-1]

        bought = buy(bench, "a", [chosen, *ways(first)])

        assert bought.labels[labels.INSTANCE_TYPE] == first.name
        assert bought.labels[labels.ZONE] == chosen.offering.zone
        assert bought.labels[labels.CAPACITY_TYPE] == chosen.offering.capacity_type
        assert (bought.claim_name, bought.claim_uid, bought.terminating) == ("claim-a", "a", False)
        assert bought.capacity["cpu"] == first.capacity["cpu"]

    def test_one_claim_is_one_machine_however_often_it_is_asked_for(self, bench: Bench) -> None:
        first, second = types(bench)[:2]

        ids = {buy(bench, "a", ways(each)).provider_id for each in (first, first, second)}

        assert len(ids) == len(bench.run(bench.provider.list())) == 1

    def test_what_was_bought_can_be_read_and_listed_in_order(self, bench: Bench) -> None:
        bought = [buy(bench, uid, ways(types(bench)[0])) for uid in ("b", "a", "c")]

        listed = bench.run(bench.provider.list())

        assert [each.provider_id for each in listed] == sorted(each.provider_id for each in bought)
        assert {each.claim_uid for each in listed} == {"a", "b", "c"}
        for each in bought:
            found = bench.run(bench.provider.get(each.provider_id))
            assert (found.claim_uid, found.labels) == (each.claim_uid, each.labels)

    def test_a_machine_is_deleted_until_it_is_gone(self, bench: Bench) -> None:
        bought = buy(bench, "a", ways(types(bench)[0]))

        remove(bench, bought.provider_id)

        with pytest.raises(InstanceNotFound):
            bench.run(bench.provider.get(bought.provider_id))
        assert bench.run(bench.provider.list()) == ()

    @pytest.mark.parametrize("provider_id", ["", "kwok://none", "sim://none", "aws:///a/i-1"])
    def test_a_machine_that_never_was_is_not_found(self, bench: Bench, provider_id: str) -> None:
        for asked in (bench.provider.get(provider_id), bench.provider.delete(provider_id)):
            with pytest.raises(InstanceNotFound):
                bench.run(asked)

    def test_what_ran_dry_is_named_and_the_next_option_is_taken(self, bench: Bench) -> None:
        dry, other = types(bench)[:2]
        options = ways(dry)
        bench.run_dry(dry)

        with pytest.raises(InsufficientCapacity) as caught:
            buy(bench, "a", options)

        assert caught.value.offerings == tuple((option.name, option.offering) for option in options)
        assert buy(bench, "a", [*options, *ways(other)]).labels[labels.INSTANCE_TYPE] == other.name

    def test_a_claim_that_asks_twice_at_once_gets_one_machine(self, bench: Bench) -> None:
        options = ways(types(bench)[0])

        outcomes = bench.run(all_at_once([bench.provider.create(bench.claim("a"), options) for _ in range(3)]))

        assert len({each.provider_id for each in outcomes if isinstance(each, Instance)}) == 1
        assert len(bench.run(bench.provider.list())) == 1

    def test_a_claim_of_a_class_that_is_not_there_is_not_launched(self, bench: Bench) -> None:
        options = ways(types(bench)[0])

        bench.remove_node_class()

        with pytest.raises(NodeClassNotReady, match=bench.pool.spec.template.spec.node_class_ref.name):
            buy(bench, "a", options)
        assert bench.run(bench.provider.list()) == ()


class ReservationContract:
    """Capacity reservations, where the provider has them."""

    @needs("reservations")
    def test_reserved_capacity_carries_an_id_and_a_count(self, bench: Bench) -> None:
        key = bench.provider.vocabulary().reservation_id

        reserved = [option.offering for option in reserved_ways(bench)]

        assert reserved
        assert all(o.available < 2**31 and len(o.requirements[key].values) == 1 for o in reserved)

    @needs("reservations")
    def test_the_end_of_a_reservation_moves_the_generation(self, bench: Bench) -> None:
        before = bench.provider.generation(bench.every_pool)

        bench.forward(timedelta(hours=1))

        assert bench.provider.generation(bench.every_pool) != before
        assert not any(o.reserved and o.launchable for t in types(bench, bench.every_pool) for o in t.offerings)

    @needs("reservations")
    def test_a_reservation_is_told_of_also_when_it_has_ended(self, bench: Bench) -> None:
        assert [each.problem for each in bench.provider.details(bench.every_pool).reservations] == [""]

        bench.forward(timedelta(hours=1))

        assert [bool(each.problem) for each in bench.provider.details(bench.every_pool).reservations] == [True]

    @needs("reservations")
    def test_a_reservation_is_never_sold_twice_and_shows_what_is_left(self, bench: Bench) -> None:
        (option,) = reserved_ways(bench)
        generations = [bench.provider.generation(bench.every_pool)]
        for uid in ("a", "b"):
            buy(bench, uid, [option], bench.every_pool)
            generations.append(bench.provider.generation(bench.every_pool))

        with pytest.raises(InsufficientCapacity):
            buy(bench, "c", [option], bench.every_pool)

        assert len(set(generations)) == 3
        assert [each.offering.available for each in reserved_ways(bench)] == [0]

    @needs("reservations")
    def test_a_reservation_is_not_oversold_to_claims_that_ask_at_once(self, bench: Bench) -> None:
        (option,) = reserved_ways(bench)
        claims = [bench.claim(uid, bench.every_pool) for uid in "abcde"]

        outcomes = bench.run(all_at_once([bench.provider.create(each, [option]) for each in claims]))

        assert sum(isinstance(each, Instance) for each in outcomes) == 2
        assert sum(isinstance(each, InsufficientCapacity) for each in outcomes) == 3
        assert len(bench.run(bench.provider.list())) == 2

    @needs("reservations")
    def test_a_place_in_a_reservation_is_free_again_when_its_machine_is_gone(self, bench: Bench) -> None:
        (option,) = reserved_ways(bench)
        first, _ = (buy(bench, uid, [option], bench.every_pool) for uid in ("a", "b"))

        remove(bench, first.provider_id)

        assert [each.offering.available for each in reserved_ways(bench)] == [1]
        assert buy(bench, "c", [option], bench.every_pool).labels[labels.CAPACITY_TYPE] == labels.RESERVED

    @needs("reservations")
    def test_a_machine_outlives_its_reservation_as_one_on_demand(self, bench: Bench) -> None:
        bought = buy(bench, "a", reserved_ways(bench), bench.every_pool)

        bench.forward(timedelta(hours=1))
        after = bench.run(bench.provider.get(bought.provider_id))

        assert bought.labels[bench.provider.vocabulary().reservation_id] == "cr-1"
        assert after.labels[labels.CAPACITY_TYPE] == labels.ON_DEMAND
        assert bench.provider.vocabulary().reservation_id not in after.labels


class RebootContract:
    """Restarting machines, where the provider can."""

    @needs("reboot")
    def test_a_reboot_happens_once_for_each_operation(self, bench: Bench) -> None:
        bought = buy(bench, "a", ways(types(bench)[0]))
        claim = bench.claim("a", providerID=bought.provider_id, nodeName=bench.node_name(bought.provider_id))
        seen = [bench.boots(bought.provider_id)]

        for operation in ("one", "one", "two"):
            bench.run(bench.provider.reboot(claim, operation))
            seen.append(bench.boots(bought.provider_id))

        assert len(set(seen)) == 3
        assert seen[1] == seen[2]

    @needs("reboot")
    def test_a_machine_that_is_gone_cannot_be_rebooted(self, bench: Bench) -> None:
        with pytest.raises(InstanceNotFound):
            bench.run(bench.provider.reboot(bench.claim("a", providerID="kwok://gone", nodeName="gone"), "one"))


class ProviderContract(CatalogueContract, MachineContract, ReservationContract, RebootContract):
    """Everything that a provider keeps to. Derive a class whose name begins with Test, with a fixture `bench`."""

    def test_what_it_lacks_it_says_itself(self, bench: Bench) -> None:
        if "reservations" in bench.lacks:
            assert not any(offering.reserved for each in types(bench) for offering in each.offerings)
        if "reboot" in bench.lacks:
            bought = buy(bench, "a", ways(types(bench)[0]))
            claim = bench.claim("a", providerID=bought.provider_id, nodeName=bench.node_name(bought.provider_id))
            with pytest.raises(RebootNotSupported):
                bench.run(bench.provider.reboot(claim, "one"))
