"""Options of `joiner plan` that say how to plan: node price, spot width, policies, effort, the scheduler's configuration."""

import math
from collections.abc import Callable
from typing import Any, TypeVar

import click

from joiner.scheduling import tuning

F = TypeVar("F", bound=Callable[..., Any])

_NODE_PRICE = (
    "What a node is charged when plans are compared, as a fraction of the median price of what can be bought, so that plans do"
    f" not shatter into tiny nodes; never dearer than first fit. 0 is off.  [default: {tuning.NODE_PRICE}]"
)
_SPOT_WIDTH = (
    "How many instance types a spot node should be able to launch as, where pods and pool leave as many. 0 is off."
    f"  [default: {tuning.SPOT_WIDTH}]"
)
_SPOT_WIDTH_COST = (
    f"By which fraction a plan may become dearer for the spot width.  [default: {tuning.SPOT_WIDTH_COST}]"
)
_SCHEDULER_CONFIG = (
    "The KubeSchedulerConfiguration of the cluster: its default spread constraints are given to pods that have none."
)

_PREFERENCES = "Whether what pods only prefer is respected as far as can be, or ignored.  [default: Respect]"
_MIN_VALUES = "Whether minValues of a pool must be kept, or only as far as can be.  [default: Strict]"
_PLANNING = "Whether the cheapest plan is looked for, or nodes are filled pod by pod.  [default: Cheapest]"

_HPA = (
    "How many replicas workloads with a HorizontalPodAutoscaler are planned for with: those they state, within its bounds;"
    " its minimum; or its maximum.  [default: stated]"
)
_EFFORT = (
    "Try so many pods at the most, in all ways of planning together, first fit first; who has had no turn by then is told."
    "  [default: as many as it takes]"
)


class _Fraction(click.FloatRange):
    """A number from 0 on. What is no number, or endless, is refused: it would pass every comparison, or none."""

    name = "number"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """The number, or click's usual complaint."""
        number = float(super().convert(value, param, ctx))
        if not math.isfinite(number):
            self.fail(f"{value!r} is not a finite number; a number of 0 or more is allowed.", param, ctx)
        return number


def options(function: F) -> F:
    """The options of a command that plans."""
    for each in reversed(
        (
            click.option("--node-price", type=_Fraction(min=0), metavar="FRACTION", help=_NODE_PRICE),
            click.option("--spot-width", type=click.IntRange(min=0), metavar="TYPES", help=_SPOT_WIDTH),
            click.option("--spot-width-cost", type=_Fraction(min=0), metavar="FRACTION", help=_SPOT_WIDTH_COST),
            click.option(
                "--preference-policy", "preferences", type=click.Choice(("Respect", "Ignore")), help=_PREFERENCES
            ),
            click.option(
                "--min-values-policy", "min_values", type=click.Choice(("Strict", "BestEffort")), help=_MIN_VALUES
            ),
            click.option("--planning-policy", "planning", type=click.Choice(("Cheapest", "FirstFit")), help=_PLANNING),
            click.option("--hpa", "load", type=click.Choice(("stated", "min", "max")), help=_HPA),
            click.option("--effort", type=click.IntRange(min=1), metavar="TRIES", help=_EFFORT),
            click.option("--scheduler-config", type=click.Path(), metavar="FILE", help=_SCHEDULER_CONFIG),
        )
    ):
        function = each(function)
    return function
