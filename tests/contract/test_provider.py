"""What every provider must keep to. A provider joins by adding a bench of its own to `BENCHES`.

A bench builds the provider in a small world of its own and says how that world can be moved.
"""

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Protocol

import pytest
from tests.builders import node_pool

from joiner.catalog.market import InstanceType
from joiner.cloud import plugins
from joiner.cloud.errors import CloudError, NodeClassNotReady
from joiner.cloud.kwok.nodeclass import KWOKNodeClass
from joiner.cloud.kwok.provider import KwokProvider
from joiner.cloud.provider import CloudProvider, K
from joiner.cloud.repair import policy_problems
from joiner.model import labels
from joiner.model.codec import decode
from joiner.model.meta import KubeObject, replace
from joiner.model.nodeclaim import NodeClaim
from joiner.model.nodeclass import NodeClassReference
from joiner.model.nodepool import NodePool


class Bench(Protocol):
    """A provider in a world that the suite can move."""

    provider: CloudProvider
    pool: NodePool
    reserved_pool: NodePool
    """A pool whose NodeClass has a capacity reservation that ends within the hour."""

    def edit_node_class(self) -> None: ...

    def remove_node_class(self) -> None: ...

    def run_dry(self, instance_type: InstanceType) -> None: ...

    def forward(self, time: timedelta) -> None: ...


class KwokBench:
    """The KWOK provider over two NodeClasses in memory."""

    def __init__(self) -> None:
        self._now = datetime(2030, 1, 1, tzinfo=UTC)
        self._classes: dict[str, KWOKNodeClass] = {}
        self._put("default", {"kubelet": {"maxPods": 50}})
        reservation = {
            "id": "cr-1", "instanceType": "m-2x-amd64-linux", "zone": "test-zone-a", "count": 2,
            "endTime": "2030-01-01T00:30:00Z",
        }  # fmt: skip
        self._put("reserved", {"capacityReservations": [reservation]})
        self.kwok = KwokProvider(self, self)
        self.provider: CloudProvider = self.kwok
        self.pool = node_pool()
        reference = replace(self.pool.spec.template.spec.node_class_ref, name="reserved")
        template = replace(
            self.pool.spec.template, spec=replace(self.pool.spec.template.spec, node_class_ref=reference)
        )
        self.reserved_pool = replace(self.pool, spec=replace(self.pool.spec, template=template))

    def _put(self, name: str, spec: dict[str, object]) -> None:
        self._classes[name] = decode({"metadata": {"name": name}, "spec": spec}, KWOKNodeClass)

    def get(self, kind: type[K], name: str) -> K | None:
        found: KubeObject | None = self._classes.get(name)
        return found if isinstance(found, kind) else None

    def now(self) -> datetime:
        return self._now

    def monotonic(self) -> float:
        return self._now.timestamp()

    def edit_node_class(self) -> None:
        self._put("default", {"kubelet": {"maxPods": 20}})

    def remove_node_class(self) -> None:
        del self._classes["default"]

    def run_dry(self, instance_type: InstanceType) -> None:
        for offering in instance_type.offerings:
            self.kwok.unavailable.mark(instance_type.name, offering)

    def forward(self, time: timedelta) -> None:
        self._now += time


BENCHES: list[Callable[[], Bench]] = [KwokBench]


@pytest.fixture(params=BENCHES, ids=lambda make: str(make.__name__))
def bench(request: pytest.FixtureRequest) -> Bench:
    made: Bench = request.param()
    return made


def types(bench: Bench, pool: NodePool | None = None) -> tuple[InstanceType, ...]:
    return asyncio.run(bench.provider.instance_types(pool or bench.pool))


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

    assert isinstance(asyncio.run(bench.provider.drift_reason(claim)), str)


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
