"""What the manifests of a story say that a simulation does not go by, though it could change what happens."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from joiner.model.podpolicy import LimitRange, PriorityClass, RuntimeClass
from joiner.offline import ignored
from joiner.offline.ignored import Ignored
from joiner.sim.workloads.podfactory import SYSTEM_PRIORITIES

_SIMULATED: Final = ("schedulerName", "nodeName", "schedulingGates")
"""Fields of pods that plans pass over, and that the simulated kube-scheduler goes by."""


def notes(given: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """A line for each field, and for each class of pods that is named and not there."""
    given = tuple(given)
    found = [each for raw in given for each in _of(raw) if each.field.rpartition(".")[2] not in _SIMULATED]
    yield from map(str, ignored.grouped(found))
    named = [spec for raw in given if (spec := ignored.pod_spec(raw)) is not None]
    there = {(str(raw.get("kind")), ignored.name_of(raw)) for raw in given}
    there.update((PriorityClass.kind, name) for name in SYSTEM_PRIORITIES)
    for kind, field, said in (
        (PriorityClass.kind, "priorityClassName", "its pods have priority 0"),
        (
            RuntimeClass.kind,
            "runtimeClassName",
            "the overhead, nodeSelector and tolerations that it gives pods are missing",
        ),
    ):
        for name in sorted({str(spec[field]) for spec in named if spec.get(field)}):
            if (kind, name) not in there:
                yield f"{kind} {name} is not in the story; {said}"


def _of(raw: Mapping[str, Any]) -> Iterator[Ignored]:
    if raw.get("kind") == LimitRange.kind:
        why = "pods of a simulation get no requests and limits from it"
        yield Ignored(LimitRange.kind, (ignored.name_of(raw),), why, "spec.limits")
    else:
        yield from ignored.fields(raw)
