from typing import Any

import pytest
from tests.unit.cloud.aws.builders import node_class

from joiner.cloud.aws.nodeclass.hash import node_class_hash
from joiner.model.codec import decode, encode


@pytest.mark.parametrize(
    ("spec", "family"),
    [
        ({}, "AL2023"),
        ({"amiSelectorTerms": [{"alias": "bottlerocket@latest"}]}, "Bottlerocket"),
        ({"amiFamily": "Custom"}, "Custom"),
        ({"amiFamily": "AL2", "amiSelectorTerms": [{"id": "ami-1"}]}, "AL2"),
    ],
)
def test_the_family_is_the_one_that_is_written_or_that_of_the_alias(spec: dict[str, Any], family: str) -> None:
    assert node_class(**spec).spec.family == family


def test_every_kubelet_setting_is_kept_and_those_that_count_are_read() -> None:
    given = {"maxPods": 20, "containerLogMaxSize": "50Mi", "shutdownGracePeriodByPodPriority": [{"priority": 1}]}
    made = node_class(kubelet=given)

    assert encode(made)["spec"]["kubelet"] == given
    assert made.spec.kubelet_settings.max_pods == 20


def test_a_class_is_written_as_it_was_read() -> None:
    made = node_class(
        associatePublicIPAddress=False,
        capacityReservationSelectorTerms=[{"ownerID": "123456789012", "type": "open"}],
        blockDeviceMappings=[{"deviceName": "/dev/xvda", "ebs": {"snapshotID": "snap-1", "kmsKeyID": "a"}}],
    )

    assert decode(encode(made), type(made)) == made
    assert made.spec.capacity_reservation_selector_terms[0].criteria == "open"


SAME = {
    "the order of lists": (
        {"blockDeviceMappings": [{"deviceName": "a"}, {"deviceName": "b"}]},
        {"blockDeviceMappings": [{"deviceName": "b"}, {"deviceName": "a"}]},
    ),
    "what is empty": ({"tags": {}, "userData": "", "context": ""}, {}),
    "selector terms": ({"subnetSelectorTerms": [{"id": "subnet-1"}]}, {}),
    "another version of the image": ({"amiSelectorTerms": [{"alias": "al2023@v20250101"}]}, {}),
    "the family that the alias says anyway": ({"amiFamily": "AL2023"}, {}),
    "a count of prefixes": ({"ipPrefixCount": 3}, {}),
}
OTHER = {
    "user data": {"userData": "a"},
    "a role": {"role": "b"},
    "a tag": {"tags": {"a": "b"}},
    "the kubelet": {"kubelet": {"maxPods": 5}},
    "a kubelet key that is only handed on": {"kubelet": {"serializeImagePulls": True}},
    "an address that is refused": {"associatePublicIPAddress": False},
    "the family": {"amiFamily": "Custom"},
    "a volume": {"blockDeviceMappings": [{"deviceName": "a", "ebs": {"volumeSize": "20Gi"}}]},
    "metadata": {"metadataOptions": {"httpTokens": "optional"}},
}


@pytest.mark.parametrize(("one", "other"), SAME.values(), ids=SAME)
def test_the_hash_does_not_move_with(one: dict[str, Any], other: dict[str, Any]) -> None:
    assert node_class_hash(node_class(**one)) == node_class_hash(node_class(**other))


@pytest.mark.parametrize("spec", OTHER.values(), ids=OTHER)
def test_the_hash_moves_with(spec: dict[str, Any]) -> None:
    assert node_class_hash(node_class(**spec)) != node_class_hash(node_class())


def test_the_hash_moves_with_the_certificates_of_the_cluster() -> None:
    assert node_class_hash(node_class(), "a") != node_class_hash(node_class(), "b")


def test_the_hash_stays_the_same_from_release_to_release() -> None:
    assert node_class_hash(node_class(tags={"a": "b"}, kubelet={"maxPods": 5})) == "8798725885886855095"
