"""The world as a plan would leave it."""

from tests.builders import existing_node, node_pool, pod, pods, problem

from joiner.model import resources
from joiner.model.labels import CAPACITY_TYPE, HOSTNAME, INSTANCE_TYPE, ZONE
from joiner.scheduling.schedule import schedule
from joiner.scheduling.whatif.aftermath import settled


def test_pods_are_bound_where_the_plan_puts_them() -> None:
    question = problem(pods(5), nodes=(existing_node(),))

    rest = settled(question, schedule(question))

    assert rest.pods == ()
    assert sorted(each.spec.node_name for each in rest.bound) == ["new-node-0"] + ["node-a"] * 4


def test_a_new_node_is_what_would_be_bought_first() -> None:
    question = problem([pod(cpu="3", nodeSelector={ZONE: "b"})])

    (node,) = settled(question, schedule(question)).nodes

    wanted = {ZONE: "b", CAPACITY_TYPE: "spot", INSTANCE_TYPE: "m-4", HOSTNAME: "new-node-0"}
    assert {key: node.labels[key] for key in wanted} == wanted
    assert resources.subtract(node.allocatable, node.used) == resources.of(cpu=1, memory="15Gi", pods=31)


def test_what_is_bought_counts_against_the_limits_of_its_pool() -> None:
    question = problem(pods(3, cpu="9"), node_pool(limits={"cpu": "100"}))

    (option,) = settled(question, schedule(question)).pools

    assert {name: option.used[name] for name in ("cpu", "nodes")} == resources.of(cpu=48, nodes=3)


def test_whoever_was_refused_still_waits_and_is_refused_again() -> None:
    question = problem([*pods(3), pod("huge", cpu="100")])

    rest = settled(question, schedule(question))

    assert [each.name for each in rest.pods] == ["huge"]
    assert [each.pod for each in schedule(rest).refusals] == ["default/huge"]


def test_ports_stay_taken() -> None:
    question = problem([pod(ports=[80])], nodes=(existing_node(),))

    (node,) = settled(question, schedule(question)).nodes

    assert [port.host_port for port in node.ports] == [80]
