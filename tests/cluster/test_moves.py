"""Nodes that Joiner removes of its own accord, on a real control plane: empty, underused and drifted ones, within budgets."""

import pytest
from tests.cluster.case import NODECLASS, Case, Document, name_of, requirement
from tests.cluster.controller import Controller

pytestmark = [pytest.mark.cluster, pytest.mark.xdist_group("joiner")]
APART = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "web"}}}
ALONE = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [APART]}}
FOUR_CPUS = requirement("karpenter.kwok.sh/instance-cpu", "In", "4")
EDITED = {"expireAfter": "719h"}
ALWAYS = {"schedule": "* * * * *", "duration": "1h"}


def moving(*budgets: Document, after: str = "0s") -> Document:
    return {"consolidateAfter": after, "budgets": list(budgets) or [{"nodes": "100%"}]}


def told(case: Case, reason: str) -> list[tuple[str, str]]:
    """What events of a reason say about the nodes, claims and pools of a case: the name and the message."""
    _, events = case.cluster.request("GET", f"/api/v1/namespaces/default/events?fieldSelector=reason={reason}")
    return [(each["involvedObject"]["name"], each["message"]) for each in events["items"]]


def going(case: Case) -> set[str]:
    """The nodes that are marked to go."""
    return {
        name_of(node)
        for node in case.nodes()
        if any(taint["key"] == "karpenter.sh/disrupted" for taint in node["spec"].get("taints", ()))
    }


def machines(case: Case) -> set[str]:
    """What claims and nodes say was launched."""
    ids = {each.get("status", {}).get("providerID", "") for each in case.claims()}
    return (ids | {each["spec"].get("providerID", "") for each in case.nodes()}) - {""}


def test_an_empty_node_goes(case: Case) -> None:
    case.pool(disruption=moving())
    case.deployment(1)
    case.until_running(1)
    [node] = case.until_ready(1)

    case.deployment(0)

    case.until_gone([name_of(node)])
    assert any(name == name_of(node) and "empty" in message for name, message in told(case, "DisruptionTerminating"))


def test_an_underused_node_goes_and_the_event_says_what_that_saves(case: Case) -> None:
    case.pool(FOUR_CPUS, disruption=moving())
    case.deployment(4)
    case.until_running(4)
    nodes = {name_of(node) for node in case.until_ready(2)}

    case.deployment(2)  # a ReplicaSet removes pods first where it has several

    case.until(lambda: len(case.nodes()) == 1, "one of the two nodes goes")
    case.until_running(2)
    [gone] = nodes - {name_of(node) for node in case.nodes()}
    assert any(name == gone and "$/h" in message for name, message in told(case, "DisruptionTerminating"))
    case.until(lambda: not going(case), "the other one has no taint")


@pytest.mark.soak
def test_an_edit_of_a_pool_is_rolled_within_the_budget_and_told_before(case: Case) -> None:
    budget = moving({"nodes": "1"}, after="Never")
    case.pool(disruption=budget)
    case.deployment(3, affinity=ALONE)
    case.until_running(3)
    old = {name_of(node) for node in case.until_ready(3)}

    case.pool(disruption=budget, template=EDITED)
    most = 0

    def rolled() -> bool:
        nonlocal most
        most = max(most, len(going(case)))
        names = {name_of(node) for node in case.nodes()}
        return not names & old and len(names) == 3

    case.until(rolled, "all three are replaced", patience_s=900)
    case.until_running(3)
    assert most == 1
    assert any("3 of 3" in message for name, message in told(case, "DriftExpected") if name == case.name)


@pytest.mark.soak
def test_a_budget_with_a_schedule_keeps_nodes_while_it_is_in_force(case: Case) -> None:
    case.pool(disruption=moving({"nodes": "0", **ALWAYS}, {"nodes": "100%"}))
    case.deployment(1)
    case.until_running(1)
    [node] = case.until_ready(1)

    case.deployment(0)
    case.until(lambda: any(name == case.name for name, _ in told(case, "DisruptionBlocked")), "the budget is told")
    assert [name_of(each) for each in case.nodes()] == [name_of(node)]
    case.pool(disruption=moving({"nodes": "100%", **ALWAYS}))

    case.until_gone([name_of(node)])


@pytest.mark.soak
def test_a_pod_disruption_budget_keeps_a_node_until_it_allows_an_eviction(case: Case) -> None:
    case.pool(disruption=moving(after="Never"))
    case.deployment(1)
    case.budget(minAvailable=1)
    case.until_running(1)
    [node] = case.until_ready(1)

    case.pool(disruption=moving(after="Never"), template=EDITED)
    case.until(
        lambda: any(name == name_of(node) and "web" in text for name, text in told(case, "DisruptionBlocked")),
        "the budget of the pods is named",
    )
    assert not going(case)
    case.budget(maxUnavailable=1)

    case.until_gone([name_of(node)])
    case.until_running(1)


@pytest.mark.soak
def test_killed_between_taint_launch_and_deletion(case: Case, joiner: Controller) -> None:
    slow = {
        "apiVersion": "karpenter.kwok.sh/v1alpha1",
        "kind": "KWOKNodeClass",
        "metadata": {"name": case.name},
        "spec": {"nodeRegistrationDelay": "3s"},
    }
    case.apply(slow)
    own, budget = {"nodeClassRef": {**NODECLASS, "name": case.name}}, moving({"nodes": "1"}, after="Never")
    case.pool(disruption=budget, template=own)
    case.deployment(2, affinity=ALONE)
    case.budget(maxUnavailable=1)
    case.until_running(2)
    old, seen = {name_of(node) for node in case.until_ready(2)}, machines(case)
    claims = {name_of(claim) for claim in case.claims()}

    case.pool(disruption=budget, template={**own, **EDITED})
    for moment, what in (
        (lambda: going(case), "a node is tainted"),
        (lambda: {name_of(each) for each in case.claims()} - claims, "its replacement is written"),
        (lambda: [each for each in case.claims() if "deletionTimestamp" in each["metadata"]], "it is deleted"),
    ):
        case.until(moment, what)
        joiner.kill()
        joiner.start()

    def replaced() -> bool:
        seen.update(machines(case))
        names = {name_of(node) for node in case.nodes()}
        return len(names) == 2 and not names & old

    case.until(replaced, "both are replaced", patience_s=900)
    case.until_running(2)
    case.until_ready(2)
    assert len(seen) == 4
    assert not going(case)
