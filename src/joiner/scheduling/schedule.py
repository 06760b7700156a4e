"""Pods in, plan out: the planners that suit the problem are tried, and the best valid plan wins.

The phases, each a function: trivial answer, attempts, safety net (first fit), rescue of pods left over, local search, choice.
"""

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from joiner.scheduling.attempts import Attempts
from joiner.scheduling.choice import as_asked_for, best_plan, charged_price, complete, dearer, order, spared
from joiner.scheduling.effort import Effort, Unlimited
from joiner.scheduling.engine.firstfit import FirstFit
from joiner.scheduling.engine.pricing import on_the_market, rounded
from joiner.scheduling.kept import Kept
from joiner.scheduling.plan import (
    AGREED,
    ALL_TRIED,
    AT_HOME,
    FIRST_FIT_ONLY,
    NEAR_BOUND,
    OUT_OF_EFFORT,
    TWO_TRIED,
    Plan,
)
from joiner.scheduling.planners import withinlimits
from joiner.scheduling.planners.firstfitvariants import AtHome, InTurn
from joiner.scheduling.planners.leastincrease import LeastIncrease, TightLeastIncrease
from joiner.scheduling.planners.queuereorder import AT_ONCE, PODS
from joiner.scheduling.planners.table import HUGE, SMALL, TINY, shape_of, suitable
from joiner.scheduling.planners.valuegreedy import ValueGreedy
from joiner.scheduling.problem import PoolOption, Problem
from joiner.scheduling.report.plannedclaims import to_plan
from joiner.scheduling.reporter import Reporter
from joiner.scheduling.rescues import rescue
from joiner.scheduling.tuning import NODE_PRICE, charge

BY_ORDER: Final[tuple[tuple[type[FirstFit], ...], ...]] = (
    (FirstFit, InTurn),
    (LeastIncrease, TightLeastIncrease),
)
"""Planners that serve pods one by one: with another order of the queue, they may come to something better."""
NEAR: Final = 1.05
"""How many times as dear as the best plan one may be that is still worth another order."""
NEAR_OF_FEW: Final = 1.15
"""The same up to FEW pods: of 1,670 questions, ten of 7 to 33 pods are answered 1 to 21 % cheaper for it, and none dearer."""
FEW: Final = 40
"""Where another order takes next to no time. At 100 pods the same would make planning take up to four times as long."""
PROMISING: Final = 1.1
"""Up to how many times the best plan's price a planner is tried again with another charge for nodes. Of 1,100 questions of
many kinds one was answered better (by 0.2 %) by a planner that had been further away.
"""
GOOD_ENOUGH: Final = 1.02
"""Up to how many times the proven bound a plan ends the search. Of 645 recorded questions none is answered dearer for it."""
ASKED_FROM: Final = 4
"""For fewer pods it takes as long to find the bound as to try everything."""
WAYS: Final = 256
"""Up to so many ways to serve some of the pods are gone through for the bound; with more it takes longer than it saves."""
HAIR: Final = 1 + 1e-6
"""What counts as dearer when a run is cut short; plans that cost the same are compared by more than their price."""
DEARER_NODES: Final = (1, 10, 100, 1000)
"""How many times the usual charge is tried for nodes when limits bind."""
NEARBY: Final = (2, 0.5, 0.3, 0.2)
"""Where that makes nodes few enough, these multiples of it may do as well, and lead to something cheaper."""


def schedule(
    problem: Problem, *, reporter: Reporter | None = None, effort: Effort | None = None, kept: Kept | None = None
) -> Plan:
    """Where every pod goes, and what has to be bought for it; `kept` has what was prepared for questions like this one.

    A plan only counts if it leaves out no pod that first fit would place; of those that do, the cheapest wins. Where effort is
    limited first fit has it first, so that there is a plan for as many as possible before anything better is looked for.
    """
    attempts = Attempts(problem, effort or Unlimited(), reporter, kept=kept)
    at_home = attempts.all((AtHome,)) if problem.nodes else []
    if at_home:
        return to_plan(at_home[0], AT_HOME)
    only_first_fit = problem.policy.planning == "FirstFit"
    plain = attempts.one(FirstFit) if effort is not None or only_first_fit else None
    if plain is not None and only_first_fit:
        return to_plan(plain, FIRST_FIT_ONLY)
    if withinlimits.limited(problem) and not withinlimits.surely_bind(problem, attempts.prepared):
        # Limits that do not bind change nothing: a plan without them counts if its nodes are within them.
        plan = _Search(attempts.without_limits(), limits=problem.pools).plan()
        if plan is not None:
            return plan
    plan = _Search(attempts, plain).plan()
    assert plan is not None  # without limits to look at there is always one
    return plan


@dataclass
class _Search:
    """The phases for one problem, and the runs that they have come to."""

    attempts: Attempts
    plain: FirstFit | None = None
    """First fit, if it has been tried."""
    limits: Sequence[PoolOption] = ()
    """Pools whose limits the runs are made without: a plan that is not within them is none."""
    runs: list[FirstFit] = field(default_factory=list)
    ended: str = ALL_TRIED
    """What ended the search."""

    def __post_init__(self) -> None:
        self._seen: list[tuple[tuple[int, float, float, int, int], FirstFit]] = []
        """The first of the runs, with what they are compared by."""
        self.problem = self.attempts.problem
        self.pods = len(self.problem.pods)
        self.near = NEAR_OF_FEW if self.pods <= FEW else NEAR
        self.charge = charge(self.problem)
        self.planners = suitable(shape_of(self.attempts.prepared))
        self.by_value = [planner for planner in self.planners if planner.buys_by_value]

    def plan(self) -> Plan | None:
        """The best plan; None if it is not within the limits it was made without."""
        if self._attempt():
            return self._choice(self.runs)
        net = self._net()
        if net is None:
            plan = self._choice(self._improved(complete(self.runs)))
            if plan is None or not plan.dropped:
                return plan
            # What is cheaper turned out not to be for sale, so first fit counts whatever it costs.
            net = self.attempts.one(FirstFit)
        if net.left_over():
            by_name = next((run for run in self.runs if type(run) is InTurn), None)
            net = rescue(self.attempts, net, by_name)
        return self._choice(self._improved([net, *self._rivals(net)]))

    def _attempt(self) -> bool:
        """Try the planners that suit the problem; says whether they agree, so that nothing more need be tried."""
        attempts, charged, huge = self.attempts, self.charge, self.pods >= HUGE
        leading = huge and not charged and ValueGreedy not in self.planners
        prices = [NODE_PRICE if leading else self.problem.policy.node_price]
        for planner in self.planners:
            # A run that is much dearer than the best one is not looked at again: see `_promising` and `_improved`.
            bar = None if planner.buys_by_value else self._bar(self.near)
            self.runs += attempts.charging(prices[0]).all((planner,), cost_max=bar)
            if planner is ValueGreedy and self._good_enough():
                self.ended = NEAR_BOUND
                return True
        if self.plain is None and self.pods <= TINY:
            self.plain = attempts.one(FirstFit)
        if self.plain is not None and not self.problem.nodes and _agreed(self.plain, self.runs):
            self.runs.insert(0, self.plain)
            self.ended = AGREED
            return True
        if self.pods <= SMALL and attempts.turns_differ(attempts.prepared.by_name):
            # By name, and not by UID: what a plan costs does not depend on which pod happened to be written first.
            self.runs.append(attempts.in_turn(attempts.prepared.by_name))
        self.runs += attempts.favouring()
        if self.pods <= SMALL and any(run.reserved() for run in self.runs):
            # A machine that is paid for is no gain where another one, bought all the same, would take its pods.
            classes = [pod_class.number for pod_class in attempts.prepared.classes]
            self.runs.append(attempts.market_first(self.runs[0], classes))
        if charged or SMALL < self.pods < HUGE:
            # Whether a charge for nodes leads or misleads a planner is only seen when both are there to compare. Where nodes are
            # not charged, other planners find nearly as much up to SMALL pods: a charge takes a quarter of the time for 0.02 %.
            prices.append(0.0 if charged else NODE_PRICE)
            for planner in list(self._promising()):
                self.runs += attempts.charging(prices[1]).all((planner,), cost_max=self._bar(HAIR))
        if any(run.limited() for run in self.runs) and not any(run.buys_by_value for run in complete(self.runs)):
            self.runs += _with_fewer_nodes(attempts, self.by_value, prices)
        return False

    def _best(self) -> FirstFit | None:
        """The best complete run, if nothing but its price speaks against it."""
        for run in self.runs[len(self._seen) :]:
            self._seen.append((order(run, self.charge), run))
        found = [each for each in self._seen if each[1].sound and not each[0][0]]
        best = min(found, key=lambda each: each[0], default=(None, None))[1]
        # Where a plan by price gives something up for limits, or buys of lighter pools, what first fit costs is not all.
        return best if best is not None and not spared(best) and not best.demoted() else None

    def _bar(self, times: float) -> float | None:
        """What a run may cost, so many times the price of the best one."""
        best = self._best()
        return None if best is None else times * charged_price(best, self.charge)

    def _good_enough(self) -> bool:
        """Whether the plan by value is proven to be as cheap as can be, or nearly. If so, that and first fit are all runs.

        The bound knows nothing of topology by domain, and little of nodes that are there, so it is asked for without these.
        """
        classes = self.attempts.prepared.classes
        if not ASKED_FROM <= self.pods <= TINY or self.problem.nodes:
            return False
        if not all(step.final for pod_class in classes for step in pod_class.steps):
            return False
        ways = math.prod(count + 1 for count in Counter(self.attempts.prepared.numbers).values())
        best = self._best() if ways <= WAYS else None
        if best is None or best.reserved():
            return False
        from joiner.scheduling.bound.lowerbound import of_few  # most plans do without, and need not load it

        least = of_few(FirstFit(self.problem, Unlimited(), self.attempts.prepared), self.charge)
        if charged_price(best, self.charge) > GOOD_ENOUGH * least:
            return False
        self.plain = self.plain or self.attempts.one(FirstFit)
        if not as_asked_for(best, self.plain) or (self.charge and dearer(best, self.plain)):
            return False
        self.runs = [self.plain, best]
        return True

    def _promising(self) -> Iterator[type[FirstFit]]:
        """Planners that came near the best plan with one charge, or left pods over: another charge may help them."""
        most = PROMISING * min((charged_price(run, self.charge) for run in complete(self.runs)), default=math.inf)
        for planner in self.by_value:
            made = [run for run in self.runs if type(run) is planner]
            if any(run.left_over() or charged_price(run, self.charge) <= most for run in made):
                yield planner

    def _net(self) -> FirstFit | None:
        """First fit; None if a complete plan costs less, which first fit would not change."""
        return self.plain or self.attempts.first_fit(self._bar(1.0))

    def _rivals(self, net: FirstFit) -> list[FirstFit]:
        """Runs that leave out no pod that the net places, and are as the pods asked for."""
        refused = net.left_over()
        rivals = [run for run in self.runs if run.sound and run.left_over() <= refused]
        if not any(run.buys_by_value for run in rivals):
            # Those that buy by price leave out other pods. They may still be cheaper for those that first fit places.
            guarded = [run for run in self.runs if run.weighs_prices and not run.left_over() <= refused]
            guarded = [run for run in guarded if not run.buys_by_value and self.pods <= SMALL]
            again = [self.attempts.rescued(run) for run in guarded]
            if refused or net.pinned:
                attempts = self.attempts.pinned() if net.pinned else self.attempts
                again += attempts.all(self.planners, without=net.waiting())
            rivals += [run for run in again if run.sound and run.left_over() <= refused]
        rivals = [run for run in rivals if as_asked_for(run, net)]
        return [run for run in rivals if not self.charge or not dearer(run, net)]

    def _improved(self, runs: list[FirstFit]) -> list[FirstFit]:
        """The runs, and what local search makes of the best of them where there is time for it."""
        ordered = sorted(runs, key=lambda run: order(run, self.charge))
        left, price = order(ordered[0], self.charge)[:2]
        if self.pods > SMALL or not price or self._easy(runs):
            return runs
        near = rounded(self.near * price)
        promising = [
            run for run in ordered if run.left_over().total() == left and charged_price(run, self.charge) <= near
        ]
        starts = [next((run for run in promising if type(run) in kind), None) for kind in BY_ORDER]
        return [*runs, *(self.attempts.reordered(start, self.charge) for start in starts if start is not None)]

    def _easy(self, runs: list[FirstFit]) -> bool:
        """Whether another order of the queue is not worth its time.

        It is where pods are left over, or where there are nodes, which are given to pods that come first. Otherwise it is only
        if there is time to let every class go first and last.
        """
        if self.problem.nodes or any(run.left_over() for run in runs):
            return False
        classes = len(self.attempts.prepared.classes)
        # Where every pod is of a class of its own, little changes by one going first.
        return 2 * classes > (AT_ONCE if self.pods <= TINY else PODS // self.pods) or self.pods == classes

    def _choice(self, runs: list[FirstFit]) -> Plan | None:
        ended = OUT_OF_EFFORT if any(run.stopped for run in runs) else self.ended
        return best_plan(runs, self.charge, self.limits, ended=ended)


def _agreed(plain: FirstFit, runs: list[FirstFit]) -> bool:
    """Whether first fit buys one node for all pods, a planner by price does so for the same money, and none for less.

    Where one of them leaves pods over there is more to it; and where the node would cost less in another domain.
    """
    price = rounded(plain.compared_price())
    if len(plain.claims) != 1 or plain.left_over() or len(complete(runs)) < len(runs):
        return False
    by_price = [run for run in runs if run.weighs_prices]
    return min((rounded(run.compared_price()) for run in by_price), default=0.0) == price == rounded(_anywhere(plain))


def _anywhere(run: FirstFit) -> float:
    """What the only node of a run would cost if topology had no say in where it is."""
    (claim,) = run.claims
    template, requirements = claim.template, claim.template.requirements
    for _, _, step in claim.parties:
        requirements = run.joined.of(requirements, step.requirements) or requirements
    large = template.large_enough(claim.amounts, claim.ports)
    return on_the_market(run, template, requirements, template.usable & template.stock.described(requirements) & large)


def _with_fewer_nodes(attempts: Attempts, planners: Sequence[type[FirstFit]], tried: Sequence[float]) -> list[FirstFit]:
    """Many small nodes are cheap, and may be more than limits allow: the dearer nodes are, the fewer are bought."""
    planners = list(dict.fromkeys((*planners, ValueGreedy)))  # it makes nodes dearer rather than to buy another one
    runs: list[FirstFit] = []
    for times in DEARER_NODES:
        price = times * NODE_PRICE
        if price not in tried:
            found = attempts.charging(price).all(planners)
            runs += found
            if complete(found):
                factors = NEARBY if times > DEARER_NODES[0] else ()
                return runs + [run for factor in factors for run in attempts.charging(factor * price).all(planners)]
    return runs


def first_plan(problem: Problem, kept: Kept | None = None) -> Plan:
    """A plan by the two quickest ways, for those who ask hundreds of questions to find the few that are worth a better one."""
    attempts = Attempts(problem, Unlimited(), None, kept=kept)
    at_home = attempts.all((AtHome,)) if problem.nodes else []
    if at_home:
        return to_plan(at_home[0], AT_HOME)
    net = attempts.one(FirstFit)
    rivals = [run for run in attempts.all((ValueGreedy,)) if run.sound and run.left_over() <= net.left_over()]
    plan = best_plan([net, *(run for run in rivals if as_asked_for(run, net))], charge(problem), ended=TWO_TRIED)
    assert plan is not None  # without limits to look at there is always one
    return plan
