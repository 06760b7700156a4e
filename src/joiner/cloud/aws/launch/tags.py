"""Tags of everything that Joiner makes in an account: by them machines are found again, also after a restart."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from joiner.cloud.aws.nodeclass.ec2nodeclass import EC2NodeClass
from joiner.cloud.aws.nodeclass.hash import HASH, HASH_VERSION, VERSION, node_class_hash
from joiner.model import labels
from joiner.model.nodeclaim import NodeClaim

CLUSTER: Final = "eks:eks-cluster-name"
NODE_CLASS: Final = "karpenter.k8s.aws/ec2nodeclass"
NODEPOOL: Final = labels.NODEPOOL
NODECLAIM: Final = "karpenter.sh/nodeclaim"
NODECLAIM_UID: Final = "karpenter.sh/nodeclaim-uid"


def of_class(node_class: EC2NodeClass, cluster: str) -> dict[str, str]:
    """The tags of what belongs to a class."""
    return {
        **node_class.spec.tags,
        f"kubernetes.io/cluster/{cluster}": "owned",
        CLUSTER: cluster,
        NODE_CLASS: node_class.name,
    }


def of_claim(claim: NodeClaim, node_class: EC2NodeClass, cluster: str, ca_bundle: str = "") -> dict[str, str]:
    """The tags of a machine: whose it is, and by which state of its class it was made, shows from its first moment on."""
    return {
        **of_class(node_class, cluster),
        HASH: node_class_hash(node_class, ca_bundle),
        HASH_VERSION: VERSION,
        NODEPOOL: claim.metadata.labels.get(labels.NODEPOOL, ""),
        NODECLAIM: claim.name,
        NODECLAIM_UID: claim.metadata.uid,
    }


def read(raw: Iterable[Mapping[str, Any]] | None) -> dict[str, str]:
    """Tags out of EC2's writing of them."""
    return {each["Key"]: each["Value"] for each in raw or ()}
