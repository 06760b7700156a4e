"""Taints and tolerations, and the taints that Joiner sets or expects."""

from collections.abc import Iterable, Sequence
from typing import Annotated, Final, Literal

from joiner.model.meta import Value
from joiner.model.rules import LABEL_KEY, QUALIFIED_OR_EMPTY, Field

Effect = Literal["NoSchedule", "PreferNoSchedule", "NoExecute"]
EFFECTS: Final = ("NoSchedule", "PreferNoSchedule", "NoExecute")
MOST_TAINTS: Final = 100


class Taint(Value):
    """What keeps pods off a node unless they tolerate it."""

    key: Annotated[str, "The name of the taint.", LABEL_KEY, Field(min_length=1)]
    effect: Annotated[Effect, "What happens to pods that do not tolerate the taint."]
    value: Annotated[str, "What a toleration may compare with.", QUALIFIED_OR_EMPTY] = ""


class Toleration(Value):
    """What lets a pod onto a node in spite of a taint. Empty fields match everything."""

    key: str = ""
    operator: str = "Equal"
    """`Equal` or `Exists`; an operator we do not know tolerates nothing."""
    value: str = ""
    effect: str = ""
    toleration_seconds: int | None = None

    def tolerates(self, taint: Taint) -> bool:
        """Whether the taint does not matter to a pod with this toleration."""
        if self.effect not in ("", taint.effect) or self.key not in ("", taint.key):
            return False
        return self.operator == "Exists" or (self.operator in ("", "Equal") and self.value == taint.value)


DISRUPTED: Final = Taint(key="karpenter.sh/disrupted", effect="NoSchedule")
"""On nodes that are being disrupted."""
UNREGISTERED: Final = Taint(key="karpenter.sh/unregistered", effect="NoExecute")
"""On nodes that joined but were not yet matched with their claim."""
REBOOTING: Final = Taint(key="karpenter.sh/rebooting", effect="NoSchedule")
TO_BE_REMOVED: Final = Taint(key="joiner.dev/to-be-removed", effect="PreferNoSchedule")
"""On nodes that consolidation means to remove sooner or later: the kube-scheduler prefers other nodes."""

KNOWN_EPHEMERAL: Final = (
    Taint(key="node.kubernetes.io/not-ready", effect="NoSchedule"),
    Taint(key="node.kubernetes.io/not-ready", effect="NoExecute"),
    Taint(key="node.kubernetes.io/unreachable", effect="NoSchedule"),
    Taint(key="node.cloudprovider.kubernetes.io/uninitialized", effect="NoSchedule", value="true"),
    UNREGISTERED,
)
"""Taints that go away by themselves while a node starts."""
EPHEMERAL_PREFIX: Final = "readiness.k8s.io/"

PREFER_NO_SCHEDULE_TOLERATION: Final = Toleration(operator="Exists", effect="PreferNoSchedule")


def same(left: Taint, right: Taint) -> bool:
    """Whether two taints are the same one: key and effect decide, as the API server has it, not the value."""
    return left.key == right.key and left.effect == right.effect


def is_among(taint: Taint, taints: Iterable[Taint]) -> bool:
    """Whether the taint is one of these."""
    return any(same(taint, other) for other in taints)


def is_ephemeral(taint: Taint) -> bool:
    """Whether the taint is expected to go away while the node starts."""
    return taint.key.startswith(EPHEMERAL_PREFIX) or is_among(taint, KNOWN_EPHEMERAL)


def tolerates(tolerations: Iterable[Toleration], taint: Taint) -> bool:
    """Whether any of the tolerations covers the taint."""
    return any(toleration.tolerates(taint) for toleration in tolerations)


def untolerated(taints: Iterable[Taint], tolerations: Sequence[Toleration]) -> tuple[Taint, ...]:
    """The taints that keep a pod with these tolerations away."""
    return tuple(taint for taint in taints if not tolerates(tolerations, taint))


def kept_off(taints: Iterable[Taint], tolerations: Sequence[Toleration]) -> bool:
    """Whether some taint keeps the pod off a node for good; `PreferNoSchedule` does not."""
    return any(taint.effect != "PreferNoSchedule" for taint in untolerated(taints, tolerations))


def merged(taints: Iterable[Taint], more: Iterable[Taint]) -> tuple[Taint, ...]:
    """Both lists; where both have a taint, the first one's value stays."""
    result = list(taints)
    result.extend(taint for taint in more if not is_among(taint, result))
    return tuple(result)


def without(taints: Iterable[Taint], unwanted: Iterable[Taint]) -> tuple[Taint, ...]:
    """The first list less the taints of the second."""
    gone = tuple(unwanted)
    return tuple(taint for taint in taints if not is_among(taint, gone))
