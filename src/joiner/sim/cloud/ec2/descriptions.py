"""Instance types as EC2 describes them, made of the facts of the bundled catalogue."""

from typing import Any

from joiner.cloud.sources.facts import TypeFacts


def description(facts: TypeFacts) -> dict[str, Any]:
    """An element of the answer of DescribeInstanceTypes."""
    architecture = {"amd64": "x86_64", "arm64": "arm64"}[facts.architecture]
    processor: dict[str, Any] = {"SupportedArchitectures": [architecture]}
    if facts.cpu_manufacturer:
        processor["Manufacturer"] = facts.cpu_manufacturer
    if facts.clock_mhz:
        processor["SustainedClockSpeedInGhz"] = facts.clock_mhz / 1000
    if facts.nested_virtualization:
        processor["SupportedFeatures"] = ["nested-virtualization"]
    made: dict[str, Any] = {
        "InstanceType": facts.name,
        "SupportedVirtualizationTypes": ["hvm"],
        "SupportedUsageClasses": list(facts.usage_classes),
        "BareMetal": not facts.hypervisor,
        "ProcessorInfo": processor,
        "VCpuInfo": {"DefaultVCpus": facts.vcpus},
        "MemoryInfo": {"SizeInMiB": facts.memory_mib},
        "EbsInfo": _ebs(facts),
        "NetworkInfo": _network(facts),
        "NitroEnclavesSupport": "supported" if facts.nitro_enclaves else "unsupported",
    }
    if facts.placement_strategies is not None:
        made["PlacementGroupInfo"] = {"SupportedStrategies": list(facts.placement_strategies)}
    if facts.hypervisor:
        made["Hypervisor"] = facts.hypervisor
    if facts.storage_gb:
        nvme = "supported" if facts.storage_nvme else "unsupported"
        made["InstanceStorageInfo"] = {"TotalSizeInGB": facts.storage_gb, "NvmeSupport": nvme}
    return {**made, **_accelerators(facts)}


def _ebs(facts: TypeFacts) -> dict[str, Any]:
    if facts.ebs_mbps is None:
        return {"EbsOptimizedSupport": "unsupported"}
    return {"EbsOptimizedSupport": "default", "EbsOptimizedInfo": {"MaximumBandwidthInMbps": facts.ebs_mbps}}


def _network(facts: TypeFacts) -> dict[str, Any]:
    counts = facts.card_interfaces or (facts.interfaces,)
    cards: list[dict[str, Any]] = [
        {"NetworkCardIndex": index, "MaximumNetworkInterfaces": count} for index, count in enumerate(counts)
    ]
    if facts.network_mbps:
        cards[0]["BaselineBandwidthInGbps"] = facts.network_mbps / 1000
    made: dict[str, Any] = {
        "DefaultNetworkCardIndex": 0,
        "NetworkCards": cards,
        "Ipv4AddressesPerInterface": facts.ipv4_per_interface,
        "EncryptionInTransitSupported": facts.encryption_in_transit,
    }
    if facts.efa_interfaces:
        made["EfaSupported"] = True
        made["EfaInfo"] = {"MaximumEfaInterfaces": facts.efa_interfaces}
    return made


def _accelerators(facts: TypeFacts) -> dict[str, Any]:
    made: dict[str, Any] = {}
    if facts.gpus:
        made["GpuInfo"] = {
            "Gpus": [
                {
                    "Name": g.name,
                    "Manufacturer": g.manufacturer,
                    "Count": g.count,
                    "MemoryInfo": {"SizeInMiB": g.memory_mib},
                }
                for g in facts.gpus
            ]
        }
    if facts.neuron_devices:
        made["NeuronInfo"] = {
            "NeuronDevices": [
                {"Name": d.name, "Count": d.count, "CoreInfo": {"Count": d.cores}} for d in facts.neuron_devices
            ]
        }
    if facts.accelerators:
        made["InferenceAcceleratorInfo"] = {
            "Accelerators": [
                {"Name": a.name, "Manufacturer": a.manufacturer, "Count": a.count} for a in facts.accelerators
            ]
        }
    return made
