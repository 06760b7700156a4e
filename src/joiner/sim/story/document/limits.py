"""How large and how small the numbers and times of a story may be. What is out of bounds is a slip of the pen, not a story."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from joiner.model.duration import NEVER, Duration
from joiner.model.quantity import Quantity
from joiner.sim.story.document.format import Traffic
from joiner.sim.story.document.given import Words

LONGEST: Final = Duration.parse("87600h")
"""No story is longer than ten years."""
MOST_PODS: Final = 150_000
"""More than that no Kubernetes cluster is made for."""
MOST_AT_ONCE: Final = 10_000
"""The pods that a story may have at one time: more are played for hours."""
_PODS: Final = frozenset({"replicas", "low", "high", "completions", "parallelism", "running", "pending"})
"""Words that say how many pods there are."""
_SOME: Final = frozenset(
    {"factor", "reclaim", "vanish", "never_join", "every", "period", "lasts", "cost_per_hour_below", "set_clock_back"}
)
"""Words that mean nothing when they are zero."""
_MAY_BE_NEVER: Final = frozenset({"expire_after", "termination_grace_period", "consolidate_after"})
_NUMBERS: Final = frozenset({"running", "pending", "nodes", "tainted", "requests"})
"""Words with numbers inside that are ours to judge."""


def problems(words: Words) -> Iterator[tuple[str, str]]:
    """What is out of bounds, each with the word that it is about."""
    for name, written in zip(words.__struct_fields__, words.__struct_encode_fields__, strict=True):
        value = getattr(words, name)
        parts = value.items() if isinstance(value, Mapping) and name in _NUMBERS else [("", value)]
        for key, each in parts:
            problem = _problem(name, each)
            if problem:
                yield f"{written}[{key}]" if key else written, problem
    if isinstance(words, Traffic):
        if words.low > words.high:
            yield "low", f"{words.low} is more than high, which is {words.high}"
        if 0 < words.every < Duration.parse("1s"):
            yield "every", f"{words.every.text()} is less than a second"


def crowd(sizes: Mapping[str, int]) -> str:
    """What is wrong with the largest sizes of all workloads together; empty when nothing is."""
    total = sum(sizes.values())
    if total <= MOST_AT_ONCE:
        return ""
    largest = max(sizes, key=lambda name: sizes[name])
    return (
        f"the workloads have up to {total:,} pods together, {sizes[largest]:,} of them {largest}; a story is played with at most"
        f" {MOST_AT_ONCE:,}. `joiner plan` plans for more"
    )


def moment(value: Duration) -> str:
    """What is wrong with a time of the story; empty when nothing is."""
    if value < 0:
        return f"{value.text()} is before the beginning of the story"
    return "must be a length of time, not Never" if value == NEVER else _too_long(value)


def _problem(name: str, value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return ""
    if isinstance(value, Duration) and value == NEVER:
        return "" if name in _MAY_BE_NEVER else "must be a length of time, not Never"
    shown = value.text() if isinstance(value, Duration) else f"{value:g}" if isinstance(value, float) else f"{value}"
    if value < 0 and not isinstance(value, Quantity):
        return f"{shown} is less than 0"
    if value < 0:
        return "an amount cannot be less than 0"
    if value == 0 and name in _SOME:
        return "must be more than 0"
    if name in _PODS and value > MOST_PODS:
        return f"{value:,} pods are more than a cluster can have; at most {MOST_PODS:,} can be told of"
    return _too_long(value) if isinstance(value, Duration) else ""


def _too_long(value: Duration) -> str:
    return f"{value.text()} is longer than ten years" if value > LONGEST else ""
