"""Options of `joiner plan` that say how to plan: the two dials, and what the cluster's own scheduler is told."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from joiner.cli import inputs
from joiner.scheduling import dials
from joiner.scheduling.problem import Policy
from joiner.scheduling.spreaddefaults import ConfigProblem, Defaults, configured
from joiner.yamldoc import documents

F = TypeVar("F", bound=Callable[..., Any])

_NODE_PRICE = (
    "What a node is charged when plans are compared, as a fraction of the median price of what can be bought, so that plans do"
    f" not shatter into tiny nodes; never dearer than first fit. 0 is off.  [default: {dials.NODE_PRICE}]"
)
_SPOT_WIDTH = (
    "How many instance types a spot node should be able to launch as, where pods and pool leave as many. 0 is off."
    f"  [default: {dials.SPOT_WIDTH}]"
)
_SPOT_WIDTH_COST = f"By which fraction a plan may become dearer for the spot width.  [default: {dials.SPOT_WIDTH_COST}]"
_SCHEDULER_CONFIG = (
    "The KubeSchedulerConfiguration of the cluster: its default spread constraints are given to pods that have none."
)


def options(function: F) -> F:
    """The options of a command that plans."""
    for each in reversed(
        (
            click.option("--node-price", type=click.FloatRange(min=0), metavar="FRACTION", help=_NODE_PRICE),
            click.option("--spot-width", type=click.IntRange(min=0), metavar="TYPES", help=_SPOT_WIDTH),
            click.option("--spot-width-cost", type=click.FloatRange(min=0), metavar="FRACTION", help=_SPOT_WIDTH_COST),
            click.option("--scheduler-config", type=click.Path(), metavar="FILE", help=_SCHEDULER_CONFIG),
        )
    ):
        function = each(function)
    return function


def policy(
    node_price: float | None = None, spot_width: int | None = None, spot_width_cost: float | None = None
) -> Policy:
    """How to plan, with the dials where they usually stand unless somebody turned them."""
    return Policy(
        node_price=dials.NODE_PRICE if node_price is None else node_price,
        spot_width=dials.SPOT_WIDTH if spot_width is None else spot_width,
        spot_width_cost=dials.SPOT_WIDTH_COST if spot_width_cost is None else spot_width_cost,
    )


def spread_defaults(name: str | None) -> Defaults:
    """The default spread constraints in a scheduler configuration; none without a file."""
    if name is None:
        return {}
    try:
        text = Path(name).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise inputs.BadInput([inputs.InputProblem(name, f"cannot be read: {reason}", "check the path")]) from None
    loaded = documents(text, name)
    if loaded.problems:
        raise inputs.BadInput(loaded.problems)
    if len(loaded.documents) != 1:
        found = f"holds {len(loaded.documents)} documents"
        raise inputs.BadInput([inputs.InputProblem(name, found, "a scheduler configuration is one")])
    try:
        return configured(loaded.documents[0].data)
    except ConfigProblem as problem:
        raise inputs.BadInput([inputs.InputProblem(name, each) for each in problem.problems]) from None
