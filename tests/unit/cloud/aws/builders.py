"""EC2NodeClasses and claims for tests of the AWS provider."""

from typing import Any

from joiner.cloud.aws.nodeclass.ec2nodeclass import EC2NodeClass
from joiner.model.codec import decode

SMALLEST: dict[str, Any] = {
    "role": "nodes",
    "amiSelectorTerms": [{"alias": "al2023@latest"}],
    "subnetSelectorTerms": [{"tags": {"karpenter.sh/discovery": "prod"}}],
    "securityGroupSelectorTerms": [{"tags": {"karpenter.sh/discovery": "prod"}}],
}


def node_class(name: str = "default", status: Any = None, **spec: Any) -> EC2NodeClass:
    raw = {
        "metadata": {"name": name, "uid": f"uid-{name}", "generation": 1},
        "spec": {**SMALLEST, **spec},
        "status": status or {},
    }
    return decode(raw, EC2NodeClass)
