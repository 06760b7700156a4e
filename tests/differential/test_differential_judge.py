"""The judge can fail: for every rule a plan that keeps it and one that breaks it."""

from dataclasses import dataclass
from typing import Any

import pytest
from tests.differential.judge import QUIRKS, judge
from tests.differential.pieces import (
    RESERVATION,
    TEAM,
    bound,
    daemon_set,
    near,
    node,
    overlay,
    pod,
    pool,
    required,
    row,
    spread,
    storage_class,
    volume,
)
from tests.differential.terms import (
    CAPACITY_TYPE,
    HOSTNAME,
    INITIALIZED,
    INSTANCE_TYPE,
    ZONE,
    Json,
    allowed,
    amount,
    pod_requests,
    selects,
    tolerates,
)

TAINT = {"key": "dedicated", "value": "batch", "effect": "NoSchedule"}
WEB = {"app": "web"}
PORT = [{"containerPort": 80, "hostPort": 80, "protocol": "TCP"}]


def offering(zone: str, price: float, market: str = "on-demand", **more: Any) -> Json:
    rows = [row(ZONE, "In", zone), row(CAPACITY_TYPE, "In", market)]
    if "id" in more:
        rows.append(row(RESERVATION, "In", more.pop("id")))
    return {"requirements": rows, "price": price, "available": True, **more}


def kind(name: str, cpu: int, price: float, *more: Json) -> Json:
    offerings = [offering("a", price), offering("b", price * 2), *more]
    rows = [
        row(INSTANCE_TYPE, "In", name),
        row(ZONE, "In", "a", "b"),
        row(CAPACITY_TYPE, "In", "on-demand", "reserved"),
    ]
    capacity = {"cpu": str(cpu), "memory": f"{cpu * 4}Gi", "pods": "10"}
    return {"name": name, "requirements": rows, "offerings": offerings, "capacity": capacity}


SMALL, LARGE = kind("small", 2, 1.0), kind("large", 8, 3.0)


def scenario(*pods: Json, **more: Any) -> Json:
    return {"nodePools": [pool()], "instanceTypes": [SMALL, LARGE], "pods": list(pods), **more}


def claim(*pods: str, types: tuple[str, ...] = ("large",), rows: list[Json] | None = None, **more: Any) -> Json:
    """A claim for these pods, priced as the cheapest offering in zone a unless said otherwise."""
    price = more.pop("price", 1.0 if "small" in types else 3.0)
    cheapest = {"instanceType": types[0], "capacityType": "on-demand", "zone": "a", **more.pop("cheapest", {})}
    told = {"nodePool": "default", "pods": list(pods), "instanceTypes": list(types), "requirements": rows or []}
    return {**told, "cheapestPrice": price, "cheapest": cheapest, **more}


def result(*claims: Json, nodes: dict[str, list[str]] | None = None, **more: Any) -> Json:
    existing = [{"name": name, "pods": pods} for name, pods in (nodes or {}).items()]
    return {"newNodeClaims": list(claims), "existingNodes": existing, "errors": {}, **more}


def web(name: str, cpu: str = "1", **spec: Any) -> Json:
    return pod(name, cpu, "1Gi", spec.pop("labels", WEB), **spec)


def in_zone(zone: str) -> list[Json]:
    return [row(ZONE, "In", zone)]


IN_B: Json = {"rows": in_zone("b"), "price": 6.0, "cheapest": {"zone": "b"}}
HOME = node("home", LARGE, "a")
ONE, TWO = web("one"), web("two")


def apart(key: str) -> Json:
    return {"affinity": {"podAntiAffinity": near(key, "web")}}


def together(key: str, app: str = "web") -> Json:
    return {"affinity": {"podAffinity": near(key, app)}}


def reserving(count: int) -> list[Json]:
    way = offering("a", 1e-7, "reserved", id="cr-1", available=True, reservationCapacity=count)
    return [kind("small", 2, 1.0, way), LARGE]


RESERVED: Json = {
    "types": ("small",),
    "rows": [row(CAPACITY_TYPE, "In", "reserved"), row(RESERVATION, "In", "cr-1")],
    "reservationIDs": ["cr-1"],
    "price": 1e-7,
    "cheapest": {"capacityType": "reserved"},
}
ON_DEMAND: Json = {"types": ("small",), "rows": [row(CAPACITY_TYPE, "In", "on-demand")]}
SPREAD_ZONES: Json = {"topologySpreadConstraints": [spread(ZONE, "web")]}
SPREAD_HOSTS: Json = {"topologySpreadConstraints": [spread(HOSTNAME, "web")]}
FLEXIBLE = [pool(rows=[row(INSTANCE_TYPE, "Exists", minValues=2)])]
DEVICES = overlay("devices", in_zone("a"), capacity={"example.com/gpu": "1"})
CSI = {
    "apiVersion": "storage.k8s.io/v1",
    "kind": "CSINode",
    "metadata": {"name": "home"},
    "spec": {"drivers": [{"name": "ebs.csi.aws.com", "nodeID": "home", "allocatable": {"count": 1}}]},
}


def storing(name: str, claimed: str) -> Json:
    return web(name, volumes=[{"name": "data", "persistentVolumeClaim": {"claimName": claimed}}])


@dataclass(frozen=True)
class Rule:
    """A promise: a scenario, a plan that keeps it, a plan that breaks it."""

    rule: str
    scenario: Json
    good: Json
    broken: Json
    quirk: str = ""


RULES = {
    "a pod is placed once": Rule(
        "accounting", scenario(ONE), result(claim("one")), result(claim("one"), nodes={"home": ["one"]})
    ),
    "no pod is forgotten": Rule("accounting", scenario(ONE, TWO), result(claim("one", "two")), result(claim("one"))),
    "no pod is invented": Rule("accounting", scenario(ONE), result(claim("one")), result(claim("one", "ghost"))),
    "a refused pod is told": Rule(
        "accounting", scenario(ONE), result(errors={"one": "no"}), result(claim("one"), errors={"one": "no"})
    ),
    "a claim has pods": Rule("accounting", scenario(), result(), result(claim())),
    "the pool exists": Rule("unknown", scenario(ONE), result(claim("one")), result(claim("one", nodePool="nope"))),
    "pods tolerate the pool's taints": Rule(
        "pool-taints",
        scenario(
            web("one", tolerations=[{"key": "dedicated", "operator": "Exists"}]), TWO, nodePools=[pool(taints=[TAINT])]
        ),
        result(claim("one"), errors={"two": "taints"}),
        result(claim("one", "two")),
    ),
    "the claim has the pool's taints": Rule(
        "claim-taints",
        scenario(web("one", tolerations=[{"operator": "Exists"}]), nodePools=[pool(taints=[TAINT])]),
        result(claim("one", taints=[TAINT])),
        result(claim("one", taints=[])),
    ),
    "the claim stays within the pool": Rule(
        "pool-requirements",
        scenario(ONE, nodePools=[pool(rows=in_zone("a"))]),
        result(claim("one", rows=in_zone("a"))),
        result(claim("one")),
    ),
    "the type is one of the pool's": Rule(
        "types", scenario(ONE), result(claim("one")), result(claim("one", types=("large", "nope")))
    ),
    "no more types than a launch may name": Rule(
        "types",
        scenario(ONE, options={"maxInstanceTypes": 1}),
        result(claim("one")),
        result(claim("one", types=("small", "large"))),
    ),
    "every type can be launched": Rule(
        "launchable",
        scenario(ONE, instanceTypes=[{**SMALL, "offerings": [{**offering("a", 1.0), "available": False}]}, LARGE]),
        result(claim("one")),
        result(claim("one", types=("large", "small"), price=3.0)),
    ),
    "every type matches the requirements": Rule(
        "launchable",
        scenario(ONE),
        result(claim("one", rows=in_zone("a"))),
        result(claim("one", rows=[row(ZONE, "In", "mars")])),
    ),
    "node selector": Rule(
        "pod-requirements",
        scenario(web("one", nodeSelector={ZONE: "a"})),
        result(claim("one", rows=in_zone("a"))),
        result(claim("one")),
    ),
    "one of the affinity terms": Rule(
        "pod-requirements",
        scenario(web("one", affinity={"nodeAffinity": required(in_zone("mars"), in_zone("b"))})),
        result(claim("one", **IN_B)),
        result(claim("one", rows=in_zone("a"))),
    ),
    "a label that nobody promised": Rule(
        "pod-requirements",
        scenario(web("one", nodeSelector={TEAM: "red"}), nodePools=[pool(rows=[row(TEAM, "In", "red", "blue")])]),
        result(claim("one", rows=[row(TEAM, "In", "red")])),
        result(claim("one", rows=[row(TEAM, "In", "red", "blue")])),
    ),
    "a bound volume": Rule(
        "volumes",
        scenario(storing("one", "data"), objects=[storage_class("free"), *volume("data", "a")]),
        result(claim("one", rows=in_zone("a"))),
        result(claim("one", **IN_B)),
    ),
    "the topologies of a storage class": Rule(
        "volumes",
        scenario(storing("one", "data"), objects=[storage_class("some", ["b"], ["c"]), *volume("data", None, "some")]),
        result(claim("one", **IN_B)),
        result(claim("one", rows=in_zone("a"))),
    ),
    "every type holds the pods": Rule(
        "resources",
        scenario(web("one", "1500m"), web("two", "1500m")),
        result(claim("one", "two")),
        result(claim("one", "two", types=("small", "large"))),
    ),
    "a machine holds only so many pods": Rule(
        "resources",
        scenario(*(web(f"p{i}", "100m") for i in range(11))),
        result(claim(*(f"p{i}" for i in range(10))), claim("p10")),
        result(claim(*(f"p{i}" for i in range(11)))),
    ),
    "daemons need room": Rule(
        "resources",
        scenario(web("one", "1500m"), daemonSets=[daemon_set("agent", "1", "64Mi")]),
        result(claim("one")),
        result(claim("one", types=("small", "large"))),
    ),
    "huge pages take memory": Rule(
        "resources",
        scenario(
            pod("one", "1", "6Gi"),
            instanceTypes=[{**SMALL, "capacity": {**SMALL["capacity"], "hugepages-2Mi": "4Gi"}}, LARGE],
        ),
        result(claim("one")),
        result(claim("one", types=("small", "large"))),
    ),
    "every offering holds the pods": Rule(
        "resources",
        scenario(web("one", extra={"example.com/gpu": "1"}), nodeOverlays=[DEVICES]),
        result(claim("one", rows=in_zone("a"))),
        result(claim("one")),
        "capacity-of-the-type",
    ),
    "a daemon with several terms needs room": Rule(
        "resources",
        scenario(
            web("one", "1500m"),
            daemonSets=[
                daemon_set("agent", "1", "64Mi", affinity={"nodeAffinity": required(in_zone("c"), in_zone("a"))})
            ],
        ),
        result(claim("one")),
        result(claim("one", types=("small", "large"))),
        "daemon-terms-forgotten",
    ),
    "a claim asks for what its pods need": Rule(
        "requests",
        scenario(ONE),
        result(claim("one", requests={"cpu": "1", "memory": "1Gi", "pods": "1"})),
        result(claim("one", requests={"cpu": "500m", "memory": "1Gi", "pods": "1"})),
    ),
    "host ports of pods": Rule(
        "ports",
        scenario(web("one", ports=PORT), web("two", ports=PORT)),
        result(claim("one"), claim("two")),
        result(claim("one", "two")),
    ),
    "host ports of daemons": Rule(
        "ports",
        scenario(
            web("one", ports=PORT), daemonSets=[daemon_set("agent", "10m", "1Mi", ports=PORT, nodeSelector={ZONE: "a"})]
        ),
        result(claim("one", **IN_B)),
        result(claim("one")),
    ),
    "the price is that of the cheapest offering": Rule(
        "price", scenario(ONE), result(claim("one")), result(claim("one", price=2.0))
    ),
    "the cheapest offering is named": Rule(
        "price", scenario(ONE), result(claim("one")), result(claim("one", cheapest={"zone": "b"}))
    ),
    "overlays change prices": Rule(
        "price",
        scenario(ONE, nodeOverlays=[overlay("half", [], priceAdjustment="-50%")]),
        result(claim("one", price=1.5)),
        result(claim("one")),
    ),
    "spread over zones": Rule(
        "spread",
        scenario(web("one", **SPREAD_ZONES), web("two", **SPREAD_ZONES)),
        result(claim("one", rows=in_zone("a")), claim("two", **IN_B)),
        result(claim("one", "two", rows=in_zone("a"))),
    ),
    "spread counts running pods": Rule(
        "spread",
        scenario(web("one", **SPREAD_ZONES), nodes=[HOME], boundPods=[bound(web("old"), "home")]),
        result(claim("one", **IN_B)),
        result(claim("one", rows=in_zone("a"))),
    ),
    "an open zone may be the full one": Rule(
        "spread",
        scenario(web("one", **SPREAD_ZONES), nodes=[HOME], boundPods=[bound(web("old"), "home")]),
        result(claim("one", **IN_B)),
        result(claim("one")),
    ),
    "spread over hosts": Rule(
        "spread",
        scenario(web("one", **SPREAD_HOSTS), web("two", **SPREAD_HOSTS)),
        result(claim("one"), claim("two")),
        result(claim("one", "two")),
    ),
    "spread wants a number of domains": Rule(
        "spread",
        scenario(
            *(web(n, topologySpreadConstraints=[spread(ZONE, "web", minDomains=3)]) for n in ("one", "two", "three"))
        ),
        result(claim("one", rows=in_zone("a")), claim("two", **IN_B), errors={"three": "no third zone"}),
        result(claim("one", "three", rows=in_zone("a")), claim("two", **IN_B)),
    ),
    "spread by version": Rule(
        "spread",
        scenario(
            *(
                web(
                    f"v{i}",
                    labels={**WEB, "v": v},
                    topologySpreadConstraints=[spread(ZONE, "web", matchLabelKeys=["v"])],
                )
                for i, v in enumerate("112")
            )
        ),
        result(claim("v0", "v2", rows=in_zone("a")), claim("v1", **IN_B)),
        result(claim("v0", "v1", rows=in_zone("a")), claim("v2", **IN_B)),
    ),
    "spread beside several terms": Rule(
        "spread",
        scenario(
            *(
                web(
                    n, **SPREAD_HOSTS, affinity={"nodeAffinity": required([row(INSTANCE_TYPE, "Exists")], in_zone("a"))}
                )
                for n in ("one", "two")
            )
        ),
        result(claim("one"), claim("two")),
        result(claim("one", "two")),
        "spread-regrouped",
    ),
    "a node without the label is no domain": Rule(
        "spread",
        scenario(
            web("one", topologySpreadConstraints=[spread(TEAM, "web")]),
            nodePools=[pool(rows=[row(TEAM, "In", "red")])],
            nodes=[HOME],
        ),
        result(claim("one", rows=[row(TEAM, "In", "red")])),
        result(nodes={"home": ["one"]}),
    ),
    "company": Rule(
        "affinity",
        scenario(web("one", **together(ZONE, "db")), web("two", labels={"app": "db"})),
        result(claim("one", rows=in_zone("a")), claim("two", rows=in_zone("a"))),
        result(claim("one", rows=in_zone("a")), claim("two", **IN_B)),
    ),
    "company that waits for itself": Rule(
        "affinity",
        scenario(web("one", **together(ZONE, "db")), web("two", labels={"app": "db"}, **together(ZONE, "web"))),
        result(errors={"one": "no db", "two": "no web"}),
        result(claim("one", "two", rows=in_zone("a"))),
    ),
    "a group starts once": Rule(
        "affinity",
        scenario(web("one", **together(ZONE)), web("two", **together(ZONE))),
        result(claim("one", rows=in_zone("a")), claim("two", rows=in_zone("a"))),
        result(claim("one", rows=in_zone("a")), claim("two", **IN_B)),
    ),
    "a group joins the one that runs": Rule(
        "affinity",
        scenario(web("one", **together(ZONE)), nodes=[HOME], boundPods=[bound(web("old"), "home")]),
        result(claim("one", rows=in_zone("a"))),
        result(claim("one", **IN_B)),
    ),
    "one that runs where there is no such label is no company": Rule(
        "affinity",
        scenario(
            web("one", **together(TEAM)),
            web("two", **together(TEAM)),
            nodePools=[pool(rows=[row(TEAM, "In", "red", "blue")])],
            nodes=[HOME],
            boundPods=[bound(web("old"), "home")],
        ),
        result(*(claim(name, rows=[row(TEAM, "In", "red")]) for name in ("one", "two"))),
        result(*(claim(name, rows=[row(TEAM, "In", team)]) for name, team in (("one", "red"), ("two", "blue")))),
    ),
    "company in every zone that is still open": Rule(
        "affinity",
        scenario(
            web("one", **together(ZONE)),
            nodes=[HOME, node("away", LARGE, "b")],
            boundPods=[bound(web("old"), "home"), bound(web("older"), "away")],
            instanceTypes=[SMALL, {**LARGE, "offerings": [*LARGE["offerings"], offering("c", 9.0)]}],
        ),
        result(claim("one", rows=[row(ZONE, "In", "a", "b")])),
        result(claim("one", rows=[row(ZONE, "In", "a", "b", "c")])),
        "affinity-uncounted",
    ),
    "a group in an open zone": Rule(
        "affinity",
        scenario(web("one", **together(ZONE)), web("two", **together(ZONE))),
        result(claim("one", "two")),
        result(claim("one"), claim("two")),
        "affinity-uncounted",
    ),
    "pods that keep apart": Rule(
        "anti-affinity",
        scenario(web("one", **apart(HOSTNAME)), TWO),
        result(claim("one"), claim("two")),
        result(claim("one", "two")),
    ),
    "a running pod keeps others away": Rule(
        "anti-affinity",
        scenario(ONE, nodes=[HOME], boundPods=[bound(web("old", **apart(ZONE)), "home")]),
        result(claim("one", **IN_B)),
        result(claim("one", rows=in_zone("a"))),
    ),
    "apart in open zones": Rule(
        "anti-affinity",
        scenario(web("one", **apart(ZONE)), TWO),
        result(claim("one", rows=in_zone("a")), claim("two", **IN_B)),
        result(claim("one"), claim("two")),
        "anti-affinity-uncounted",
    ),
    "apart across namespaces": Rule(
        "anti-affinity",
        scenario(
            web(
                "one",
                affinity={"podAntiAffinity": near(HOSTNAME, "web", namespaceSelector={"matchLabels": {"env": "prod"}})},
            ),
            web("two", namespace="blue"),
            objects=[
                {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "blue", "labels": {"env": "prod"}}}
            ],
        ),
        result(claim("one"), claim("blue/two")),
        result(claim("one", "blue/two")),
    ),
    "limits": Rule(
        "limits",
        scenario(ONE, TWO, nodePools=[pool(limits={"cpu": "9"})]),
        result(claim("one", "two")),
        result(claim("one"), claim("two")),
    ),
    "limits count nodes that are there": Rule(
        "limits",
        scenario(ONE, nodePools=[pool(limits={"cpu": "10"})], nodes=[HOME]),
        result(claim("one", types=("small",))),
        result(claim("one", types=("small", "large"))),
    ),
    "a limit on nodes": Rule(
        "limits-nodes",
        scenario(ONE, TWO, nodePools=[pool(limits={"nodes": "1"})]),
        result(claim("one", "two")),
        result(claim("one"), claim("two")),
        "limits-nodes",
    ),
    "minValues": Rule(
        "min-values",
        scenario(ONE, nodePools=FLEXIBLE),
        result(claim("one", types=("small", "large"))),
        result(claim("one")),
    ),
    "minValues that can be launched": Rule(
        "min-values",
        scenario(ONE, nodePools=[pool(rows=[row(ZONE, "Exists", minValues=2)])]),
        result(claim("one")),
        result(claim("one", rows=in_zone("a"))),
        "min-values-unlaunchable",
    ),
    "the mark of lowered minValues": Rule(
        "min-values-flag",
        scenario(ONE, nodePools=FLEXIBLE, options={"minValuesPolicy": "BestEffort"}),
        result(claim("one", minValuesRelaxed=True)),
        result(claim("one")),
        "min-values-flag",
    ),
    "minValues are counted before a reservation is chosen": Rule(
        "min-values",
        scenario(ONE, nodePools=FLEXIBLE, instanceTypes=reserving(1)),
        result(claim("one", **RESERVED)),
        result(claim("one", **ON_DEMAND)),
    ),
    "the mark of lowered minValues is set before a reservation is chosen": Rule(
        "min-values-flag",
        scenario(ONE, nodePools=FLEXIBLE, instanceTypes=reserving(1), options={"minValuesPolicy": "BestEffort"}),
        result(claim("one", **RESERVED)),
        result(claim("one", **ON_DEMAND)),
        "min-values-flag",
    ),
    "a reservation is not given out twice": Rule(
        "reservations",
        scenario(ONE, TWO, instanceTypes=reserving(1)),
        result(claim("one", **RESERVED), claim("two", **ON_DEMAND)),
        result(claim("one", **RESERVED), claim("two", **RESERVED)),
    ),
    "a reservation is given out as often as it can be": Rule(
        "reservations",
        scenario(ONE, TWO, web("three"), instanceTypes=reserving(2)),
        result(claim("one", **RESERVED), claim("two", **RESERVED), claim("three", **ON_DEMAND)),
        result(claim("one", **RESERVED), claim("two", **RESERVED), claim("three", **RESERVED)),
    ),
    "a reserved claim lists reserved types": Rule(
        "launchable",
        scenario(ONE, instanceTypes=reserving(1)),
        result(claim("one", **RESERVED)),
        result(claim("one", **{**RESERVED, "types": ("small", "large")})),
        "type-without-reserved-offering",
    ),
    "reserved capacity needs a reservation": Rule(
        "reserved-left-open",
        scenario(ONE, instanceTypes=reserving(1)),
        result(claim("one", **ON_DEMAND)),
        result(claim("one", types=("small",))),
        "reserved-left-open",
    ),
    "a node that goes takes no pods": Rule(
        "node-deleting",
        scenario(ONE, nodes=[HOME], deletingNodes=["home"]),
        result(claim("one")),
        result(nodes={"home": ["one"]}),
    ),
    "pods of a node that goes are placed": Rule(
        "accounting",
        scenario(nodes=[HOME], boundPods=[bound(ONE, "home")], deletingNodes=["home"]),
        result(claim("one")),
        result(),
    ),
    "a node's taints": Rule(
        "node-taints",
        scenario(web("one", tolerations=[{"operator": "Exists"}]), TWO, nodes=[{**HOME, "spec": {"taints": [TAINT]}}]),
        result(claim("two"), nodes={"home": ["one"]}),
        result(claim("one"), nodes={"home": ["two"]}),
    ),
    "a node's labels": Rule(
        "pod-requirements",
        scenario(web("one", nodeSelector={ZONE: "b"}), nodes=[HOME]),
        result(claim("one", **IN_B)),
        result(nodes={"home": ["one"]}),
    ),
    "a node's room": Rule(
        "node-resources",
        scenario(web("one", "3"), web("two", "3"), nodes=[HOME], boundPods=[bound(web("old", "3"), "home")]),
        result(claim("two"), nodes={"home": ["one"]}),
        result(nodes={"home": ["one", "two"]}),
    ),
    "daemons to come need room on a node": Rule(
        "node-resources",
        scenario(web("one", "7"), web("two", "7500m"), nodes=[HOME], daemonSets=[daemon_set("agent", "1", "64Mi")]),
        result(nodes={"home": ["one"]}, errors={"two": "no room"}),
        result(nodes={"home": ["two"]}, errors={"one": "no room"}),
    ),
    "a node's host ports": Rule(
        "node-ports",
        scenario(web("one", ports=PORT), nodes=[HOME], boundPods=[bound(web("old", ports=PORT), "home")]),
        result(claim("one")),
        result(nodes={"home": ["one"]}),
    ),
    "volumes that a node can attach": Rule(
        "node-volumes",
        scenario(
            storing("one", "data"),
            storing("two", "logs"),
            nodes=[HOME],
            objects=[CSI, storage_class("free"), *volume("data", None), *volume("logs", None)],
        ),
        result(claim("two"), nodes={"home": ["one"]}),
        result(nodes={"home": ["one", "two"]}),
    ),
}


@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
def test_a_plan_that_keeps_the_rule_is_accepted(rule: Rule) -> None:
    assert [str(violation) for violation in judge(rule.scenario, rule.good)] == []


@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
def test_a_plan_that_breaks_the_rule_is_found_out(rule: Rule) -> None:
    found = judge(rule.scenario, rule.broken)

    assert (rule.rule, rule.quirk) in {(violation.rule, violation.quirk) for violation in found}, [
        str(v) for v in found
    ]


def test_every_named_habit_of_the_reference_has_an_example() -> None:
    unlaunchable = {"reservation-missing", "exclusion-lost", "existence-lost", "contradiction"}

    assert {rule.quirk for rule in RULES.values() if rule.quirk} | unlaunchable == set(QUIRKS)


NEITHER = required([row(TEAM, "Exists"), row(TEAM, "DoesNotExist")])
BOTH_WAYS = [row(TEAM, "Exists")]


@pytest.mark.parametrize(
    ("quirk", "question", "answer"),
    [
        (
            "contradiction",
            scenario(web("one", affinity={"nodeAffinity": NEITHER})),
            result(claim("one", rows=[row(TEAM, "DoesNotExist")])),
        ),
        (
            "existence-lost",
            scenario(ONE, nodePools=[pool(rows=BOTH_WAYS)]),
            result(claim("one", rows=[row(TEAM, "DoesNotExist")])),
        ),
        (
            "exclusion-lost",
            scenario(ONE, nodePools=[pool(rows=[row(TEAM, "Gt", 3), row(TEAM, "NotIn", 5)])]),
            result(claim("one", rows=[row(TEAM, "Gte", 4)])),
        ),
        (
            "reservation-missing",
            scenario(ONE, instanceTypes=reserving(1)),
            result(claim("one", types=("small",), rows=[row(CAPACITY_TYPE, "In", "reserved")], price=-1.0)),
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_habits_of_the_reference_are_told_by_name(quirk: str, question: Json, answer: Json) -> None:
    assert quirk in {violation.quirk for violation in judge(question, answer)}


def test_a_starting_node_takes_pods_in_spite_of_taints_that_will_go() -> None:
    starting = node("home", LARGE, "a", labels={INITIALIZED: "false"})
    starting["spec"]["taints"] = [{"key": "cni", "effect": "NoSchedule"}]
    status = {"providerID": "oracle://home", "capacity": LARGE["capacity"], "allocatable": LARGE["capacity"]}
    owner = {
        "metadata": {"name": "c"},
        "spec": {"startupTaints": [{"key": "cni", "effect": "NoSchedule"}]},
        "status": status,
    }
    plan = result(nodes={"home": ["one"]})

    assert not judge(scenario(ONE, nodes=[starting], nodeClaims=[owner]), plan)
    assert judge(scenario(ONE, nodes=[starting], nodeClaims=[{**owner, "spec": {}}]), plan)


def test_conflicting_overlays_are_read_as_decided_or_as_the_reference_does() -> None:
    question = scenario(ONE, nodeOverlays=[overlay("x", [], price="4"), overlay("y", [], price="5")])
    statuses = {"x": "applied", "y": "Conflict"}

    assert not judge(question, result(claim("one", price=5.0), overlays=statuses))
    assert not judge(question, result(claim("one", price=4.0), overlays=statuses), reference=True)


@pytest.mark.parametrize(
    ("written", "value"),
    [("100m", "1/10"), ("1Gi", str(2**30)), ("1.5k", "1500"), ("1e3", "1000"), ("2", "2"), ("5E-1", "1/2")],
)
def test_amounts(written: str, value: str) -> None:
    assert str(amount(written)) == value


@pytest.mark.parametrize(
    ("operator", "values", "accepted", "refused"),
    [
        ("In", ["a"], "a", "b"),
        ("NotIn", ["a"], "b", "a"),
        ("Gt", ["3"], "4", "3"),
        ("Lt", ["3"], "2", "3"),
        ("Gte", ["3"], "3", "x"),
        ("Lte", ["3"], "3", "4"),
    ],
)
def test_operators(operator: str, values: list[str], accepted: str, refused: str) -> None:
    requirement = allowed(operator, values)

    assert requirement.has(accepted)
    assert not requirement.has(refused)
    assert requirement.absent == (operator == "NotIn")


def test_sidecars_count_beside_the_containers_and_start_up_counts_at_its_peak() -> None:
    def container(cpu: str, **more: str) -> Json:
        return {"name": "c", "resources": {"requests": {"cpu": cpu}}, **more}

    sidecar, starting = container("1", restartPolicy="Always"), container("5")

    assert str(pod_requests({"initContainers": [sidecar, starting], "containers": [container("2")]})["cpu"]) == "6"
    assert str(pod_requests({"initContainers": [starting, sidecar], "containers": [container("2")]})["cpu"]) == "5"


def test_selectors_and_tolerations() -> None:
    expressions = [row("v", "NotIn", "1"), row("app", "Exists")]

    assert selects({"matchLabels": WEB, "matchExpressions": expressions}, WEB)
    assert not selects({"matchExpressions": expressions}, {"v": "1"})
    assert not selects(None, WEB)
    assert tolerates([{"key": "dedicated", "value": "batch"}], [TAINT, {"key": "x", "effect": "PreferNoSchedule"}])
    assert not tolerates([{"key": "dedicated", "value": "web"}], [TAINT])
