"""What a machine does with its launch template when it boots: which cluster its kubelet joins, and how much of it pods get.

Our own sums, by the rules of the kubelet and of the images of AL2023: what plans were made with is not known here.
"""

import base64
import binascii
import json
import re
from collections.abc import Mapping
from typing import Any, Final

from joiner.cloud.sources.facts import TypeFacts
from joiner.model.codec import decode
from joiner.model.meta import Value
from joiner.model.quantity import MILLI, parse
from joiner.model.resources import Resources
from joiner.model.taints import UNREGISTERED, Taint

ONLY: Final = "capacity-reservations-only"
_MIB: Final = (1 << 20) * MILLI
_GIB: Final = 1024 * _MIB
_HYPERVISOR: Final = 0.07
"""The share of the memory that a guest never sees."""
_GPUS: Final = {"nvidia": "nvidia.com/gpu", "amd": "amd.com/gpu", "habana": "habana.ai/gaudi"}
_CPU_STEPS: Final = ((1, 60), (1, 10), (2, 5))
"""Millicores that the kubelet keeps for itself, of each of the first cores; of each further one it is two and a half."""


class Told(Value):
    """What user data says."""

    joins: bool
    """Whether the machine knows the cluster."""
    labels: Mapping[str, str] = {}
    taints: tuple[Taint, ...] = (UNREGISTERED,)
    kubelet: Mapping[str, Any] = {}
    disk_gib: int = 20


def told(data: Mapping[str, Any], cluster: str) -> Told:
    """The template of a machine as the image of the machine reads it. Only nodeadm's NodeConfig is read; others join."""
    disks = [
        each["Ebs"]["VolumeSize"]
        for each in data.get("BlockDeviceMappings") or ()
        if "VolumeSize" in each.get("Ebs", {})
    ]
    disk = disks[0] if disks else 20
    try:
        text = base64.b64decode(data.get("UserData", "")).decode()
    except (binascii.Error, UnicodeDecodeError):
        return Told(joins=False, disk_gib=disk)
    configs = re.findall(r"Content-Type: application/node\.eks\.aws\s+(\{.*?\n\})\s", text, re.DOTALL)
    if not configs:
        return Told(joins=True, disk_gib=disk)
    spec = json.loads(configs[-1])["spec"]
    flags = " ".join(spec["kubelet"].get("flags") or ())
    given = re.search(r"--node-labels=(\S*)", flags)
    pairs = (each.partition("=") for each in given[1].split(",")) if given is not None and given[1] else ()
    kubelet = spec["kubelet"].get("config") or {}
    return Told(
        joins=spec["cluster"]["name"] == cluster,
        labels={key: value for key, _, value in pairs},
        taints=tuple(decode(each, Taint) for each in kubelet.get("registerWithTaints") or ()),
        kubelet=kubelet,
        disk_gib=disk,
    )


def capacity(facts: TypeFacts, by: Told) -> Resources:
    """What the kubelet reports."""
    pods = by.kubelet.get("maxPods") or _network_pods(facts)
    made = {
        "cpu": facts.vcpus * MILLI,
        "memory": int(facts.memory_mib * (1 - _HYPERVISOR)) * _MIB,
        "ephemeral-storage": by.disk_gib * _GIB,
        "pods": pods * MILLI,
    }
    for each in facts.gpus:
        if each.manufacturer.lower() in _GPUS and each.count:
            made[_GPUS[each.manufacturer.lower()]] = each.count * MILLI
    if facts.neuron_devices:
        made["aws.amazon.com/neuron"] = sum(each.count for each in facts.neuron_devices) * MILLI
        made["aws.amazon.com/neuroncore"] = sum(each.count * each.cores for each in facts.neuron_devices) * MILLI
    if facts.efa_interfaces:
        made["vpc.amazonaws.com/efa"] = facts.efa_interfaces * MILLI
    return made


def allocatable(facts: TypeFacts, by: Told, known: Resources) -> Resources:
    """What the kubelet lets pods use."""
    kept = {**_kept(facts), **_amounts(by.kubelet.get("kubeReserved"))}
    system, hard = _amounts(by.kubelet.get("systemReserved")), by.kubelet.get("evictionHard") or {}
    made = dict(known)
    signals = {"memory": ("memory.available", "100Mi"), "ephemeral-storage": ("nodefs.available", "10%")}
    for name, amount in known.items():
        threshold = 0
        if name in signals:
            signal, default = signals[name]
            threshold = _threshold(str(hard.get(signal, default)), amount)
        made[name] = max(0, amount - kept.get(name, 0) - system.get(name, 0) - threshold)
    return made


def _network_pods(facts: TypeFacts) -> int:
    return facts.interfaces * (facts.ipv4_per_interface - 1) + 2


def _kept(facts: TypeFacts) -> dict[str, int]:
    """What the image keeps back where user data says nothing."""
    left, cpu = facts.vcpus, 0.0
    for cores, millicores in _CPU_STEPS:
        cpu += min(left, cores) * millicores
        left = max(0, left - cores)
    memory = 255 + 11 * _network_pods(facts)
    return {"cpu": int(cpu + 2.5 * left), "memory": memory * _MIB, "ephemeral-storage": _GIB}


def _amounts(written: Any) -> dict[str, int]:
    return {name: parse(str(amount)) for name, amount in (written or {}).items()}


def _threshold(text: str, amount: int) -> int:
    return int(amount * float(text[:-1]) / 100) if text.endswith("%") else parse(text)
