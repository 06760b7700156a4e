"""Pools in a run: daemons, limits, weights."""

from typing import Any

import pytest
from tests.builders import SHELF, instance_type, node_pool, offering, pod, pods, pool_option, problem, requirement

from joiner.model import resources
from joiner.model.codec import decode
from joiner.model.labels import INSTANCE_TYPE, REGISTERED, ZONE
from joiner.model.nodepool import NodePool
from joiner.model.pod import Pod
from joiner.scheduling.schedule import schedule

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
TAINT = {"key": "x", "effect": "NoSchedule"}


def smallest(daemon: Pod | None, pool: NodePool | None = None, **spec: Any) -> str:
    """The cheapest type for a pod of 900 thousandths beside a daemon: the next larger one if it runs there."""
    daemons = () if daemon is None else (daemon,)
    plan = schedule(problem([pod(cpu="900m", **spec)], pool or node_pool(), daemons=daemons))
    return plan.claims[0].options[0].name


def daemon(**spec: Any) -> Pod:
    return pod("agent", "200m", "64Mi", **spec)


def terms(*rows: dict[str, Any]) -> dict[str, Any]:
    return {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": [row]} for row in rows]}}}


@pytest.mark.parametrize(
    ("agent", "expected"),
    [
        (None, "m-1"),
        (daemon(), "m-2"),
        (daemon(nodeSelector={INSTANCE_TYPE: "m-1"}), "m-2"),
        (daemon(nodeSelector={INSTANCE_TYPE: "m-2"}), "m-1"),
        (daemon(nodeSelector={"example.com/team": "x"}), "m-1"),
        (daemon(nodeSelector={REGISTERED: "true"}), "m-2"),
        (daemon(affinity=terms(requirement(INSTANCE_TYPE, "In", "m-4"), requirement(INSTANCE_TYPE, "In", "m-1"))), "m-2"),
        (daemon(affinity=terms(requirement(INSTANCE_TYPE, "NotIn", "m-1"))), "m-1"),
    ],
    ids=[
        "no daemon", "everywhere", "on the small type", "on another type", "on labels the pool has not",
        "on nodes that have joined", "one of its terms", "not on the small type",
    ],
)  # fmt: skip
def test_daemons_take_room_where_they_run(agent: Pod | None, expected: str) -> None:
    assert smallest(agent) == expected


@pytest.mark.parametrize(("tolerations", "expected"), [([], "m-1"), ([{"operator": "Exists"}], "m-2")])
def test_a_daemon_runs_only_where_it_tolerates_the_taints(tolerations: list[Any], expected: str) -> None:
    tainted = decode({"metadata": {"name": "p"}, "spec": {"template": {"spec": {"taints": [TAINT]}}}}, NodePool)

    assert smallest(daemon(tolerations=tolerations), tainted, tolerations=[{"operator": "Exists"}]) == expected


def test_startup_taints_keep_nobody_out() -> None:
    starting = {"metadata": {"name": "p"}, "spec": {"template": {"spec": {"startupTaints": [TAINT]}}}}

    assert smallest(daemon(), decode(starting, NodePool)) == "m-2"


def test_a_host_port_of_a_daemon_is_taken() -> None:
    agent = daemon(ports=[9100], nodeSelector={INSTANCE_TYPE: "m-1"})

    assert smallest(agent, ports=[9100]) == "m-2"
    assert smallest(agent, ports=[9200]) == "m-2"
    assert smallest(daemon(ports=[9100], nodeSelector={INSTANCE_TYPE: "m-2"}), ports=[9100]) == "m-1"


def test_a_claim_asks_for_its_pods_and_the_daemons_of_every_type_it_may_be() -> None:
    plan = schedule(
        problem([pod(cpu="100m")], daemons=(daemon(), pod("big", "50m", nodeSelector={INSTANCE_TYPE: "m-16"})))
    )

    assert plan.claims[0].requests == resources.of(cpu="300m", memory="1088Mi", pods=2)


@pytest.mark.parametrize(
    ("limits", "used", "placed"),
    [
        ({"cpu": "3"}, {}, 3),
        ({"cpu": "3"}, {"cpu": 2000}, 1),
        ({"cpu": "3"}, {"cpu": 3000}, 0),
        ({"memory": "8Gi"}, {}, 2),
        ({"nodes": "2"}, {}, 2),
        ({"nodes": "2"}, {"nodes": 2000}, 0),
        ({"cpu": "100", "nodes": "1"}, {}, 1),
        ({"example.com/gpu": "0"}, {}, 4),
    ],
)
def test_limits_count_within_a_run(limits: dict[str, str], used: dict[str, int], placed: int) -> None:
    option = pool_option(node_pool(limits=limits), SHELF[:1], used=used)

    plan = schedule(problem(pods(4, cpu="900m"), option))

    assert sum(len(claim.pods) for claim in plan.claims) == placed
    assert {reason.rule for each in plan.refusals for reason in each.reasons} <= {"limits"}


def test_types_beyond_what_a_limit_leaves_are_not_named() -> None:
    plan = schedule(problem([pod()], node_pool(limits={"cpu": "5"})))

    assert [option.name for option in plan.claims[0].options] == ["m-1", "m-2", "m-4"]


def test_the_heavier_pool_goes_first_then_the_later_name() -> None:
    pools = [node_pool("a", weight=1), node_pool("b", weight=5), node_pool("c", weight=5)]

    assert schedule(problem([pod()], *pools)).claims[0].nodepool == "c"


def test_the_lighter_pool_is_taken_when_the_heavier_is_at_its_limit() -> None:
    pools = [node_pool("light"), node_pool("heavy", weight=9, limits={"nodes": "1"})]

    plan = schedule(problem(pods(3, cpu="12"), *pools))

    assert sorted(claim.nodepool for claim in plan.claims) == ["heavy", "light", "light"]


def test_pods_of_a_pool_carry_its_labels_and_requirements() -> None:
    pool = node_pool(requirements=[requirement(ZONE, "In", "b")], labels={"example.com/team": "x"})

    claim = schedule(problem([pod(nodeSelector={"example.com/team": "x"})], pool)).claims[0]

    assert claim.requirements[ZONE].values == {"b"}
    assert claim.options[0].offering.zone == "b"


def test_a_type_that_is_sold_out_is_not_bought() -> None:
    types = (instance_type("gone", [offering(available=0, price=0.1)]), instance_type("here", [offering(price=9.0)]))

    assert [each.name for each in schedule(problem([pod()], types=types)).claims[0].options] == ["here"]
