"""Questions that a comparison with another scheduler showed to be answered badly. Each stays here for ever."""

from collections import Counter
from contextlib import suppress
from typing import Any

import pytest
from tests.builders import (
    RESERVATION,
    Heard,
    away_from,
    bound_volume,
    existing_node,
    instance_type,
    near_term,
    near_to,
    node_pool,
    offering,
    pod,
    pods,
    problem,
    requirement,
    spread_over,
)

from joiner.catalog.market import InstanceType, Offering
from joiner.model import resources
from joiner.model.labels import ARCH, CAPACITY_TYPE, HOSTNAME, INSTANCE_TYPE, ZONE
from joiner.model.meta import replace
from joiner.model.pod import Pod
from joiner.model.storage import PersistentVolume, PersistentVolumeClaim
from joiner.model.taints import Taint
from joiner.scheduling.attempts import Attempts
from joiner.scheduling.effort import Unlimited
from joiner.scheduling.engine.firstfit import FirstFit, NothingNew
from joiner.scheduling.engine.prepared import PreparedProblem
from joiner.scheduling.nodes.placementrules import PlacementRules
from joiner.scheduling.planners.firstfitvariants import InTurn
from joiner.scheduling.planners.lprounding import LpPriced, LpRounded
from joiner.scheduling.planners.podsizes import Share, Size
from joiner.scheduling.planners.queuereorder import rescued
from joiner.scheduling.planners.table import PLANNERS
from joiner.scheduling.planners.valuegreedy import ValueGreedy
from joiner.scheduling.problem import Problem, Storage
from joiner.scheduling.report.plannedclaims import to_plan
from joiner.scheduling.rescues import in_turn
from joiner.scheduling.schedule import schedule
from joiner.scheduling.tuning import NODE_PRICE

TEAM = "example.com/team"
BY_PROGRAMME = (LpRounded, LpPriced)
PLANNED_BY = tuple(planner.run for planner in PLANNERS)
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def test_pods_that_spread_over_a_label_of_the_pools_may_choose_something_else_too() -> None:
    red, blue = (node_pool(name, labels={TEAM: name}) for name in ("red", "blue"))
    waiting = pods(2, nodeSelector={ARCH: "amd64"}, topologySpreadConstraints=[spread_over("web", TEAM)])

    plan = schedule(problem(waiting, red, blue))

    assert sorted(claim.nodepool for claim in plan.claims) == ["blue", "red"]


def in_zones(name: str, zones: str, price: float, cpu: int = 2) -> InstanceType:
    return sold(name, [offering(zone=zone, price=price) for zone in zones], cpu)


def sold(name: str, ways: list[Offering], cpu: int) -> InstanceType:
    return instance_type(name, ways, capacity=resources.of(cpu=cpu, memory="8Gi", pods=20))


CHEAP_WHERE_THE_LARGE_IS_NOT = in_zones("small", "abc", 1.0, cpu=1), in_zones("large", "b", 9.0, cpu=8)
TWO_SPREADS = [spread_over("web"), spread_over("web", TEAM)]
WITH_COMPANY = [
    pytest.param({"topologySpreadConstraints": [spread_over("web")]}, id="spread"),
    pytest.param({"topologySpreadConstraints": TWO_SPREADS}, id="two spreads"),
    pytest.param({"affinity": near_to("web")}, id="affinity"),
]


@pytest.mark.parametrize("rule", WITH_COMPANY)
@pytest.mark.parametrize("count", [1, 3])
def test_of_equal_domains_one_is_taken_where_something_can_be_bought(rule: dict[str, Any], count: int) -> None:
    pool = node_pool(requirements=[requirement(TEAM, "In", "red", "blue")])

    plan = schedule(problem(pods(count, cpu="4", **rule), pool, types=CHEAP_WHERE_THE_LARGE_IS_NOT))

    assert plan.claims
    assert all(claim.requirements[ZONE].values == {"b"} for claim in plan.claims)


def test_a_preference_that_nobody_can_meet_does_not_cost_a_pod_its_other_terms() -> None:
    wish = {"weight": 1, "preference": {"matchExpressions": [requirement(ZONE, "In", "nowhere")]}}
    terms = [{"matchExpressions": [requirement(ZONE, "In", zone)]} for zone in ("b", "mars")]
    affinity = {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": terms}, PREFERRED: [wish]}}

    plan = schedule(problem([pod(affinity=affinity)]))

    assert [claim.requirements[ZONE].values for claim in plan.claims] == [{"b"}]


def volume_in(name: str, zone: str) -> tuple[PersistentVolumeClaim, PersistentVolume]:
    return bound_volume(name, requirement(ZONE, "In", zone))


@pytest.mark.parametrize("beside", [[], [pod("nowhere", cpu="1000")]], ids=["alone", "beside one that is left out"])
@pytest.mark.parametrize("held", ["first", "second"])
def test_a_pod_that_may_be_anywhere_leaves_the_zone_to_its_sibling_whose_volume_is_there(
    held: str, beside: list[Pod]
) -> None:
    claim, volume = volume_in("data", "b")
    rule: dict[str, Any] = {"labels": {"app": "web"}, "topologySpreadConstraints": [spread_over("web", minDomains=3)]}
    waiting = [pod(name, claims=["data"] if name == held else [], **rule) for name in ("first", "second")]
    node = existing_node("there", zone="b")

    asked = problem([*waiting, *beside], nodes=(node,), storage=Storage(claims=(claim,), volumes=(volume,)))
    plan = schedule(asked)

    assert len(plan.refusals) == len(beside)


def test_a_pod_that_is_left_over_does_not_make_the_others_dearer() -> None:
    kinds = (in_zones("small", "a", 1.0, cpu=2), in_zones("large", "a", 5.0, cpu=8))
    others = [*pods(3, cpu="2", memory="100Mi"), *pods(8, "tiny", cpu="200m", memory="100Mi")]
    hopeless = pod("hopeless", cpu="100", priority=100)
    pool = node_pool(limits={"cpu": "1000"})

    alone, together = (schedule(problem(waiting, pool, types=kinds)) for waiting in (others, [*others, hopeless]))

    assert together.price == alone.price


def test_a_single_pod_goes_to_the_zone_where_its_own_node_is_cheap() -> None:
    kinds = (
        instance_type("small", [offering(zone="a", price=1.0), offering(zone="b", price=3.0)]),
        in_zones("huge", "a", 100.0, cpu=64),
    )

    plan = schedule(problem(pods(1, topologySpreadConstraints=[spread_over("web")]), types=kinds))

    assert plan.price == 1.0


def test_a_group_that_stays_together_starts_on_a_node_that_is_bought_anyway() -> None:
    kinds = (in_zones("small", "a", 1.0, cpu=2), in_zones("large", "b", 9.0, cpu=8))
    waiting = [pod("big", cpu="4"), pod("web", cpu="1", labels={"app": "web"}, affinity=near_to("web"))]

    plan = schedule(problem(waiting, types=kinds))

    assert [len(claim.pods) for claim in plan.claims] == [2]


def stateful(zones: str, free: int, **rule: Any) -> Problem:
    """Pods that are held in these zones, and some that are free to go anywhere, all of one group that spreads over zones."""
    stored = [volume_in(f"held-{number}", zone) for number, zone in enumerate(zones)]
    storage = Storage(claims=tuple(claim for claim, _ in stored), volumes=tuple(volume for _, volume in stored))
    shape: dict[str, Any] = {"labels": {"app": "web"}, "topologySpreadConstraints": [spread_over("web", **rule)]}
    held = [pod(claim.name, claims=[claim.name], **shape) for claim, _ in stored]
    return problem([*held, *pods(free, "free", **shape)], storage=storage)


@pytest.mark.parametrize("planner", [FirstFit, *PLANNED_BY])
@pytest.mark.parametrize(("zones", "free"), [("aab", 2), ("aaa", 4), ("aabbc", 1), ("aa", 2), ("ccc", 6)])
def test_a_free_pod_takes_the_zone_that_no_waiting_sibling_needs(
    planner: type[FirstFit], zones: str, free: int
) -> None:
    run = planner(stateful(zones, free), Unlimited())

    with suppress(NothingNew):
        run.place()

    assert run.sound
    assert not run.left_over()


@pytest.mark.parametrize(
    ("zones", "free", "rule", "out"),
    [
        pytest.param("aaa", 1, {}, 2, id="the free one cannot fill both other zones up"),
        pytest.param("aaaa", 4, {}, 1, id="four free ones let three in"),
        pytest.param("aa", 3, {"minDomains": 4}, 2, id="there are fewer zones than it takes"),
    ],
)
def test_nobody_is_held_where_spread_never_lets_them_go(zones: str, free: int, rule: dict[str, Any], out: int) -> None:
    question = stateful(zones, free, **rule)
    by_worth = ValueGreedy(question, Unlimited())
    by_worth.place()

    assert len(schedule(question).refusals) == by_worth.left_over().total() == out
    assert by_worth.sound


@pytest.mark.parametrize("planner", [ValueGreedy, *BY_PROGRAMME])
def test_pods_that_spread_fill_the_nodes_of_one_zone_before_more_is_bought_there(planner: type[FirstFit]) -> None:
    nodes = tuple(existing_node(f"there-{number}", zone="a") for number in range(3))
    waiting = pods(9, cpu="3", topologySpreadConstraints=[spread_over("web")])
    run = planner(problem(waiting, nodes=nodes), Unlimited())

    run.place()

    assert run.sound
    assert [len(node.members) for node in run.nodes] == [1, 1, 1]
    assert {zone for claim in run.claims for zone in claim.requirements[ZONE].values} == {"b", "c"}


def test_no_reserved_node_is_bought_for_pods_that_have_room_on_a_node_that_is_bought_anyway() -> None:
    reserved = instance_type("small", [offering("reserved", "a", 0.001, 1, "cr-1")])
    large = in_zones("large", "a", 2.0, cpu=8)
    waiting = (pod("big", cpu="5"), *pods(3, "tiny", cpu="100m"))

    plan = schedule(problem(waiting, types=(reserved, large)))

    assert [(len(claim.pods), claim.price) for claim in plan.claims] == [(4, 2.0)]


def test_what_was_best_while_a_reservation_was_free_is_not_bought_again_afterwards() -> None:
    sizes = ((2, 0.096), (4, 0.192), (8, 0.384))
    sold = [in_zones(f"m-{cpu}", "a", price, cpu=cpu) for cpu, price in sizes]
    reserved = replace(sold[1], offerings=(*sold[1].offerings, offering("reserved", "a", 0.0002, 1, "cr-1")))
    question = problem(pods(10, cpu="1"), types=(sold[0], reserved, sold[2]))

    run = ValueGreedy(replace(question, policy=replace(question.policy, node_price=NODE_PRICE)), Unlimited())
    run.place()

    assert sorted(claim.size for claim in run.claims) == [2, 4, 4]


def numbered(count: int, uid: str = "") -> list[Pod]:
    """Pods of one size that all differ, as those of a StatefulSet do; the first by UID is the last by name."""
    named = [
        pod(f"db-{number}", cpu="3", labels={"app": "db", "pod": f"{number * 7 % count}"}) for number in range(count)
    ]
    uids = [uid and f"{uid}{count - number:02d}" for number in range(count)]
    return [replace(each, metadata=replace(each.metadata, uid=uid)) for each, uid in zip(named, uids, strict=True)]


@pytest.mark.parametrize("mixed", [False, True])
def test_of_pods_of_one_size_the_first_by_name_are_placed_when_there_is_no_room_for_all(mixed: bool) -> None:
    waiting = numbered(12)
    if mixed:
        waiting = waiting[5:] + waiting[:5]

    plan = schedule(problem(waiting, node_pool(limits={"nodes": "3"}), types=(in_zones("m", "a", 1.0, cpu=4),)))

    assert sorted(name for claim in plan.claims for name in claim.pods) == [f"default/db-{n}" for n in range(3)]


def test_where_pods_have_uids_the_first_of_those_are_placed() -> None:
    waiting = numbered(12, uid="uid-")

    plan = schedule(problem(waiting, node_pool(limits={"nodes": "3"}), types=(in_zones("m", "a", 1.0, cpu=4),)))

    assert {name for claim in plan.claims for name in claim.pods} == {"default/db-9", "default/db-10", "default/db-11"}


def test_the_tenth_comes_after_the_second() -> None:
    waiting = [each for each in numbered(12) if each.name in {"db-2", "db-10"}]

    plan = schedule(problem(waiting, node_pool(limits={"nodes": "1"}), types=(in_zones("m", "a", 1.0, cpu=4),)))

    assert [refusal.pod for refusal in plan.refusals] == ["default/db-10"]


def test_a_reservation_that_is_too_small_for_a_group_leaves_none_of_it_out() -> None:
    reserved = instance_type("small", [offering("reserved", "a", 0.001, 1, "cr-1")])
    large = in_zones("large", "a", 5.0, cpu=16)
    together = pods(9, memory="500Mi", affinity=near_to("web", HOSTNAME))

    plan = schedule(problem(together, types=(reserved, large)))

    assert [(len(claim.pods), claim.price) for claim in plan.claims] == [(9, 5.0)]


def test_reservations_are_left_to_those_who_need_them_where_limits_leave_room_for_more_without() -> None:
    reserved = sold("small", [offering("reserved", "a", 0.001, 3, "cr-1")], cpu=4)
    large = in_zones("large", "a", 5.0, cpu=10)
    pinned = pods(2, "pin", cpu="1500m", memory="100Mi", nodeSelector={RESERVATION: "cr-1"})
    others = pods(11, cpu="900m", memory="100Mi")

    plan = schedule(problem((*pinned, *others), node_pool(limits={"cpu": "14"}), types=(reserved, large)))

    assert not plan.refusals
    assert sorted((claim.price, len(claim.pods)) for claim in plan.claims) == [(0.001, 3), (5.0, 10)]


def test_a_group_begins_where_an_open_claim_out_of_a_reservation_is() -> None:
    reserved = sold("reserved", [offering("reserved", "b", 0.001, 1, "cr-1")], cpu=8)
    market = in_zones("market", "ac", 1.0, cpu=8)
    first = pod("first", cpu="3")
    group = pods(3, affinity=near_to("web"))

    run = FirstFit(problem((first, *group), node_pool(limits={"cpu": "8"}), types=(reserved, market)), Unlimited())
    run.place()

    assert [claim.size for claim in run.claims] == [4]


def test_who_must_keep_apart_settles_only_after_everybody_else_had_a_say_in_the_domain() -> None:
    kept_apart = pods(2, cpu="1", labels={"tier": "x"}, affinity=apart_from_tier_x())
    spread = pods(2, "db", cpu="1500m", affinity=apart_from_tier_x(), topologySpreadConstraints=[spread_over("db")])

    plan = schedule(problem((*kept_apart, *spread), types=(in_zones("m", "abc", 1.0),)))

    assert [refusal.pod for refusal in plan.refusals] == ["default/web-1"]


def apart_from_tier_x() -> dict[str, Any]:
    term = {"labelSelector": {"matchLabels": {"tier": "x"}}, "topologyKey": ZONE}
    return {"podAntiAffinity": {REQUIRED: [term]}}


def test_who_is_kept_out_may_settle_where_it_can_be_bought() -> None:
    small, big = in_zones("small", "abc", 1.0), in_zones("big", "c", 9.0, cpu=16)
    waiting = pod("big", cpu="10", labels={"app": "db"}), pod("small", affinity=away_from("db", ZONE))

    plan = schedule(problem(waiting, types=(small, big)))

    assert not plan.refusals


def test_the_turn_by_name_does_not_hang_on_who_was_written_first() -> None:
    waiting = [pod(f"web-{n}", namespace=space) for n in (10, 2) for space in ("two", "one")]

    orders = [
        [asked.pods[at].key for at in PreparedProblem(asked).by_name]
        for asked in (problem(waiting), problem(list(reversed(waiting))))
    ]

    assert orders == [["one/web-2", "two/web-2", "one/web-10", "two/web-10"]] * 2


def test_of_domains_that_are_as_good_the_one_is_taken_that_leaves_fewest_out() -> None:
    ways = [offering(kind, "a", price) for kind, price in (("spot", 1.0), ("on-demand", 2.0))]
    first = pod("first", cpu="3", labels={"app": "db"}, topologySpreadConstraints=[spread_over("db", CAPACITY_TYPE)])
    fixed, cheap = pods(4, nodeSelector={CAPACITY_TYPE: "on-demand"}), pod(nodeSelector={CAPACITY_TYPE: "spot"})

    plan = schedule(problem((first, *fixed, cheap), node_pool(limits={"nodes": "1"}), types=(sold("m", ways, cpu=8),)))

    assert [len(claim.pods) for claim in plan.claims] == [5]


def test_pods_that_limits_keep_out_are_not_tried_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[int] = []
    real = ValueGreedy._open

    def opened(run: ValueGreedy, size: Size, share: Share) -> bool:
        tried.append(share.pod_class.number)
        return real(run, size, share)

    monkeypatch.setattr(ValueGreedy, "_open", opened)
    run = ValueGreedy(problem(pods(500, cpu="3"), node_pool(limits={"nodes": "2"})), Unlimited())

    run.place()

    assert run.left_over().total() > 400
    assert len(tried) <= 3


@pytest.mark.parametrize(("limits", "dearer"), [({"cpu": "1000"}, 0), ({"nodes": "1"}, 4)])
def test_nodes_are_made_dearer_only_where_limits_bind(limits: dict[str, str], dearer: int) -> None:
    heard = Heard()

    schedule(problem([*pods(20, cpu="3"), pod("nowhere", cpu="1000")], node_pool(limits=limits)), reporter=heard)

    assert len({name.partition("node price")[2] for name in heard.begun if "node price" in name}) == dearer


def test_a_pod_goes_to_the_zone_where_it_costs_least_not_where_all_types_do_on_average() -> None:
    cheap_on_average = in_zones("huge", "a", 10.0, cpu=64), in_zones("small-a", "a", 2.0, cpu=2)
    cheap_for_one = in_zones("vast", "b", 90.0, cpu=64), in_zones("small-b", "b", 1.0, cpu=2)
    waiting = pods(1, topologySpreadConstraints=[spread_over("somebody-else")])

    plan = schedule(problem(waiting, types=(*cheap_on_average, *cheap_for_one)))

    assert plan.price == 1.0


def test_the_zone_that_costs_least_is_no_reason_to_spread_unevenly() -> None:
    types = in_zones("dear", "a", 2.0, cpu=1), in_zones("cheap", "b", 1.0, cpu=1)
    waiting = pods(6, cpu="600m", topologySpreadConstraints=[spread_over("web", skew=2), spread_over("other", TEAM)])
    pool = node_pool(labels={TEAM: "red"})

    plan = schedule(problem(waiting, pool, types=types))

    assert not plan.refusals
    assert Counter(claim.requirements[ZONE].any() for claim in plan.claims) == {"a": 3, "b": 3}


@pytest.mark.parametrize("planner", [FirstFit, ValueGreedy, *BY_PROGRAMME])
def test_a_way_of_planning_can_be_told_who_stays_out(planner: type[FirstFit]) -> None:
    run = planner(problem(pods(5)), Unlimited(), without=frozenset({1, 3}))

    run.place()

    assert run.waiting() == {1, 3}
    assert sorted(position for claim in run.claims for position in claim.positions) == [0, 2, 4]
    assert [refusal.pod for refusal in to_plan(run).refusals] == ["default/web-1", "default/web-3"]


def test_whom_first_fit_places_is_served_cheaply_also_where_a_cheap_plan_would_leave_out_somebody_else() -> None:
    zones = {"db-0": "a", "db-1": "b", "db-2": "c", "db-3": "a", "big": "b"}
    stored = [volume_in(name, zone) for name, zone in zones.items()]
    storage = Storage(claims=tuple(claim for claim, _ in stored), volumes=tuple(volume for _, volume in stored))
    rule: dict[str, Any] = {"affinity": away_from("db"), "topologySpreadConstraints": [spread_over("db")]}
    stateful_set = [pod(f"db-{n}", "2", claims=[f"db-{n}"], labels={"app": "db"}, **rule) for n in range(4)]
    waiting = (*stateful_set, pod("big", cpu="3500m", memory="24Gi", claims=["big"]))
    there = existing_node("full", zone="a", allocatable=resources.of(cpu="100m", memory="1Gi", pods=20))
    bound = (pod("old", labels={"app": "db"}, nodeName="full"),)
    kinds = [in_zones("small", "abc", 0.1, cpu=4), in_zones("large", "abc", 1.0, cpu=16)]
    kinds = [replace(each, capacity={**each.capacity, **resources.of(memory="64Gi")}) for each in kinds]

    plan = schedule(problem(waiting, types=kinds, storage=storage, nodes=(there,), bound=bound))

    assert [refusal.pod for refusal in plan.refusals] == ["default/db-0"]
    assert plan.price == pytest.approx(0.4)


@pytest.mark.parametrize("count", [3, 30])
def test_who_joins_later_decides_which_of_two_equal_domains_is_best(count: int) -> None:
    small, large = (resources.of(cpu=cpu, memory="64Gi", pods=50) for cpu in (4, 4 * count))
    kinds = (
        instance_type("small-amd", [offering(price=2.0)], {ARCH: "amd64"}, capacity=small),
        instance_type("large-arm", [offering(price=3.0)], {ARCH: "arm64"}, capacity=large),
        instance_type("gold-arm", [offering(price=100.0)], {ARCH: "arm64"}, capacity=large),
    )
    together = pods(count, cpu="3", affinity=near_to("web", ARCH))

    plan = schedule(problem(together, types=kinds))

    assert (plan.price, [len(claim.pods) for claim in plan.claims]) == (3.0, [count])


GROWS_ONLY_IN_B = in_zones("small", "abc", 1.0), in_zones("large", "b", 9.0, cpu=8)
SPREADING = pods(1, "spread", topologySpreadConstraints=[spread_over("spread", skew=2)])


def zones_of_first_fit(asked: Problem) -> list[frozenset[str]]:
    run = FirstFit(asked, Unlimited())
    run.place()
    assert not run.left_over()
    return [claim.requirements.at(ZONE).values for claim in run.claims]


def test_of_equal_domains_one_is_taken_where_an_open_claim_can_grow() -> None:
    asked = problem([*pods(1, cpu="2"), *SPREADING], node_pool(limits={"nodes": "1"}), types=GROWS_ONLY_IN_B)

    assert zones_of_first_fit(asked) == [{"b"}]


def test_an_open_claim_that_can_grow_is_no_reason_to_spread_unevenly() -> None:
    there = pod("old", labels={"app": "spread"}, nodeName="node-b")
    full = existing_node("node-b", "b", allocatable=resources.of(cpu=0, pods=0))
    asked = problem([*pods(1, cpu="2"), *SPREADING], types=GROWS_ONLY_IN_B, nodes=(full,), bound=(there,))

    assert zones_of_first_fit(asked)[1:] == [{"a"}]


@pytest.mark.parametrize(
    ("word", "spread", "free", "left"), [("DoNotSchedule", 6, 0, 3), ("ScheduleAnyway", 2, 7, 0)], ids=["hard", "soft"]
)
def test_a_spread_that_need_not_be_kept_costs_no_more_than_the_emptiest_domain(
    word: str, spread: int, free: int, left: int
) -> None:
    sizes = {"cheap": (2, 1.0), "dear": (2, 5.0), "small": (1, 0.1)}
    kinds = [
        instance_type(name, [offering(price=price)], {TEAM: name}, capacity=resources.of(cpu=cpu, memory="4Gi", pods=4))
        for name, (cpu, price) in sizes.items()
    ]
    rule = spread_over("web", TEAM, skew=3, whenUnsatisfiable=word)
    run = FirstFit(problem(pods(9, cpu="2", topologySpreadConstraints=[rule]), types=kinds), Unlimited())

    run.place()

    settled = [bool(claim.requirements.at(TEAM).values) for claim in run.claims]
    assert (settled.count(True), settled.count(False), run.left_over().total()) == (spread, free, left)


KEEPS_AWAY = {"affinity": away_from("db", ZONE)}
KEPT_AWAY = {"affinity": away_from("web", ZONE)}


@pytest.mark.parametrize(("web", "db"), [(KEEPS_AWAY, {}), ({}, KEPT_AWAY)], ids=["keeps away", "is kept away"])
def test_of_equal_domains_one_is_taken_where_nobody_keeps_the_pod_away(web: dict[str, Any], db: dict[str, Any]) -> None:
    running = pod("db", labels={"app": "db"}, nodeName="node-a", **db)
    full = existing_node(allocatable=resources.of(cpu=0, pods=0))
    spreading = pods(2, topologySpreadConstraints=[spread_over("web", skew=2)], **web)

    asked = problem(spreading, types=(in_zones("two", "ab", 1.0),), nodes=(full,), bound=(running,))

    assert zones_of_first_fit(asked) == [{"b"}]


def test_an_open_claim_that_can_grow_does_not_draw_a_group_to_where_it_is_dear() -> None:
    kinds = (in_zones("two", "ab", 1.0), in_zones("three", "a", 6.0, cpu=3), in_zones("large", "b", 1.2, cpu=10))
    not_large = {"nodeSelectorTerms": [{"matchExpressions": [requirement(INSTANCE_TYPE, "NotIn", "large")]}]}
    plain = pod("plain", cpu="2", affinity={"nodeAffinity": {REQUIRED: not_large}})
    together = pods(25, memory="100Mi", affinity=near_to("web"))

    assert zones_of_first_fit(problem([plain, *together], types=kinds)) == [set(), {"b"}, {"b"}, {"b"}]


def test_a_full_claim_is_not_asked_domain_after_domain(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PlacementRules, "_others", lambda *given: pytest.fail("it has no room anywhere"))
    spread = pods(21, "spread", topologySpreadConstraints=[spread_over("spread")])
    asked = problem([*pods(20, cpu="2"), *spread], types=(in_zones("two", "abc", 1.0),))

    assert len(zones_of_first_fit(asked)) == 20 + 3 * 4


@pytest.mark.parametrize("more", [[], [offering("reserved", "a", 0.001, available=5, reservation="r")]])
def test_who_comes_first_has_a_place_though_more_pods_had_one_without_it(more: list[Offering]) -> None:
    common: dict[str, Any] = {"labels": {"app": "db"}, "nodeSelector": {ZONE: "a"}}
    others = [pod(f"db-{n}", affinity=away_from("db"), **common) for n in (1, 2)]
    alone = pod("db-0", affinity=away_from("db", ZONE), **common)
    kind = instance_type("m", [offering(zone="a"), *more], capacity=resources.of(cpu=2, memory="8Gi", pods=9))

    plan = schedule(problem([*others, alone], types=(kind,)))

    assert [claim.pods for claim in plan.claims] == [("default/db-0",)]


@pytest.mark.parametrize("effect", ["PreferNoSchedule", "NoSchedule"])
def test_daemons_come_to_nodes_that_would_rather_not_have_them(effect: Any) -> None:
    node = existing_node(
        taints=(Taint(key="slow", effect=effect),), allocatable=resources.of(cpu=2, memory="8Gi", pods=9)
    )
    daemon = pod("daemon", cpu="1")
    waiting = pod(cpu="2", tolerations=[{"operator": "Exists"}])

    plan = schedule(problem([waiting], nodes=(node,), daemons=(daemon,)))

    assert bool(plan.claims) is (effect == "PreferNoSchedule")


def test_who_comes_first_is_no_reason_to_leave_out_more() -> None:
    claim, volume = volume_in("data", "a")
    rule: dict[str, Any] = {"labels": {"app": "web"}, "topologySpreadConstraints": [spread_over("web")]}
    waiting = [pod("web-0", **rule), pod("web-1", claims=["data"], **rule), pod("nowhere", cpu="1000")]
    trials = Attempts(problem(waiting, storage=Storage(claims=(claim,), volumes=(volume,))), Unlimited(), None)
    net = trials.one(FirstFit)

    assert trials.one(InTurn).left_over() > net.left_over()
    assert in_turn(trials, net) is net


def test_who_is_left_out_because_of_others_goes_first_if_that_leaves_nobody_out() -> None:
    first = pod("a", cpu="2", labels={"app": "web"}, nodeSelector={ZONE: "b"})
    spread = pod("b", labels={"app": "web"}, topologySpreadConstraints=[spread_over("web")])
    # Zone a is there and has nothing to sell, so nobody may be in b before the pod that is spread.
    kinds = (in_zones("m", "b", 1.0), instance_type("gone", [offering(zone="a", available=0)]))

    run = FirstFit(problem([first, spread], types=kinds), Unlimited())
    run.place()

    assert run.left_over().total() == 1
    assert not rescued(run).left_over()


def test_nodes_of_a_pool_that_has_nothing_to_sell_are_used_in_spite_of_a_taint_that_is_only_disliked() -> None:
    disliked = Taint(key="x", effect="PreferNoSchedule")
    pool = node_pool()
    template = pool.spec.template
    tainted = replace(template, spec=replace(template.spec, taints=(disliked,)))
    pool = replace(pool, spec=replace(pool.spec, template=tainted))

    plan = schedule(problem([pod()], pool, types=(), nodes=(existing_node(taints=(disliked,)),)))

    assert plan.placements == {"node-a": ("default/web",)}


def test_a_tiny_plan_is_repaired_by_another_order() -> None:
    heard = Heard()
    even = [spread_over("large")]
    waiting = [*pods(3, "large", cpu="1500m", topologySpreadConstraints=even), *pods(3, "small", cpu="500m")]

    schedule(problem(waiting), reporter=heard)

    assert any(name.endswith("reordered") for name in heard.begun)


def test_pods_that_keep_apart_by_zone_get_a_zone_each_at_once() -> None:
    plan = schedule(problem(pods(4, affinity=away_from("web", ZONE)), types=(in_zones("m", "abc", 1.0),)))

    assert sorted(str(claim.requirements[ZONE].any()) for claim in plan.claims) == ["a", "b", "c"]
    assert len(plan.refusals) == 1


def test_pods_that_keep_apart_pass_over_a_zone_where_nothing_can_be_bought_for_them() -> None:
    kinds = (in_zones("small", "a", 0.1, cpu=1), in_zones("m", "bc", 1.0))

    plan = schedule(problem(pods(2, cpu="2", affinity=away_from("web", ZONE)), types=kinds))

    assert sorted(str(claim.requirements[ZONE].any()) for claim in plan.claims) == ["b", "c"]


def test_a_pod_without_siblings_keeps_its_choice_of_zones() -> None:
    plan = schedule(problem(pods(1, affinity=away_from("web", ZONE)), types=(in_zones("m", "abc", 1.0),)))

    assert plan.claims[0].requirements[ZONE].values == {"a", "b", "c"}


def test_a_claim_that_needs_several_types_counts_no_more_against_limits_than_those_it_needs() -> None:
    kinds = [
        instance_type(
            name, [offering(price=price)], {TEAM: name}, capacity=resources.of(cpu=cpu, memory="8Gi", pods=20)
        )
        for name, price, cpu in (("a", 1.0, 2), ("b", 1.2, 2), ("c", 20.0, 64))
    ]
    pool = node_pool(requirements=[requirement(TEAM, "Exists", minValues=2)], limits={"cpu": "70"})
    waiting = pods(8, cpu="1", affinity=away_from("web"))

    plan = schedule(problem(waiting, pool, types=kinds))

    assert not plan.refusals
    assert plan.price == 8.0


def test_who_is_kept_out_elsewhere_may_be_where_those_who_keep_it_out_cannot_be() -> None:
    shy = pod("shy", cpu="2", affinity=away_from("web", TEAM))
    kinds = [instance_type(name, [offering()], {TEAM: name}) for name in ("red", "blue")]
    red = node_pool("red", requirements=[requirement(TEAM, "In", "red")])
    blue = node_pool("blue", requirements=[requirement(TEAM, "Exists")])
    template = replace(
        blue.spec.template, spec=replace(blue.spec.template.spec, taints=(Taint(key="x", effect="NoSchedule"),))
    )
    tainted = replace(blue, spec=replace(blue.spec, template=template))
    tolerant = pod("web", cpu="1", labels={"app": "web"}, tolerations=[{"operator": "Exists"}])

    plan = schedule(problem([shy, tolerant], red, tainted, types=kinds))

    assert not plan.refusals
    assert plan.claims[1].requirements[TEAM].values == {"blue"}


def test_where_pods_keep_others_away_all_settle_early_if_that_places_more() -> None:
    shy = pods(2, "shy", cpu="1", affinity=away_from("web", ZONE))

    plan = schedule(problem([*pods(2, cpu="2"), *shy], types=(in_zones("m", "ab", 1.0),)))

    assert not plan.refusals


def test_a_pool_that_is_open_for_any_value_of_a_label_takes_one_that_another_pool_shuns() -> None:
    anything = node_pool("any", requirements=[requirement(TEAM, "Exists")])
    shuns = node_pool("shuns", requirements=[requirement(TEAM, "NotIn", "red")])

    plan = schedule(problem([pod(topologySpreadConstraints=[spread_over("web", TEAM)])], anything, shuns))

    assert [(claim.nodepool, claim.requirements[TEAM].any()) for claim in plan.claims] == [("any", "red")]


def test_a_claim_that_needs_several_types_is_still_kept_near_its_best_price() -> None:
    kinds = [
        instance_type(
            name, [offering(price=price)], {TEAM: name}, capacity=resources.of(cpu=cpu, memory="64Gi", pods=99)
        )
        for name, price, cpu in (("a", 1.0, 2), ("b", 1.2, 2), ("c", 20.0, 8), ("d", 20.0, 8))
    ]
    pool = node_pool(requirements=[requirement(TEAM, "Exists", minValues=2)])
    run = ValueGreedy(problem(pods(8), pool, types=kinds), Unlimited())

    run.place()

    assert (len(run.claims), run.price()) == (4, 4.0)


@pytest.mark.parametrize(
    ("wanted", "placed"),
    [
        pytest.param((("Exists",), ("NotIn", "red")), True, id="anything but one value"),
        pytest.param((("NotIn", "5"), ("Gt", "3")), True, id="a number but one"),
        pytest.param((("Exists",),), False, id="any value"),
        pytest.param((("Gt", "3"),), False, id="any number"),
        pytest.param((("In", "red"),), False, id="one value"),
    ],
)
def test_a_label_that_no_pool_defines_is_made_up_only_where_its_values_are_told_by_exclusion(
    wanted: tuple[tuple[str, ...], ...], placed: bool
) -> None:
    terms = [{"matchExpressions": [requirement(TEAM, *each) for each in wanted]}]

    plan = schedule(problem([pod(affinity={"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": terms}}})]))

    assert bool(plan.claims) == placed
    assert all(claim.requirements[TEAM].must_exist for claim in plan.claims)


STEADY_NEARBY = [requirement(CAPACITY_TYPE, "In", "on-demand"), requirement(ZONE, "In", "b", "c")]


def test_of_domains_that_are_as_empty_the_one_is_taken_where_a_heavier_pool_sells() -> None:
    sold = [offering("spot", "a", 0.1), offering("on-demand", "b", 1.0), offering("on-demand", "c", 1.0)]
    heavy, light = node_pool("heavy", weight=50, requirements=STEADY_NEARBY), node_pool("light")

    plan = schedule(
        problem(pods(1, topologySpreadConstraints=[spread_over("web")]), heavy, light, types=[instance_type("m", sold)])
    )

    assert [claim.nodepool for claim in plan.claims] == ["heavy"]


@pytest.mark.parametrize(("count", "limit"), [(3, "8"), (40, "40")])
def test_a_heavier_pool_is_used_up_to_its_limit_though_a_lighter_one_is_cheaper(count: int, limit: str) -> None:
    kinds = [
        instance_type(
            name,
            [offering("spot", price=0.4 * price), offering("on-demand", price=price)],
            capacity=resources.of(cpu=cpu, memory="64Gi", pods=99),
        )
        for name, cpu, price in (("small", 2, 0.1), ("medium", 4, 0.15), ("large", 8, 0.4))
    ]
    dear = node_pool(
        "dear", weight=50, limits={"cpu": limit}, requirements=[requirement(CAPACITY_TYPE, "In", "on-demand")]
    )

    plan = schedule(problem(pods(count), dear, node_pool("cheap"), types=kinds))

    assert {claim.nodepool for claim in plan.claims} == {"dear"}


def test_a_wish_is_not_given_up_to_save_nodes_where_those_are_few() -> None:
    sizes = {"a-small": (2, 8, 0.04), "a-medium": (4, 16, 0.08), "a-large": (8, 32, 0.16), "h-large": (8, 28, 0.24)}
    kinds = [
        instance_type(
            name, [offering(price=price)], {TEAM: name[0]}, capacity=resources.of(cpu=cpu, memory=f"{gib}Gi", pods=30)
        )
        for name, (cpu, gib, price) in sizes.items()
    ]
    liking = {"weight": 10, "preference": {"matchExpressions": [requirement(TEAM, "In", "h")]}}
    some = pods(2, "some", cpu="500m", memory="4Gi", affinity={"nodeAffinity": {PREFERRED: [liking]}})
    apart = {PREFERRED: [{"weight": 5, "podAffinityTerm": near_term("other", HOSTNAME)}]}
    others = pods(5, "other", cpu="1500m", ports=[80], affinity={"podAntiAffinity": apart})

    plan = schedule(problem([*some, *others], node_pool(limits={"nodes": "2"}), types=kinds))

    assert {"default/some-0", "default/some-1"} <= {
        name for claim in plan.claims if claim.options[0].name == "h-large" for name in claim.pods
    }
