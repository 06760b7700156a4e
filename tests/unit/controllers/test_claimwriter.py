"""Claims: what is written, and what keeps one from being written."""

from typing import Any

import pytest
from tests.builders import (
    RESERVATION,
    SHELF,
    VOCABULARY,
    away_from,
    instance_type,
    node_pool,
    offering,
    overlay,
    pod,
    pool_option,
    problem,
    requirement,
)
from tests.unit.controllers.provisioningworld import Workshop, at_work, ready_pool, seconds, waiting_pod

from joiner.controllers.provisioning.claimwriter import ClaimRequest, dynamic_claim, static_claim
from joiner.disruption import drift
from joiner.kube.errors import Unreachable
from joiner.model import labels
from joiner.model.labels import CAPACITY_TYPE, INSTANCE_TYPE, NODEPOOL, ZONE
from joiner.model.meta import replace
from joiner.model.nodeclaim import NodeClaim
from joiner.model.nodepool import NodePool
from joiner.model.nodepoolhash import nodepool_hash
from joiner.model.quantity import parse
from joiner.model.resources import of
from joiner.scheduling.problem import PoolOption
from joiner.scheduling.schedule import schedule
from joiner.sim.apiserver.client import Call, NoInterceptor


def bought(pool: NodePool | PoolOption, *pods: Any, **more: Any) -> NodeClaim:
    """The one claim that is written for some pods."""
    option = pool if isinstance(pool, PoolOption) else pool_option(pool)
    (planned,) = schedule(problem(pods or (pod(),), option, **more)).claims
    return dynamic_claim(ClaimRequest(planned, option, ()), option.pool)


def values(claim: NodeClaim, key: str) -> tuple[str, ...]:
    (found,) = [each.values for each in claim.spec.requirements if each.key == key]
    return found


def test_a_claim_names_its_types_cheapest_first_and_the_ways_to_buy_them() -> None:
    claim = bought(node_pool(), pod(cpu="3"))

    assert values(claim, INSTANCE_TYPE) == ("m-4", "m-8", "m-16")
    assert values(claim, CAPACITY_TYPE) == ("on-demand", "spot")
    assert claim.spec.resources.requests == of(cpu=3, memory="1Gi", pods=1)


def test_a_claim_carries_everything_that_the_template_says() -> None:
    pool = node_pool(labels={"team": "a"})
    claim = bought(replace(pool, metadata=replace(pool.metadata, uid="u")))

    (owner,) = claim.metadata.owner_references
    assert (owner.kind, owner.name, owner.uid, owner.block_owner_deletion) == ("NodePool", "default", "u", True)
    assert claim.metadata.generate_name == "default-"
    assert claim.metadata.labels == {"team": "a", NODEPOOL: "default", "karpenter.kwok.sh/kwoknodeclass": "default"}
    assert claim.metadata.annotations == {
        labels.NODEPOOL_HASH: nodepool_hash(pool),
        labels.NODEPOOL_HASH_VERSION: "v3",
        labels.MIN_VALUES_RELAXED: "false",
    }


def test_a_label_of_peoples_own_that_pods_settle_is_written_on_the_claim() -> None:
    pool = node_pool(requirements=[requirement("team", "In", "a", "b")])

    claim = bought(pool, pod(nodeSelector={"team": "b", ZONE: "a"}))

    assert (claim.metadata.labels["team"], ZONE in claim.metadata.labels) == ("b", False)
    assert (values(claim, "team"), values(claim, ZONE)) == (("b",), ("a",))


@pytest.mark.parametrize(
    ("asked", "label"),
    [
        pytest.param(requirement("team", "In", "b", "a"), "a", id="one of several"),
        pytest.param(requirement("team", "Exists"), "0", id="anything"),
        pytest.param(requirement("team", "NotIn", "0"), "1", id="anything else"),
        pytest.param(requirement("team", "DoesNotExist"), None, id="nothing"),
    ],
)
def test_a_label_of_peoples_own_that_nobody_settles_gets_a_value_that_is_allowed(asked: Any, label: str | None) -> None:
    pool = node_pool(requirements=[asked])
    claim = bought(pool)

    assert claim.metadata.labels.get("team") == label
    assert drift.from_pool(claim, pool, VOCABULARY) == ""


def test_labels_that_only_a_node_that_has_joined_carries_never_reach_a_claim() -> None:
    keys = {each.key for each in bought(node_pool()).spec.requirements}

    assert keys.isdisjoint({labels.REGISTERED, labels.INITIALIZED, labels.HOSTNAME})


def test_min_values_stay_on_the_claim() -> None:
    pool = node_pool(requirements=[requirement(INSTANCE_TYPE, "Exists", minValues=3)])
    (types,) = [each for each in bought(pool).spec.requirements if each.key == INSTANCE_TYPE]

    assert (types.min_values, len(types.values)) == (3, 5)


def test_a_claim_of_a_reservation_is_held_to_it_and_asks_for_no_choice() -> None:
    held = offering("reserved", "a", 1.0, 1, "cr-1")
    kinds = (instance_type("small", [held, offering(price=1.0)]), instance_type("large", [offering(price=2.0)]))
    pool = node_pool(requirements=[requirement(INSTANCE_TYPE, "Exists", minValues=2)])

    claim = bought(pool_option(pool, kinds), types=kinds)

    assert (values(claim, CAPACITY_TYPE), values(claim, RESERVATION)) == (("reserved",), ("cr-1",))
    assert all(each.min_values is None for each in claim.spec.requirements)


def test_a_claim_without_a_reservation_is_kept_out_of_all_of_them() -> None:
    kinds = (instance_type("small", [offering("reserved", "a", 1.0, 1, "cr-1"), offering(price=1.0)]),)
    option = pool_option(node_pool(), kinds)
    apart = [pod(name, labels={"app": "a"}, affinity=away_from("a")) for name in ("one", "two")]
    planned = schedule(problem(apart, option, types=kinds)).claims

    claims = [dynamic_claim(ClaimRequest(each, option, ()), option.pool) for each in planned]

    assert sorted(values(each, CAPACITY_TYPE) for each in claims) == [("on-demand",), ("reserved",)]


@pytest.mark.parametrize(
    ("changes", "annotation"),
    [
        pytest.param({"price": "0.01"}, labels.PRICE_OVERLAY_APPLIED, id="price"),
        pytest.param({"capacity": {"example.com/gpu": "1"}}, labels.CAPACITY_OVERLAY_APPLIED, id="capacity"),
    ],
)
def test_a_claim_tells_that_overlays_had_a_hand_in_it(changes: dict[str, Any], annotation: str) -> None:
    claim = bought(pool_option(node_pool(), SHELF, [overlay("o", **changes)]))

    assert claim.metadata.annotations[annotation] == "true"


def test_a_claim_of_a_static_pool_may_be_anything_the_template_allows() -> None:
    pool = node_pool(requirements=[requirement("team", "In", "a"), requirement(ZONE, "In", "a", "b")], replicas=3)
    claim = static_claim(pool, VOCABULARY)

    assert {each.key for each in claim.spec.requirements} == {"team", ZONE, NODEPOOL, "karpenter.kwok.sh/kwoknodeclass"}
    assert (claim.metadata.labels["team"], claim.spec.resources.requests) == ("a", {})


# -- writing -------------------------------------------------------------------------------------------------------------


def test_a_pool_that_changed_since_the_plan_is_asked_again_before_anything_is_written() -> None:
    async def test(shop: Workshop) -> None:
        shop.load(ready_pool())
        await seconds(1)
        pool = shop.server.get(NodePool, "default")
        option = pool_option(pool)
        plan = schedule(problem([waiting_pod(zone, nodeSelector={ZONE: zone}) for zone in "ab"], option))
        shop.server.patch("test", pool, replace(pool, spec=replace(pool.spec, limits={"nodes": parse(1)})))

        outcomes = await shop.claims_writer.buy([ClaimRequest(each, option, ()) for each in plan.claims])

        assert [outcome.claim is not None for outcome in outcomes] == [True, False]
        assert outcomes[1].problem == "NodePool default: its limits leave no room any more (nodes)"

    at_work(test)


def test_nothing_is_written_for_a_pool_that_is_gone() -> None:
    async def test(shop: Workshop) -> None:
        option = pool_option(ready_pool())
        plan = schedule(problem([waiting_pod()], option))

        (outcome,) = await shop.claims_writer.buy([ClaimRequest(each, option, ()) for each in plan.claims])

        assert (outcome.claim, outcome.problem) == (None, "NodePool default is gone")

    at_work(test)


class Deaf(NoInterceptor):
    """The first claims are written, but nobody hears of it."""

    def __init__(self, losses: int) -> None:
        self.losses = losses

    def after(self, call: Call) -> float:
        if call.verb == "create" and call.kind is NodeClaim and self.losses:
            self.losses -= 1
            raise Unreachable("no answer")
        return 0.0


def test_a_claim_whose_answer_was_lost_is_not_written_twice() -> None:
    async def test(shop: Workshop) -> None:
        shop.load(ready_pool(), waiting_pod())
        await seconds(10)

        assert [claim.name for claim in shop.claims()] == [each.name for each in shop.cluster.claims_of("default")]
        assert len(shop.claims()) == 1

    at_work(test, interceptor=Deaf(3))


def test_a_claim_that_was_gone_before_any_watch_told_of_it_is_forgotten() -> None:
    async def test(shop: Workshop) -> None:
        claim = static_claim(ready_pool(), VOCABULARY)
        shop.cluster.created(replace(claim, metadata=replace(claim.metadata, name="ghost")), (), shop.clock.now())
        shop.claims_writer.written.set()
        await seconds(40)

        assert shop.cluster.claims_of("default") == ()

    at_work(test)


def test_a_pool_whose_launches_fail_is_tried_with_one_claim_at_a_time_until_one_gets_its_machine() -> None:
    async def test(shop: Workshop) -> None:
        apart, web = away_from("web"), {"app": "web"}
        shop.load(ready_pool(), *(waiting_pod(f"web-{n}", affinity=apart, labels=web) for n in range(4)))
        await seconds(3)
        made = [len(shop.claims())]
        for _ in range(3):
            for claim in shop.claims():
                shop.remove(claim)
            await seconds(25)
            made.append(len(shop.claims()))
        shop.launch(shop.claims()[0])
        await seconds(15)

        assert [*made, len(shop.claims())] == [4, 1, 1, 1, 4]

    at_work(test)


def test_pods_that_need_what_failed_stop_nobody_who_needs_something_else_of_the_same_pool() -> None:
    async def test(shop: Workshop) -> None:
        shop.load(ready_pool(), *(waiting_pod(f"stuck-{n}", nodeSelector={ZONE: "a"}) for n in range(3)))
        await seconds(3)
        shop.remove(shop.claims()[0])
        await seconds(3)
        apart: dict[str, Any] = {"affinity": away_from("web"), "labels": {"app": "web"}, "nodeSelector": {ZONE: "b"}}
        shop.load(*(waiting_pod(f"web-{n}", **apart) for n in range(4)))
        await seconds(40)

        assert [values(claim, ZONE) for claim in shop.claims()].count(("b",)) == 4

    at_work(test)


def test_what_fails_again_and_again_is_tried_every_few_minutes_with_a_claim_for_one_pod() -> None:
    async def test(shop: Workshop) -> None:
        shop.load(ready_pool(), *(waiting_pod(f"web-{n}", cpu="4") for n in range(6)))
        tried: list[NodeClaim] = []
        for _ in range(3600):
            await seconds(1)
            for claim in shop.claims():
                shop.remove(claim)
                tried.append(claim)

        assert len(tried) < 40
        assert tried[-1].spec.resources.requests["cpu"] == parse("4")

    at_work(test)
