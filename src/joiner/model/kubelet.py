"""The kubelet block of a NodeClass: what a node reserves and pods cannot use, and how many pods it takes.

Both spellings are read: the kubelet's own (`evictionHard: {"memory.available": …}`) and the one of the settings design
(`evictionThreshold.hard.memoryAvailable`).
"""

import re
from collections.abc import Mapping
from typing import Annotated, ClassVar, Final

from joiner.model import quantity
from joiner.model.duration import Duration
from joiner.model.meta import Value
from joiner.model.quantity import MILLI
from joiner.model.resources import CPU, EPHEMERAL_STORAGE, MEMORY
from joiner.model.rules import NON_NEGATIVE, SPAN, Amount, Field, Rule, both_or_neither, keys_only

_PERCENT: Final = re.compile(r"([0-9]+)(?:\.([0-9]{1,4}))?%", re.ASCII)
_WHOLE: Final = 1_000_000


class Threshold(Value):
    """An amount, or a share of the capacity."""

    amount: int = 0
    """In thousandths, when `millionths` is not given."""
    millionths: int | None = None
    """The share of the capacity, in millionths."""

    def amount_of(self, capacity: int) -> int:
        """The threshold for a given capacity, in thousandths; shares are rounded up to whole units."""
        if self.millionths is None:
            return self.amount
        if self.millionths >= _WHOLE:
            return 0  # the kubelet reads 100% as "this signal is switched off"
        return -(-capacity * self.millionths // (_WHOLE * MILLI)) * MILLI


def threshold(text: str | int) -> Threshold:
    """Read `100Mi` or `10%`."""
    if isinstance(text, str) and text.endswith("%"):
        match = _PERCENT.fullmatch(text)
        if match is None or int(match[1]) > 100:
            raise quantity.QuantityError(
                f"{text!r} is not a share: write a number from 0 to 100 followed by %, like 10%"
            )
        return Threshold(millionths=int(match[1]) * 10_000 + int((match[2] or "").ljust(4, "0")))
    amount = quantity.parse(text)
    if amount < 0:
        raise quantity.QuantityError(f"{text!r} is negative; an eviction threshold cannot be")
    return Threshold(amount=amount)


SIGNALS: Final[Mapping[str, str | None]] = {
    "memory.available": MEMORY,
    "nodefs.available": EPHEMERAL_STORAGE,
    "nodefs.inodesFree": None,
    "imagefs.available": None,
    "imagefs.inodesFree": None,
    "pid.available": None,
}
"""Eviction signals, and the schedulable resource each one takes from, if any."""

RESERVABLE: Final = (CPU, MEMORY, EPHEMERAL_STORAGE, "pid")

_NAMES: Final = tuple(SIGNALS)
_SOFT: Final = ("evictionSoft", "evictionSoftGracePeriod")
_BY_SIGNAL: Final = Field(
    max_properties=len(_NAMES), rules=(keys_only(_NAMES, f"an eviction signal is one of {', '.join(_NAMES)}"),)
)
_RESERVED: Final = Field(
    max_properties=len(RESERVABLE), rules=(keys_only(RESERVABLE, f"only {', '.join(RESERVABLE)} can be reserved"),)
)
WrittenThreshold = Annotated[
    str | int,
    Field(
        pattern=f"^((100|[0-9]{{1,2}}([.][0-9]{{1,4}})?)%|{NON_NEGATIVE.pattern.strip('^$')})$",
        words="an amount like 100Mi, or a share from 0% to 100%",
        minimum=0,
        max_length=64,
    ),
]
"""`100Mi` or `10%`."""


class SeedThresholds(Value):
    """Eviction signals as the settings design spells them."""

    memory_available: WrittenThreshold | None = None
    nodefs_available: WrittenThreshold | None = None
    nodefs_inodes_free: WrittenThreshold | None = None
    imagefs_available: WrittenThreshold | None = None
    imagefs_inodes_free: WrittenThreshold | None = None
    pid_available: WrittenThreshold | None = None

    def by_signal(self) -> dict[str, str | int]:
        """The same, by the kubelet's names."""
        named = {
            "memory.available": self.memory_available,
            "nodefs.available": self.nodefs_available,
            "nodefs.inodesFree": self.nodefs_inodes_free,
            "imagefs.available": self.imagefs_available,
            "imagefs.inodesFree": self.imagefs_inodes_free,
            "pid.available": self.pid_available,
        }
        return {signal: value for signal, value in named.items() if value is not None}


class SeedEviction(Value):
    """`evictionThreshold` of the settings design."""

    hard: SeedThresholds = SeedThresholds()
    soft: SeedThresholds = SeedThresholds()


class Kubelet(Value):
    """`spec.kubelet` of a NodeClass: the keys that change what pods can use."""

    rules: ClassVar[tuple[Rule, ...]] = (
        both_or_neither(
            "evictionSoft", "evictionSoftGracePeriod", "evictionSoft and evictionSoftGracePeriod come together"
        ),
        Rule(
            cel=(
                "!has(self.evictionSoft) || !has(self.evictionSoftGracePeriod)"
                " || (self.evictionSoft.all(signal, signal in self.evictionSoftGracePeriod)"
                " && self.evictionSoftGracePeriod.all(signal, signal in self.evictionSoft))"
            ),
            message="evictionSoft and evictionSoftGracePeriod must name the same signals",
            holds=lambda value: len({frozenset(value[name]) for name in _SOFT if name in value}) < 2,
            field=".evictionSoftGracePeriod",
        ),
    )

    kube_reserved: Annotated[
        Mapping[str, Amount], "Kept back for the kubelet and the container runtime.", _RESERVED
    ] = {}
    system_reserved: Annotated[Mapping[str, Amount], "Kept back for the operating system.", _RESERVED] = {}
    eviction_hard: Annotated[
        Mapping[str, WrittenThreshold], "Below this pods are evicted at once; pods cannot use it.", _BY_SIGNAL
    ] = {}
    eviction_soft: Annotated[
        Mapping[str, WrittenThreshold], "Below this pods are evicted after a grace period; pods can use it.", _BY_SIGNAL
    ] = {}
    eviction_soft_grace_period: Annotated[
        Mapping[str, Annotated[Duration, SPAN]], "The grace period of each signal of evictionSoft.", _BY_SIGNAL
    ] = {}
    eviction_threshold: Annotated[
        SeedEviction, "The same thresholds in other words: hard and soft, with memoryAvailable and the like."
    ] = SeedEviction()
    max_pods: Annotated[int | None, "The most pods on one node.", Field(minimum=0, format="int32")] = None
    pods_per_core: Annotated[
        int | None, "The most pods for each core; 0 for no such limit.", Field(minimum=0, format="int32")
    ] = None

    def hard_thresholds(self) -> dict[str, Threshold]:
        """Resource name to its hard eviction threshold. Soft ones never reduce what pods can use."""
        signals = {**self.eviction_threshold.hard.by_signal(), **self.eviction_hard}
        thresholds: dict[str, Threshold] = {}
        for signal, value in signals.items():
            resource = SIGNALS.get(signal)
            if resource is not None:
                thresholds[resource] = threshold(value)
        return thresholds

    def pods_limit(self, cpu: int) -> int | None:
        """The cap on pods for a machine with so much cpu, both in thousandths; None if there is none."""
        caps = [] if self.max_pods is None else [self.max_pods * MILLI]
        if self.pods_per_core:
            caps.append(self.pods_per_core * (cpu // MILLI) * MILLI)
        return min(caps, default=None)
