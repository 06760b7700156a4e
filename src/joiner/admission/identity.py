"""Whether a kind is ours, of another project, a misspelling of ours, or one that ours have replaced."""

from collections.abc import Mapping
from typing import Any, Final

from joiner.admission import fieldnames
from joiner.admission.kinds import Kinds
from joiner.admission.problem import FieldProblem, nearest
from joiner.admission.schema import Schema, Shape
from joiner.admission.schemacheck import Found, check
from joiner.model.customobject import CustomObject
from joiner.model.meta import ObjectMeta
from joiner.model.rules import DNS_SUBDOMAIN

_NODEPOOL: Final = "write a NodePool (karpenter.sh/v1)"
_EC2_CLASS: Final = "karpenter.k8s.aws/v1"
_FORMER_KINDS: Final[Mapping[str, str]] = {
    "Provisioner": f"Provisioner was replaced by NodePool: {_NODEPOOL} with its requirements under spec.template.spec",
    "Machine": "Machine was replaced by NodeClaim (karpenter.sh/v1), which is made for you",
    "AWSNodeTemplate": f"AWSNodeTemplate was replaced by EC2NodeClass: write an EC2NodeClass ({_EC2_CLASS})",
}
_GUIDE: Final = "docs/reference/older-manifests.md lists what to write instead"
_FORMER_VERSIONS: Final = ("v1alpha5", "v1beta1")
_OUR_GROUPS_BEGIN: Final = "karpenter."
_LIKELY_GROUP: Final = 0.75
_LIKELY_KIND: Final = 0.8
_NAME: Final = Schema(shape=Shape.TEXT, field=DNS_SUBDOMAIN)
_TEXTS: Final = Schema(shape=Shape.MAP, element=Schema(shape=Shape.TEXT))
_METADATA: Final[Mapping[str, Schema]] = {"name": _NAME, "labels": _TEXTS, "annotations": _TEXTS}
_ANYTHING: Final = Schema(shape=Shape.MAP)


def identify(raw: Mapping[Any, Any], kinds: Kinds) -> tuple[type[CustomObject] | None, tuple[FieldProblem, ...]]:
    """The class of a document. Without one, problems say why it should have had one; none means it is not ours."""
    api_version, kind = raw.get("apiVersion"), raw.get("kind")
    if api_version is None or kind is None:
        return None, tuple(_missing(name, kind, kinds) for name in ("apiVersion", "kind") if raw.get(name) is None)
    if not isinstance(api_version, str) or not isinstance(kind, str):
        name = "kind" if isinstance(api_version, str) else "apiVersion"
        return None, (FieldProblem(path=name, message=f"must be text, not {raw.get(name)!r}"),)
    known = kinds.find(api_version, kind)
    return known, () if known else _strange(api_version, kind, kinds)


def _missing(name: str, kind: Any, kinds: Kinds) -> FieldProblem:
    if name == "apiVersion":
        versions = tuple(known.api_version() for known in kinds if known.kind == kind)
        if versions:
            return FieldProblem(path=name, message=f"is missing; add apiVersion: {versions[0]}")
    return FieldProblem(path=name, message="is missing; every Kubernetes object says what it is")


def _strange(api_version: str, kind: str, kinds: Kinds) -> tuple[FieldProblem, ...]:
    group, _, version = api_version.rpartition("/")
    groups = {known.group for known in kinds}
    if group.startswith(_OUR_GROUPS_BEGIN) and (former := _former(group, version, kind, kinds)):
        return (former,)
    meant = next((known for known in kinds if known.kind == kind), None)
    # No group of Kubernetes itself has such a kind; of the groups of other projects, which have a dot, some do.
    if meant is not None and ("." not in group or group in groups or nearest(group, groups, _LIKELY_GROUP)):
        today = meant.api_version()
        message = f"{kind} is not known in {api_version}"
        return (FieldProblem(path="apiVersion", message=message, allowed=(today,), nearest=today),)
    siblings = tuple(sorted(known.kind for known in kinds if known.group == group))
    likely = nearest(kind, siblings, _LIKELY_KIND)
    # Other projects share a group with our buffers, so there only a likely misspelling is ours to judge.
    if group in groups and (likely or group.startswith(_OUR_GROUPS_BEGIN)):
        message = f"there is no kind {kind} in {group}"
        return (FieldProblem(path="kind", message=message, allowed=siblings, nearest=likely),)
    return ()


def _former(group: str, version: str, kind: str, kinds: Kinds) -> FieldProblem | None:
    if kind in _FORMER_KINDS:
        return FieldProblem(path="kind", message=f"{_FORMER_KINDS[kind]}; {_GUIDE}")
    today = next((known.api_version() for known in kinds if (known.group, known.kind) == (group, kind)), None)
    if kind == "EC2NodeClass" and today is None:
        today = _EC2_CLASS
    if today and version in _FORMER_VERSIONS and today != f"{group}/{version}":
        return FieldProblem(
            path="apiVersion",
            message=f"{group}/{version} is a former version of {kind}, and fields have moved since; {_GUIDE}",
            allowed=(today,),
            nearest=today,
        )
    return None


def check_metadata(raw: Mapping[Any, Any], found: Found) -> None:
    """The part every object has: a name, and labels and annotations that are text."""
    metadata = raw.get("metadata")
    if metadata is None:
        found.say("metadata.name", "is missing; every object needs a name")
        return
    if not check(_ANYTHING, metadata, "metadata", found):
        return
    if metadata.get("name") is None:
        found.say("metadata.name", "is missing; every object needs a name")
    known, _ = fieldnames.names(ObjectMeta)
    for name in metadata:
        if name not in known:
            found.say(
                f"metadata.{name}", "there is no such field; an API server drops it", nearest=nearest(str(name), known)
            )
    for name, schema in _METADATA.items():
        if metadata.get(name) is not None:
            check(schema, metadata[name], f"metadata.{name}", found)
