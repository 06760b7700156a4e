"""What `joiner plan` says nodes cost: static NodePools, NodeOverlays, capacity reservations, zones of equal price."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from click.testing import CliRunner
from tests.unit.cli.test_plan_command import POOL, deployment, pod

from joiner.cli.main import cli
from joiner.cli.plan import costsandbound, tables
from joiner.scheduling.engine.firstfit import FirstFit
from joiner.scheduling.planners.table import PLANNERS

STATIC = """\
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: rack}
spec:
  replicas: 3
  template:
    metadata: {labels: {team: web}}
    spec:
      nodeClassRef: {group: karpenter.kwok.sh, kind: KWOKNodeClass, name: default}
      requirements:
      - {key: node.kubernetes.io/instance-type, operator: In, values: [c-4x-amd64-linux]}
      - {key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}
"""
CLAIM = """\
apiVersion: karpenter.sh/v1
kind: NodeClaim
metadata: {name: rack-a, labels: {karpenter.sh/nodepool: rack}}
spec:
  nodeClassRef: {group: karpenter.kwok.sh, kind: KWOKNodeClass, name: default}
  requirements: []
status: {nodeName: a, providerID: "kwok://a", capacity: {cpu: "4", memory: 8Gi, pods: "110"}}
"""
NODE = """\
apiVersion: v1
kind: Node
metadata: {name: a, labels: {karpenter.sh/nodepool: rack}}
spec: {providerID: "kwok://a"}
status: {capacity: {cpu: "4", memory: 8Gi, pods: "110"}, allocatable: {cpu: "4", memory: 8Gi, pods: "110"}}
"""
OVERLAY = """\
apiVersion: karpenter.sh/v1alpha1
kind: NodeOverlay
metadata: {name: savings-plan}
spec:
  requirements: [{key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}]
  priceAdjustment: "-28%"
"""
RESERVED = """\
apiVersion: karpenter.kwok.sh/v1alpha1
kind: KWOKNodeClass
metadata: {name: default}
spec:
  capacityReservations:
  - {id: cr-1, instanceType: c-4x-amd64-linux, zone: test-zone-a, count: 2}
---
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: default}
spec:
  template:
    spec:
      nodeClassRef: {group: karpenter.kwok.sh, kind: KWOKNodeClass, name: default}
      requirements: [{key: karpenter.sh/capacity-type, operator: In, values: [reserved, on-demand]}]
"""


def run(*documents: str, form: str = "json", arguments: tuple[str, ...] = (), pools: str = POOL) -> Any:
    command = ["plan", "-f", "-", "-o", form, *arguments]
    result = CliRunner().invoke(cli, command, input="---\n".join((pools, *documents)))
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout) if form == "json" else result.stdout


# -- static NodePools ----------------------------------------------------------------------------------------------------


def test_the_nodes_of_a_static_pool_are_bought_and_named_and_pods_go_there() -> None:
    report = run(STATIC, deployment(replicas=5, cpu="2"))

    nodes = report["staticNodes"]
    assert [each["nodePool"] for each in nodes] == ["rack"] * 3
    assert sum(len(each["pods"]) for each in nodes) == 3
    assert report["summary"]["staticNodes"] == 3
    assert report["summary"]["newNodes"] == 3 + len(report["claims"])
    assert report["summary"]["hourly"] == pytest.approx(
        sum(each["price"] for each in nodes) + sum(each["price"] for each in report["claims"])
    )
    assert report["existingNodes"] == []
    text = run(STATIC, deployment(replicas=5, cpu="2"), form="table")
    assert "3 nodes of static NodePools among them" in text
    assert "rack (static)  c-4x-amd64-linux" in text


def test_a_static_pool_is_bought_also_without_pods() -> None:
    summary = run(STATIC)["summary"]

    assert (summary["newNodes"], summary["podsOnNewNodes"]) == (3, 0)
    assert summary["hourly"] > 0


@pytest.mark.parametrize(
    ("documents", "bought"),
    [
        pytest.param((NODE, CLAIM), 2, id="a node and its claim count once"),
        pytest.param((NODE,), 2, id="a node alone"),
        pytest.param((CLAIM,), 2, id="a claim on its way"),
        pytest.param((NODE.replace("labels: {karpenter.sh/nodepool: rack}", "labels: {a: b}"),), 3, id="another node"),
    ],
)
def test_nodes_that_are_there_are_not_bought_again(documents: tuple[str, ...], bought: int) -> None:
    assert run(STATIC, *documents)["summary"]["staticNodes"] == bought


@pytest.mark.parametrize(
    ("changed", "bought", "said"),
    [
        pytest.param(
            ("  template:", "  limits: {nodes: 2}\n  template:"), 2, "spec.limits.nodes allows no more", id="limit"
        ),
        pytest.param(("c-4x-amd64-linux", "c-4000x"), 0, "nothing more of what it allows can be bought", id="no type"),
    ],
)
def test_nodes_that_cannot_be_bought_are_told(changed: tuple[str, str], bought: int, said: str) -> None:
    report = run(STATIC.replace(*changed))

    assert report["summary"]["staticNodes"] == bought
    assert any(said in note for note in report["notes"]), report["notes"]


def test_a_static_pool_that_has_too_many_nodes_is_told() -> None:
    report = run(STATIC.replace("replicas: 3", "replicas: 0"), NODE)

    assert any("1 of them would be removed" in note for note in report["notes"]), report["notes"]


def test_pods_of_a_static_node_respect_its_labels_and_taints() -> None:
    chosen = pod("p").replace("spec: {", "spec: {nodeSelector: {team: web}, ")
    assert chosen != pod("p")
    tainted = STATIC.replace("      nodeClassRef", "      taints: [{key: a, effect: NoSchedule}]\n      nodeClassRef")

    assert run(STATIC, chosen)["summary"]["leftOver"] == 0
    assert run(tainted, chosen)["summary"]["leftOver"] == 1


def test_static_nodes_out_of_a_reservation_leave_the_rest_of_it_to_others() -> None:
    static = STATIC.replace("values: [on-demand]", "values: [reserved]").replace("replicas: 3", "replicas: 1")

    report = run(static, deployment(replicas=3, cpu="3"), pools=RESERVED)

    assert [each["paid"] for each in report["staticNodes"]] == [True]
    assert sum(each["paid"] for each in report["claims"]) == 1


# -- NodeOverlays --------------------------------------------------------------------------------------------------------


def test_prices_of_overlays_and_of_the_catalogue_are_both_told_where_they_differ() -> None:
    documents = (OVERLAY, deployment(replicas=5, cpu="2"))
    summary = run(*documents)["summary"]

    assert summary["hourly"] == pytest.approx(summary["listHourly"] * 0.72)
    text = run(*documents, form="table")
    assert "NodeOverlays changed prices: these nodes cost" in text
    assert "LIST $/h EACH" in text


def test_without_overlays_nothing_is_said_of_list_prices() -> None:
    summary = run(deployment())["summary"]

    assert summary["hourly"] == summary["listHourly"]
    assert "LIST" not in run(deployment(), form="table")


# -- reservations and zones ----------------------------------------------------------------------------------------------


def test_what_is_reserved_is_paid_and_not_a_tiny_price() -> None:
    text = run(deployment(replicas=3, cpu="3"), form="table", pools=RESERVED)
    bought = text.partition("What would be bought")[2].partition("Where pods")[0]

    assert "reserved/test-zone-a/cr-1" in bought
    assert "  paid  " in bought
    assert "e-0" not in text
    assert "of these nodes 2 are paid for already, by capacity reservations" in text
    explained = run(deployment(cpu="3"), form="table", pools=RESERVED, arguments=("--explain", "web-0"))
    assert "at no further cost: its reservation is paid" in explained
    assert "e-0" not in explained


def test_zones_of_the_same_price_are_told() -> None:
    claim = run(deployment())["claims"][0]

    assert claim["otherZones"] == ["test-zone-b", "test-zone-c", "test-zone-d"]
    assert "on-demand/test-zone-a or 3 more zones" in run(deployment(), form="table")


def test_a_zone_that_a_pod_asks_for_has_no_other() -> None:
    chosen = pod("p").replace("spec: {", "spec: {nodeSelector: {topology.kubernetes.io/zone: test-zone-b}, ")

    assert run(chosen)["claims"][0]["otherZones"] == []


# -- rows ----------------------------------------------------------------------------------------------------------------


def test_many_pods_without_a_workload_share_a_row() -> None:
    text = run(*(pod(f"p{number}") for number in range(12)), form="table")

    rows = text.partition("Where pods would go")[2].strip().split("\n")
    assert len(rows) == 2
    assert rows[1].startswith("Pod p0, p1, p10 and 9 more    12  ")


def test_a_few_pods_have_a_row_each() -> None:
    text = run(pod("a"), pod("b"), form="table")

    assert len(text.partition("Where pods would go")[2].strip().split("\n")) == 3


@pytest.mark.parametrize(
    ("kinds", "end"),
    [(5, "1 on n4"), (6, "2 on 2 other kinds of node")],
    ids=["one more is named", "more are counted"],
)
def test_kinds_of_nodes_beyond_the_first_few_are_counted(kinds: int, end: str) -> None:
    assert tables.listed({f"n{number}": 1 for number in range(kinds)}).endswith(f"; {end}")


# -- what is demanded ----------------------------------------------------------------------------------------------------


def test_the_price_of_what_a_pool_demands_is_told() -> None:
    dear = POOL.replace(
        "values: [on-demand]}",
        "values: [on-demand]}\n      - {key: karpenter.kwok.sh/instance-family, operator: In, values: [m]}",
    )
    limited = dear.replace("spec:\n  template:", "spec:\n  limits: {cpu: 1000}\n  template:")

    report = run(deployment(replicas=5), pools=limited, arguments=("--costs",))

    costs = {each["field"]: each["hourly"] for each in report["nodePoolCosts"]}
    base = "spec.template.spec.requirements"
    assert costs["spec.limits[cpu]"] == 0
    assert costs[f"{base}[karpenter.kwok.sh/instance-family]"] > 0
    assert costs[f"{base}[karpenter.sh/capacity-type]"] > 0
    assert f"{base}[kubernetes.io/os]" not in costs
    without = run(deployment(replicas=5), pools=limited.replace("values: [m]", "values: [c, m, s]"))
    paid = report["summary"]["hourly"] - without["summary"]["hourly"]
    assert costs[f"{base}[karpenter.kwok.sh/instance-family]"] == pytest.approx(paid)
    drawn = run(deployment(replicas=5), pools=limited, arguments=("--costs",), form="table")
    demands = drawn.partition("What NodePools demand, and what that costs")[2]
    assert "karpenter.sh/capacity-type In [on-demand]" in demands
    assert "limit cpu" not in demands


def planners(kind: type[FirstFit]) -> Iterator[str]:
    yield kind.planner
    for below in kind.__subclasses__():
        yield from planners(below)


def test_every_planner_is_explained() -> None:
    assert all(planner.run for planner in PLANNERS), "loaded, so that they are known as kinds of first fit"

    words = {name.partition(",")[0] for name in planners(FirstFit)}

    assert words == set(costsandbound.PLANNERS)
