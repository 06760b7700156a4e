"""User data in the words of each image: what its bootstrap program or its settings take, and nothing they choke on."""

import json
import shlex
import tomllib
from typing import Any

import pytest

from joiner.cloud.aws.launch.userdata import Boot, user_data
from joiner.model.meta import replace

KUBELET: dict[str, Any] = {
    "kubeReserved": {"cpu": 1, "memory": "300Mi"},
    "systemReserved": {"cpu": 0.5},
    "evictionHard": {"memory.available": "5%", "nodefs.inodesFree": 1000},
    "evictionSoft": {"memory.available": "10%"},
    "evictionSoftGracePeriod": {"memory.available": "1m30s"},
    "evictionMaxPodGracePeriod": 60,
    "imageGCHighThresholdPercent": 85,
    "imageGCLowThresholdPercent": 80,
    "cpuCFSQuota": False,
}
DIRECTORIES = ["--dirs", "/var/lib/containerd", "/var/lib/kubelet", "/var/log/pods"]
BOOT = Boot(
    family="AL2",
    cluster_name="prod",
    cluster_endpoint="https://prod",
    service_cidr="10.100.0.0/16",
    cluster_dns="10.100.0.10",
    kubelet=KUBELET,
    max_pods=29,
)


def al2_flags(boot: Boot) -> dict[str, str]:
    """The flags that the kubelet gets: the shell takes one layer of quotes, systemd the other."""
    script = user_data(boot).partition("/etc/eks/bootstrap.sh ")[2].partition("\n--//")[0]
    words = shlex.split(script.replace("\\\n", " "))
    extra = words[words.index("--kubelet-extra-args") + 1]
    return dict(each.removeprefix("--").split("=", 1) for each in shlex.split(extra))


def nodeadm(boot: Boot) -> Any:
    text = user_data(replace(boot, family="AL2023"))
    return json.loads(text.partition("application/node.eks.aws\n\n")[2].partition("\n--//")[0])


def bottlerocket(boot: Boot) -> Any:
    return tomllib.loads(user_data(replace(boot, family="Bottlerocket")))["settings"]


def test_al2_writes_thresholds_as_comparisons_and_everything_else_as_values() -> None:
    flags = al2_flags(BOOT)

    assert flags["eviction-hard"] == "memory.available<5%,nodefs.inodesFree<1000"
    assert flags["eviction-soft"] == "memory.available<10%"
    assert flags["eviction-soft-grace-period"] == "memory.available=1m30s"
    assert flags["kube-reserved"] == "cpu=1,memory=300Mi"
    assert flags["system-reserved"] == "cpu=0.5"
    assert flags["eviction-max-pod-grace-period"] == "60"
    assert (flags["image-gc-high-threshold"], flags["image-gc-low-threshold"]) == ("85", "80")
    assert (flags["cpu-cfs-quota"], flags["max-pods"]) == ("false", "29")


def test_the_kubelet_gets_amounts_as_text_however_they_were_written() -> None:
    config = nodeadm(BOOT)["spec"]["kubelet"]["config"]

    assert config["kubeReserved"] == {"cpu": "1", "memory": "300Mi"}
    assert config["systemReserved"] == {"cpu": "0.5"}
    assert config["evictionHard"] == {"memory.available": "5%", "nodefs.inodesFree": "1000"}
    assert (config["imageGCHighThresholdPercent"], config["cpuCFSQuota"], config["maxPods"]) == (85, False, 29)


def test_the_spelling_of_the_settings_design_is_translated() -> None:
    seed = {
        "evictionThreshold": {
            "hard": {"memoryAvailable": "5%", "pidAvailable": 100},
            "soft": {"nodefsAvailable": "1Gi"},
        }
    }
    config = nodeadm(replace(BOOT, kubelet=seed))["spec"]["kubelet"]["config"]

    assert config["evictionHard"] == {"memory.available": "5%", "pid.available": "100"}
    assert config["evictionSoft"] == {"nodefs.available": "1Gi"}
    assert "evictionThreshold" not in config


def test_bottlerocket_wants_percentages_and_amounts_as_text() -> None:
    kubernetes = bottlerocket(BOOT)["kubernetes"]

    assert kubernetes["image-gc-high-threshold-percent"] == "85"
    assert kubernetes["image-gc-low-threshold-percent"] == "80"
    assert kubernetes["kube-reserved"] == {"cpu": "1", "memory": "300Mi"}
    assert kubernetes["eviction-soft-grace-period"] == {"memory.available": "1m30s"}
    assert (kubernetes["eviction-max-pod-grace-period"], kubernetes["max-pods"]) == (60, 29)
    assert kubernetes["cpu-cfs-quota-enforced"] is False


@pytest.mark.parametrize(
    ("image", "directories"),
    [
        ("bottlerocket-aws-k8s-1.33-x86_64-v1.45.2-abcdef01", DIRECTORIES),
        ("bottlerocket-aws-k8s-1.33-x86_64-v1.46.0-abcdef01", []),
        ("bottlerocket-aws-k8s-1.33-aarch64-v2.0.0-abcdef01", []),
        ("an image of my own", []),
    ],
    ids=["older", "first", "newer", "unknown"],
)  # fmt: skip
def test_old_images_of_bottlerocket_are_told_which_directories_go_onto_local_disks(
    image: str, directories: list[str]
) -> None:
    made = bottlerocket(replace(BOOT, instance_store_policy="RAID0", image_name=image))

    init, bind = made["bootstrap-commands"]["000-mount-instance-storage"]["commands"]
    assert init == ["apiclient", "ephemeral-storage", "init"]
    assert bind == ["apiclient", "ephemeral-storage", "bind", *directories]
