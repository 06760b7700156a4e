"""Joiner with the AWS provider on a real control plane: the account in EC2 is pretended, behind an address; all else is real.

Machines that boot join as Nodes, and kwok plays their kubelets from there.
"""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from tests.cluster.case import Case, Document, name_of, requirement
from tests.cluster.conftest import permissions
from tests.cluster.controller import Controller
from tests.realcluster import kept
from tools.controlplane.cluster import Cluster
from tools.pretendaws.kubelets import Kubelets
from tools.pretendaws.server import PretendAws

from joiner.sim.cloud.ec2.world import CapacityReservation

pytestmark = [pytest.mark.cluster, pytest.mark.xdist_group("aws")]
TYPES = ("c5.large", "m5.large", "m5.xlarge", "r5.large")
CAPACITY_TYPE = "karpenter.sh/capacity-type"
APART = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "web"}}}
ALONE = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [APART]}}


@pytest.fixture(scope="session")
def aws_cluster(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Cluster:
    """A control plane of its own: two controllers would quarrel about the same pools."""
    found = kept(request, tmp_path_factory, "aws")
    for each in permissions(provider="aws"):
        found.apply(each)
    return found


@pytest.fixture(scope="session")
def aws(aws_cluster: Cluster) -> Iterator[PretendAws]:
    """The account, with machines that join the cluster."""
    with PretendAws(types=TYPES) as account:
        kubelets = Kubelets(account, aws_cluster)
        yield account
        kubelets.close()


@pytest.fixture(scope="session")
def aws_joiner(aws: PretendAws, aws_cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Controller]:
    folder = tmp_path_factory.mktemp("joiner-aws")
    controller = Controller(aws_cluster, folder, "joiner-aws", provider="aws", **aws.environment())
    controller.start()
    yield controller
    controller.stop()


@pytest.fixture
def case(aws_cluster: Cluster, aws_joiner: Controller, request: pytest.FixtureRequest) -> Iterator[Case]:
    made = Case(aws_cluster, request.node.name.removeprefix("test_").replace("_", "-")[:40].strip("-"))
    made.apply(node_class(made))
    yield made
    made.close()


def node_class(case: Case, **spec: Any) -> Document:
    discovery = [{"tags": {"karpenter.sh/discovery": "prod"}}]
    return {
        "apiVersion": "karpenter.k8s.aws/v1",
        "kind": "EC2NodeClass",
        "metadata": {"name": case.name},
        "spec": {
            "role": "nodes",
            "amiSelectorTerms": [{"alias": "al2023@latest"}],
            "subnetSelectorTerms": discovery,
            "securityGroupSelectorTerms": discovery,
            **spec,
        },
    }


def pool(case: Case, *kinds: str) -> Document:
    reference = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": case.name}
    return case.pool(requirement(CAPACITY_TYPE, "In", *kinds), template={"nodeClassRef": reference})


def running(aws: PretendAws, case: Case) -> list[str]:
    """The machines of the case that take a place in EC2, whether Kubernetes knows of them or not."""
    return aws.do(
        lambda account: [
            each.id
            for each in account.machines.values()
            if each.tags.get("karpenter.sh/nodepool") == case.name and account.state(each) in ("pending", "running")
        ]
    )


def test_a_pod_gets_a_machine_on_demand(case: Case, aws: PretendAws) -> None:
    pool(case, "on-demand")
    case.deployment(1)

    case.until_running(1)

    [node] = case.until_ready(1)
    assert node["spec"]["providerID"].startswith("aws:///us-east-1")
    assert node["metadata"]["labels"][CAPACITY_TYPE] == "on-demand"
    assert [node["spec"]["providerID"].rpartition("/")[2]] == running(aws, case)

    case.deployment(0)
    case.delete_claim(node["metadata"]["ownerReferences"][0]["name"])
    case.until_gone([name_of(node)])
    assert running(aws, case) == []


def test_a_joiner_that_is_killed_while_it_launches_loses_and_doubles_no_machine(
    case: Case, aws: PretendAws, aws_joiner: Controller
) -> None:
    pool(case, "on-demand")
    case.deployment(3, affinity=ALONE)
    for _ in range(3):
        case.until(lambda: running(aws, case), "EC2 has launched something")
        aws_joiner.kill()
        aws_joiner.start()

    case.until_running(3)
    nodes = case.until_ready(3)
    known = sorted(each["spec"]["providerID"].rpartition("/")[2] for each in nodes)
    case.until(lambda: sorted(running(aws, case)) == known, "every machine has its node, and there is no other")
    uids = aws.do(lambda account: [each.tags["karpenter.sh/nodeclaim-uid"] for each in account.machines.values()])
    assert len(uids) == len(set(uids))


@pytest.mark.soak
def test_a_spot_interruption_drains_a_node(case: Case, aws: PretendAws) -> None:
    pool(case, "spot")
    case.deployment(1)
    case.until_running(1)
    [node] = case.until_ready(1)

    aws.do(lambda account: account.cloud.machines.reclaim(node["spec"]["providerID"]))

    case.until_gone([name_of(node)])
    case.until_running(1)
    [after] = case.until_ready(1)
    assert name_of(after) != name_of(node)


@pytest.mark.soak
def test_a_reservation_is_used_and_ends(case: Case, aws: PretendAws) -> None:
    kept_free = CapacityReservation("cr-0e2e", "m5.xlarge", "us-east-1b", 1)
    aws.do(lambda account: account.reserve(kept_free))
    case.apply(node_class(case, capacityReservationSelectorTerms=[{"id": "cr-0e2e"}]))
    pool(case, "reserved", "on-demand")
    case.until(lambda: is_listed(case, "cr-0e2e"), "the class lists the reservation")
    case.deployment(1)
    case.until_running(1)
    [node] = case.until_ready(1)
    assert node["metadata"]["labels"][CAPACITY_TYPE] == "reserved"

    aws.do(lambda account: account.cloud.cancel_reservation("cr-0e2e"))

    case.until(
        lambda: [each["metadata"]["labels"][CAPACITY_TYPE] for each in case.nodes()] == ["on-demand"],
        "the node is on demand",
        180,
    )
    assert [name_of(each) for each in case.nodes()] == [name_of(node)]


@pytest.mark.soak
def test_new_images_make_a_node_drift(case: Case, aws: PretendAws) -> None:
    pool(case, "on-demand")
    case.deployment(1)
    case.until_running(1)
    [node] = case.until_ready(1)

    aws.do(lambda account: account.publish("v2", account.cluster["version"], datetime.now(UTC).isoformat()))

    case.until(lambda: name_of(node) not in map(name_of, case.nodes()), "the node is replaced", 400)
    case.until_running(1)


def is_listed(case: Case, reservation: str) -> bool:
    _, found = case.cluster.request("GET", f"/apis/karpenter.k8s.aws/v1/ec2nodeclasses/{case.name}")
    return any(each["id"] == reservation for each in found.get("status", {}).get("capacityReservations", ()))
