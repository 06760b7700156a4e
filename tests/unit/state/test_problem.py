"""What counts against reservations, and when two pictures of the cluster ask the same."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from tests.builders import RESERVATION, VOCABULARY, existing_node, instance_type, offering, pool_option
from tests.unit.state.test_state_cluster import NOW, claim, cluster, node, pod, tell

from joiner.catalog.market import InstanceType
from joiner.model import resources
from joiner.model.codec import decode
from joiner.model.labels import CAPACITY_TYPE, INSTANCE_TYPE, NODEPOOL
from joiner.model.meta import replace
from joiner.model.nodeclaim import NodeClaim
from joiner.model.quantity import parse
from joiner.model.requirement import SelectorRequirementWithMinValues
from joiner.model.storage import PersistentVolumeClaim
from joiner.scheduling.plan import Plan
from joiner.scheduling.problem import Policy, Problem, Storage
from joiner.state.bookkeeping import Bookkeeping
from joiner.state.cluster import Cluster
from joiner.state.problem import problem, same


def reserved(name: str = "c", of: str = "", **more: Any) -> NodeClaim:
    wanted = SelectorRequirementWithMinValues(key=RESERVATION, operator="In", values=("cr-1",))
    made = claim(name, of, **more)
    return replace(made, spec=replace(made.spec, requirements=(wanted,)))


def asked(made: Cluster) -> Problem:
    return problem(made.snapshot(NOW), (), policy=Policy(), vocabulary=VOCABULARY)


@pytest.mark.parametrize(
    ("things", "promised"),
    [
        ((reserved(),), {"cr-1": 1}),
        ((reserved("a"), reserved("b")), {"cr-1": 2}),
        ((reserved(of="n"),), {}),
        ((reserved(deletionTimestamp="2026-01-01T00:00:00Z", finalizers=["x/y"]),), {}),
        ((claim(of=""),), {}),
    ],
    ids=["one on its way", "two on their way", "launched", "going", "not reserved"],
)
def test_claims_on_their_way_count_against_their_reservation(
    things: tuple[NodeClaim, ...], promised: dict[str, int]
) -> None:
    assert asked(cluster(*things)).promised == promised


def test_claims_that_may_be_launched_into_any_reservation_take_the_cheapest_that_has_a_place() -> None:
    def kind(name: str, price: float, *reservations: tuple[str, int]) -> InstanceType:
        places = [offering("on-demand", price=price)]
        places += [offering("reserved", price=price, reservation=each, available=left) for each, left in reservations]
        return instance_type(name, offerings=places)

    def static(name: str, *wanted: tuple[str, str, tuple[str, ...]]) -> NodeClaim:
        given = tuple(
            decode({"key": k, "operator": o, "values": v}, SelectorRequirementWithMinValues) for k, o, v in wanted
        )
        made = claim(name, "")
        reference = shelf.pool.spec.template.spec.node_class_ref
        return replace(made, spec=replace(made.spec, requirements=given, node_class_ref=reference))

    shelf = pool_option(types=[kind("large", 0.4, ("cr-3", 9)), kind("small", 0.1, ("cr-1", 1), ("cr-2", 1))])

    def promised(*claims: NodeClaim) -> Mapping[str, int]:
        picture = cluster(*claims).snapshot(NOW)
        return problem(picture, (shelf,), policy=Policy(), vocabulary=VOCABULARY).promised

    assert promised(static("a")) == {"cr-1": 1}
    assert promised(static("a"), static("b"), static("c"), static("d")) == {"cr-1": 1, "cr-2": 1, "cr-3": 2}
    assert promised(reserved("z"), static("a")) == {"cr-1": 1, "cr-2": 1}
    assert promised(static("a", (RESERVATION, "In", ("cr-2", "cr-3")))) == {"cr-2": 1}
    assert promised(static("a", (INSTANCE_TYPE, "In", ("large",)))) == {"cr-3": 1}
    assert promised(static("a", (CAPACITY_TYPE, "In", ("on-demand",)))) == {}
    assert promised(static("a", (RESERVATION, "DoesNotExist", ()))) == {}


@pytest.mark.parametrize(
    ("launched_at", "counts"), [("00:00:30", {"cr-1": 1}), ("00:00:29", {})], ids=["after", "before"]
)
def test_where_counts_are_old_a_claim_that_was_launched_since_counts_too(
    launched_at: str, counts: dict[str, int]
) -> None:
    launched = {"type": "Launched", "status": "True", "lastTransitionTime": f"2026-01-01T{launched_at}Z"}
    made = claim(labels={NODEPOOL: "p", RESERVATION: "cr-1"}, status={"conditions": [launched]})
    picture = cluster(made, node("n")).snapshot(NOW)
    old = datetime(2026, 1, 1, 0, 0, 30, 500_000, tzinfo=UTC)

    said = {
        since: problem(picture, (), policy=Policy(), vocabulary=VOCABULARY, stale_since=since) for since in (old, None)
    }

    assert said[old].promised == counts
    assert said[None].promised == {}


def test_a_claim_on_its_way_into_a_reservation_makes_another_question() -> None:
    made = cluster(pod("a", on=""), reserved())
    first = asked(made)
    assert same(first, asked(made))
    tell(made, replace(reserved(), spec=claim(of="").spec))

    assert not same(replace(asked(made), nodes=first.nodes), first)


OTHER: dict[str, Any] = {
    "pods": (pod("another"),),
    "pools": (pool_option(),),
    "nodes": (existing_node("another"),),
    "bound": (pod("another"),),
    "bound_nodes": {"another": {"a": "b"}},
    "daemons": (pod("another"),),
    "namespaces": {"another": {}},
    "storage": Storage(volumes=()),
    "promised": {"cr-9": 1},
    "policy": Policy(preferences="Ignore"),
}
"""For each part of a problem another value than any picture has. The vocabulary follows from the pools."""


def test_every_part_of_a_problem_is_compared() -> None:
    question = asked(cluster(node("n"), pod("p")))

    assert set(OTHER) == {*Problem.__struct_fields__} - {"vocabulary"}
    assert same(question, replace(question))
    assert [part for part in OTHER if same(question, replace(question, **{part: OTHER[part]}))] == []


def test_a_volume_claim_that_comes_makes_another_question() -> None:
    volume = {"name": "data", "persistentVolumeClaim": {"claimName": "data"}}
    made = cluster(pod("a", on="", volumes=[volume]))
    first = asked(made)
    tell(made, decode({"metadata": {"name": "data", "namespace": "default"}}, PersistentVolumeClaim))

    assert not same(first, asked(made))


@pytest.mark.parametrize("part", ["capacity", "allocatable"])
def test_a_node_that_has_less_than_before_is_planned_with_what_it_has(part: str) -> None:
    made = cluster(node())
    first = asked(made)
    old = node()
    less = {**getattr(old.status, part), "cpu": parse("2")}
    tell(made, replace(old, status=replace(old.status, **{part: less})))
    second = asked(made)

    if part == "allocatable":
        assert second.nodes[0].allocatable == resources.of(cpu=2, pods=10)
        assert not same(first, second)
    assert made.snapshot(NOW).generation > 0


def test_a_pod_that_a_plan_gives_a_place_on_a_claim_on_its_way_waits_no_more() -> None:
    waiting = pod("a", on="")
    made = cluster(waiting, claim(of=""))
    plan = Plan(placements={"c": (waiting.key,)})
    made.record(plan, {waiting.key: waiting}, NOW, NOW + timedelta(seconds=20))

    assert (made.snapshot(NOW).waiting, made.snapshot(NOW).held) == ((), (waiting,))


def test_a_shorter_nomination_does_not_end_a_longer_one_and_a_clock_set_back_stretches_none() -> None:
    books = Bookkeeping()
    books.nominate("c", NOW + timedelta(seconds=20), NOW)
    books.nominate("c", NOW + timedelta(seconds=12), NOW + timedelta(seconds=2))
    assert books.is_nominated("c", NOW + timedelta(seconds=15))
    assert not books.is_nominated("c", NOW + timedelta(seconds=20))
    back = NOW - timedelta(hours=1)
    assert not books.is_nominated("c", back)
    books.nominate("c", back + timedelta(seconds=10), back)

    assert books.is_nominated("c", back + timedelta(seconds=5))
    assert not books.is_nominated("c", back + timedelta(seconds=10))


def test_a_pod_is_not_disappointed_by_nodes_whose_room_others_took() -> None:
    waiting = pod("a", on="", cpu="2")
    made = cluster(waiting)
    for number in range(5):
        name, on = f"c-{number}", f"n-{number}"
        registered = {"conditions": [{"type": "Registered", "status": "True"}], "nodeName": on}
        tell(made, claim(name, of=on, status=registered), node(on), pod(f"other-{number}", on=on, cpu="3"))
        made.promise(waiting, name, NOW)

    assert made.rests_until(waiting, NOW) is None


def test_a_pod_that_was_disappointed_rests_no_longer_because_the_clock_was_set_back() -> None:
    waiting = pod("a", on="")
    made = cluster(waiting)
    for number in range(3):
        name = f"c-{number}"
        registered = {"conditions": [{"type": "Registered", "status": "True"}]}
        tell(made, claim(name, of=f"n-{number}", status=registered))
        made.promise(waiting, name, NOW)

    assert made.rests_until(waiting, NOW) == NOW + timedelta(minutes=2)
    assert made.rests_until(waiting, NOW - timedelta(hours=1)) is None
