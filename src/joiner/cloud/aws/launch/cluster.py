"""What user data needs to know of the cluster: endpoint, certificates, addresses of services and DNS, Kubernetes version."""

from joiner.cloud.aws.api import AwsApi, AwsError
from joiner.cloud.aws.settings import AwsSettings
from joiner.model.meta import Value, replace


class ClusterFacts(Value):
    """The cluster as its machines must know it."""

    name: str = ""
    endpoint: str = ""
    ca_bundle: str = ""
    service_cidr: str = ""
    dns: str = ""
    kubernetes: str = ""
    """The minor version, like 1.33."""
    code: str = ""
    """With which code AWS refused to describe the cluster when it was asked last; empty when it did not."""
    message: str = ""

    @property
    def problem(self) -> str:
        """Why the cluster could not be described."""
        return f"{self.code}: {self.message}" if self.code else ""

    @property
    def is_known(self) -> bool:
        """Whether EKS has ever described it, or the settings say what a hash needs."""
        return bool(self.ca_bundle) or not self.code


async def describe(api: AwsApi, settings: AwsSettings, before: ClusterFacts | None = None) -> ClusterFacts:
    """What EKS says of the cluster, or what it said before; what the settings say counts more."""
    try:
        answer = await api.call("eks", "describe_cluster", name=settings.cluster_name)
    except AwsError as error:
        known = before or ClusterFacts(
            name=settings.cluster_name, endpoint=settings.cluster_endpoint, ca_bundle=settings.cluster_ca_bundle
        )
        return replace(known, code=error.code, message=error.message)
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
