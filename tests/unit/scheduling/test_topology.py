"""Spread, affinity and anti-affinity: which domains a group leaves."""

from typing import Any

import pytest
from tests.builders import away_from, existing_node, near_to, node_pool, pod, pods, problem, requirement, spread_over

from joiner.model.codec import decode
from joiner.model.labels import HOSTNAME, ZONE
from joiner.model.nodepool import NodePool
from joiner.model.selector import LabelSelector
from joiner.requirements import Requirement
from joiner.scheduling.plan import Plan
from joiner.scheduling.schedule import schedule
from joiner.scheduling.topology.group import AFFINITY, ANTI_AFFINITY, SPREAD, Group, Kind, selector_of

ANY = Requirement(ZONE, complement=True)


def group(kind: Kind, counts: dict[str, int], **more: Any) -> Group:
    found = Group(kind, ZONE, frozenset({"default"}), LabelSelector(), **{"max_skew": 1, **more})
    for domain, count in counts.items():
        found.register(domain)
        if count:
            found.record(domain, count)
    return found


def left(found: Group, pod: Requirement = ANY, node: Requirement = ANY, chosen: bool = True) -> set[str] | None:
    answer = found.narrowed(pod, node, chosen)
    return None if answer is None else set(answer.values)


def zones(*names: str) -> Requirement:
    return Requirement(ZONE, names)


@pytest.mark.parametrize(
    ("counts", "more", "pod_zones", "node_zones", "chosen", "expected"),
    [
        ({"a": 0, "b": 0}, {}, ANY, ANY, True, {"a"}),
        ({"a": 1, "b": 0}, {}, ANY, ANY, True, {"b"}),
        ({"a": 1, "b": 0}, {}, ANY, zones("a"), True, None),
        ({"a": 1, "b": 0}, {}, ANY, zones("a"), False, {"a"}),
        ({"a": 2, "b": 0}, {}, ANY, zones("a"), False, None),
        ({"a": 1, "b": 0}, {"max_skew": 2}, ANY, zones("a"), True, {"a"}),
        ({"a": 1, "b": 0}, {}, zones("a"), zones("a"), True, {"a"}),
        ({"a": 5, "b": 5, "c": 0}, {}, zones("a", "b"), ANY, True, {"a"}),
        ({"a": 0}, {}, ANY, zones("z"), True, None),
        ({"a": 1, "b": 1}, {"min_domains": 2}, ANY, ANY, True, {"a"}),
        ({"a": 1, "b": 1}, {"min_domains": 3}, ANY, ANY, True, None),
        ({"a": 0, "b": 0}, {"min_domains": 3}, ANY, ANY, True, {"a"}),
        ({"a": 1, "b": 1}, {"min_domains": 2}, zones("a"), ANY, True, None),
    ],
    ids=[
        "the first of equal domains",
        "the emptier one",
        "not where it would be out of balance",
        "one that does not count itself may",
        "but not where it is out of balance already",
        "a larger skew",
        "domains the pod cannot use do not count as empty",
        "nor do they when it may use several",
        "a domain nobody knows",
        "enough domains",
        "too few domains: the emptiest counts as empty",
        "which lets the first ones in",
        "domains the pod cannot use do not count as domains",
    ],
)
def test_spread(
    counts: dict[str, int],
    more: dict[str, Any],
    pod_zones: Requirement,
    node_zones: Requirement,
    chosen: bool,
    expected: set[str] | None,
) -> None:
    assert left(group(SPREAD, counts, **more), pod_zones, node_zones, chosen) == expected


@pytest.mark.parametrize(
    ("counts", "pod_zones", "node_zones", "chosen", "expected"),
    [
        ({"a": 1, "b": 2, "c": 0}, ANY, ANY, True, {"a", "b"}),
        ({"a": 1, "b": 0}, ANY, zones("b"), True, None),
        ({"a": 0, "b": 0}, ANY, ANY, True, {"a"}),
        ({"a": 0, "b": 0}, ANY, zones("b"), True, {"b"}),
        ({"a": 0, "b": 0}, ANY, ANY, False, None),
        ({"a": 1, "b": 0}, zones("b"), ANY, True, {"b"}),
        ({"a": 1, "b": 0}, zones("b"), ANY, False, None),
    ],
    ids=[
        "every occupied domain",
        "not an empty one while another is occupied",
        "the first of its group starts in one domain",
        "one that the node allows",
        "company that is nowhere cannot be started by others",
        "where the company is out of reach the group starts anew",
        "but only by its own",
    ],
)
def test_affinity(
    counts: dict[str, int],
    pod_zones: Requirement,
    node_zones: Requirement,
    chosen: bool,
    expected: set[str] | None,
) -> None:
    assert left(group(AFFINITY, counts), pod_zones, node_zones, chosen) == expected


@pytest.mark.parametrize(
    ("counts", "node_zones", "expected"),
    [
        ({"a": 1, "b": 0, "c": 0}, ANY, {"b", "c"}),
        ({"a": 1, "b": 0}, zones("a"), None),
        ({"a": 1}, ANY, None),
    ],
    ids=["all empty domains", "not an occupied one", "nothing is left"],
)
def test_anti_affinity(counts: dict[str, int], node_zones: Requirement, expected: set[str] | None) -> None:
    assert left(group(ANTI_AFFINITY, counts), node=node_zones) == expected


def test_the_values_of_chosen_labels_join_the_selector() -> None:
    labels = {"app": "web", "version": "2", "tier": "x"}

    found = selector_of(LabelSelector(match_labels={"app": "web"}), labels, ["version", "absent"], ["tier"])

    assert found is not None
    assert found.matches({"app": "web", "version": "2", "tier": "y"})
    assert not found.matches({"app": "web", "version": "1", "tier": "y"})
    assert not found.matches(labels)


# -- whole plans -----------------------------------------------------------------------------------------------------


def by_zone(plan: Plan) -> list[tuple[str, int]]:
    found: dict[str, int] = {}
    for claim in plan.claims:
        (where,) = claim.requirements[ZONE].values
        found[where] = found.get(where, 0) + len(claim.pods)
    return sorted(found.items())


@pytest.mark.parametrize(
    ("constraint", "expected"),
    [
        ({}, [2, 2, 3]),
        ({"minDomains": 3}, [2, 2, 3]),
        ({"minDomains": 4}, [1, 1, 1]),
        ({"minDomains": 4, "maxSkew": 2}, [2, 2, 2]),
    ],
    ids=["as even as can be", "as many domains as wanted", "one domain too few", "one domain too few, larger skew"],
)
def test_seven_pods_over_three_zones(constraint: dict[str, Any], expected: list[int]) -> None:
    asked = pods(7, cpu="500m", topologySpreadConstraints=[{**spread_over("web"), **constraint}])

    assert sorted(count for _, count in by_zone(schedule(problem(asked)))) == expected


def test_pods_that_run_already_count() -> None:
    running = tuple(pod(f"old-{n}", labels={"app": "web"}, nodeName="node-a") for n in range(2))
    asked = pods(4, topologySpreadConstraints=[spread_over("web")])
    full = existing_node(taints=(), used={"cpu": 4000})

    plan = schedule(problem(asked, bound=running, nodes=(full,)))

    assert by_zone(plan) == [("b", 2), ("c", 2)]


@pytest.mark.parametrize(("policy", "placed"), [("Ignore", 1), ("Honor", 2)])
def test_zones_of_pools_that_are_not_tolerated_count_unless_the_policy_says_otherwise(policy: str, placed: int) -> None:
    template = {
        "requirements": [requirement(ZONE, "In", "b")],
        "taints": [{"key": "x", "effect": "NoSchedule"}],
    }
    tainted = decode({"metadata": {"name": "tainted"}, "spec": {"template": {"spec": template}}}, NodePool)
    plain = node_pool("plain", [requirement(ZONE, "In", "a")])

    asked = pods(2, topologySpreadConstraints=[spread_over("web", nodeTaintsPolicy=policy)])

    assert sum(len(claim.pods) for claim in schedule(problem(asked, plain, tainted)).claims) == placed


@pytest.mark.parametrize(("policy", "placed"), [("Honor", 1), ("Ignore", 2)])
def test_pods_on_nodes_the_pod_could_not_use_count_unless_the_policy_says_otherwise(policy: str, placed: int) -> None:
    """Two old pods run in zone a on a node of another team; with Honor they do not count, so the zones are even."""
    running = tuple(pod(f"old-{n}", labels={"app": "web"}, nodeName="node-a") for n in range(1))
    asked = pods(
        1,
        nodeSelector={"example.com/team": "x"},
        topologySpreadConstraints=[spread_over("web", nodeAffinityPolicy=policy)],
    )
    pool = node_pool(labels={"example.com/team": "x"}, requirements=[requirement(ZONE, "In", "a", "b")])

    plan = schedule(problem(asked, pool, bound=running, nodes=(existing_node(used={"cpu": 4000}),)))

    assert by_zone(plan) == [("a" if placed == 1 else "b", 1)]


def test_versions_are_spread_each_for_itself() -> None:
    constraint = spread_over("web", HOSTNAME, matchLabelKeys=["version"])
    asked = [
        pod(
            f"v{version}-{n}", "100m", labels={"app": "web", "version": version}, topologySpreadConstraints=[constraint]
        )
        for version in "12"
        for n in range(2)
    ]

    assert sorted(len(claim.pods) for claim in schedule(problem(asked)).claims) == [2, 2]


def test_a_pod_keeps_away_from_those_that_keep_away_from_it() -> None:
    shy = pod("shy", "100m", labels={"app": "shy"}, affinity=away_from("loud", HOSTNAME))
    loud = pod("loud", "2", labels={"app": "loud"})

    assert [len(claim.pods) for claim in schedule(problem([shy, loud])).claims] == [1, 1]


def test_a_pod_keeps_away_from_a_running_one_that_keeps_away_from_it() -> None:
    shy = pod("shy", labels={"app": "shy"}, affinity=away_from("loud", ZONE), nodeName="node-a")

    plan = schedule(problem([pod("loud", labels={"app": "loud"})], bound=(shy,), nodes=(existing_node(),)))

    assert not plan.placements
    assert "a" not in plan.claims[0].requirements[ZONE].values


@pytest.mark.parametrize(
    ("more", "together"),
    [
        ({}, False),
        ({"namespaces": ["other"]}, True),
        ({"namespaceSelector": {}}, True),
        ({"namespaceSelector": {"matchLabels": {"team": "y"}}}, False),
        ({"namespaces": ["other"], "namespaceSelector": {"matchLabels": {"team": "y"}}}, True),
    ],
    ids=["its own only", "listed", "all", "chosen by label, not this one", "listed or chosen"],
)
def test_company_is_looked_for_in_the_right_namespaces(more: dict[str, Any], together: bool) -> None:
    friend = pod("friend", labels={"app": "friend"}, namespace="other")
    asked = pod("lonely", affinity=near_to("friend", HOSTNAME, **more))
    spaces = {"default": {"team": "y"}, "other": {"team": "x"}}

    plan = schedule(problem([friend, asked], namespaces=spaces))

    assert (len(plan.refusals) == 0) == together


def test_pods_that_need_their_own_kind_share_one_zone() -> None:
    plan = schedule(problem(pods(5, cpu="12", labels={"app": "web"}, affinity=near_to("web"))))

    assert len(plan.claims) == 5
    assert len({claim.requirements[ZONE].values for claim in plan.claims}) == 1
