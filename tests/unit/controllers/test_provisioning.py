"""Provisioning: what becomes of pods that wait, and what does not happen when it should not."""

from typing import Any

import pytest
from tests.builders import node_pool, pod, pool_option, problem, requirement
from tests.unit.controllers.provisioningworld import Workshop, at_work, own_node, ready_pool, seconds, waiting_pod

from joiner.cloud.errors import NodeClassNotReady
from joiner.controllers.provisioning.claimwriter import ClaimRequest, dynamic_claim
from joiner.controllers.provisioning.pools import NO_POOL, NOT_OURS
from joiner.kube.errors import Unreachable
from joiner.model.affinity import TopologySpreadConstraint
from joiner.model.clusterobjects import Service
from joiner.model.codec import decode
from joiner.model.conditions import Condition, Status
from joiner.model.labels import CAPACITY_TYPE, HOSTNAME, INSTANCE_TYPE, NODEPOOL
from joiner.model.meta import replace
from joiner.model.node import Node
from joiner.model.nodepool import NodePool, NodePoolSpec
from joiner.model.pod import PodStatus
from joiner.model.taints import DISRUPTED
from joiner.scheduling.schedule import schedule
from joiner.sim.apiserver.client import Call, NoInterceptor

UNREADY = "NodePool p: left out: it is not ready"
ONLY_SPOT = [requirement(CAPACITY_TYPE, "In", "spot")]
_TERM = {"matchExpressions": [{"key": NODEPOOL, "operator": "DoesNotExist"}]}
NOT_FOR_US = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [_TERM]}}}


def unready(status: Status, message: str) -> NodePool:
    """A pool whose NodeClass cannot be used."""
    said = Condition(type="NodeClassReady", status=status, reason="Because", message=message)
    pool = node_pool("p")
    return replace(pool, status=replace(pool.status, conditions=(said,)))


def test_pods_that_wait_get_one_claim_together() -> None:
    async def test(shop: Workshop) -> None:
        shop.load(ready_pool(), *(waiting_pod(f"web-{number}") for number in range(4)))
        await seconds(5)

        (claim,) = shop.claims()
        assert claim.metadata.labels[NODEPOOL] == "default"
        assert shop.told("Nominated") == [
            "Pod default/web-0",
            "Pod default/web-1",
            "Pod default/web-2",
            "Pod default/web-3",
        ]

    at_work(test)


def test_no_plan_is_made_while_the_claims_of_another_decision_are_written() -> None:
    async def test(shop: Workshop) -> None:
        async with shop.claims_writer.deciding:
            shop.load(ready_pool(), waiting_pod())
            await seconds(30)
            assert shop.claims() == []
        await seconds(5)

        assert len(shop.claims()) == 1

    at_work(test)


def test_pods_that_fit_on_a_node_get_no_claim() -> None:
    async def test(shop: Workshop) -> None:
        shop.load(ready_pool(), own_node("n"), waiting_pod())
        await seconds(5)

        assert shop.claims() == []
        assert shop.cluster.is_nominated("n", shop.clock.now())

    at_work(test)


def test_a_pool_whose_types_cannot_be_had_does_not_stop_the_others() -> None:
    async def test(shop: Workshop) -> None:
        shop.shop.errors["bad"] = NodeClassNotReady("bad", "it is broken")
        shop.load(ready_pool("bad", weight=10), ready_pool("good"), waiting_pod())
        await seconds(5)

        assert [claim.metadata.labels[NODEPOOL] for claim in shop.claims()] == ["good"]

    at_work(test)


def test_pods_are_planned_for_when_the_window_closes_and_not_before() -> None:
    async def test(shop: Workshop) -> None:
        shop.load(ready_pool())
        await seconds(10)
        shop.load(waiting_pod("a"))
        await seconds(0.9)
        assert shop.plans == 0

        await seconds(0.5)
        assert shop.plans == 1

    at_work(test)


STRANGE = {"group": "strange.example.com", "kind": "Strange", "name": "other"}


@pytest.mark.parametrize(
    ("left_out", "says"),
    [
        pytest.param(node_pool("p"), UNREADY, id="not ready"),
        pytest.param(
            unready("False", "KWOKNodeClass x is missing"), f"{UNREADY}: KWOKNodeClass x is missing", id="why"
        ),
        pytest.param(
            unready("Unknown", "not looked at yet"), f"{UNREADY}: NodeClassReady is not looked at yet", id="too early"
        ),
        pytest.param(ready_pool("p", replicas=3), f"NodePools: {NO_POOL}", id="static"),
        pytest.param(
            replace(ready_pool("p"), spec=decode({"template": {"spec": {"nodeClassRef": STRANGE}}}, NodePoolSpec)),
            f"NodePools: {NOT_OURS}: NodePool p names Strange other of strange.example.com",
            id="somebody else's NodeClass",
        ),
    ],
)
def test_some_pools_are_not_asked(left_out: NodePool, says: str) -> None:
    async def test(shop: Workshop) -> None:
        shop.load(left_out, waiting_pod())
        await seconds(5)

        assert shop.claims() == []
        assert shop.told("FailedScheduling") == ["Pod default/web"]
        (told,) = (each.message for each in shop.recorder.recent if each.reason == "FailedScheduling")
        assert told == f"Failed to schedule pod, {says}"

    at_work(test)


def test_a_pod_whose_every_option_is_dry_is_refused_and_tried_again_when_the_shortage_is_over() -> None:
    async def test(shop: Workshop) -> None:
        shop.shop.sell_out()
        shop.load(ready_pool(), waiting_pod())
        await seconds(170)
        assert (shop.claims(), shop.told("FailedScheduling")) == ([], ["Pod default/web"])
        assert shop.told("NoCompatibleInstanceTypes") != []

        await seconds(30)

        assert len(shop.claims()) == 1

    at_work(test)


def test_an_exhausted_pool_makes_way_for_the_next_one_without_churn() -> None:
    async def test(shop: Workshop) -> None:
        shop.load(ready_pool("first", weight=10, requirements=ONLY_SPOT), ready_pool("second"), waiting_pod())
        await seconds(3)
        (claim,) = shop.claims()
        shop.shop.sell_out("spot")
        shop.remove(claim)
        await seconds(60)

        assert [each.metadata.labels[NODEPOOL] for each in shop.claims()] == ["second"]

    at_work(test)


def test_nothing_is_planned_again_while_nothing_changes() -> None:
    async def test(shop: Workshop) -> None:
        shop.load(ready_pool(), waiting_pod(cpu="1000"))
        await seconds(5)
        turns = shop.plans
        await seconds(3600)

        assert (turns, shop.plans) == (1, 1)

    at_work(test)


def test_little_is_planned_while_all_that_is_bought_fails() -> None:
    async def test(shop: Workshop) -> None:
        shop.load(ready_pool(), *(waiting_pod(f"web-{n}") for n in range(20)))
        for _ in range(3600):
            await seconds(1)
            for claim in shop.claims():
                shop.remove(claim)

        assert shop.plans < 120

    at_work(test)


def test_an_idle_cluster_makes_no_work() -> None:
    async def test(shop: Workshop) -> None:
        shop.load(ready_pool(), own_node("n"))
        await seconds(60)
        before = shop.world.loop._count
        await seconds(86_400)

        assert shop.world.loop._count - before < 10

    at_work(test)


def test_a_claim_whose_launch_fails_keeps_its_pods_and_does_not_stop_others() -> None:
    async def test(shop: Workshop) -> None:
        shop.load(ready_pool(), waiting_pod("a"))
        await seconds(3)
        shop.fail_launch(shop.claims()[0])
        shop.load(waiting_pod("b", cpu="2"))
        await seconds(120)

        assert len(shop.claims()) == 2

    at_work(test)


def test_a_claim_whose_launch_fails_is_not_bought_again_after_a_restart() -> None:
    async def test(shop: Workshop) -> None:
        shop.load(ready_pool(), waiting_pod())
        pool = shop.server.get(NodePool, "default")
        claim = dynamic_claim(ClaimRequest(schedule(problem([pod()])).claims[0], pool_option(), ()), pool)
        shop.load(replace(claim, metadata=replace(claim.metadata, name="before")))
        shop.fail_launch(shop.claims()[0])
        await seconds(120)

        assert [each.name for each in shop.claims()] == ["before"]
        assert shop.told("Nominated") == ["Pod default/web"]

    at_work(test)


def test_everybody_waits_for_a_launch_that_is_under_way_so_that_its_room_is_used() -> None:
    async def test(shop: Workshop) -> None:
        shop.load(ready_pool(), waiting_pod("a", cpu="3"))
        await seconds(3)
        shop.load(waiting_pod("b"))
        await seconds(5)
        shop.launch(shop.claims()[0], cpu=4)
        await seconds(60)

        assert len(shop.claims()) == 1

    at_work(test)


def test_limits_count_claims_that_are_not_launched_as_the_largest_machine_they_may_become() -> None:
    async def test(shop: Workshop) -> None:
        shop.load(ready_pool(limits={"cpu": "16"}, requirements=[requirement(INSTANCE_TYPE, "In", "m-8")]))
        for number in range(4):
            shop.load(waiting_pod(f"web-{number}", cpu="7"))
            await seconds(3)
            for claim in shop.claims():
                shop.fail_launch(claim)
            await seconds(60)

        assert len(shop.claims()) == 2

    at_work(test)


def test_pods_of_a_node_that_goes_get_a_place_before_they_leave() -> None:
    async def test(shop: Workshop) -> None:
        running = replace(pod("a", nodeName="n"), status=PodStatus(phase="Running"))
        shop.load(ready_pool(), own_node("n"), running)
        await seconds(3)
        shop.cluster.mark_for_deletion("n")
        node = shop.server.get(Node, "n")
        shop.server.patch("test", node, replace(node, spec=replace(node.spec, taints=(DISRUPTED,))))
        await seconds(5)

        assert len(shop.claims()) == 1

    at_work(test)


@pytest.mark.parametrize(
    ("spec", "told"),
    [
        pytest.param({"resourceClaims": [{"name": "gpu"}]}, True, id="asks for devices"),
        pytest.param({"claims": ["missing"]}, True, id="its volume claim is not there"),
        pytest.param({"affinity": NOT_FOR_US}, False, id="does not want us"),
    ],
)
def test_pods_that_are_not_for_us_are_counted_as_ignored(spec: dict[str, Any], told: bool) -> None:
    async def test(shop: Workshop) -> None:
        shop.load(ready_pool(), waiting_pod(**spec))
        await seconds(5)

        assert shop.claims() == []
        assert bool(shop.told("FailedScheduling")) is told
        assert shop.metrics.registry.get_sample_value("karpenter_scheduler_ignored_pods_count") == 1.0

    at_work(test)


def test_a_node_that_pods_count_on_stays_nominated_for_as_long_as_they_wait() -> None:
    async def test(shop: Workshop) -> None:
        shop.load(ready_pool(), own_node("n"), waiting_pod())
        await seconds(300)
        assert (shop.plans, shop.cluster.is_nominated("n", shop.clock.now())) == (1, True)

        shop.remove(waiting_pod())
        await seconds(30)

        assert not shop.cluster.is_nominated("n", shop.clock.now())

    at_work(test)


def test_it_is_told_how_long_a_pod_waited_for_its_first_plan() -> None:
    async def test(shop: Workshop) -> None:
        shop.load(ready_pool(), waiting_pod())
        await seconds(5)
        times = shop.cluster.times("default", "web")

        assert times is not None
        assert times.schedulable == times.attempted is not None
        name = "karpenter_pods_scheduling_decision_duration_seconds_count"
        assert shop.metrics.registry.get_sample_value(name) == 1.0

    at_work(test)


def test_a_failure_at_the_server_is_survived_and_the_pods_are_not_forgotten() -> None:
    class Down(NoInterceptor):
        def before(self, call: Call) -> float:
            if call.verb == "get" and served_from[0].clock.monotonic() < 30:
                raise Unreachable("nobody is there")
            return 0.0

    served_from: list[Workshop] = []

    async def test(shop: Workshop) -> None:
        served_from.append(shop)
        shop.load(ready_pool(), waiting_pod())
        await seconds(120)

        assert len(shop.claims()) == 1
        shop.failures.clear()

    at_work(test, interceptor=Down())


def test_pods_without_spread_constraints_get_those_of_the_scheduler() -> None:
    hard = TopologySpreadConstraint(topology_key=HOSTNAME, max_skew=1, when_unsatisfiable="DoNotSchedule")
    service = decode(
        {"metadata": {"name": "web", "namespace": "default"}, "spec": {"selector": {"app": "web"}}}, Service
    )

    async def test(shop: Workshop) -> None:
        shop.load(ready_pool(), service, *(waiting_pod(f"web-{n}", labels={"app": "web"}) for n in range(4)))
        await seconds(5)

        assert len(shop.claims()) == 4

    at_work(test, spread={"default-scheduler": (hard,)})


def test_a_claim_that_is_taken_away_before_its_launch_is_made_again_though_nothing_else_changed() -> None:
    async def test(shop: Workshop) -> None:
        shop.load(ready_pool(), waiting_pod())
        await seconds(3)
        (lost,) = shop.claims()
        shop.remove(lost)
        await seconds(30)

        assert [claim.name != lost.name for claim in shop.claims()] == [True]

    at_work(test)
