"""Launch retries: what failed is tried again by one claim, later each time, and other claims are not kept from anything."""

from datetime import datetime, timedelta

from tests.builders import VOCABULARY, node_pool, pod, pool_option, problem

from joiner.controllers.provisioning.launchretries import (
    NOW,
    REMEMBERED_S,
    SPARE_S,
    UNDECIDED,
    LaunchRequest,
    LaunchRetries,
)
from joiner.model.labels import ZONE
from joiner.model.meta import ObjectMeta
from joiner.model.nodeclaim import NodeClaim, NodeClaimStatus
from joiner.scheduling.schedule import schedule
from joiner.sim.virtualtime import EPOCH
from joiner.state.bookkeeping import SettledClaim
from joiner.state.cluster import Cluster

OPTION = pool_option(node_pool())


def needs(zone: str = "") -> LaunchRequest:
    (planned,) = schedule(problem([pod(nodeSelector={ZONE: zone} if zone else {})], OPTION)).claims
    return LaunchRequest("default", planned, OPTION.catalog)


class Hands:
    """A clock that is turned by hand."""

    def __init__(self) -> None:
        self.passed_s = 0.0

    def now(self) -> datetime:
        return EPOCH + timedelta(seconds=self.passed_s)

    def monotonic(self) -> float:
        return self.passed_s


class World:
    """Launch retries, and a cluster whose claims come and go at once."""

    def __init__(self) -> None:
        self.clock = Hands()
        self.cluster = Cluster(VOCABULARY)
        self.retries = LaunchRetries(self.clock)
        self.cluster.on_settled(self.retries.learn)
        self.count = 0

    def write(self, wanted: LaunchRequest) -> NodeClaim:
        self.count += 1
        claim = NodeClaim(metadata=ObjectMeta(name=f"claim-{self.count}"))
        self.retries.wrote(claim.name, wanted)
        self.cluster.created(claim, (), EPOCH)
        return claim

    def fail(self, *wanted: LaunchRequest) -> None:
        for claim in [self.write(each) for each in wanted]:
            self.cluster.apply(NodeClaim, claim, None)

    def succeed(self, wanted: LaunchRequest) -> None:
        claim = self.write(wanted)
        launched = NodeClaim(metadata=claim.metadata, status=NodeClaimStatus(provider_id="shop://1"))
        self.cluster.apply(NodeClaim, claim, launched)

    def buyable(self, zone: str) -> bool:
        """Whether anything in a zone is planned with."""
        catalog = self.retries.reduced(OPTION.catalog)
        return any(each.zone == zone for kind in catalog.members() for each in catalog.offerings(kind))

    def rest(self) -> float:
        """How long it takes until what failed may be tried again."""
        before = self.clock.passed_s
        while not self.retries.due("default"):
            self.clock.passed_s += 1
        return self.clock.passed_s - before


def test_what_failed_is_not_planned_with_and_everything_else_is() -> None:
    world = World()
    assert world.retries.reduced(OPTION.catalog) is OPTION.catalog

    world.fail(needs("a"))

    assert (world.buyable("a"), world.buyable("b")) == (False, True)
    assert world.retries.reduced(OPTION.catalog) is world.retries.reduced(OPTION.catalog)


def test_only_a_claim_that_could_be_nothing_else_has_to_wait() -> None:
    world = World()
    world.fail(needs("a"))

    assert [turn == NOW for turn in world.retries.allowed([needs("a"), needs("b"), needs()])] == [False, True, True]


def test_what_has_rested_is_tried_by_one_claim_and_by_no_other_until_it_is_known_what_became_of_it() -> None:
    world = World()
    world.fail(needs("a"))
    world.rest()

    assert sorted(world.retries.allowed([needs("a"), needs("a")])) == [NOW, UNDECIDED]
    world.write(needs("a"))
    assert (world.retries.allowed([needs("a")]), world.retries.due("default")) == ((UNDECIDED,), False)


def test_it_rests_longer_each_time_up_to_four_minutes() -> None:
    world, rests = World(), list[float]()
    for _ in range(7):
        world.fail(needs("a"), needs("a"))
        rests.append(world.rest())

    assert rests == [1, 4, 16, 64, 240, 240, 240]


def test_a_machine_makes_all_good_again_that_its_claim_could_have_been() -> None:
    world = World()
    world.fail(needs("a"), needs("b"))
    world.succeed(needs("a"))

    assert (world.buyable("a"), world.buyable("b")) == (True, False)


def test_what_nobody_needs_again_is_forgotten() -> None:
    world = World()
    world.fail(needs("a"))
    assert not world.buyable("a")

    world.clock.passed_s += REMEMBERED_S + SPARE_S

    assert world.retries.reduced(OPTION.catalog) is OPTION.catalog


def test_pools_that_keep_a_number_of_nodes_are_tried_with_one_claim_too() -> None:
    world = World()
    world.fail(LaunchRequest("default"))
    world.rest()

    assert sorted(world.retries.allowed([LaunchRequest("default")] * 3)) == [NOW, UNDECIDED, UNDECIDED]


def test_every_listener_is_told_what_became_of_a_claim() -> None:
    world, told = World(), list[SettledClaim]()
    world.cluster.on_settled(told.append)
    world.fail(needs("a"))

    assert (told, world.buyable("a")) == ([SettledClaim("claim-1", launched=False)], False)
