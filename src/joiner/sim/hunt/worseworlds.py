"""Worlds that are worse than those of ordinary hunts, in one way each, drawn from the seed.

What is here was found to matter: an API server or the controllers away for longer than a machine has to join, a cloud whose
lists are behind, so many faults that second looks fail as well, clocks that are set by an hour, and nodes that are consolidated
meanwhile.
"""

from collections.abc import Mapping
from random import Random
from types import MappingProxyType
from typing import Final

from joiner.model.meta import Value
from joiner.sim.hunt.faults import Chances

Span = tuple[float, float]
"""From when until when, in seconds of the world."""


class WorseWorld(Value):
    """What a world has to endure beside everything that hunts do anyway."""

    chances: Chances = Chances()
    api_away: tuple[Span, ...] = ()
    """When no request of the controllers reaches the API server."""
    cloud_away: tuple[Span, ...] = ()
    controllers_away: tuple[Span, ...] = ()
    """When the controllers do not run."""
    unlisted_s: float = 0.0
    """How long the cloud does not tell of a machine that was bought."""
    clock_steps: tuple[Span, ...] = ()
    """When the clock is set, and by how much."""
    ec2: bool = False
    """Whether the provider is aws, over a pretend account."""
    other_cluster: tuple[float, ...] = ()
    """When another cluster takes places in reservations, or gives them back, in seconds of the world."""
    consolidates: bool = False
    """Whether underused and empty nodes are consolidated, in each pool in its own way."""


def _outage(draw: Random) -> WorseWorld:
    return WorseWorld(api_away=_spans(draw, 10.0, 16.0), cloud_away=_spans(draw, 8.0, 12.0))


def _absence(draw: Random) -> WorseWorld:
    return WorseWorld(controllers_away=_spans(draw, 10.0, 17.0))


def _behind(draw: Random) -> WorseWorld:
    return WorseWorld(unlisted_s=draw.uniform(5.0, 45.0))


def _heavy(draw: Random) -> WorseWorld:
    del draw
    usual = Chances()
    return WorseWorld(
        chances=Chances(**{name: min(0.25, 6 * getattr(usual, name)) for name in Chances.__struct_fields__})
    )


def _clock(draw: Random) -> WorseWorld:
    steps = [(draw.uniform(60.0, 4_500.0), draw.uniform(-3_600.0, 3_600.0)) for _ in range(3)]
    return WorseWorld(clock_steps=tuple(sorted(steps)))


def _consolidation(draw: Random) -> WorseWorld:
    del draw
    return WorseWorld(consolidates=True)


def _ec2(draw: Random) -> WorseWorld:
    moves = sorted(draw.uniform(60.0, 4_500.0) for _ in range(12))
    return WorseWorld(ec2=True, other_cluster=tuple(moves), unlisted_s=draw.choice([0.0, 5.0, 20.0]))


_KINDS: Final = {
    "ec2": _ec2,
    "consolidation": _consolidation,
    "outage": _outage,
    "absence": _absence,
    "behind": _behind,
    "heavy": _heavy,
    "clock": _clock,
}
WORSE: Final[Mapping[str, str]] = MappingProxyType(
    {
        "ec2": "the provider is aws; EC2 throttles, loses answers and lists late, and another cluster uses its reservations",
        "consolidation": "underused and empty nodes are consolidated meanwhile",
        "outage": "the API server and the cloud do not answer, three times for about a quarter of an hour",
        "absence": "the controllers do not run, three times for about a quarter of an hour",
        "behind": "the cloud does not tell of machines that are younger than half a minute or so",
        "heavy": "six times as many faults between controllers, API server and cloud",
        "clock": "the clock is set back and forth by up to an hour, three times",
    }
)
"""Every way in which a world can be worse, and what that means."""


def worse(kind: str, seed: int) -> WorseWorld:
    """How the world of a seed is worse; without a kind, as ever."""
    return _KINDS[kind](Random(f"worse {kind} {seed}")) if kind else WorseWorld()


def _spans(draw: Random, least: float, most: float) -> tuple[Span, ...]:
    """Three spans of so many minutes, one in each part of the first eighty minutes."""
    spans: list[Span] = []
    for part in range(3):
        length = 60.0 * draw.uniform(least, most)
        start = 60.0 + 1_560.0 * part + draw.uniform(0.0, 1_560.0 - length)
        spans.append((start, start + length))
    return tuple(spans)
