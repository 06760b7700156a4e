"""Whole CustomResourceDefinitions, ready for an API server."""

from typing import Any

from joiner import yamldoc
from joiner.admission.kinds import Kinds
from joiner.admission.schema import openapi, schema_of
from joiner.model.customobject import Column, CustomObject

_EVERY_OBJECT: dict[str, Any] = {
    "apiVersion": {"type": "string", "description": "The group and version of the object's kind."},
    "kind": {"type": "string", "description": "The kind of the object."},
    "metadata": {"type": "object"},
}


def crds(kinds: Kinds) -> dict[str, str]:
    """File name to YAML text, one CRD a file, in order of file name."""
    written = {f"{kind.group}_{kind.plural}.yaml": yamldoc.dump(crd(kind)) for kind in kinds}
    return {name: written[name] for name in sorted(written)}


def crd(kind: type[CustomObject]) -> dict[str, Any]:
    """The CRD of one kind."""
    names: dict[str, Any] = {
        "kind": kind.kind,
        "listKind": f"{kind.kind}List",
        "plural": kind.plural,
        "singular": kind.kind.lower(),
    }
    if kind.short_names:
        names["shortNames"] = list(kind.short_names)
    if kind.categories:
        names["categories"] = list(kind.categories)
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{kind.plural}.{kind.group}"},
        "spec": {
            "group": kind.group,
            "names": names,
            "scope": "Namespaced" if kind.namespaced else "Cluster",
            "versions": [_version(kind)],
        },
    }


def _version(kind: type[CustomObject]) -> dict[str, Any]:
    schema = openapi(schema_of(kind))
    schema["properties"] = _EVERY_OBJECT | schema["properties"]
    subresources: dict[str, Any] = {"status": {}}
    if kind.scale:
        subresources["scale"] = {"specReplicasPath": kind.scale[0], "statusReplicasPath": kind.scale[1]}
    return {
        "name": kind.version,
        "served": True,
        "storage": True,
        "additionalPrinterColumns": [_column(column) for column in kind.columns],
        "schema": {"openAPIV3Schema": schema},
        "subresources": subresources,
    }


def _column(column: Column) -> dict[str, Any]:
    written: dict[str, Any] = {"name": column.name, "type": column.type, "jsonPath": column.path}
    return {**written, "priority": 1} if column.wide else written
