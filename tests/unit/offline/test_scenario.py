"""Scenario files: what is read, what is filled in, how several are told apart, and how answers are written."""

import json
from pathlib import Path
from typing import Any

import pytest

from joiner.catalog.market import UNLIMITED, Option
from joiner.clock import SystemClock
from joiner.model import labels, resources
from joiner.model.taints import Taint
from joiner.offline.scenario import answer, reader
from joiner.offline.scenario.format import split
from joiner.offline.scenario.reader import Scenario, Unanswerable
from joiner.requirements import Requirement, Requirements
from joiner.scheduling.plan import Plan, PlannedClaim, Refusal, RefusalReason
from joiner.scheduling.problem import Problem

RESERVATION = "oracle.test/reservation-id"


def requirement(key: str, *values: str, operator: str = "In") -> dict[str, Any]:
    return {"key": key, "operator": operator, "values": list(values)}


def offering(capacity_type: str = "on-demand", **more: Any) -> dict[str, Any]:
    extra = more.pop("extra", [])
    keys = [requirement(labels.CAPACITY_TYPE, capacity_type), requirement(labels.ZONE, "zone-1"), *extra]
    return {"requirements": keys, "price": 0.2, "available": True, **more}


def instance_type(name: str = "four", **more: Any) -> dict[str, Any]:
    return {
        "name": name,
        "requirements": [requirement(labels.ZONE, "zone-1")],
        "offerings": [offering()],
        "capacity": {"cpu": "4", "memory": "8Gi", "pods": "20"},
        "overhead": {"kubeReserved": {"cpu": "100m"}, "evictionThreshold": {"memory": "100Mi"}},
        **more,
    }


def pod(name: str = "", cpu: str = "1", **more: Any) -> dict[str, Any]:
    spec = {"containers": [{"name": "c", "resources": {"requests": {"cpu": cpu}}}], **more.pop("spec", {})}
    return {"metadata": {"name": name, **more.pop("metadata", {})}, "spec": spec, **more}


def read(folder: Path = Path(), **fields: Any) -> Scenario:
    whole = {"nodePools": [{"metadata": {"name": "default"}}], "instanceTypes": [instance_type()], **fields}
    return reader.read(json.dumps(whole).encode(), folder)


# -- pods ----------------------------------------------------------------------------------------------------------------


def test_a_pod_without_identity_gets_one_by_its_position() -> None:
    first, second = read(pods=[{}, {"metadata": {"namespace": "other", "name": "web-2"}}]).problem.pods

    assert (first.metadata.namespace, first.name, first.metadata.uid) == ("default", "pod-000000", "pod-00000000")
    assert (second.metadata.namespace, second.name, second.metadata.uid) == ("other", "web-2", "pod-00000001")
    assert (first.status.phase, first.status.conditions[0].reason) == ("Pending", "Unschedulable")


def test_pods_that_are_written_the_same_share_their_spec() -> None:
    one, other, different = read(pods=[pod("a"), pod("b"), pod("c", cpu="2")]).problem.pods

    assert one.spec is other.spec
    assert one.spec is not different.spec


@pytest.mark.parametrize(
    ("written", "words"),
    [
        pytest.param(pod("p", spec={"nodeName": "n"}), "not provisionable", id="has a node"),
        pytest.param(pod("p", status={"nominatedNodeName": "n"}), "not provisionable", id="has one in view"),
        pytest.param(
            pod("p", status={"conditions": [{"type": "PodScheduled", "reason": "SchedulingGated"}]}),
            "not provisionable",
            id="waits for somebody else",
        ),
        pytest.param(
            pod("p", metadata={"ownerReferences": [{"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "d"}]}),
            "not provisionable",
            id="of a DaemonSet",
        ),
        pytest.param(pod("p", cpu="much"), "'much' is not a quantity", id="not to be understood"),
        pytest.param(pod("p", cpu="-1"), "containers[0].resources.requests.cpu: -1 is less than 0", id="not allowed"),
    ],
)
def test_a_pod_that_is_not_for_us_is_noted_and_left_out(written: dict[str, Any], words: str) -> None:
    found = read(pods=[written, pod("q")])

    assert words in found.ignored["p"]
    assert [each.name for each in found.problem.pods] == ["q"]


def test_null_is_absence() -> None:
    found = read(
        pods=[{"metadata": {"name": "p", "labels": None}, "spec": None}, pod("q", spec={"tolerations": None})],
        nodes=None,
        options={"reservedCapacity": None},
    )

    assert [each.name for each in found.problem.pods] == ["p", "q"]


# -- types and pools -----------------------------------------------------------------------------------------------------


def test_a_type_is_read_with_its_overhead_and_its_own_name_as_label() -> None:
    (pool,) = read().problem.pools
    (found,) = pool.catalog.types

    assert found.requirements[labels.INSTANCE_TYPE] == Requirement(labels.INSTANCE_TYPE, ("four",))
    assert found.allocatable() == resources.of(cpu="3900m", memory="8092Mi", pods=20)


@pytest.mark.parametrize(
    ("written", "available"),
    [
        pytest.param(offering(), UNLIMITED, id="on demand"),
        pytest.param(offering(available=False), 0, id="sold out"),
        pytest.param(offering("reserved", reservationCapacity=2), 2, id="reserved"),
        pytest.param(offering("reserved"), 0, id="a reservation that is used up"),
        pytest.param(offering("reserved", reservationCapacity=2, available=False), 0, id="a reservation out of reach"),
    ],
)
def test_availability_becomes_a_count_and_prices_stay_as_they_are(written: dict[str, Any], available: int) -> None:
    (pool,) = read(instanceTypes=[instance_type(offerings=[written])]).problem.pools
    (found,) = pool.catalog.types[0].offerings

    assert (found.available, found.cost) == (available, 0.2)


def test_every_label_of_a_type_or_offering_is_well_known_but_the_hostname() -> None:
    special = instance_type(
        requirements=[requirement("example.com/family", "a"), requirement(labels.HOSTNAME, "h")],
        offerings=[offering(extra=[requirement("example.com/offer", "b")])],
    )
    known = read(instanceTypes=[special], options={"wellKnownLabels": ["example.com/more"]}).problem.vocabulary

    assert {"example.com/family", "example.com/offer", "example.com/more", RESERVATION} <= known.well_known
    assert labels.HOSTNAME not in known.well_known
    assert known.reservation_id == RESERVATION


def test_pools_may_be_given_types_of_their_own() -> None:
    pools = [{"metadata": {"name": name}} for name in ("a", "b", "c")]
    types = [instance_type("four"), instance_type("eight")]
    found = read(nodePools=pools, instanceTypes=types, instanceTypesByNodePool={"a": ["eight"], "b": ["eight"]})
    a, b, c = found.problem.pools

    assert [each.name for each in a.catalog.types] == ["eight"]
    assert a.catalog.market is b.catalog.market
    assert [each.name for each in c.catalog.types] == ["four", "eight"]


def test_types_are_taken_from_a_file_beside_the_scenario(tmp_path: Path) -> None:
    (tmp_path / "types.json").write_text(json.dumps({"instanceTypes": [instance_type("far")]}))
    (pool,) = read(tmp_path, instanceTypesFile="types.json").problem.pools

    assert [each.name for each in pool.catalog.types] == ["four", "far"]


def test_pools_that_keep_a_number_of_nodes_ask_no_pods() -> None:
    pools = [{"metadata": {"name": "static"}, "spec": {"replicas": 3}}, {"metadata": {"name": "dynamic"}}]

    assert [each.pool.name for each in read(nodePools=pools).problem.pools] == ["dynamic"]


def overlays(*written: tuple[str, dict[str, Any]], **options: Any) -> Scenario:
    made = [{"metadata": {"name": name}, "spec": spec} for name, spec in written]
    return read(nodeOverlays=made, options=options)


def test_overlays_that_contradict_each_other_are_both_applied() -> None:
    found = overlays(("a", {"weight": 1, "price": "1"}), ("b", {"weight": 1, "price": "2"}))

    assert found.overlays == {"a": "applied", "b": "applied"}
    assert found.problem.pools[0].catalog.types[0].offerings[0].price == 2


def test_an_overlay_that_makes_no_sense_says_so_and_is_left_out() -> None:
    found = overlays(("a", {"price": "1", "requirements": [requirement("bad key", "x")]}))

    assert found.overlays["a"].startswith("RuntimeValidation: the label key 'bad key'")
    assert found.problem.pools[0].catalog.types[0].offerings[0].price == 0.2


def test_an_overlay_that_cannot_be_read_is_left_out_and_the_others_are_applied() -> None:
    found = overlays(("a", {"requirements": [requirement("k", operator="Inn")]}), ("b", {"price": "1"}))

    where = "`$.nodeOverlays[0].spec.requirements[0].operator`"
    assert found.overlays["a"].startswith(
        f"RuntimeValidation: Invalid enum value 'Inn' - at {where}; allowed: In, NotIn,"
    )
    assert found.overlays["b"] == "applied"
    assert found.problem.pools[0].catalog.types[0].offerings[0].price == 1


@pytest.mark.parametrize(
    "spec",
    [{"price": "-1"}, {"price": "much"}, {"priceAdjustment": "less"}],
    ids=["negative", "no number", "no change"],
)
def test_an_overlay_with_a_price_that_is_none_is_left_out(spec: dict[str, str]) -> None:
    found = overlays(("a", spec))

    assert "RuntimeValidation: " in found.overlays["a"]
    assert found.problem.pools[0].catalog.types[0].offerings[0].price == 0.2


def unreadable_pool(name: str) -> dict[str, Any]:
    return {
        "metadata": {"name": name},
        "spec": {"template": {"spec": {"requirements": [requirement("k", operator="Is")]}}},
    }


def test_a_pool_that_cannot_be_read_is_left_out_and_the_others_are_asked() -> None:
    found = read(nodePools=[unreadable_pool("bad"), {"metadata": {"name": "good"}}], pods=[pod("p")])
    told = answer.told(found, Plan())

    assert [each.pool.name for each in found.problem.pools] == ["good"]
    assert "'Is' - at `$.nodePools[0].spec" in told["nodePools"]["bad"]
    assert told["nodePools"]["bad"].endswith("; allowed: In, NotIn, Exists, DoesNotExist, Gt, Lt, Gte, Lte")


def test_overlays_can_be_switched_off() -> None:
    found = overlays(("a", {"price": "1"}), nodeOverlay=False)

    assert found.overlays == {}
    assert found.problem.pools[0].catalog.types[0].offerings[0].price == 0.2


def test_options_become_the_policy() -> None:
    options = {"preferencePolicy": "Ignore", "minValuesPolicy": "BestEffort", "maxInstanceTypes": 7}
    policy = read(options={**options, "reservedCapacity": False, "workers": 5, "timeoutSeconds": -1}).problem.policy

    assert (policy.preferences, policy.min_values, policy.types_max) == ("Ignore", "BestEffort", 7)
    assert not policy.reserved_capacity


# -- what cannot be answered ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        pytest.param({"pods": 3}, "this is no scenario: Expected `array`", id="no list"),
        pytest.param({"pods": [pod("a"), pod("a")]}, "pod a appears twice", id="a pod twice"),
        pytest.param({"nodePools": [{}]}, "nodePools[0] has no name", id="a pool without name"),
        pytest.param({"instanceTypes": [instance_type()] * 2}, '"four" appears twice', id="a type twice"),
        pytest.param(
            {"instanceTypes": [instance_type(), 3]},
            "this is no scenario: Expected `object`, got `int` - at `$.instanceTypes[1]`",
            id="no type",
        ),
        pytest.param(
            {"instanceTypes": [instance_type(offerings=3)]}, "`$.instanceTypes[0].offerings`", id="no offerings"
        ),
        pytest.param(
            {"nodePools": [unreadable_pool("a")]}, "NodePool a: Invalid enum value 'Is'", id="no readable pool"
        ),
        pytest.param({"nodePools": [3]}, "this is no scenario: Expected `object`, got `int`", id="no pool"),
        pytest.param(
            {"instanceTypes": [instance_type(offerings=[offering(), offering(price=-1)])]},
            'instance type "four": offerings[1].price: -1 is no price; allowed is a number of dollars an hour, 0 or more',
            id="no price",
        ),
        pytest.param({"instanceTypesByNodePool": {"default": ["x"]}}, 'no type "x"', id="no such type"),
        pytest.param({"instanceTypesFile": "gone.json"}, "instanceTypesFile gone.json: No such", id="no such file"),
        pytest.param({"boundPods": [pod("b")]}, "boundPods[0] (b) has no spec.nodeName", id="bound to nothing"),
        pytest.param(
            {"boundPods": [{"metadata": {"name": "b"}, "spec": {"containers": 1}}]},
            "boundPods[0] (b): spec: Expected `array`, got `int` - at `$.containers`",
            id="a bad bound pod",
        ),
        pytest.param(
            {"boundPods": [pod("b", cpu="-1", spec={"nodeName": "n"})]},
            "boundPods[0] (b): spec: containers[0].resources.requests.cpu: -1 is less than 0; 0 or more is allowed",
            id="a bound pod that gives room",
        ),
        pytest.param(
            {"daemonSets": [{"metadata": {"name": "d"}, "spec": {"template": pod(cpu="-1")}}]},
            "daemonSets[0] (d): spec.template.spec: containers[0].resources.requests.cpu: -1 is less than 0",
            id="a daemon that gives room",
        ),
        pytest.param({"deletingNodes": ["n"]}, "deletingNodes: no such node(s) ['n']", id="no such node"),
        pytest.param({"objects": [{"kind": "CSINode", "spec": 1}]}, "objects[0]: Expected `object`", id="a bad object"),
        pytest.param({"options": {"preferencePolicy": "Maybe"}}, "allowed: Respect, Ignore", id="no such policy"),
    ],
)
def test_a_scenario_that_cannot_be_read_says_why_and_keeps_its_name(fields: dict[str, Any], words: str) -> None:
    with pytest.raises(Unanswerable) as caught:
        read(name="mine", **fields)

    assert words in str(caught.value)
    assert caught.value.name == "mine"


PRETTY = '{\n  "name": "a",\n  "pods": [\n    {\n    }\n  ]\n}'


@pytest.mark.parametrize(
    ("text", "names"),
    [
        pytest.param("", [], id="nothing"),
        pytest.param('{"name": "a"}', ["a"], id="one"),
        pytest.param('{"name": "a"}\n{"name": "b"}\n\n', ["a", "b"], id="lines"),
        pytest.param('{"name": "a"}{"name": "b"} {"name": "c"}', ["a", "b", "c"], id="on one line"),
        pytest.param(f'{PRETTY}\n{PRETTY}\n{{"name": "b"}}', ["a", "a", "b"], id="pretty ones"),
        pytest.param('{"name": "ä"}\n{"name": "b",\n"x": 1}', ["ä", "b"], id="not quite pretty"),
        pytest.param('{"name": "a"\n{"name": "b"}', [None, "b"], id="a broken one first"),
        pytest.param('{"name": "a"}\nnonsense\n{"name": "b"}', ["a", None, "b"], id="a broken one between"),
        pytest.param("[" * 100_000, [None], id="too deep"),
    ],
)
def test_documents_are_told_apart(text: str, names: list[str | None]) -> None:
    found: list[str | None] = []
    for piece in split(text.encode()):
        try:
            found.append(reader.read(piece, Path()).name)
        except Unanswerable:
            found.append(None)

    assert found == names


# -- answers -------------------------------------------------------------------------------------------------------------


def claim(*pods: str, price: float = 0.2, **more: Any) -> PlannedClaim:
    (pool,) = read(instanceTypes=[instance_type(offerings=[offering(price=price)])]).problem.pools
    option = Option(name="four", offering=pool.catalog.types[0].offerings[0])
    requirements = Requirements([Requirement("example.com/team", ("b", "a"), min_values=2)])
    return PlannedClaim(
        nodepool="default",
        pods=pods,
        requirements=requirements,
        options=(option,),
        requests=resources.of(cpu="1500m", memory="1Gi", pods=len(pods)),
        **more,
    )


def test_a_claim_is_written_with_its_cheapest_offering_and_without_empty_fields() -> None:
    taint = Taint(key="a", effect="NoSchedule", value="b")
    plan = Plan(claims=(claim("other/p", "default/q", taints=(taint,)),))
    (written,) = answer.told(read(), plan)["newNodeClaims"]

    assert written == {
        "nodePool": "default",
        "requirements": [
            {"key": "example.com/team", "operator": "In", "values": ["a", "b"], "minValues": 2},
            {"key": labels.CAPACITY_TYPE, "operator": "In", "values": ["on-demand"]},
            {"key": labels.INSTANCE_TYPE, "operator": "In"},
        ],
        "instanceTypes": ["four"],
        "pods": ["other/p", "q"],
        "cheapestPrice": 0.2,
        "cheapest": {"instanceType": "four", "capacityType": "on-demand", "zone": "zone-1"},
        "requests": {"cpu": "1500m", "memory": "1Gi", "pods": "2"},
        "taints": [{"key": "a", "effect": "NoSchedule", "value": "b"}],
    }


def test_every_pod_is_told_under_its_short_name_and_counted() -> None:
    refusals = (
        Refusal(
            pod="default/big",
            reasons=(RefusalReason(rule="resources", object="NodePool default", message="too large"),),
        ),
        Refusal(
            pod="x/odd", reasons=(RefusalReason(rule="pod", object="Pod x/odd", message="not for us"),), ignored=True
        ),
    )
    plan = Plan(
        claims=(claim("default/z"), claim("default/a", price=0.1)),
        placements={"n": ("default/p",)},
        refusals=refusals,
        not_attempted=("default/late",),
    )
    names = ("z", "a", "p", "big", "odd", "late")
    told = answer.told(read(pods=[pod(name) for name in names]), plan)

    assert [each["pods"] for each in told["newNodeClaims"]] == [["a"], ["z"]]
    assert told["existingNodes"] == [{"name": "n", "pods": ["p"]}]
    assert told["errors"] == {"big": "NodePool default: too large"}
    assert (told["ignored"], told["notAttempted"]) == ({"x/odd": "Pod x/odd: not for us"}, ["late"])
    counts = {"pods": 5, "newNodes": 2, "podsOnNewNodes": 2, "podsOnExistingNodes": 1, "failed": 1, "notAttempted": 1}
    assert told["summary"].items() >= counts.items()
    assert told["summary"]["totalCheapestPrice"] == pytest.approx(0.3)


def test_nodes_that_get_no_pod_are_listed_too() -> None:
    node = {"metadata": {"name": "n"}, "status": {"capacity": {"cpu": "1"}}}

    assert answer.told(read(nodes=[node]), Plan())["existingNodes"] == [{"name": "n", "pods": []}]


def test_an_answer_carries_its_times_and_a_failure_has_the_same_fields() -> None:
    asked: list[Problem] = []

    def solve(problem: Problem) -> Plan:
        asked.append(problem)
        return Plan()

    found = answer.answer(read(name="mine"), solve, SystemClock(), setup_seconds=1.5)
    failed = answer.failure("no", "mine")

    assert len(asked) == 1
    assert found["setupSeconds"] == 1.5
    assert found["seconds"] >= 0
    assert found["peakRSSBytes"] > 1 << 20
    assert failed.keys() - found.keys() == {"failure"}
    assert found.keys() <= failed.keys()


@pytest.mark.parametrize("document", [b'{"a": 1}', b"{}", b'{"apiVersion": "v1", "kind": "Pod"}'])
def test_a_document_of_something_else_is_no_scenario(document: bytes) -> None:
    with pytest.raises(Unanswerable, match="this is no scenario: it has none of the fields boundPods, "):
        reader.read(document, Path())


def test_a_scenario_without_pods_is_one() -> None:
    assert reader.read(b'{"pods": []}', Path()).problem.pods == ()
