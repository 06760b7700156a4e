"""Files that are no manifests yet: templates of Helm charts, and what kustomize builds manifests from."""

import os
import re
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from joiner.yamldoc import Loaded

_TEMPLATE: Final = re.compile(
    r"\{\{-?\s*(\.|\$|/\*|(include|if|else|end|range|with|define|template|toYaml|tpl|printf|default|quote|required)\b)"
)
_HELM: Final = "render the chart first: helm template NAME CHART | joiner ... -f -"
_KUSTOMIZE: Final = "build it first: kustomize build DIR | joiner ... -f -"
_KUSTOMIZATIONS: Final = ("kustomization.yaml", "kustomization.yml")
_OF_A_CHART: Final = ("chart.yaml", "values.yaml", "values.schema.json")
_OPERATIONS: Final = frozenset({"add", "remove", "replace", "move", "copy", "test"})


def what(path: str, text: str, loaded: "Loaded | None") -> tuple[str, str] | None:
    """What such a file is, and what to do with it; None for everything else."""
    name = os.path.basename(path).lower()
    folder = os.path.dirname(path)
    if name in _KUSTOMIZATIONS:
        return "is for kustomize, and what it changes is not seen here", _KUSTOMIZE
    if name in _OF_A_CHART and os.path.exists(os.path.join(folder, "Chart.yaml")):
        return "belongs to a Helm chart", _HELM
    if loaded is None:
        return None
    if (loaded.problems or any(_named_by_template(each.data) for each in loaded.documents)) and _TEMPLATE.search(text):
        return "is a template of a Helm chart", _HELM
    if loaded.documents and all(_is_json_patch(each.data) for each in loaded.documents):
        return "is a patch of kustomize", _KUSTOMIZE
    return None


def _named_by_template(data: Any) -> bool:
    """Whether the name of an object is still to be filled in. In other texts braces are common and mean nothing here."""
    metadata = data.get("metadata") if isinstance(data, dict) else None
    return isinstance(metadata, dict) and "{{" in str(metadata.get("name"))


def _is_json_patch(data: Any) -> bool:
    return (
        isinstance(data, list)
        and bool(data)
        and all(isinstance(each, dict) and each.get("op") in _OPERATIONS and "path" in each for each in data)
    )
