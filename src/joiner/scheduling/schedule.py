"""Pods in, plan out: every way of planning is tried, and the best valid plan wins."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Final

from joiner.model.meta import replace
from joiner.scheduling.effort import Effort, Unlimited
from joiner.scheduling.engine.firstfit import FirstFit, NothingNew, TooDear
from joiner.scheduling.engine.prepared import PreparedProblem
from joiner.scheduling.engine.pricing import on_the_market, rounded
from joiner.scheduling.plan import Plan
from joiner.scheduling.planners import spotflexibility
from joiner.scheduling.planners.firstfitvariants import (
    AtHome,
    Baseline,
    CheapDomainsRun,
    FavouringRun,
    FirstPlaceRun,
    ImportantFirst,
    InTurn,
    MarketFirst,
)
from joiner.scheduling.planners.leastincrease import LeastIncrease, TightGuardedRun
from joiner.scheduling.planners.queuereorder import AT_ONCE, PODS, reordered, rescued
from joiner.scheduling.planners.valuegreedy import ConstrainedFirstRun, ValueGreedy
from joiner.scheduling.pods.podclass import PodClass
from joiner.scheduling.problem import Problem
from joiner.scheduling.reporter import COMPLETE, DEARER, LEFT_OVER, NOTHING_NEW, UNSOUND, Attempt, Reporter
from joiner.scheduling.tuning import NODE_PRICE, charge

BY_HAND: Final[tuple[type[FirstFit], ...]] = (ValueGreedy, ConstrainedFirstRun, LeastIncrease, TightGuardedRun)
"""Ways to plan that need no linear programme: all there is time for when there are only a few pods."""
TINY: Final = 60
"""Up to so many pods a plan is expected at once."""
FAVOURITES: Final = 16
"""Up to so many domains first fit is tried for so few pods with each as the one that is taken where several are as good."""
SMALL: Final = 400
"""Up to so many pods everything is tried."""
LARGE: Final = 2_000
"""From so many pods on only the most promising way is tried."""
HUGE: Final = 5_000
"""From so many on it is tried only once: a plan in pieces with a charge for nodes, which makes it buy fewer and larger ones."""
MANY_ALIKE: Final = 10
"""How many pods of a class make whole nodes of one pattern pay."""

BY_ORDER: Final[tuple[tuple[type[FirstFit], ...], ...]] = (
    (FirstFit, CheapDomainsRun, InTurn),
    (LeastIncrease, TightGuardedRun),
)
"""Ways to plan that serve pods one by one: with another order of the queue, they may come to something better."""
NEAR: Final = 1.05
"""How many times as dear as the best plan one may be that is still worth another order."""

DEARER_NODES: Final = (1, 10, 100, 1000)
"""How many times the usual charge is tried for nodes when limits bind."""
A_LITTLE_LESS: Final = (0.5, 0.3, 0.2)
"""Where that makes nodes few enough, these parts of it may do as well, and lead to something cheaper."""


def _planners(pods: int, classes: list[PodClass]) -> tuple[type[FirstFit], ...]:
    """The ways that are worth their time, beside first fit, which is the net under all of them."""
    # Topology picks a domain by what is cheap there on average, unless somebody looks.
    looking: tuple[type[FirstFit], ...] = ()
    if not all(step.final for each in classes for step in each.steps):
        looking += (CheapDomainsRun,)
    if any(len(each.volumes.places) > 1 for each in classes):
        looking += (FirstPlaceRun,)
    if pods <= 1:
        return (ValueGreedy, *looking) if looking else ()  # first fit buys the cheapest node for a single pod
    if pods <= TINY:
        return (*BY_HAND, *looking)
    rounded, repriced = _by_programme()
    if pods <= SMALL:
        return (*BY_HAND, *looking, rounded, repriced)
    if pods < LARGE:
        return (ValueGreedy, rounded)
    return (rounded,) if pods >= MANY_ALIKE * len(classes) else (ValueGreedy,)


def _by_programme() -> tuple[type[FirstFit], type[FirstFit]]:
    """Ways to plan that first find out what each pod is worth when all are served together."""
    # Only now: whoever has a few pods need not load the linear programme.
    from joiner.scheduling.planners.lprounding import LpPriced, LpRounded

    return LpRounded, LpPriced


def load(pods: int) -> None:
    """Load what planning for so many pods takes, for those who look at the clock when they plan."""
    if pods > TINY:
        _by_programme()


def schedule(problem: Problem, *, reporter: Reporter | None = None, effort: Effort | None = None) -> Plan:
    """Where every pod goes, and what has to be bought for it.

    A plan only counts if it leaves nobody out whom first fit would place; of those that do, the cheapest wins. Where effort is
    limited first fit has it first, so that there is a plan for as many as possible before anything better is looked for.
    """
    trials = _Trials(problem, effort or Unlimited(), reporter)
    charged = charge(problem)
    at_home = trials.all((AtHome,)) if problem.nodes else []
    if at_home:
        return _best(at_home, charged)
    beforehand = trials.one(FirstFit) if effort is not None else None
    planners = _planners(len(problem.pods), trials.desk.classes)
    by_price = [each for each in planners if issubclass(each, ValueGreedy)]
    huge = len(problem.pods) >= HUGE
    leading = huge and not charged and ValueGreedy not in planners
    prices = [NODE_PRICE if leading else problem.policy.node_price]
    runs = trials.charging(prices[0]).all(planners)
    plain = beforehand or (trials.one(FirstFit) if len(problem.pods) <= TINY else None)
    if plain is not None and not problem.nodes and _agreed(plain, runs):
        return _best([plain, *runs], charged)
    if len(problem.pods) <= SMALL and trials.turns_differ(trials.desk.by_name):
        # By name, and not by UID: what a plan costs does not hang on who happened to be written first.
        runs.append(trials.in_turn(trials.desk.by_name))
    runs += trials.favouring()
    if len(problem.pods) <= SMALL and any(run.reserved() for run in runs):
        # A machine that is paid for is no gain where another one, bought all the same, would take its pods.
        runs.append(trials.market_first(runs[0], [each.number for each in trials.desk.classes]))
    if charged or (len(problem.pods) > TINY and not huge):
        # Whether a charge for nodes leads or misleads a way of planning is only seen when both are there to compare.
        prices.append(0.0 if charged else NODE_PRICE)
        runs += trials.charging(prices[1]).all(by_price)
    if any(run.limited() for run in runs) and not any(isinstance(run, ValueGreedy) for run in _complete(runs)):
        runs += _with_fewer_nodes(trials, by_price, prices)
    complete = _complete(runs)
    best = min(complete, key=lambda run: _order(run, charged), default=None)
    # Where a plan by price gives something up for limits, or buys of lighter pools, what first fit costs is not all.
    rival = best if best is not None and not _spared(best) and not best.demoted() else None
    net = plain or trials.first_fit(cost_max=None if rival is None else _charged(rival, charged))
    if net is None:
        plan = _best(_repaired(trials, complete, charged), charged)
        if not plan.dropped:
            return plan
        # What is cheaper turned out not to be for sale, so first fit counts whatever it costs.
        net = trials.one(FirstFit)
    if net.left_over():
        net = _placing_more(trials, net, next((run for run in runs if isinstance(run, InTurn)), None))
    refused = net.left_over()
    rivals = [run for run in runs if run.sound and run.left_over() <= refused]
    if not any(isinstance(run, ValueGreedy) for run in rivals):
        # Those that buy by price leave out somebody else. They may still be cheaper for those whom first fit places.
        guarded = [run for run in runs if isinstance(run, LeastIncrease) and not run.left_over() <= refused]
        again = [trials.rescued(run) for run in guarded if len(problem.pods) <= SMALL]
        if refused or net.pinned:
            again += (trials.pinned() if net.pinned else trials).all(planners, without=net.waiting())
        rivals += [run for run in again if run.sound and run.left_over() <= refused]
    rivals = [run for run in rivals if _as_asked_for(run, net)]
    if charged:
        rivals = [run for run in rivals if not _dearer(run, net)]
    return _best(_repaired(trials, [net, *rivals], charged), charged)


class _Trials:
    """Runs of one question, one after the other: what they share, and who hears of them."""

    def __init__(
        self,
        problem: Problem,
        effort: Effort,
        reporter: Reporter | None,
        desk: PreparedProblem | None = None,
        *,
        how: str = "",
        pinned: bool = False,
    ) -> None:
        self.problem = problem
        self.desk = desk or PreparedProblem(problem)
        self._effort = effort
        self._reporter = reporter
        self._how = how
        self._pinned = pinned

    def all(self, planners: Iterable[type[FirstFit]], without: frozenset[int] = frozenset()) -> list[FirstFit]:
        """One run of each way; those that find out that they have nothing to add are left out."""
        runs: list[FirstFit] = []
        for planner in planners:
            with suppress(NothingNew):
                runs.append(self.one(planner, without))
        return runs

    def one(self, planner: type[FirstFit], without: frozenset[int] = frozenset()) -> FirstFit:
        """One run to its end."""
        run = planner(self.problem, self._effort, self.desk, without=without, pinned=self._pinned)
        if self._pinned:
            run.planner += ", pinned"
        return self._placed(run)

    def turns_differ(self, turns: list[int]) -> bool:
        """Whether pods would go in another order if they went one by one, and not class by class."""
        by_class = self.desk.queue(by_priority=False, in_turn=False)
        return any(
            self.desk.numbers[one] != self.desk.numbers[other] for one, other in zip(turns, by_class, strict=True)
        )

    def favouring(self, order: list[int] | None = None) -> Iterator[FirstFit]:
        """First fit with each domain as the one to take where several are as good: who joins later decides which is best."""
        for key, domain in self.desk.domains()[:FAVOURITES] if len(self.problem.pods) <= TINY else ():
            run = FavouringRun(self.problem, self._effort, self.desk, order=order)
            run.favour(key, domain)
            yield self._placed(run)

    def in_turn(self, order: list[int]) -> FirstFit:
        """First fit with an order of its own."""
        return self._placed(InTurn(self.problem, self._effort, self.desk, order=order))

    def market_first(self, net: FirstFit, classes: Iterable[int]) -> FirstFit:
        """First fit in the order of another run, in which some leave reservations to others if they can."""
        run = MarketFirst(self.problem, self._effort, self.desk, order=net.queue(), pinned=net.pinned)
        run.spare(classes)
        return self._placed(run)

    def first_fit(self, cost_max: float | None) -> FirstFit | None:
        """The plain run, unless it turns out dearer than that."""
        try:
            return self._placed(FirstFit(self.problem, self._effort, self.desk, cost_max=cost_max))
        except TooDear:
            return None

    def reordered(self, start: FirstFit, charged: float) -> FirstFit:
        """The best run of the same kind that another order of the queue leads to, or the run itself."""
        return self._repaired(start, "reordered", lambda run: reordered(run, lambda other: _charged(other, charged)))

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

    def charging(self, price: float) -> "_Trials":
        """The same with another node price."""
        if price == self.problem.policy.node_price:
            return self
        problem = replace(self.problem, policy=replace(self.problem.policy, node_price=price))
        return _Trials(problem, self._effort, self._reporter, self.desk, how=f"node price {price:g}")

    def pinned(self) -> "_Trials":
        """The same with everybody settled at once whom others keep away from."""
        return _Trials(self.problem, self._effort, self._reporter, self.desk, pinned=True)

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


def _repaired(trials: _Trials, runs: list[FirstFit], charged: float) -> list[FirstFit]:
    """The runs, and what local repair makes of the best of them where there is time for it."""
    pods = len(trials.problem.pods)
    ordered = sorted(runs, key=lambda run: _order(run, charged))
    left, price = _order(ordered[0], charged)[:2]
    if pods > SMALL or not price or _easy(trials, runs):
        return runs
    near = rounded(NEAR * price)
    promising = [run for run in ordered if run.left_over().total() == left and _charged(run, charged) <= near]
    starts = [next((run for run in promising if type(run) in kind), None) for kind in BY_ORDER]
    return [*runs, *(trials.reordered(start, charged) for start in starts if start is not None)]


def _easy(trials: _Trials, runs: list[FirstFit]) -> bool:
    """Whether another order of the queue is not worth its time.

    It is where somebody is left out, or where there are nodes, which are given to whoever comes first. Otherwise it is only if
    there is time to let every class go first and last.
    """
    if trials.problem.nodes or any(run.left_over() for run in runs):
        return False
    pods, classes = len(trials.problem.pods), len(trials.desk.classes)
    # Where every pod is of a class of its own, little changes by one going first.
    return 2 * classes > (AT_ONCE if pods <= TINY else PODS // pods) or pods == classes


def _agreed(plain: FirstFit, runs: list[FirstFit]) -> bool:
    """Whether first fit buys one node for everybody, a way by price does so for the same money, and nobody for less.

    Where one of them leaves somebody out there is more to it; and where the node would cost less in another domain.
    """
    price = rounded(plain.price())
    if len(plain.claims) != 1 or plain.left_over() or len(_complete(runs)) < len(runs):
        return False
    by_price = [run for run in runs if isinstance(run, ValueGreedy | LeastIncrease)]
    return min((rounded(run.price()) for run in by_price), default=0.0) == price == rounded(_anywhere(plain))


def _anywhere(run: FirstFit) -> float:
    """What the only node of a run would cost if topology had no say in where it is."""
    (claim,) = run.claims
    template, requirements = claim.template, claim.template.requirements
    for _, _, step in claim.parties:
        requirements = run.joined.of(requirements, step.requirements) or requirements
    large = template.large_enough(claim.amounts, claim.ports)
    return on_the_market(run, template, requirements, template.usable & template.stock.described(requirements) & large)


def _best(runs: list[FirstFit], charged: float) -> Plan:
    """The plan of the best run; one that loses pods when its claims are written down makes way for the next."""
    plans: list[Plan] = []
    for run in sorted(runs, key=lambda run: _order(run, charged)):
        spotflexibility.widen(run, run.price() * run.policy.spot_width_cost)
        plan = run.plan()
        if not plan.dropped:
            return plan
        plans.append(plan)
    return min(plans, key=lambda plan: len(plan.refusals))


def _with_fewer_nodes(trials: _Trials, planners: Sequence[type[FirstFit]], tried: Sequence[float]) -> list[FirstFit]:
    """Many small nodes are cheap, and may be more than limits allow: the dearer nodes are, the fewer are bought."""
    planners = list(dict.fromkeys((*planners, ValueGreedy)))  # it makes nodes dearer rather than to buy another one
    runs: list[FirstFit] = []
    for dearer in DEARER_NODES:
        price = dearer * NODE_PRICE
        if price not in tried:
            found = trials.charging(price).all(planners)
            runs += found
            if _complete(found):
                parts = A_LITTLE_LESS if dearer > DEARER_NODES[0] else ()
                return runs + [run for part in parts for run in trials.charging(part * price).all(planners)]
    return runs


def _complete(runs: list[FirstFit]) -> list[FirstFit]:
    """Those that leave nobody out."""
    return [run for run in runs if run.sound and not run.left_over()]


def _limits(problem: Problem) -> bool:
    return any(option.pool.spec.limits for option in problem.pools)


def _limits_and_priorities(problem: Problem) -> bool:
    priorities = {pod.spec.priority or 0 for pod in problem.pods}
    return len(priorities) > 1 and _limits(problem)


def _placing_more(trials: _Trials, net: FirstFit, by_name: FirstFit | None) -> FirstFit:
    """What else can be done for those whom first fit leaves out, and at last who they are.

    UIDs have a say only in that: where everybody can be placed, nothing hangs on them.
    """
    start = net if by_name is None else by_name
    helped = trials.rescued(start)
    if not helped.left_over():
        return helped
    turn = _in_turn(trials, net)
    net = helped if turn is start else trials.rescued(turn)
    # Nobody has a right to one of several domains that are as good: first fit may take any, so the one that places most is taken.
    favouring = trials.favouring(trials.desk.queue(by_priority=False, in_turn=True)) if net.left_over() else ()
    net = min((net, *favouring), key=lambda run: run.left_over().total())
    net = _more_placed(net, trials.pinned().all((FirstFit,)))
    if not isinstance(net, FavouringRun):
        net = _nobody_instead(trials, net)
    if net.left_over() and net.reserved():
        some, everybody = list(net.left_over()), [each.number for each in net.classes]
        for classes in (some, everybody):
            run = trials.market_first(net, classes)
            fallback = trials.problem.policy.reserved_mode == "Fallback"
            as_many = fallback and run.left_over().total() <= net.left_over().total()
            net = run if as_many else _more_placed(net, [run])
    if net.left_over() and _limits_and_priorities(trials.problem):
        net = _by_priority(net, trials.one(ImportantFirst))
    return net


def _in_turn(trials: _Trials, net: FirstFit) -> FirstFit:
    """Who is left out is decided by age, then by name, unless another plan places all those and more."""
    turns = trials.desk.queue(by_priority=False, in_turn=True)
    if not any(each.held for each in net.classes) and not trials.turns_differ(turns):
        return net
    run = trials.in_turn(turns)
    return net if run.stopped or net.left_over() < run.left_over() else run


def _nobody_instead(trials: _Trials, net: FirstFit) -> FirstFit:
    """A run that places everybody whom the baseline places: who would be left out there is placed beside them, or not at all."""
    for baseline in trials.all((Baseline,)):
        if not baseline.stopped and not net.left_over() <= baseline.left_over():
            waiting = baseline.waiting()
            queue = trials.desk.queue(by_priority=False, in_turn=True)
            run = trials.in_turn(sorted(queue, key=waiting.__contains__))
            return run if run.left_over() <= baseline.left_over() else baseline
    return net


def _more_placed(net: FirstFit, runs: Iterable[FirstFit]) -> FirstFit:
    """The best of some runs that place all those and more, or the one there is."""
    for run in runs:
        if run.left_over() < net.left_over():
            net = run
    return net


def _by_priority(net: FirstFit, run: FirstFit) -> FirstFit:
    """Who is left out when limits bind is decided by priority, as long as no more pods are left out for it."""
    fewer = run.left_over().total() <= net.left_over().total()
    return run if fewer and run.least_refused() < net.least_refused() else net


def _order(run: FirstFit, charged: float) -> tuple[int, float, int, int]:
    """Better plans first: fewer pods left over, cheaper, more use of what is paid for already, then fewer nodes.

    Every planner takes what is paid for first, and it costs next to nothing: who uses more of it and is dearer buys in vain.
    """
    return (run.left_over().total(), _charged(run, charged), -run.reserved(), len(run.claims))


def _charged(run: FirstFit, charged: float) -> float:
    """What the plan costs with what its nodes are charged."""
    return rounded(run.price() + charged * len(run.claims))


def _as_asked_for(run: FirstFit, net: FirstFit) -> bool:
    """Whether a way by price gives up no more for limits than first fit, and has no more pods on lighter pools in vain."""
    by_price = isinstance(run, ValueGreedy | LeastIncrease)
    return not by_price or (_spared(run) <= net.given_up.total() and run.demoted() <= net.demoted())


def _spared(run: FirstFit) -> int:
    """How much pods give up in a run in which limits bind: fewer and smaller nodes would be cheaper than what they wish for."""
    return run.given_up.total() if run.given_up and run.limited() else 0


def _dearer(run: FirstFit, net: FirstFit) -> bool:
    """Whether a plan that is no better than first fit's in any other way costs more."""
    return _order(run, 0.0)[:2] > _order(net, 0.0)[:2]
