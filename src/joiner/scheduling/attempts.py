"""The attempts at a plan: each is one run of a planner over the same prepared problem."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import Final

from joiner.model.meta import replace
from joiner.scheduling.choice import charged_price
from joiner.scheduling.effort import Effort
from joiner.scheduling.engine.firstfit import FirstFit, NothingNew, TooDear
from joiner.scheduling.engine.prepared import PreparedProblem
from joiner.scheduling.kept import Kept
from joiner.scheduling.planners import withinlimits
from joiner.scheduling.planners.firstfitvariants import Favouring, InTurn, MarketFirst
from joiner.scheduling.planners.queuereorder import reordered, rescued
from joiner.scheduling.planners.table import TINY
from joiner.scheduling.problem import Problem
from joiner.scheduling.reporter import COMPLETE, DEARER, LEFT_OVER, NOTHING_NEW, UNSOUND, Attempt, Reporter

FAVOURITES: Final = 16
"""Up to so many domains first fit is tried for so few pods with each as the one that is taken where several are as good."""


class Attempts:
    """Runs for one problem, one after the other: what they share, and the listener that hears of them."""

    def __init__(
        self,
        problem: Problem,
        effort: Effort,
        reporter: Reporter | None,
        prepared: PreparedProblem | None = None,
        *,
        how: str = "",
        pinned: bool = False,
        kept: Kept | None = None,
    ) -> None:
        self.problem = problem
        self.prepared = prepared or PreparedProblem(problem, kept)
        self._effort = effort
        self._reporter = reporter
        self._how = how
        self._pinned = pinned
        self._favoured: dict[tuple[int, ...], list[FirstFit]] = {}

    def all(
        self,
        planners: Iterable[type[FirstFit]],
        without: frozenset[int] = frozenset(),
        cost_max: float | None = None,
    ) -> list[FirstFit]:
        """One run of each way; those that have nothing to add or are sure to cost more than so much are left out."""
        runs: list[FirstFit] = []
        for planner in planners:
            with suppress(NothingNew, TooDear):
                runs.append(self.one(planner, without, cost_max))
        return runs

    def one(
        self, planner: type[FirstFit], without: frozenset[int] = frozenset(), cost_max: float | None = None
    ) -> FirstFit:
        """One run to its end."""
        run = planner(
            self.problem, self._effort, self.prepared, cost_max=cost_max, without=without, pinned=self._pinned
        )
        if self._pinned:
            run.planner += ", pinned"
        return self._placed(run)

    def turns_differ(self, turns: list[int]) -> bool:
        """Whether pods would go in another order if they went one by one, and not class by class."""
        by_class = self.prepared.queue(by_priority=False, in_turn=False)
        return any(
            self.prepared.numbers[one] != self.prepared.numbers[other]
            for one, other in zip(turns, by_class, strict=True)
        )

    def favouring(self, order: list[int] | None = None) -> list[FirstFit]:
        """First fit with each domain as the one to take where several are as good: who joins later decides which is best.

        A rescue asks for the same runs again where the order by age and name is the usual one.
        """
        asked = tuple(order or self.prepared.queue(by_priority=False, in_turn=False))
        if asked not in self._favoured:
            self._favoured[asked] = list(self._favouring(order))
        return self._favoured[asked]

    def _favouring(self, order: list[int] | None) -> Iterator[FirstFit]:
        for key, domain in self.prepared.domains()[:FAVOURITES] if len(self.problem.pods) <= TINY else ():
            run = Favouring(self.problem, self._effort, self.prepared, order=order)
            run.favour(key, domain)
            yield self._placed(run)

    def in_turn(self, order: list[int]) -> FirstFit:
        """First fit with an order of its own."""
        return self._placed(InTurn(self.problem, self._effort, self.prepared, order=order))

    def market_first(self, net: FirstFit, classes: Iterable[int]) -> FirstFit:
        """First fit in the order of another run, in which some leave reservations to others if they can."""
        run = MarketFirst(self.problem, self._effort, self.prepared, order=net.queue(), pinned=net.pinned)
        run.spare(classes)
        return self._placed(run)

    def first_fit(self, cost_max: float | None) -> FirstFit | None:
        """The plain run, unless it turns out dearer than that."""
        try:
            return self._placed(FirstFit(self.problem, self._effort, self.prepared, cost_max=cost_max))
        except TooDear:
            return None

    def reordered(self, start: FirstFit, charged: float) -> FirstFit:
        """The best run of the same kind that another order of the queue leads to, or the run itself."""
        return self._repaired(
            start, "reordered", lambda run: reordered(run, lambda other: charged_price(other, charged))
        )

    def rescued(self, start: FirstFit) -> FirstFit:
        """A run of the same kind that leaves out fewer pods, if another order of the queue leads to one."""
        return self._repaired(start, "left over first", rescued)

    def _repaired(self, start: FirstFit, how: str, repair: Callable[[FirstFit], FirstFit]) -> FirstFit:
        name = f"{start.planner}, {how}"
        if self._reporter is not None:
            self._reporter.trying(name)
        best = repair(start)
        if best is not start:
            best.planner = name
        if self._reporter is not None:
            self._reporter.tried(Attempt(planner=name, outcome=NOTHING_NEW) if best is start else _told(name, best))
        return best

    def charging(self, price: float) -> "Attempts":
        """The same with another node price."""
        if price == self.problem.policy.node_price:
            return self
        problem = replace(self.problem, policy=replace(self.problem.policy, node_price=price))
        how = ", ".join(filter(None, (self._how, f"node price {price:g}")))
        return Attempts(problem, self._effort, self._reporter, self.prepared, how=how)

    def without_limits(self) -> "Attempts":
        """The same without the limits of the pools."""
        problem, prepared = withinlimits.without(self.problem), self.prepared.without_limits()
        return Attempts(problem, self._effort, self._reporter, prepared, how="limits aside")

    def pinned(self) -> "Attempts":
        """The same with pods settled at once in their domains where others keep away from them."""
        return Attempts(self.problem, self._effort, self._reporter, self.prepared, pinned=True)

    def _placed(self, run: FirstFit) -> FirstFit:
        if self._reporter is None:
            run.place()
            return run
        name = f"{run.planner}, {self._how}" if self._how else run.planner
        self._reporter.trying(name)
        try:
            run.place()
        except NothingNew:
            self._reporter.tried(Attempt(planner=name, outcome=NOTHING_NEW))
            raise
        except TooDear:
            self._reporter.tried(Attempt(planner=name, outcome=DEARER))
            raise
        self._reporter.tried(_told(name, run))
        return run


def _told(name: str, run: FirstFit) -> Attempt:
    if not run.sound:
        return Attempt(planner=name, outcome=UNSOUND)
    left = run.left_over().total()
    outcome = LEFT_OVER if left else COMPLETE
    return Attempt(planner=name, outcome=outcome, nodes=len(run.claims), price=run.price(), left_over=left)
