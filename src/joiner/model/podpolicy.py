"""Rules that others set for pods: disruption budgets, priorities, runtimes, limits."""

from collections.abc import Mapping
from typing import ClassVar, Final

from joiner.model.meta import KubeObject, Value
from joiner.model.quantity import Quantity
from joiner.model.selector import LabelSelector
from joiner.model.taints import Toleration

ALWAYS_ALLOW: Final = "AlwaysAllow"


class PodDisruptionBudgetSpec(Value):
    """How many of the chosen pods must stay or may be away: a number, or a share like `50%`."""

    selector: LabelSelector | None = None
    min_available: int | str | None = None
    max_unavailable: int | str | None = None
    unhealthy_pod_eviction_policy: str | None = None


class PodDisruptionBudgetStatus(Value):
    """How many may be away now."""

    disruptions_allowed: int = 0
    current_healthy: int = 0
    desired_healthy: int = 0
    expected_pods: int = 0
    observed_generation: int = 0


class PodDisruptionBudget(KubeObject):
    """Protects a set of pods from leaving all at once."""

    group: ClassVar[str] = "policy"
    kind: ClassVar[str] = "PodDisruptionBudget"
    plural: ClassVar[str] = "poddisruptionbudgets"

    spec: PodDisruptionBudgetSpec = PodDisruptionBudgetSpec()
    status: PodDisruptionBudgetStatus = PodDisruptionBudgetStatus()

    @property
    def never_allows(self) -> bool:
        """Whether no pod may ever be away, whatever the numbers are now."""
        return self.spec.max_unavailable in (0, "0", "0%") or self.spec.min_available == "100%"

    @property
    def lets_unready_go(self) -> bool:
        """Whether pods that are not ready are outside its protection."""
        return self.spec.unhealthy_pod_eviction_policy == ALWAYS_ALLOW


class PriorityClass(KubeObject):
    """What a priority class is worth."""

    group: ClassVar[str] = "scheduling.k8s.io"
    kind: ClassVar[str] = "PriorityClass"
    plural: ClassVar[str] = "priorityclasses"
    namespaced: ClassVar[bool] = False

    value: int = 0
    global_default: bool = False
    preemption_policy: str | None = None


class RuntimeOverhead(Value):
    """What each pod costs beyond its containers."""

    pod_fixed: Mapping[str, Quantity] = {}


class RuntimeScheduling(Value):
    """Where pods of the runtime can be."""

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
