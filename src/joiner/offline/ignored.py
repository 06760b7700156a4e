"""What was given, is not used and could change the answer: objects of kinds that are not read, and fields that plans pass over.

Every command names it, grouped, in a line for each reason, and has it as data with `-o json`.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from joiner.admission.problem import nearest
from joiner.model.labels import OS
from joiner.model.meta import KubeObject

_AS_WRITTEN: Final = "the replicas that workloads state themselves are planned for, not what it would make of them"
_REASONS: Final[Mapping[str, str]] = {
    "CronJob": "the Jobs it starts at its hours are not planned for; give one as a Job to see what it needs",
    "ScaledObject": _AS_WRITTEN,
    "ScaledJob": "the Jobs it starts are not planned for; give one as a Job to see what it needs",
    "VerticalPodAutoscaler": "requests are planned for as pods state them, not as it would change them",
    "ResourceQuota": "quotas are not counted, so pods that it would refuse are planned for, too",
    "ResourceClaim": "devices that pods claim are not planned for",
    "ResourceClaimTemplate": "devices that pods claim are not planned for",
    "Application": "what it deploys is not planned for; render it and give the manifests (helm template, argocd app manifests)",
    "HelmRelease": "what it deploys is not planned for; render the chart and give the manifests (helm template)",
    "Kustomization": "what it builds is not planned for; give what kustomize build prints",
    "HelmChartInflationGenerator": "what it builds is not planned for; give what kustomize build prints",
}
_NO_MATTER: Final = frozenset({
    "APIService", "CSIDriver", "CertificateSigningRequest", "ClusterRole", "ClusterRoleBinding", "ConfigMap",
    "ControllerRevision", "CustomResourceDefinition", "Endpoints", "EndpointSlice", "Event", "FlowSchema", "Gateway",
    "GatewayClass", "HTTPRoute", "Ingress", "IngressClass", "Lease", "NetworkPolicy",
    "PriorityLevelConfiguration", "Role", "RoleBinding", "Secret", "ServiceAccount",
    "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding", "ValidatingWebhookConfiguration", "VolumeAttachment",
    "VolumeAttributesClass", "VolumeSnapshot", "VolumeSnapshotClass", "VolumeSnapshotContent",
})  # fmt: skip
"""Kinds that say nothing about where pods go; they are passed over in silence."""
_NO_MATTER_GROUPS: Final = frozenset({
    "cert-manager.io", "acme.cert-manager.io", "external-secrets.io", "gateway.networking.k8s.io", "monitoring.coreos.com",
    "networking.istio.io", "security.istio.io", "telemetry.istio.io", "cilium.io", "crd.projectcalico.org",
    "projectcalico.org", "elbv2.k8s.aws", "vpcresources.k8s.aws", "rbac.authorization.k8s.io", "metrics.k8s.io",
    "traefik.io", "secrets-store.csi.x-k8s.io", "policy.networking.k8s.io", "source.toolkit.fluxcd.io",
})  # fmt: skip
"""API groups of add-ons whose objects make no pods that have to be planned for."""
_MAY_MATTER: Final = {("monitoring.coreos.com", "Prometheus"), ("monitoring.coreos.com", "Alertmanager")}
"""Kinds of these groups that make pods all the same."""
_WEBHOOK: Final = "MutatingWebhookConfiguration"
_HOOK: Final = "helm.sh/hook"
_LATE: Final = frozenset({"test", "test-success", "pre-delete", "post-delete", "pre-rollback", "post-rollback"})
LATE_HOOK: Final = f"helm starts it only to test, delete or roll back a release ({_HOOK})"
_SHOWN: Final = 3
_SHOWN_KINDS: Final = 6
_LIKELY: Final = 0.85
"""How much like one of ours a kind must look: FlinkDeployment is no misspelt Deployment."""


@dataclass(frozen=True)
class Ignored:
    """Objects, or a field of them, that are not used."""

    kind: str
    objects: tuple[str, ...]
    reason: str
    field: str = ""
    """Empty when the whole objects are passed over."""

    def __str__(self) -> str:
        who = f"{self.kind or 'an object without a kind'} {listed(self.objects)}"
        if self.field:
            return f"{who}: {self.field} is not used: {self.reason}"
        return f"{who} {'is' if len(self.objects) == 1 else 'are'} passed over: {self.reason}"


def is_no_matter(kind: str) -> bool:
    """Whether objects of the kind say nothing about where pods go."""
    return kind in _NO_MATTER


def listed(names: Iterable[str]) -> str:
    """The first few names, and how many more there are."""
    ordered = sorted(names)
    more = len(ordered) - _SHOWN
    return ", ".join(ordered) if more <= 1 else f"{', '.join(ordered[:_SHOWN])} and {more} more"


# -- objects ---------------------------------------------------------------------------------------------------------------


def objects(others: Iterable[Mapping[str, Any]], known: Iterable[type[KubeObject]]) -> tuple[Ignored, ...]:
    """Objects that are left out and might have mattered, by kind."""
    versions = {kind.kind: kind.api_version() for kind in known}
    found: dict[tuple[str, str, bool], list[str]] = {}
    for each in others:
        kind, version = str(each.get("kind") or ""), str(each.get("apiVersion") or "")
        if _matters(each, kind, version):
            found.setdefault((kind, version, is_late_hook(each)), []).append(name_of(each))
    return tuple(
        Ignored(kind, tuple(names), LATE_HOOK if is_hook else _reason(kind, version, versions))
        for (kind, version, is_hook), names in sorted(found.items())
    )


def is_late_hook(document: Mapping[str, Any]) -> bool:
    """Whether a chart has the object for later: installing and upgrading it starts no pods of it."""
    hooks = _part(document, "metadata", "annotations").get(_HOOK)
    return isinstance(hooks, str) and _LATE.issuperset(each.strip() for each in hooks.split(","))


def lines(found: Iterable[Ignored]) -> tuple[str, ...]:
    """A line for each reason. Kinds of which only is known that plans do not read them share one, however many they are."""
    strange = [each for each in found if each.reason == _STRANGE]
    own = tuple(str(each) for each in found if each.reason != _STRANGE)
    if len(strange) < 2:
        return (*own, *map(str, strange))
    kinds = [f"{each.kind} {listed(each.objects)}" for each in strange[:_SHOWN_KINDS]]
    rest = f"; and {len(strange) - _SHOWN_KINDS} more kinds" if len(strange) > _SHOWN_KINDS else ""
    count = sum(len(each.objects) for each in strange)
    return (*own, f"{count} objects of {len(strange)} kinds are passed over: {_STRANGE}: {'; '.join(kinds)}{rest}")


_STRANGE: Final = "plans do not read such objects, and pods that they make are not planned for"


def _matters(document: Mapping[str, Any], kind: str, version: str) -> bool:
    group = version.rpartition("/")[0]
    if kind == _WEBHOOK:
        return any("pods" in names or "*" in names for names in _resources(document))
    if group in _NO_MATTER_GROUPS:
        return (group, kind) in _MAY_MATTER
    return kind not in _NO_MATTER and not kind.endswith("NodeClass")


def _resources(webhooks: Mapping[str, Any]) -> Iterator[list[Any]]:
    """The resources that each rule of the webhooks is about."""
    for webhook in _mappings(webhooks.get("webhooks")):
        for rule in _mappings(webhook.get("rules")):
            names = rule.get("resources")
            yield names if isinstance(names, list) else []


def _reason(kind: str, version: str, versions: Mapping[str, str]) -> str:
    if kind in versions:
        return f"its apiVersion is {version or 'missing'}; only {versions[kind]} is read"
    if kind == _WEBHOOK:
        return "what it changes about pods, such as sidecars it adds, is not planned for"
    if kind in _REASONS:
        return _REASONS[kind]
    like = nearest(kind, versions, _LIKELY) if kind else None
    return f"{_STRANGE}; did you mean {like}?" if like else _STRANGE


def name_of(document: Mapping[str, Any]) -> str:
    """The name of a raw object, for people."""
    metadata = document.get("metadata")
    if not isinstance(metadata, Mapping):
        return "(no name)"
    return str(metadata.get("name") or metadata.get("generateName") or "(no name)")


# -- fields ----------------------------------------------------------------------------------------------------------------

_OLD_DISKS: Final = ("awsElasticBlockStore", "gcePersistentDisk", "azureDisk", "cinder", "vsphereVolume")
_NAMESPACE_ANNOTATIONS: Final = (
    "scheduler.alpha.kubernetes.io/node-selector",
    "scheduler.alpha.kubernetes.io/defaultTolerations",
    "scheduler.alpha.kubernetes.io/tolerationsWhitelist",
)
_INJECTED: Final = ("istio-injection", "istio.io/rev", "linkerd.io/inject")
_TEMPLATES: Final = ("Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "ReplicationController", "Job")

Rule = Callable[[Mapping[str, Any]], Iterator[tuple[str, str]]]
"""Gives the fields of a raw object that are not used, each with what that means."""


def _of_pod(spec: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    scheduler = spec.get("schedulerName") or "default-scheduler"
    if scheduler != "default-scheduler":
        yield "schedulerName", f"pods are placed as kube-scheduler would place them, not as {scheduler} does"
    for volume in _mappings(spec.get("volumes")):
        for disk in _OLD_DISKS:
            if disk in volume:
                yield f"volumes.{disk}", "it is not known in which zone the disk is; use a PersistentVolume"


def _of_template(spec: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    yield from _of_pod(spec)
    if spec.get("nodeName"):
        yield "nodeName", "its pods are planned for as if kube-scheduler chose their nodes, though all go to that one"
    if spec.get("schedulingGates"):
        yield "schedulingGates", "its pods are planned for as if their gates were gone"
    if _part(spec, "os").get("name") == "windows" and not _part(spec, "nodeSelector").get(OS):
        yield "os", f"kube-scheduler does not look at it; give them the nodeSelector {OS}: windows"


def _of_job(raw: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    manager = _part(raw, "spec").get("managedBy")
    if manager not in (None, "kubernetes.io/job-controller"):
        yield "spec.managedBy", f"its pods are planned for as if the Job controller made them, not {manager}"


def _of_limit_range(raw: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for item in _mappings(_part(raw, "spec").get("limits")):
        if item.get("type") == "Pod":
            yield "spec.limits of type Pod", "pods that it would refuse are planned for, too"
        elif item.get("type") == "Container" and item.get("maxLimitRequestRatio"):
            yield "spec.limits.maxLimitRequestRatio", "pods that it would refuse are planned for, too"


def _of_namespace(raw: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for name in _NAMESPACE_ANNOTATIONS:
        if name in _part(raw, "metadata", "annotations"):
            yield (
                f"the annotation {name}",
                "what an admission plugin would add to its pods because of it is not planned for",
            )
    for name in _INJECTED:
        if _part(raw, "metadata", "labels").get(name) not in (None, "disabled"):
            yield f"the label {name}", "sidecars that are injected into its pods are not planned for"


def _of_claim(raw: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    if _part(raw, "spec").get("selector"):
        yield (
            "spec.selector",
            "the volume is taken to be one that a StorageClass would make, not one that is chosen by labels",
        )


_FIELDS: Final[Mapping[str, Rule]] = {
    "Job": _of_job,
    "LimitRange": _of_limit_range,
    "Namespace": _of_namespace,
    "PersistentVolumeClaim": _of_claim,
}


def fields(raw: Mapping[str, Any]) -> Iterator[Ignored]:
    """The fields of an object, of a kind that is read, that plans do not use though they could change the answer."""
    kind, name, spec = str(raw.get("kind")), name_of(raw), pod_spec(raw)
    if kind in _FIELDS:
        yield from (Ignored(kind, (name,), why, field) for field, why in _FIELDS[kind](raw))
    if spec is not None:
        path, rule = ("spec", _of_pod) if kind == "Pod" else ("spec.template.spec", _of_template)
        yield from (Ignored(kind, (name,), why, f"{path}.{field}") for field, why in rule(spec))


def pod_spec(raw: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The spec of a raw pod, or of the pods of a raw workload; None for other kinds."""
    kind = raw.get("kind")
    if kind == "Pod":
        return _part(raw, "spec")
    return _part(raw, "spec", "template", "spec") if kind in _TEMPLATES else None


def grouped(found: Iterable[Ignored]) -> tuple[Ignored, ...]:
    """The same field for the same reason is told once, with all objects."""
    groups: dict[tuple[str, str, str], dict[str, None]] = {}
    for each in found:
        groups.setdefault((each.kind, each.field, each.reason), {}).update(dict.fromkeys(each.objects))
    return tuple(Ignored(kind, tuple(names), why, field) for (kind, field, why), names in sorted(groups.items()))


def _part(raw: Any, *path: str) -> Mapping[str, Any]:
    for name in path:
        raw = raw.get(name) if isinstance(raw, Mapping) else None
    return raw if isinstance(raw, Mapping) else {}


def _mappings(raw: Any) -> Iterator[Mapping[str, Any]]:
    return (each for each in raw if isinstance(each, Mapping)) if isinstance(raw, list) else iter(())
