"""Notes on objects of the files that a plan does not take into account."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from joiner.admission.problem import nearest
from joiner.model.meta import KubeObject

_AS_WRITTEN: Final = "the replicas that workloads state themselves are planned for, not what it would make of them"
_REASONS: Final[Mapping[str, str]] = {
    "CronJob": "the Jobs it starts at its hours are not planned for; give one as a Job to see what it needs",
    "ScaledObject": _AS_WRITTEN,
    "VerticalPodAutoscaler": "requests are planned for as pods state them, not as it would change them",
    "ResourceQuota": "quotas are not counted, so pods that it would refuse are planned for, too",
    "ResourceClaim": "devices that pods claim are not planned for",
    "ResourceClaimTemplate": "devices that pods claim are not planned for",
}
_NO_MATTER: Final = frozenset({
    "APIService", "CSIDriver", "CertificateSigningRequest", "ClusterRole", "ClusterRoleBinding", "ConfigMap",
    "ControllerRevision", "CustomResourceDefinition", "Endpoints", "EndpointSlice", "Event", "FlowSchema", "Gateway",
    "GatewayClass", "HTTPRoute", "Ingress", "IngressClass", "Lease", "MutatingWebhookConfiguration", "NetworkPolicy",
    "PriorityLevelConfiguration", "Role", "RoleBinding", "Secret", "ServiceAccount", "ServiceMonitor",
    "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding", "ValidatingWebhookConfiguration", "VolumeAttachment",
})  # fmt: skip
"""Kinds that say nothing about where pods go; they are passed over in silence."""
_SHOWN: Final = 3


def notes(objects: Iterable[Mapping[str, Any]], known: Iterable[type[KubeObject]]) -> tuple[str, ...]:
    """A sentence for each kind of object that is left out and might have mattered."""
    versions = {kind.kind: kind.api_version() for kind in known}
    found: dict[tuple[str, str], list[str]] = {}
    for each in objects:
        kind, version = str(each.get("kind") or ""), str(each.get("apiVersion") or "")
        if kind not in _NO_MATTER and not kind.endswith("NodeClass"):
            found.setdefault((kind, version), []).append(_name(each))
    return tuple(
        f"{kind or 'an object without a kind'} {listed(names)} {'is' if len(names) == 1 else 'are'} passed over:"
        f" {_reason(kind, version, versions)}"
        for (kind, version), names in sorted(found.items())
    )


def listed(names: Iterable[str]) -> str:
    """The first few names, and how many more there are."""
    ordered = sorted(names)
    more = len(ordered) - _SHOWN
    return ", ".join(ordered) if more <= 1 else f"{', '.join(ordered[:_SHOWN])} and {more} more"


def _reason(kind: str, version: str, versions: Mapping[str, str]) -> str:
    if kind in versions:
        return f"its apiVersion is {version or 'missing'}; only {versions[kind]} is read"
    if kind in _REASONS:
        return _REASONS[kind]
    like = nearest(kind, versions) if kind else None
    hint = f"; did you mean {like}?" if like else ""
    return f"plans know nothing of {version or 'no apiVersion'} {kind}; pods that it makes are not planned for{hint}"


def _name(each: Mapping[str, Any]) -> str:
    metadata = each.get("metadata")
    if not isinstance(metadata, Mapping):
        return "(no name)"
    return str(metadata.get("name") or metadata.get("generateName") or "(no name)")
