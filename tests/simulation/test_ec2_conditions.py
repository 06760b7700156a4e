"""What is wrong with a class or the account: a condition with cause and fix, an event, and no launch; once mended, pods run."""

import asyncio
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from joiner.cloud.aws.nodeclass.ec2nodeclass import EC2NodeClass
from joiner.model import codec
from joiner.model.clusterobjects import Event
from joiner.model.conditions import Condition, find
from joiner.model.meta import replace
from joiner.model.nodepool import NodePool
from joiner.model.pod import Pod
from joiner.sim.cloud.ec2.world import Account
from joiner.sim.story import ec2, objects
from joiner.sim.story.document.given import Given, PoolWords
from joiner.sim.virtualtime import VirtualLoop, run
from joiner.sim.world import World

GIVEN = Given(
    provider="aws", sells=("m5.large",), nodepools=(PoolWords(name="default", capacity_types=("on-demand",)),)
)
LATE_S = 180.0


class Wrong(NamedTuple):
    """Something that is wrong with the spec of a class, or with the account."""

    condition: str
    reason: str
    says: tuple[str, ...]
    """The cause, and the fix."""
    spec: dict[str, Any] = {}
    wreck: Callable[[Account], Any] = lambda account: None
    mend: Callable[[Account], Any] = lambda account: None


def refusing(operation: str, code: str) -> dict[str, Any]:
    return {
        "wreck": lambda account: account.refused.update({operation: code}),
        "mend": lambda account: account.refused.clear(),
    }


def other_region(account: Account) -> None:
    """The cluster is in a region that is not asked."""
    account.cluster["name"] = "in another region"


WRONG: dict[str, Wrong] = {
    "wrong role": Wrong("InstanceProfileReady", "RoleNotFound", ("nobody", "correct spec.role"), {"role": "nobody"}),
    "role that was deleted": Wrong(
        "InstanceProfileReady",
        "RoleNotFound",
        ("nodes", "make it"),
        wreck=lambda account: account.roles.clear(),
        mend=lambda account: account.roles.add("nodes"),
    ),
    "missing permission to look": Wrong(
        "SubnetsReady",
        "Unauthorized",
        ("describe_subnets", "IAM policy"),
        **refusing("describe_subnets", "UnauthorizedOperation"),
    ),
    "missing permission to make profiles": Wrong(
        "InstanceProfileReady",
        "Unauthorized",
        ("create_instance_profile", "IAM policy"),
        **refusing("create_instance_profile", "AccessDenied"),
    ),
    "missing permission to launch": Wrong(
        "ValidationSucceeded",
        "CreateFleetAuthCheckFailed",
        ("ec2:CreateFleet", "IAM policy"),
        **refusing("create_fleet", "UnauthorizedOperation"),
    ),
    "bad selector": Wrong(
        "SecurityGroupsReady",
        "SecurityGroupsNotFound",
        ("no security group", "in us-east-1 by name node: correct securityGroupSelectorTerms"),
        {"securityGroupSelectorTerms": [{"name": "node"}]},
    ),
    "empty result": Wrong(
        "SubnetsReady",
        "SubnetsNotFound",
        ("no subnet", "by karpenter.sh/discovery=prod: correct subnetSelectorTerms"),
        wreck=lambda account: [each["tags"].clear() for each in account.subnets.values()],
        mend=lambda account: [
            each["tags"].update({"karpenter.sh/discovery": "prod"}) for each in account.subnets.values()
        ],
    ),
    "deleted subnet": Wrong(
        "SubnetsReady",
        "SubnetsNotFound",
        ("no subnet", "by id subnet-99: correct"),
        {"subnetSelectorTerms": [{"id": "subnet-99"}]},
    ),
    "unknown alias": Wrong(
        "AMIsReady",
        "AMINotFound",
        ("al2023@v20990101", "check name, version"),
        {"amiSelectorTerms": [{"alias": "al2023@v20990101"}]},
    ),
    "expired credentials": Wrong(
        "AMIsReady", "Unauthorized", ("ExpiredToken", "credentials"), **refusing("*", "ExpiredToken")
    ),
    "wrong region": Wrong(
        "AMIsReady",
        "KubernetesVersionUnknown",
        ("No cluster found", "check CLUSTER_NAME and AWS_REGION"),
        wreck=other_region,
        mend=lambda account: account.cluster.update(name="prod"),
    ),
}

NEEDED_ONCE = {"role that was deleted", "missing permission to make profiles", "wrong region"}
"""Profiles and cluster are found once: what becomes of them later is not noticed by a class that has them."""


def node_class(**spec: Any) -> EC2NodeClass:
    made = codec.encode(ec2.node_class(GIVEN))
    return codec.decode({**made, "spec": {**made["spec"], **spec}}, EC2NodeClass)


class Cluster:
    """A cluster whose class and account can be wrecked and mended."""

    def __init__(self, loop: VirtualLoop) -> None:
        self.world = World(loop, seed=1, open_account=ec2.open_account(GIVEN))
        assert self.world.account is not None
        self.account = self.world.account

    async def begin(self, made: EC2NodeClass) -> None:
        self.world.load([made, *objects.pools(GIVEN)])
        await self.world.start()

    async def want(self, name: str) -> None:
        """A pod that needs a new machine."""
        container = {"name": "main", "resources": {"requests": {"cpu": "1500m"}}}
        raw = {"metadata": {"name": name, "namespace": "default"}, "spec": {"containers": [container]}}
        await self.world.user.create(codec.decode(raw, Pod))

    def runs(self, name: str) -> bool:
        return bool(self.world.server.objects(Pod)) and any(
            each.name == name and each.status.phase == "Running" for each in self.world.server.objects(Pod)
        )

    def condition(self, kind: str) -> Condition:
        (made,) = self.world.server.objects(EC2NodeClass)
        found = find(made.status.conditions, kind)
        assert found is not None
        return found

    def told(self, kind: str) -> list[str]:
        return [
            each.message
            for each in self.world.server.objects(Event)
            if each.involved_object.kind == "EC2NodeClass" and each.reason == kind
        ]

    async def rewrite(self, made: EC2NodeClass) -> None:
        (now,) = self.world.server.objects(EC2NodeClass)
        await self.world.user.patch(now, replace(now, spec=made.spec))

    def check(self, wrong: Wrong, machines: int) -> None:
        found, ready = self.condition(wrong.condition), self.condition("Ready")
        assert (found.status, found.reason) == ("False", wrong.reason)
        assert ready.status == "False"
        for words in wrong.says:
            assert words in found.message
        assert any(wrong.reason in message and wrong.says[0] in message for message in self.told(wrong.condition))
        assert self.told("Ready")
        assert len(self.account.machines) == machines
        (pool,) = self.world.server.objects(NodePool)
        known = find(pool.status.conditions, "NodeClassReady")
        assert known is not None
        assert known.status == "False"


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_from_the_beginning_is_told_and_nothing_is_launched_until_it_is_mended(name: str) -> None:
    wrong = WRONG[name]

    async def play(cluster: Cluster) -> None:
        wrong.wreck(cluster.account)
        await cluster.begin(node_class(**wrong.spec))
        await cluster.want("web")
        await asyncio.sleep(LATE_S)
        cluster.check(wrong, machines=0)
        assert not cluster.runs("web")

        wrong.mend(cluster.account)
        await cluster.rewrite(node_class())
        await asyncio.sleep(2400.0)
        assert cluster.runs("web")
        assert cluster.condition("Ready").status == "True"
        await cluster.world.stop()

    run(lambda loop: play(Cluster(loop)))


@pytest.mark.parametrize("name", sorted(WRONG.keys() - NEEDED_ONCE))
def test_what_goes_wrong_later_is_told_and_nothing_more_is_launched_until_it_is_mended(name: str) -> None:
    wrong = WRONG[name]

    async def play(cluster: Cluster) -> None:
        await cluster.begin(node_class())
        await cluster.want("first")
        await asyncio.sleep(LATE_S)
        assert cluster.runs("first")

        wrong.wreck(cluster.account)
        await cluster.rewrite(node_class(**wrong.spec, detailedMonitoring=True))
        await asyncio.sleep(LATE_S)
        await cluster.want("web")
        await asyncio.sleep(LATE_S)
        cluster.check(wrong, machines=1)
        assert cluster.runs("first")
        assert not cluster.runs("web")

        wrong.mend(cluster.account)
        await cluster.rewrite(node_class())
        await asyncio.sleep(2400.0)
        assert cluster.runs("web")
        await cluster.world.stop()

    run(lambda loop: play(Cluster(loop)))
