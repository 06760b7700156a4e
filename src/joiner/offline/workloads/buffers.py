"""What CapacityBuffers of files may imitate: templates and workloads of the same files."""

from collections.abc import Iterable

from joiner.model.workload import PodTemplate
from joiner.offline.workloads.expand import Workload, wanted
from joiner.state.virtualpods import Imitated


class Sources:
    """The objects buffers may imitate, by namespace, kind and name."""

    def __init__(self, templates: Iterable[PodTemplate], workloads: Iterable[Workload]) -> None:
        self._templates = {(each.metadata.namespace, each.name): each for each in templates}
        self._workloads = {(each.metadata.namespace, each.kind, each.name): each for each in workloads}

    def pod_template(self, namespace: str, name: str) -> Imitated | None:
        """The PodTemplate, if it is there."""
        found = self._templates.get((namespace, name))
        return Imitated(found.template) if found is not None else None

    def workload(self, namespace: str, kind: str, name: str) -> Imitated | None:
        """The workload, if it is there."""
        found = self._workloads.get((namespace, kind, name))
        return Imitated(found.spec.template, wanted(found)) if found is not None else None
