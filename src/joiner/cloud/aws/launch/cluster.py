"""What user data needs to know of the cluster: endpoint, certificates, addresses of services and DNS, Kubernetes version."""

from joiner.cloud.aws.api import AwsApi, AwsError
from joiner.cloud.aws.settings import AwsSettings
from joiner.model.meta import Value


class ClusterFacts(Value):
    """The cluster as its machines must know it."""

    name: str = ""
    endpoint: str = ""
    ca_bundle: str = ""
    service_cidr: str = ""
    dns: str = ""
    kubernetes: str = ""
    """The minor version, like 1.33."""
    problem: str = ""
    """Why the cluster could not be asked for; empty when it could."""


async def describe(api: AwsApi, settings: AwsSettings) -> ClusterFacts:
    """What EKS says of the cluster; what the settings say counts more."""
    try:
        answer = await api.call("eks", "describe_cluster", name=settings.cluster_name)
    except AwsError as error:
        return ClusterFacts(
            name=settings.cluster_name,
            endpoint=settings.cluster_endpoint,
            ca_bundle=settings.cluster_ca_bundle,
            problem=str(error),
        )
    told = answer.get("cluster") or {}
    network = told.get("kubernetesNetworkConfig") or {}
    cidr = network.get("serviceIpv4Cidr") or network.get("serviceIpv6Cidr") or ""
    return ClusterFacts(
        name=settings.cluster_name,
        endpoint=settings.cluster_endpoint or told.get("endpoint", ""),
        ca_bundle=settings.cluster_ca_bundle or (told.get("certificateAuthority") or {}).get("data", ""),
        service_cidr=cidr,
        dns=_dns(cidr),
        kubernetes=told.get("version", ""),
    )


def _dns(cidr: str) -> str:
    """The address of the DNS service of EKS: the tenth of the range."""
    address, _, _ = cidr.partition("/")
    if ":" in address:
        return f"{address}a"
    first, dot, _ = address.rpartition(".")
    return f"{first}{dot}10" if first else ""
