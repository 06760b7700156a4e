"""The hash of an EC2NodeClass: claims carry it, so that machines from before an edit of the class are seen to have drifted.

It is not Karpenter's number and says so with a version of its own. Hashes of different versions are never compared: taking
over from Karpenter rewrites both annotations on class and claims, and no machine drifts.
"""

import hashlib
import json
from typing import Any, Final

from joiner.cloud.aws.nodeclass.ec2nodeclass import GROUP, EC2NodeClass
from joiner.model import codec

HASH: Final = f"{GROUP}/ec2nodeclass-hash"
HASH_VERSION: Final = f"{GROUP}/ec2nodeclass-hash-version"
VERSION: Final = "joiner-v1"
"""Changes when the same class would be hashed to something else."""

_ELSEWHERE: Final = frozenset({
    "subnetSelectorTerms", "securityGroupSelectorTerms", "capacityReservationSelectorTerms", "amiSelectorTerms",
    "ipPrefixCount", "amiFamily", "kubelet",
})  # fmt: skip
"""What machines are compared with one by one, and what enters in another form."""


def node_class_hash(node_class: EC2NodeClass, ca_bundle: str = "") -> str:
    """A number that differs whenever machines of the class would differ in what only their launch decides.

    The order of lists does not matter, and what is empty counts as not written.
    """
    spec = codec.encode(node_class.spec)
    parts = {name: _unordered(value) for name, value in spec.items() if name not in _ELSEWHERE}
    hashed = {
        "spec": {name: value for name, value in parts.items() if not _is_empty(value)},
        "family": node_class.spec.family,
        "kubelet": spec.get("kubelet", {}),
        "ca": ca_bundle,
    }
    text = json.dumps(hashed, sort_keys=True, separators=(",", ":"), default=str)
    return str(int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big"))


def _unordered(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: part for name, item in value.items() if not _is_empty(part := _unordered(item))}
    if isinstance(value, list):
        return sorted((_unordered(item) for item in value), key=lambda item: json.dumps(item, sort_keys=True))
    return value


def _is_empty(value: Any) -> bool:
    return value is None or value in ("", [], {})
