"""Two settings that trade a little money for plans that are easier to operate; both are off unless a policy sets them.

The *node price* keeps plans from consisting of many tiny nodes: when plans are compared every node is charged something on
top of its price. It only chooses among plans that cost no more than first fit's. The *spot width* keeps spot nodes from being
tied to a handful of instance types, all of which may be gone at once; see `planners/spotflexibility.py`.
"""

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from joiner.scheduling.problem import Problem

NODE_PRICE: Final = 0.01
"""The usual charge for a node, as a fraction of the median price of what can be bought."""
SPOT_WIDTH: Final = 15
"""How many instance types a spot claim is usually expected to be able to launch."""
SPOT_WIDTH_COST: Final = 0.05
"""By which fraction a plan may usually become dearer for its spot width."""


def charge(problem: "Problem") -> float:
    """What a node is charged, in dollars an hour: a fraction of the median, over all types, of what each costs at best."""
    fraction = problem.policy.node_price
    if fraction <= 0:
        return 0.0
    costs: list[float] = []
    for option in problem.pools:
        stock, wanted = option.catalog.market.stock, option.catalog.requirements
        costs.extend(stock.prices(wanted).columns(stock.described(wanted))[1].tolist())
    return float(f"{fraction * sorted(costs)[len(costs) // 2]:.9g}") if costs else 0.0
