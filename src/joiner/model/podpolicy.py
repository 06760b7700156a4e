"""Policies for pods: PodDisruptionBudget, PriorityClass, RuntimeClass, LimitRange."""

from collections.abc import Mapping
from typing import ClassVar, Final

from joiner.model.meta import KubeObject, Value
from joiner.model.quantity import Quantity
from joiner.model.selector import LabelSelector
from joiner.model.taints import Toleration

ALWAYS_ALLOW: Final = "AlwaysAllow"


class PodDisruptionBudgetSpec(Value):
    """How many of the selected pods must be available or may be unavailable: a number, or a share like `50%`."""

    selector: LabelSelector | None = None
    min_available: int | str | None = None
    max_unavailable: int | str | None = None
    unhealthy_pod_eviction_policy: str | None = None


class PodDisruptionBudgetStatus(Value):
    """How many pods may be evicted now."""

    disruptions_allowed: int = 0
    current_healthy: int = 0
    desired_healthy: int = 0
    expected_pods: int = 0
    observed_generation: int = 0


class PodDisruptionBudget(KubeObject):
    """Limits how many of a set of pods may be evicted at once."""

    group: ClassVar[str] = "policy"
    kind: ClassVar[str] = "PodDisruptionBudget"
    plural: ClassVar[str] = "poddisruptionbudgets"

    spec: PodDisruptionBudgetSpec = PodDisruptionBudgetSpec()
    status: PodDisruptionBudgetStatus = PodDisruptionBudgetStatus()

    @property
    def never_allows(self) -> bool:
        """Whether no pod may ever be evicted, whatever the status is now."""
        return self.spec.max_unavailable in (0, "0", "0%") or self.spec.min_available == "100%"

    @property
    def lets_unready_go(self) -> bool:
        """Whether pods that are not ready may always be evicted."""
        return self.spec.unhealthy_pod_eviction_policy == ALWAYS_ALLOW


class PriorityClass(KubeObject):
    """A named priority."""

    group: ClassVar[str] = "scheduling.k8s.io"
    kind: ClassVar[str] = "PriorityClass"
    plural: ClassVar[str] = "priorityclasses"
    namespaced: ClassVar[bool] = False

    value: int = 0
    global_default: bool = False
    preemption_policy: str | None = None


class RuntimeOverhead(Value):
    """What each pod takes beyond its containers."""

    pod_fixed: Mapping[str, Quantity] = {}


class RuntimeScheduling(Value):
    """Where pods of the runtime can run."""

    node_selector: Mapping[str, str] = {}
    tolerations: tuple[Toleration, ...] = ()


class RuntimeClass(KubeObject):
    """A way to run containers."""

    group: ClassVar[str] = "node.k8s.io"
    kind: ClassVar[str] = "RuntimeClass"
    plural: ClassVar[str] = "runtimeclasses"
    namespaced: ClassVar[bool] = False

    handler: str = ""
    overhead: RuntimeOverhead = RuntimeOverhead()
    scheduling: RuntimeScheduling = RuntimeScheduling()


class LimitRangeItem(Value):
    """Bounds and defaults for containers, pods or claims."""

    type: str = ""
    default: Mapping[str, Quantity] = {}
    default_request: Mapping[str, Quantity] = {}
    min: Mapping[str, Quantity] = {}
    max: Mapping[str, Quantity] = {}


class LimitRangeSpec(Value):
    """The bounds of a namespace."""

    limits: tuple[LimitRangeItem, ...] = ()


class LimitRange(KubeObject):
    """What containers of a namespace get when they ask for nothing."""

    kind: ClassVar[str] = "LimitRange"
    plural: ClassVar[str] = "limitranges"

    spec: LimitRangeSpec = LimitRangeSpec()
