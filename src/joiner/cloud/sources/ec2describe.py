"""Facts of an instance type out of EC2's own description of it: what DescribeInstanceTypes answers.

The bundled catalogue and the AWS provider read the same descriptions with these functions, so that both say the same of a type.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from joiner.cloud.sources.facts import Accelerator, Gpu, NeuronDevice, TypeFacts

ARCHITECTURES: Final = {"x86_64": "amd64", "arm64": "arm64"}
"""EC2's names of architectures to Kubernetes' own."""
Raw = Mapping[str, Any]
"""A piece of JSON as EC2 writes it."""


def is_for_kubernetes(raw: Raw) -> bool:
    """Whether Karpenter would ask for the type: hardware virtualisation, and an architecture that Linux nodes run on."""
    architectures = raw["ProcessorInfo"]["SupportedArchitectures"]
    return "hvm" in raw["SupportedVirtualizationTypes"] and any(name in ARCHITECTURES for name in architectures)


def described(raw: Raw) -> TypeFacts:
    """The facts of a type out of EC2's own description of it."""
    processor, network, storage = raw["ProcessorInfo"], raw["NetworkInfo"], raw.get("InstanceStorageInfo", {})
    ghz, ebs = processor.get("SustainedClockSpeedInGhz"), raw["EbsInfo"]
    cards = {card["NetworkCardIndex"]: card for card in network["NetworkCards"]}
    strategies = raw.get("PlacementGroupInfo", {}).get("SupportedStrategies")
    return TypeFacts(
        name=raw["InstanceType"],
        vcpus=raw["VCpuInfo"]["DefaultVCpus"],
        memory_mib=raw["MemoryInfo"]["SizeInMiB"],
        architecture=next(ARCHITECTURES[a] for a in processor["SupportedArchitectures"] if a in ARCHITECTURES),
        interfaces=cards[network.get("DefaultNetworkCardIndex", 0)]["MaximumNetworkInterfaces"],
        ipv4_per_interface=network["Ipv4AddressesPerInterface"],
        usage_classes=tuple(sorted(raw["SupportedUsageClasses"])),
        cpu_manufacturer=processor.get("Manufacturer", ""),
        clock_mhz=round(ghz * 1000) if ghz else None,
        hypervisor=raw.get("Hypervisor") or "",
        network_mbps=round(sum(c.get("BaselineBandwidthInGbps", 0) for c in cards.values()) * 1000) or None,
        ebs_mbps=ebs["EbsOptimizedInfo"]["MaximumBandwidthInMbps"] if ebs["EbsOptimizedSupport"] == "default" else None,
        storage_gb=storage.get("TotalSizeInGB"),
        storage_nvme=storage.get("NvmeSupport", "unsupported") != "unsupported",
        efa_interfaces=network.get("EfaInfo", {}).get("MaximumEfaInterfaces", 0),
        encryption_in_transit=network.get("EncryptionInTransitSupported", False),
        nitro_enclaves=raw.get("NitroEnclavesSupport") == "supported",
        card_interfaces=tuple(cards[index]["MaximumNetworkInterfaces"] for index in sorted(cards)),
        ena=None if "EnaSupport" not in network else network["EnaSupport"] != "unsupported",
        nested_virtualization="nested-virtualization" in processor.get("SupportedFeatures", ()),
        placement_strategies=None if strategies is None else tuple(sorted(strategies)),
        gpus=tuple(_gpus(raw)),
        neuron_devices=tuple(_neuron_devices(raw)),
        accelerators=tuple(_accelerators(raw)),
    )


def _gpus(raw: Raw) -> Iterator[Gpu]:
    """The GPU models of a type."""
    for gpu in raw.get("GpuInfo", {}).get("Gpus", ()):
        memory = gpu.get("MemoryInfo", {}).get("SizeInMiB", 0)
        yield Gpu(name=gpu["Name"], manufacturer=gpu["Manufacturer"], count=gpu["Count"], memory_mib=memory)


def _neuron_devices(raw: Raw) -> Iterator[NeuronDevice]:
    """The Neuron devices of a type."""
    for device in raw.get("NeuronInfo", {}).get("NeuronDevices", ()):
        yield NeuronDevice(name=device["Name"], count=device["Count"], cores=device["CoreInfo"]["Count"])


def _accelerators(raw: Raw) -> Iterator[Accelerator]:
    """The inference accelerators of a type."""
    for accelerator in raw.get("InferenceAcceleratorInfo", {}).get("Accelerators", ()):
        yield Accelerator(
            name=accelerator["Name"], manufacturer=accelerator["Manufacturer"], count=accelerator["Count"]
        )
