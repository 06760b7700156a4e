"""Local search over the queue: one class at a time moves to its front or its back, where that makes the plan cheaper.

First fit is as good as the order of its queue. Largest first is a good rule, and a rough one: where topology and nodes that
are there leave little choice, a class that goes before all others, or after them, may save a node. Every order is planned from
the beginning under the same rules, so each result is a valid plan.
"""

from collections.abc import Callable
from itertools import product
from typing import Final

from joiner.scheduling.engine.firstfit import FirstFit
from joiner.scheduling.engine.pricing import rounded

PODS: Final = 2_000
"""How many pods may be placed anew from one beginning: in many orders of a few pods, or a few orders of many."""
AT_ONCE: Final = 14
"""How many orders are tried of a plan that is expected at once."""


def reordered(start: FirstFit, price: Callable[[FirstFit], float]) -> FirstFit:
    """The best plan that changing places leads to, or the one it started with; `price` is what a plan is chosen by."""
    best, order = start, start.queue()
    classes = dict.fromkeys(start.of_pod[position].number for position in start.wanted())
    tries = PODS // max(1, len(order))
    for number, first in product(classes, (True, False)):
        some = [position for position in order if start.of_pod[position].number == number]
        changed = _moved(order, some, first)
        if changed == order:
            continue
        if not tries:
            break
        tries -= 1
        run = best.again(changed, price(best))
        if run is not None and _better(run, best, price):
            best, order = run, changed
    return best


def rescued(start: FirstFit) -> FirstFit:
    """A plan that leaves out fewer pods, if one comes of trying those first that are left out; or the one it started with.

    A class that goes first may take away what another one needs. No pod is left out in place of another.
    """
    best, order = start, start.queue()
    waiting, tries = start.waiting(), PODS // max(1, len(order))
    for number in dict.fromkeys(start.of_pod[position].number for position in order if position in waiting):
        if not best.left_over()[number] or not best.has_hope(best.classes[number]):
            continue
        if not tries:
            break
        tries -= 1
        changed = _moved(order, [position for position in order if start.of_pod[position].number == number], True)
        run = best.again(changed)
        if run is not None and run.left_over() < best.left_over():
            best, order = run, changed
    return best


def _better(run: FirstFit, best: FirstFit, price: Callable[[FirstFit], float]) -> bool:
    """Whether a run leaves out the same, costs less, with and without a charge for nodes, and gives up no more preferences."""
    cheaper = price(run) < price(best) and rounded(run.compared_price()) <= rounded(best.compared_price())
    same = run.left_over() == best.left_over() and run.given_up <= best.given_up
    return cheaper and same and run.demoted() <= best.demoted()


def _moved(order: list[int], some: list[int], first: bool) -> list[int]:
    """The queue with some pods before or after all others."""
    chosen = frozenset(some)
    others = [position for position in order if position not in chosen]
    return [*some, *others] if first else [*others, *some]
