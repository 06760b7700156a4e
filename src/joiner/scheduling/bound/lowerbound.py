"""The least that any plan can cost: a lower bound of the hourly price, with a proof that does not rest on a solver."""

from collections.abc import Collection
from typing import Final, Literal

from joiner.model.meta import Value
from joiner.scheduling.bound.dualprices import SAFETY, ascended, proven, solved
from joiner.scheduling.bound.enumeration import cheapest
from joiner.scheduling.bound.relaxation import charging, demands_of, of_demands, relaxed
from joiner.scheduling.engine.firstfit import FirstFit
from joiner.scheduling.plan import Plan
from joiner.scheduling.problem import Problem

_NEXT_TO_NOTHING: Final = 1e-6


class BoundPart(Value):
    """Pods that ask for the same, and what each of them adds to the bound."""

    pod: str
    """One of them."""
    count: int
    price: float
    """Dollars an hour that no plan can serve one of them for less than, in the balance of all."""


class Bound(Value):
    """No valid plan that places the covered pods is cheaper."""

    price: float
    """Dollars an hour."""
    parts: tuple[BoundPart, ...] = ()
    """What it is made of, the largest sums first."""
    nodes: float = 0.0
    """What it contains beside the parts, because nodes are bought whole."""
    surplus: float = 0.0
    """What is taken off the parts for room on nodes that are there or reserved."""
    exact: bool = False
    """Whether it is the best that this way of bounding gives; without a solver it is only a valid one."""
    method: Literal["solver", "climb", "all ways"] = "climb"
    """How it was found; where there are only a few pods, by going through all ways to serve them."""
    dropped: tuple[str, ...] = ()
    """Rules in play that it does not know of; they can only make plans dearer."""

    def gap(self, price: float) -> float | None:
        """By which fraction a price is above the bound; nothing where all may be free, or next to it as reserved nodes are."""
        return price / self.price - 1 if self.price > _NEXT_TO_NOTHING else None


def bound(problem: Problem, pods: Collection[str] | None = None, *, solver: bool = True) -> Bound:
    """The least that a plan can cost that places these pods (`namespace/name`), or all that could have a place at all.

    `solver`: whether to use the solver if it is installed (the extra `optimize`).
    """
    relaxation = relaxed(problem, pods)
    found = solved(relaxation) if solver else None
    duals, exact = found if found is not None else (ascended(relaxation), False)
    certificate = proven(relaxation, duals)
    whole = (cheapest(relaxation) or 0.0) * (1 - SAFETY)
    parts = sorted(
        (
            BoundPart(pod=pod, count=int(count), price=float(worth))
            for pod, count, worth in zip(relaxation.pods, relaxation.counts, certificate.worth, strict=True)
        ),
        key=lambda part: (-round(part.price * part.count, 9), part.pod),
    )
    better = whole > certificate.price
    return Bound(
        price=max(whole, certificate.price),
        parts=tuple(parts),
        nodes=certificate.nodes + max(0.0, whole - certificate.price),
        surplus=certificate.surplus,
        exact=exact or better or not relaxation.pods,
        method="all ways" if better else "climb" if found is None else "solver",
        dropped=relaxation.dropped,
    )


def of_few(run: FirstFit, charge: float) -> float:
    """The bound that comes of going through all ways to serve a few pods, each node so much dearer; 0 if there is none.

    The run has not placed any of the pods yet.
    """
    relaxation = of_demands(run, demands_of(run, run.problem, None))
    if charge and (relaxation.kinds.limits >= 0).any():
        return 0.0  # nodes that are there or reserved are not charged
    return (cheapest(charging(relaxation, charge)) or 0.0) * (1 - SAFETY)


def placed(plan: Plan) -> frozenset[str]:
    """The pods that a plan has a place for: what a bound must cover to be compared with its price."""
    there = (pod for pods in plan.placements.values() for pod in pods)
    return frozenset((*there, *(pod for claim in plan.claims for pod in claim.pods)))
