"""Base class of the kinds with a CRD of ours: what the CRD says besides the schema."""

from typing import ClassVar

from joiner.model.conditions import ConditionSet
from joiner.model.meta import KubeObject, Value


class Column(Value):
    """One column of `kubectl get`."""

    name: str
    path: str
    type: str = "string"
    wide: bool = False
    """Shown only with `-o wide`."""


READY: Column = Column(name="Ready", path='.status.conditions[?(@.type=="Ready")].status')
AGE: Column = Column(name="Age", path=".metadata.creationTimestamp", type="date")


class CustomObject(KubeObject):
    """An API object that comes with a CRD of ours."""

    title: ClassVar[str] = ""
    """One sentence for `kubectl explain`."""
    short_names: ClassVar[tuple[str, ...]] = ()
    categories: ClassVar[tuple[str, ...]] = ("karpenter",)
    columns: ClassVar[tuple[Column, ...]] = (READY, AGE)
    scale: ClassVar[tuple[str, str] | None] = None
    """Where the scale subresource finds the desired and the current number of replicas."""
    condition_set: ClassVar[ConditionSet] = ConditionSet()
    """The conditions in its status that `Ready` sums up."""
