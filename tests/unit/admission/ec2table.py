"""Good and bad EC2NodeClasses, for the table of all objects."""

from typing import Any

from tests.unit.admission.rows import Bad, Document, document

KUBELET = "spec.kubelet"
SMALLEST: Document = {
    "role": "nodes",
    "amiSelectorTerms": [{"alias": "al2023@latest"}],
    "subnetSelectorTerms": [{"tags": {"karpenter.sh/discovery": "prod"}}],
    "securityGroupSelectorTerms": [{"tags": {"karpenter.sh/discovery": "*"}}],
}
INTERFACE = {"networkCardIndex": 0, "deviceIndex": 0, "interfaceType": "interface"}
EFA = {"networkCardIndex": 1, "deviceIndex": 1, "interfaceType": "efa-only"}


def ec2(*missing: str, **spec: Any) -> Document:
    whole = {name: value for name, value in {**SMALLEST, **spec}.items() if name not in missing}
    return document("karpenter.k8s.aws/v1", "EC2NodeClass", whole)


def kubelet(**settings: Any) -> Document:
    return ec2(kubelet=settings)


GOOD: dict[str, Document] = {
    "the smallest EC2 class": ec2(),
    "an EC2 class that says everything": ec2(
        "role",
        instanceProfile="nodes",
        amiFamily="Custom",
        amiSelectorTerms=[
            {"id": "ami-0123456789abcdef0"},
            {"name": "my-image-*", "owner": "self"},
            {"tags": {"team": "a"}, "owner": "123456789012"},
            {"ssmParameter": "/my/image"},
        ],
        subnetSelectorTerms=[{"id": "subnet-1"}, {"tags": {"tier": "private", "zone": "*"}}],
        securityGroupSelectorTerms=[{"id": "sg-1"}, {"name": "nodes"}, {"tags": {"a": "b"}}],
        capacityReservationSelectorTerms=[
            {"id": "cr-1"},
            {"ownerID": "123456789012"},
            {"instanceType": "p5.48xlarge", "type": "targeted"},
            {"tags": {"team": "*"}, "instanceMatchCriteria": "open", "ownerID": "123456789012"},
        ],
        placementGroupSelector={"name": "close"},
        userData="#!/bin/sh\ntrue\n",
        tags={"team": "a", "empty": ""},
        kubelet={
            "clusterDNS": ["10.0.0.10"],
            "maxPods": 110,
            "podsPerCore": 10,
            "kubeReserved": {"cpu": "100m"},
            "systemReserved": {"memory": "1Gi"},
            "evictionHard": {"memory.available": "5%"},
            "evictionSoft": {"memory.available": "1Gi"},
            "evictionSoftGracePeriod": {"memory.available": "1m30s"},
            "evictionThreshold": {"hard": {"nodefsAvailable": "10%"}},
            "evictionMaxPodGracePeriod": 60,
            "imageGCHighThresholdPercent": 85,
            "imageGCLowThresholdPercent": 80,
            "cpuCFSQuota": True,
            "serializeImagePulls": False,
            "containerLogMaxSize": "50Mi",
        },
        blockDeviceMappings=[
            {"deviceName": "/dev/xvda", "rootVolume": True, "ebs": {"volumeSize": "100Gi", "volumeType": "gp3"}},
            {"deviceName": "/dev/xvdb", "ebs": {"snapshotID": "snap-1", "volumeInitializationRate": 100}},
        ],
        instanceStorePolicy="RAID0",
        networkInterfaces=[INTERFACE, EFA],
        associatePublicIPAddress=False,
        ipPrefixCount=1,
        detailedMonitoring=True,
        metadataOptions={"httpTokens": "optional", "httpPutResponseHopLimit": 2},
        connectionTracking={"tcpEstablishedTimeout": 60},
        context="reserved",
        cpuOptions={"nestedVirtualization": "enabled"},
    ),
    "an EC2 class with the family beside the alias": ec2(amiFamily="AL2023"),
    "an EC2 class as a cluster has it": {
        **ec2(),
        "status": {
            "subnets": [{"id": "subnet-1", "zone": "us-east-1a", "zoneID": "use1-az1"}],
            "securityGroups": [{"id": "sg-1", "name": "nodes"}],
            "amis": [
                {"id": "ami-1", "requirements": [{"key": "kubernetes.io/arch", "operator": "In", "values": ["a"]}]}
            ],
            "capacityReservations": [
                {
                    "id": "cr-1",
                    "instanceType": "m5.large",
                    "availabilityZone": "us-east-1a",
                    "availableInstanceCount": 2,
                }
            ],
        },
    },
}

_TERMS = {
    "subnetSelectorTerms": ("id", "subnet-1"),
    "securityGroupSelectorTerms": ("id", "sg-1"),
    "capacityReservationSelectorTerms": ("id", "cr-1"),
    "amiSelectorTerms": ("id", "ami-1"),
}

BAD = [
    *(Bad(f"no {name}", ec2(name), f"spec.{name}") for name in _TERMS if not name.startswith("capacity")
      if not name.startswith("ami")),
    Bad("no images", ec2("amiSelectorTerms", amiFamily="AL2"), "spec.amiSelectorTerms"),
    Bad("an empty list of subnets", ec2(subnetSelectorTerms=[]), "spec.subnetSelectorTerms"),
    *(
        Bad(f"an empty term in {name}", ec2(amiFamily="Custom", **{name: [{}]}), f"spec.{name}[0]", "rule")
        for name in _TERMS
    ),
    *(
        Bad(
            f"one of the {name} with an id and more",
            ec2(amiFamily="Custom", **{name: [{key: value}, {key: value, "tags": {"a": "b"}}]}),
            f"spec.{name}[1]",
            "rule",
        )
        for name, (key, value) in _TERMS.items()
    ),
    *(
        Bad(
            f"a tag without a value in {name}",
            ec2(amiFamily="Custom", **{name: [{"tags": {"a": ""}}]}),
            f"spec.{name}[0].tags",
            "rule",
        )
        for name in _TERMS
    ),
    *(
        Bad(
            f"an id of something else in {name}",
            ec2(amiFamily="Custom", **{name: [{"id": "i-1"}]}),
            f"spec.{name}[0].id",
        )
        for name in _TERMS
    ),
    Bad(
        "a security group by name and tags",
        ec2(securityGroupSelectorTerms=[{"name": "a", "tags": {"a": "b"}}]),
        "spec.securityGroupSelectorTerms[0]",
        "rule",
    ),
    Bad(
        "an owner that is no account",
        ec2(capacityReservationSelectorTerms=[{"ownerID": "me"}]),
        "spec.capacityReservationSelectorTerms[0].ownerID",
    ),
    Bad(
        "both names of the type of a reservation",
        ec2(capacityReservationSelectorTerms=[{"type": "open", "instanceMatchCriteria": "open"}]),
        "spec.capacityReservationSelectorTerms[0]",
        "rule",
    ),
    Bad("no placement group", ec2(placementGroupSelector={}), "spec.placementGroupSelector", "rule"),
    Bad(
        "two placement groups",
        ec2(placementGroupSelector={"name": "a", "id": "pg-1"}),
        "spec.placementGroupSelector",
        "rule",
    ),
    Bad(
        "an alias and another term",
        ec2(amiSelectorTerms=[{"alias": "al2023@latest"}, {"id": "ami-1"}]),
        "spec.amiSelectorTerms",
        "rule",
    ),
    Bad(
        "an alias and an owner",
        ec2(amiSelectorTerms=[{"alias": "al2023@latest", "owner": "self"}]),
        "spec.amiSelectorTerms[0]",
        "rule",
    ),
    Bad("an alias without a version", ec2(amiSelectorTerms=[{"alias": "al2023"}]), "spec.amiSelectorTerms[0].alias"),
    Bad("an unknown alias", ec2(amiSelectorTerms=[{"alias": "ubuntu@latest"}]), "spec.amiSelectorTerms[0].alias", "rule"),
    Bad(
        "Windows by alias",
        ec2(amiSelectorTerms=[{"alias": "windows2022@latest"}]),
        "spec.amiSelectorTerms[0].alias",
        "rule",
        words="Windows nodes are not supported",
    ),
    Bad(
        "Windows by family",
        ec2(amiFamily="Windows2022", amiSelectorTerms=[{"id": "ami-1"}]),
        "spec.amiFamily",
        "rule",
        words="Windows nodes are not supported",
    ),
    Bad("no family", ec2(amiSelectorTerms=[{"id": "ami-1"}]), "spec", "rule"),
    Bad("another family than the alias has", ec2(amiFamily="AL2"), "spec.amiFamily", "rule"),
    Bad("neither role nor profile", ec2("role"), "spec", "rule"),
    Bad("role and profile", ec2(instanceProfile="a"), "spec", "rule"),
    Bad("an empty role", ec2(role=""), "spec.role"),
    Bad("a tag of ours", ec2(tags={"karpenter.sh/nodepool": "a"}), "spec.tags[karpenter.sh/nodepool]", "rule"),
    Bad(
        "the tag of a cluster",
        ec2(tags={"kubernetes.io/cluster/a": "owned"}),
        "spec.tags[kubernetes.io/cluster/a]",
        "rule",
    ),
    Bad(
        "two root volumes",
        ec2(blockDeviceMappings=[{"rootVolume": True, "ebs": {"volumeSize": "20Gi"}}] * 2),
        "spec.blockDeviceMappings",
        "rule",
    ),
    Bad(
        "a volume of no size", ec2(blockDeviceMappings=[{"ebs": {"iops": 3000}}]), "spec.blockDeviceMappings[0].ebs",
        "rule",
    ),
    Bad(
        "a rate without a snapshot",
        ec2(blockDeviceMappings=[{"ebs": {"volumeSize": "20Gi", "volumeInitializationRate": 200}}]),
        "spec.blockDeviceMappings[0].ebs",
        "rule",
    ),
    *(
        Bad(
            f"a volume of {size}",
            ec2(blockDeviceMappings=[{"ebs": {"volumeSize": size}}]),
            "spec.blockDeviceMappings[0].ebs.volumeSize",
        )
        for size in ("lots", "100", "0Gi", "59001Gi", "65T", "100Mi")
    ),
    Bad("an unknown policy", ec2(instanceStorePolicy="RAID5"), "spec.instanceStorePolicy", nearest="RAID0"),
    Bad("no first interface", ec2(networkInterfaces=[EFA]), "spec.networkInterfaces", "rule"),
    Bad("an interface twice", ec2(networkInterfaces=[INTERFACE, INTERFACE]), "spec.networkInterfaces", "rule"),
    Bad(
        "two EFA interfaces on a card",
        ec2(networkInterfaces=[INTERFACE, EFA, {**EFA, "deviceIndex": 2}]),
        "spec.networkInterfaces",
        "rule",
    ),
    Bad("too many hops", ec2(metadataOptions={"httpPutResponseHopLimit": 65}), "spec.metadataOptions.httpPutResponseHopLimit"),
    Bad("no timeout", ec2(connectionTracking={}), "spec.connectionTracking", "rule"),
    Bad("a kubelet rule in CEL", kubelet(maxPods="min(max_pods, 110)"), f"{KUBELET}.maxPods"),
    Bad("less than no pods in an EC2 class", kubelet(maxPods=-1), f"{KUBELET}.maxPods"),
    Bad("pods reserved in an EC2 class", kubelet(kubeReserved={"pods": "1"}), f"{KUBELET}.kubeReserved[pods]", "rule"),
    Bad("pods reserved for the system", kubelet(systemReserved={"pods": "1"}), f"{KUBELET}.systemReserved[pods]", "rule"),
    Bad("an unknown signal in an EC2 class", kubelet(evictionHard={"memory": "1Gi"}), f"{KUBELET}.evictionHard[memory]", "rule"),
    Bad("a soft threshold without grace in an EC2 class", kubelet(evictionSoft={"memory.available": "1%"}), KUBELET, "rule"),
    Bad(
        "unknown soft signals in an EC2 class",
        kubelet(evictionSoft={"a": "1%"}, evictionSoftGracePeriod={"a": "1m"}),
        f"{KUBELET}.evictionSoft[a]",
        "rule",
        problems=2,
    ),
    Bad(
        "other soft signals than grace periods",
        kubelet(evictionSoft={"memory.available": "1%"}, evictionSoftGracePeriod={"pid.available": "1m"}),
        f"{KUBELET}.evictionSoftGracePeriod",
        "rule",
    ),
    Bad(
        "images removed the wrong way round",
        kubelet(imageGCHighThresholdPercent=50, imageGCLowThresholdPercent=60),
        KUBELET,
        "rule",
    ),
]  # fmt: skip
