"""EC2NodeClasses in a cluster: finalizer, hash, status, and what goes with a class."""

from collections.abc import Iterator
from datetime import timedelta
from random import Random
from typing import Any

import pytest
from tests.awsworld import SPEC, AwsWorld

from joiner.cloud.aws.launch import tags
from joiner.cloud.aws.nodeclass.ec2nodeclass import FINALIZER, EC2NodeClass
from joiner.cloud.aws.nodeclass.hash import HASH, HASH_VERSION, VERSION
from joiner.kube.client import Client
from joiner.kube.tasks import Tasks
from joiner.model.codec import decode
from joiner.model.conditions import find, is_true
from joiner.model.meta import replace
from joiner.model.nodeclaim import NodeClaim
from joiner.observe.events import REASONS
from joiner.sim.apiserver.server import ApiServer
from joiner.sim.trace import Trace

REFERENCE = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"}


class Cluster(AwsWorld):
    """The account beside a pretend API server."""

    def __init__(self) -> None:
        super().__init__()
        self.server = ApiServer(self.clock, Random(1), Trace())
        self.client: Client = self.server.client("joiner")
        self.user: Client = self.server.client("user")

    def create(self, kind: type[Any], name: str, **more: Any) -> None:
        metadata = {"name": name, **more.pop("metadata", {})}
        self.run(self.client.create(decode({"metadata": metadata, **more}, kind)))

    def node_class(self) -> EC2NodeClass:
        return self.run(self.client.get(EC2NodeClass, "default"))

    def reconcile(self) -> EC2NodeClass:
        self.run(self.provider.classes.reconcile(self.client, self.node_class()))
        return self.node_class()


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    made = Cluster()
    yield made
    made.close()


def test_a_class_gets_finalizer_hash_and_status(cluster: Cluster) -> None:
    cluster.create(EC2NodeClass, "default", spec=SPEC)
    made = cluster.reconcile()

    assert FINALIZER in made.metadata.finalizers
    assert made.metadata.annotations[HASH_VERSION] == VERSION
    assert is_true(made.status.conditions, "Ready")
    version = made.metadata.resource_version
    assert cluster.reconcile().metadata.resource_version == version


@pytest.mark.parametrize("restarted", [False, True], ids=["later", "at a start"])
@pytest.mark.parametrize("code", ["RequestLimitExceeded", "ExpiredToken", "AccessDeniedException"])
def test_a_class_keeps_its_hash_while_eks_does_not_say_what_goes_into_it(
    cluster: Cluster, restarted: bool, code: str
) -> None:
    cluster.create(EC2NodeClass, "default", spec=SPEC)
    before = cluster.reconcile()
    cluster.account.refused["describe_cluster"] = code
    cluster.forward(timedelta(minutes=6))
    if restarted:
        cluster.provider = cluster.connect()
    after = cluster.reconcile()

    assert after.metadata.annotations[HASH] == before.metadata.annotations[HASH]
    condition = find(after.status.conditions, "AMIsReady")
    assert condition is not None
    expected = ("Unknown", "AWSUnavailable") if code == "RequestLimitExceeded" else ("False", "Unauthorized")
    assert (condition.status, condition.reason) == (expected if restarted else ("True", "AMIsReady"))


def test_taking_over_from_karpenter_rewrites_its_hashes_and_nothing_drifts(cluster: Cluster) -> None:
    theirs = {HASH: "4567", HASH_VERSION: "v4"}
    cluster.create(EC2NodeClass, "default", metadata={"annotations": theirs}, spec=SPEC)
    cluster.create(
        NodeClaim,
        "old",
        metadata={"annotations": {HASH: "123", HASH_VERSION: "v4"}},
        spec={"nodeClassRef": REFERENCE, "requirements": []},
    )
    made = cluster.reconcile()

    claim = cluster.run(cluster.client.get(NodeClaim, "old"))
    assert claim.metadata.annotations[HASH_VERSION] == VERSION
    assert claim.metadata.annotations[HASH] == made.metadata.annotations[HASH] != "4567"


def test_a_class_goes_when_its_last_claim_has_gone_and_takes_everything_along(cluster: Cluster) -> None:
    cluster.create(EC2NodeClass, "default", spec=SPEC)
    cluster.create(NodeClaim, "one", spec={"nodeClassRef": REFERENCE, "requirements": []})
    made = cluster.reconcile()
    own = tags.of_class(made, "prod")
    cluster.account.templates["karpenter.k8s.aws/a"] = {"id": "lt-1", "data": {}, "tags": own}
    cluster.account.templates["karpenter.k8s.aws/b"] = {
        "id": "lt-2",
        "data": {},
        "tags": {**own, tags.NODE_CLASS: "other"},
    }
    cluster.account.profiles["foreign"] = {"Path": "/karpenter/us-east-1/other/x/", "InstanceProfileName": "foreign"}
    cluster.run(cluster.user.delete(EC2NodeClass, "default"))
    assert FINALIZER in cluster.reconcile().metadata.finalizers
    assert len(cluster.account.profiles) == 2

    cluster.run(cluster.user.delete(NodeClaim, "one"))
    cluster.run(cluster.provider.classes.reconcile(cluster.client, cluster.node_class()))

    assert cluster.run(cluster.client.list(EC2NodeClass)).items == ()
    assert list(cluster.account.profiles) == ["foreign"]
    assert list(cluster.account.templates) == ["karpenter.k8s.aws/b"]


def test_in_the_background_classes_become_ready_and_types_are_known(cluster: Cluster) -> None:
    import asyncio

    cluster.create(EC2NodeClass, "default", spec=SPEC)

    async def a_minute() -> None:
        tasks = Tasks()
        cluster.provider.start(cluster.client, tasks)
        await asyncio.sleep(60)
        await tasks.close()

    cluster.run(a_minute())

    assert is_true(cluster.node_class().status.conditions, "Ready")


def test_it_is_told_which_claims_a_class_waits_for(cluster: Cluster) -> None:
    told: list[tuple[str, str, str]] = []
    cluster.provider.tell_with(lambda thing, reason, message: told.append((thing.name, reason, message)))
    cluster.create(EC2NodeClass, "default", spec=SPEC)
    cluster.create(NodeClaim, "one", spec={"nodeClassRef": REFERENCE, "requirements": []})
    cluster.reconcile()
    cluster.run(cluster.user.delete(EC2NodeClass, "default"))
    cluster.reconcile()

    assert told == [("default", "WaitingOnNodeClaimTermination", "1 NodeClaims use it still: one")]
    assert told[0][1] in REASONS


def test_profiles_that_nothing_uses_are_deleted_after_an_hour(cluster: Cluster) -> None:
    cluster.account.roles.add("other")
    cluster.create(EC2NodeClass, "default", spec=SPEC)
    first = cluster.reconcile()
    changed = replace(first, spec=replace(first.spec, role="other"))
    cluster.run(cluster.user.patch(first, changed))
    second = cluster.reconcile()
    old, new = first.status.instance_profile, second.status.instance_profile
    annotations = {"karpenter.k8s.aws/instance-profile-name": old}
    cluster.create(NodeClaim, "one", metadata={"annotations": annotations}, spec={"nodeClassRef": REFERENCE})
    foreign = {
        **cluster.account.profiles[old],
        "Path": "/karpenter/us-east-1/prod2/x/",
        "InstanceProfileName": "foreign",
    }
    cluster.account.profiles["foreign"] = foreign

    def collect() -> set[str]:
        cluster.forward(timedelta(hours=2))
        cluster.run(cluster.provider.classes.profiles.collect(cluster.client))
        return set(cluster.account.profiles)

    assert collect() == {old, new, "foreign"}
    cluster.run(cluster.user.delete(NodeClaim, "one"))
    assert collect() == {new, "foreign"}
