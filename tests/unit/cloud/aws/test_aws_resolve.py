"""What EC2NodeClasses mean in the account, and what is said where they mean nothing."""

import asyncio
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from tests.awsworld import AwsWorld
from tests.builders import node_pool
from tests.unit.cloud.aws.test_aws_launch import claim, options

from joiner.cloud.aws.api import AwsError, ReadOnly, pages
from joiner.cloud.aws.inventory import LiveInventory
from joiner.cloud.aws.launch.userdata import Boot, user_data
from joiner.cloud.aws.nodeclass.resolve import parameters
from joiner.cloud.errors import LaunchFailed, NodeClassNotReady
from joiner.cloud.sources.ec2describe import described
from joiner.model.conditions import find
from joiner.model.meta import replace
from joiner.model.nodeclass import NodeClassReference
from joiner.model.nodepool import NodePool
from joiner.model.taints import Taint
from joiner.sim.cloud.ec2.descriptions import description


@pytest.fixture
def world() -> Iterator[AwsWorld]:
    made = AwsWorld()
    yield made
    made.close()


def pool() -> NodePool:
    made = node_pool()
    reference = NodeClassReference(group="karpenter.k8s.aws", kind="EC2NodeClass", name="default")
    spec = replace(made.spec.template.spec, node_class_ref=reference)
    return replace(made, spec=replace(made.spec, template=replace(made.spec.template, spec=spec)))


def test_a_class_finds_what_it_selects(world: AwsWorld) -> None:
    world.account.subnets["subnet-3"]["free"] = 9000
    status = world.put().status

    assert [each.id for each in status.subnets][:2] == ["subnet-3", "subnet-1"]
    assert status.subnets[0].zone_id
    assert [(each.id, each.name) for each in status.security_groups] == [("sg-1", "nodes")]
    assert {each.id for each in status.amis} == {"ami-1", "ami-2", "ami-3", "ami-4", "ami-5"}
    assert status.instance_profile in world.account.profiles
    assert {each.type: each.status for each in status.conditions} == dict.fromkeys(
        [
            "AMIsReady", "CapacityReservationsReady", "InstanceProfileReady", "PlacementGroupReady", "Ready",
            "SecurityGroupsReady", "SubnetsReady", "ValidationSucceeded",
        ],
        "True",
    )  # fmt: skip


def test_every_way_to_select(world: AwsWorld) -> None:
    world.account.groups["sg-2"] = {"name": "db", "tags": {}}
    world.account.images["ami-8"] = {
        **world.account.images["ami-1"],
        "name": "mine-1",
        "owner": "self",
        "tags": {"a": "b"},
    }
    world.account.parameters["/mine"] = "ami-8"
    for terms in ([{"id": "ami-8"}], [{"name": "mine-*"}], [{"tags": {"a": "*"}}], [{"ssmParameter": "/mine"}]):
        made = world.put(
            amiFamily="AL2023",
            amiSelectorTerms=terms,
            subnetSelectorTerms=[{"id": "subnet-2"}, {"id": "subnet-1"}],
            securityGroupSelectorTerms=[{"name": "db"}, {"id": "sg-1"}],
        )
        assert [each.id for each in made.status.amis] == ["ami-8"], terms
    assert {each.id for each in made.status.subnets} == {"subnet-1", "subnet-2"}
    assert {each.id for each in made.status.security_groups} == {"sg-1", "sg-2"}


def test_the_newest_image_that_is_not_deprecated_is_kept(world: AwsWorld) -> None:
    base = {**world.account.images["ami-1"], "owner": "self", "name": "mine"}
    world.account.images["ami-7"] = {
        **base,
        "created": "2029-01-01T00:00:00.000Z",
        "deprecated": "2029-06-01T00:00:00.000Z",
    }
    world.account.images["ami-8"] = {**base, "created": "2028-01-01T00:00:00.000Z"}
    world.account.images["ami-9"] = {**base, "created": "2027-01-01T00:00:00.000Z"}
    made = world.put(amiFamily="AL2023", amiSelectorTerms=[{"name": "mine"}])

    assert [each.id for each in made.status.amis] == ["ami-8"]


def refuse(operation: str, code: str) -> Any:
    def fail(called: str, parameters: Any) -> None:
        if called == operation:
            raise AwsError(code, "no")

    return fail


WRONG: dict[str, tuple[Any, dict[str, Any], str, str, str]] = {
    "no subnets": (
        None, {"subnetSelectorTerms": [{"id": "subnet-99"}, {"tags": {"a": "b", "c": "*"}}]}, "SubnetsReady",
        "SubnetsNotFound", "in us-east-1 by id subnet-99 or a=b and c=*: correct",
    ),
    "no groups": (
        None, {"securityGroupSelectorTerms": [{"name": "x"}]}, "SecurityGroupsReady", "SecurityGroupsNotFound", "by name x"
    ),
    "an alias that is not there": (
        None, {"amiSelectorTerms": [{"alias": "al2023@v1"}]}, "AMIsReady", "AMINotFound",
        "no image for Kubernetes 1.33 was found in us-east-1 by alias al2023@v1",
    ),
    "AL2 on a new cluster": (None, {"amiSelectorTerms": [{"alias": "al2@latest"}]}, "AMIsReady", "UnsupportedAlias", "al2023"),
    "a wrong role": (None, {"role": "nobody"}, "InstanceProfileReady", "RoleNotFound", "spec.role"),
    "a wrong profile": (
        None, {"role": None, "instanceProfile": "x"}, "InstanceProfileReady", "InstanceProfileNotFound", "x"
    ),
    "no placement group": (
        None, {"placementGroupSelector": {"name": "x"}}, "PlacementGroupReady", "PlacementGroupNotFound", "x"
    ),
    "a placement group that goes": (
        None, {"placementGroupSelector": {"name": "going"}}, "PlacementGroupReady",
        "PlacementGroupResolutionFailed", "deleting",
    ),
    "a wrong region": (
        refuse("describe_cluster", "ResourceNotFoundException"), {}, "AMIsReady", "KubernetesVersionUnknown", "AWS_REGION"
    ),
    "subnets that were deleted": (
        lambda operation, parameters: None, {"subnetSelectorTerms": [{"tags": {"deleted": "*"}}]}, "SubnetsReady",
        "SubnetsNotFound", "subnetSelectorTerms",
    ),
    "a missing permission": (
        refuse("describe_subnets", "UnauthorizedOperation"), {}, "SubnetsReady", "Unauthorized", "IAM policy"
    ),
    "expired credentials": (refuse("describe_images", "ExpiredToken"), {}, "AMIsReady", "Unauthorized", "credentials"),
    "a busy cloud": (refuse("describe_subnets", "RequestLimitExceeded"), {}, "SubnetsReady", "AWSUnavailable", ""),
    "a kubelet setting that is not one": (
        None, {"kubelet": {"maxPodz": 1}}, "ValidationSucceeded", "InvalidKubeletConfiguration", "maxPods"
    ),
    "a kubelet setting that the family does not take": (
        None, {"amiSelectorTerms": [{"alias": "bottlerocket@latest"}], "kubelet": {"podsPerCore": 4}},
        "ValidationSucceeded", "UnsupportedKubeletConfiguration", "Bottlerocket",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("fault", "spec", "condition", "reason", "words"), WRONG.values(), ids=WRONG)
def test_what_is_wrong_is_said_with_cause_and_fix(
    world: AwsWorld, fault: Any, spec: dict[str, Any], condition: str, reason: str, words: str
) -> None:
    world.account.placement_groups["pg-2"] = {"GroupId": "pg-2", "GroupName": "going", "State": "deleting"}
    world.put()
    offered = options(world)
    del world.classes["default"]
    world.provider._facts = None
    if fault is not None:
        world.face.before = fault
    conditions = world.put(**spec).status.conditions

    found, ready = find(conditions, condition), find(conditions, "Ready")
    assert found is not None
    assert ready is not None
    assert found.status == ("Unknown" if reason == "AWSUnavailable" else "False")
    assert found.reason == reason
    assert words in found.message
    assert ready.status != "True"
    assert ready.observed_generation == world.classes["default"].metadata.generation
    world.face.before = lambda operation, parameters: None
    with pytest.raises((NodeClassNotReady, LaunchFailed), match=f"{condition}|looked up"):
        world.run(world.provider.create(claim(), offered))
    assert world.account.machines == {}


def test_in_a_vpc_without_iam_an_instance_profile_is_taken_as_it_is_written() -> None:
    world = AwsWorld(isolated_vpc=True)
    world.face.before = refuse("get_instance_profile", "Unreachable")
    made = world.put(role=None, instanceProfile="mine")

    ready = find(made.status.conditions, "Ready")
    assert ready is not None
    assert (ready.status, made.status.instance_profile) == ("True", "mine")
    world.close()


def test_a_dry_run_changes_nothing_and_its_classes_are_ready(world: AwsWorld) -> None:
    world.api = ReadOnly(world.face)
    world.provider = world.connect()
    made = world.put()

    ready = find(made.status.conditions, "Ready")
    assert ready is not None
    assert ready.status == "True"
    assert world.account.profiles == {}


def test_an_answer_that_makes_no_sense_is_told_and_ends_nothing(world: AwsWorld) -> None:
    del world.account.subnets["subnet-1"]["zone"]
    conditions = world.put().status.conditions

    found, groups = find(conditions, "SubnetsReady"), find(conditions, "SecurityGroupsReady")
    assert found is not None
    assert groups is not None
    assert (found.status, found.reason, groups.status) == ("Unknown", "UnreadableAnswer", "True")


def test_another_role_gets_another_profile_and_the_same_one_is_made_once(world: AwsWorld) -> None:
    world.account.roles.add("other")
    first = world.put().status.instance_profile
    world.look()
    assert len(world.asked("create_instance_profile")) == 1
    assert world.put(role="other").status.instance_profile != first


def test_every_type_is_described_and_read_back_the_same() -> None:
    from joiner.cloud.sources import facts

    for each in facts.load().types:
        read = described(description(each))
        kept = replace(read, card_interfaces=(), nested_virtualization=None, placement_strategies=None)
        assert kept == replace(each, card_interfaces=(), nested_virtualization=None, placement_strategies=None)


MOVES: dict[str, Any] = {
    "a new price on demand": lambda world: _sell(world, on_demand=9.0),
    "a new spot price": lambda world: _sell(world, spot=0.5),
    "a zone that sells it no more": lambda world: _sell(world, zones=("us-east-1a",)),
    "a type with more memory": lambda world: setattr(
        world.account, "facts", replace(world.account.facts, types=tuple(
            replace(each, memory_mib=each.memory_mib + 1) for each in world.account.facts.types
        ))
    ),
}  # fmt: skip


def _sell(world: AwsWorld, **changes: Any) -> None:
    facts = world.account.facts
    place = facts.regions["us-east-1"]
    types = {**place.types, "m5.large": replace(place.types["m5.large"], **changes)}
    world.account.facts = replace(facts, regions={"us-east-1": replace(place, types=types)})


@pytest.mark.parametrize("change", MOVES.values(), ids=MOVES)
def test_a_refresh_moves_the_generation_only_if_something_changed(world: AwsWorld, change: Any) -> None:
    world.put()
    before = world.provider.generation(pool())
    world.forward(timedelta(hours=12))
    world.run(world.provider.refresh())
    assert world.provider.generation(pool()) == before

    change(world)
    world.run(world.provider.refresh())

    assert world.provider.generation(pool()) != before
    assert world.provider.generation(pool())._replace(inventory=0) == before._replace(inventory=0)


STATUS_MOVES: dict[str, Any] = {
    "a subnet less": lambda world: world.account.subnets.pop("subnet-1"),
    "another image": lambda world: world.account.images["ami-1"].update(name="newer"),
    "a place in a reservation that another cluster takes": lambda world: setattr(
        world.account.reservations["cr-1"], "elsewhere", 1
    ),
    "a reservation that is cancelled": lambda world: setattr(world.account.reservations["cr-1"], "cancelled", True),
}


@pytest.mark.parametrize("change", STATUS_MOVES.values(), ids=STATUS_MOVES)
def test_what_the_account_has_for_a_class_moves_the_generation(world: AwsWorld, change: Any) -> None:
    world.reserve()
    world.put(capacityReservationSelectorTerms=[{"id": "cr-1"}])
    before = world.provider.generation(pool())
    world.look()
    assert world.provider.generation(pool()) == before

    change(world)
    world.look()

    assert world.provider.generation(pool()) != before


def test_before_the_first_prices_the_bundled_ones_count_and_spot_costs_as_much(world: AwsWorld) -> None:
    world.put()
    fresh = LiveInventory(world.api, world.clock, "us-east-1")
    world.run(fresh.refresh_types())
    sold = fresh.facts(world.classes["default"])[0].regions["us-east-1"].types["m5.large"]

    assert (sold.on_demand, sold.spot) == (0.096, 0.096)
    world.run(fresh.refresh_spot())
    sold = fresh.facts(world.classes["default"])[0].regions["us-east-1"].types["m5.large"]
    assert sold.spot is None
    assert sold.spot_by_zone


BOOT = Boot(
    family="AL2",
    cluster_name="prod",
    cluster_endpoint="https://prod",
    ca_bundle="Q0E=",
    service_cidr="10.100.0.0/16",
    cluster_dns="10.100.0.10",
    labels={"team": "a", "node.kubernetes.io/mine": "b"},
    taints=(Taint(key="a", value="b", effect="NoSchedule"),),
    kubelet={"kubeReserved": {"cpu": "100m"}, "evictionHard": {"memory.available": "5%"}},
    max_pods=29,
    instance_store_policy="RAID0",
)


def test_al2_gets_its_bootstrap_script() -> None:
    text = user_data(replace(BOOT, custom="#!/bin/sh\necho mine"))

    assert text.index("echo mine") < text.index("/etc/eks/bootstrap.sh 'prod'")
    for part in (
        "--dns-cluster-ip '10.100.0.10'", "--use-max-pods false", "--max-pods=29", "--local-disks raid0",
        '--kube-reserved="cpu=100m"', '--eviction-hard="memory.available<5%"', "karpenter.sh/unregistered=:NoExecute",
        "team=a",
    ):  # fmt: skip
        assert part in text
    assert "node.kubernetes.io/mine" not in text


def test_bottlerocket_gets_its_settings_beside_those_of_the_user() -> None:
    import tomllib

    mine = '[settings.kubernetes]\napi-server = "http://evil"\n[settings.host-containers.admin]\nenabled = true\n'
    made = tomllib.loads(user_data(replace(BOOT, family="Bottlerocket", custom=mine)))["settings"]

    assert made["host-containers"]["admin"]["enabled"] is True
    kubernetes = made["kubernetes"]
    assert (kubernetes["api-server"], kubernetes["max-pods"]) == ("https://prod", 29)
    assert kubernetes["eviction-hard"] == {"memory.available": "5%"}
    assert kubernetes["node-taints"] == {"a": ["b:NoSchedule"], "karpenter.sh/unregistered": [":NoExecute"]}
    assert "000-mount-instance-storage" in made["bootstrap-commands"]
    with pytest.raises(LaunchFailed, match="must be TOML"):
        user_data(replace(BOOT, family="Bottlerocket", custom="not = toml ="))


def test_a_mime_archive_of_the_user_is_taken_apart_and_a_custom_image_gets_what_was_written() -> None:
    head = 'MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary="X"\n\n'
    archive = f"{head}--X\nContent-Type: text/x-shellscript\n\necho mine\n--X--\n"
    text = user_data(replace(BOOT, family="AL2023", custom=archive))

    assert text.count("multipart/mixed") == 1
    assert text.index("echo mine") < text.index("NodeConfig")
    assert '"strategy": "RAID0"' in text
    assert user_data(replace(BOOT, family="Custom", custom="verbatim")) == "verbatim"
    with pytest.raises(LaunchFailed, match="16384"):
        user_data(replace(BOOT, family="Custom", custom="x" * 20_000))


def test_where_images_of_families_are_kept() -> None:
    names = [name for name, _ in parameters("AL2023", "v20250101", "1.33")]
    assert names[0] == (
        "/aws/service/eks/optimized-ami/1.33/amazon-linux-2023/x86_64/standard/"
        "amazon-eks-node-al2023-x86_64-standard-1.33-v20250101/image_id"
    )
    assert (
        parameters("Bottlerocket", "v1.21.0", "1.33")[0][0]
        == "/aws/service/bottlerocket/aws-k8s-1.33/x86_64/1.21.0/image_id"
    )
    assert parameters("AL2", "latest", "1.32")[2][0] == (
        "/aws/service/eks/optimized-ami/1.32/amazon-linux-2-gpu/recommended/image_id"
    )


@pytest.mark.parametrize("custom", ['echo "no YAML object"', "#!/bin/sh\necho hello"])
def test_a_script_of_the_user_stays_one_on_al2023(custom: str) -> None:
    text = user_data(replace(BOOT, family="AL2023", custom=custom))
    assert text.index("text/x-shellscript") < text.index(custom) < text.index("application/node.eks.aws")


@pytest.mark.parametrize("custom", [
    "apiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig", '{"apiVersion": "node.eks.aws/v1alpha1", "kind": "NodeConfig"}',
])  # fmt: skip
def test_a_node_config_of_the_user_is_one(custom: str) -> None:
    text = user_data(replace(BOOT, family="AL2023", custom=custom))
    assert text.count("application/node.eks.aws") == 2
    assert "text/x-shellscript" not in text


@pytest.mark.parametrize(
    ("setting", "operation"), [("ami_refresh_s", "describe_images"), ("subnet_refresh_s", "describe_subnets")]
)
def test_refresh_intervals_say_how_often_the_account_is_asked(setting: str, operation: str) -> None:
    world = AwsWorld(**{setting: 300.0})
    world.put()
    first = len(world.asked(operation))
    for _ in range(4):
        world.forward(timedelta(minutes=1))
        world.look()
    assert len(world.asked(operation)) == first
    world.forward(timedelta(minutes=1))
    world.look()
    assert len(world.asked(operation)) > first
    again = len(world.asked(operation))
    world.put(userData="#!/bin/sh")
    assert len(world.asked(operation)) > again
    world.close()


def test_answers_of_iam_come_page_by_page() -> None:
    class Paged:
        async def call(self, service: str, operation: str, /, **parameters: Any) -> Any:
            if "Marker" in parameters:
                return {"InstanceProfiles": [2], "IsTruncated": False}
            return {"InstanceProfiles": [1], "IsTruncated": True, "Marker": "more"}

    assert asyncio.run(pages(Paged(), "iam", "list_instance_profiles", "InstanceProfiles")) == [1, 2]
