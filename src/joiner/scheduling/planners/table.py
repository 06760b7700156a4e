"""The planners as a table: what each is, and which problems it suits. First fit is the net under all of them.

What each of them is worth was measured by leaving it out: see `docs/design/engine.md`.
"""

from collections.abc import Callable
from typing import Final, NamedTuple

from joiner.scheduling.engine.firstfit import FirstFit
from joiner.scheduling.engine.prepared import PreparedProblem
from joiner.scheduling.planners.firstfitvariants import FirstPlace
from joiner.scheduling.planners.leastincrease import LeastIncrease, TightLeastIncrease
from joiner.scheduling.planners.valuegreedy import ConstrainedFirst, ValueGreedy

TINY: Final = 60
"""Up to so many pods a plan is expected at once, and no linear relaxation is solved."""
SMALL: Final = 400
"""Up to so many pods everything is tried."""
LARGE: Final = 2_000
"""From so many pods on only the most promising planner is tried."""
HUGE: Final = 5_000
"""From so many on it is tried only once: LP rounding with a charge for nodes, which makes it buy fewer and larger ones."""
MANY_ALIKE: Final = 10
"""How many pods of a class make whole nodes of one pattern pay."""


class Shape(NamedTuple):
    """What of a problem decides which planners suit it."""

    pods: int
    classes: int
    domains: bool
    """Whether topology leaves some pod a choice of domains: it picks by average price, unless a planner looks."""
    places: bool
    """Whether volumes of some pod can be reached from several places."""

    @property
    def alike(self) -> bool:
        """Whether most pods have many others like them."""
        return self.pods >= MANY_ALIKE * self.classes


def shape_of(prepared: PreparedProblem) -> Shape:
    """The shape of a problem."""
    classes = prepared.classes
    return Shape(
        pods=len(prepared.numbers),
        classes=len(classes),
        domains=not all(step.final for pod_class in classes for step in pod_class.steps),
        places=any(len(pod_class.volumes.places) > 1 for pod_class in classes),
    )


class Planner(NamedTuple):
    """A row of the table."""

    load: Callable[[], type[FirstFit]]
    idea: str
    suits: Callable[[Shape], bool]

    @property
    def run(self) -> type[FirstFit]:
        """The planner, loaded when it is asked for: plans of a few pods need no linear relaxation."""
        return self.load()


def _rounded() -> type[FirstFit]:
    from joiner.scheduling.planners.lprounding import LpRounded

    return LpRounded


def _priced() -> type[FirstFit]:
    from joiner.scheduling.planners.lprounding import LpPriced

    return LpPriced


def _few(shape: Shape) -> bool:
    return 1 < shape.pods <= SMALL


def _by_value(shape: Shape) -> bool:
    # First fit buys the cheapest node for a single pod, unless there are domains to choose from.
    return shape.pods > 1 or shape.domains or shape.places if shape.pods < LARGE else not shape.alike


PLANNERS: Final = (
    Planner(lambda: ValueGreedy, "buys the node whose best filling has most value per dollar", _by_value),
    Planner(lambda: ConstrainedFirst, "the same, pods with the fewest kinds of node first", _few),
    Planner(lambda: LeastIncrease, "puts each pod on the claim that it makes dearer by least", _few),
    Planner(
        lambda: TightLeastIncrease,
        "the same, where that costs clearly less than a new claim",
        lambda s: 1 < s.pods <= TINY,
    ),
    Planner(
        lambda: FirstPlace,
        "first fit, volumes reached from their first place only",
        lambda s: s.places and s.pods <= SMALL,
    ),
    Planner(
        _rounded,
        "buys the whole nodes of the linear relaxation, the rest by value",
        lambda s: TINY < s.pods < LARGE or (s.pods >= LARGE and s.alike),
    ),
    Planner(_priced, "buys by the dual values of the linear relaxation", lambda s: TINY < s.pods <= SMALL),
)
"""In the order in which they are tried; of plans that are as good the earlier one is taken."""


def suitable(shape: Shape) -> tuple[type[FirstFit], ...]:
    """The planners that suit a problem."""
    return tuple(planner.run for planner in PLANNERS if planner.suits(shape))
