"""`PlanReport`: a plan for manifests with everything that is said about it, computed once.

Tables, JSON and every other form are functions of this value. Whatever needs another run of the planner (remedies for pods
that are left over, what preferences cost, why the plan is above the bound) is asked here and nowhere else.
"""

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property
from typing import Final

from joiner.catalog.build import Catalog
from joiner.catalog.explain import before_overlays
from joiner.catalog.market import InstanceType, Option
from joiner.model import labels, quantity, resources
from joiner.model.node import Node
from joiner.model.nodeclaim import NodeClaim
from joiner.model.podrequests import of_spec
from joiner.model.resources import Resources
from joiner.offline import catalognotes, catalogs
from joiner.offline.manifests import Manifests, Unsound
from joiner.offline.narrowing import NO_NARROWING, Narrowing
from joiner.offline.problem import PlanQuestion, ask
from joiner.offline.report.pod import PodReport, pod_report
from joiner.offline.staticpools import StaticNode, static_nodes
from joiner.offline.validation import Finding
from joiner.offline.workloads.autoscalers import Load
from joiner.scheduling.bound.lowerbound import Bound, bound, placed
from joiner.scheduling.effort import Tries
from joiner.scheduling.nodes.openclaim import LIMITS
from joiner.scheduling.plan import ITSELF, Plan, PlannedClaim, Refusal, RefusalReason
from joiner.scheduling.pods.defaultspread import Defaults
from joiner.scheduling.problem import Policy
from joiner.scheduling.reporter import Attempt
from joiner.scheduling.schedule import schedule
from joiner.scheduling.whatif import alternatives
from joiner.scheduling.whatif.alternatives import Cost, PoolCost, PurchaseReasons
from joiner.scheduling.whatif.blockers import Blame, blame
from joiner.state.virtualpods import is_virtual

_SHOWN_REASONS: Final = 3
_TRIED_PODS: Final = 8
"""For so many pods the planner is asked what would let them in; each takes as long as dozens of small plans."""
_TRIED_WORKLOADS: Final = 2
_REMEDIES: Final = 2
_REMEDIES_UP_TO: Final = 500
"""With more pods than this, remedies are looked for only when a pod is asked about."""
_EXPLAINED_CLAIMS: Final = 50
_FAR: Final = 0.05
"""From this gap on it is worth saying why a plan is above the bound."""
_TRIED_POOLS: Final = 8


Progress = Callable[[str], None]
"""Is told the name of each way of planning before it is tried."""


def _silent(planner: str) -> None:
    """Shows nothing."""


@dataclass(frozen=True)
class PlanOptions:
    """How to plan, and what to find out about the plan."""

    policy: Policy
    spread: Defaults = field(default_factory=dict)
    """Spread constraints for pods that have none."""
    load: Load = "stated"
    """Which number of replicas autoscaled workloads are planned for with."""
    narrowing: Narrowing = NO_NARROWING
    """What NodePools may buy at the most."""
    effort: int | None = None
    """How many pods may be tried, in all planners together."""
    pod: str | None = None
    """Only this pod is asked about."""
    costs: bool = False
    bound: bool = False
    purchases: bool = False
    """Whether to find out why each of the first claims is bought as it is."""


@dataclass(frozen=True)
class PosedQuestion:
    """The scheduling problem of manifests, before it is planned."""

    question: PlanQuestion
    prices: tuple[str, ...]
    """Where prices come from, and of which day they are."""
    missed: tuple[str, ...]
    """NodePools that could not be used, and why."""
    static: tuple[StaticNode, ...] = ()
    """The nodes that static NodePools have to buy, whatever the pods need."""
    catalogs: Mapping[str, Catalog] = field(default_factory=dict)
    """NodePool, static ones among them, to what it can buy."""
    warnings: tuple[Finding, ...] = ()
    """What `joiner validate` would warn of."""
    files_passed_over: tuple[str, ...] = ()
    """A line about each file that holds no object."""


@dataclass(frozen=True)
class LeftOver:
    """Pods that are refused for the same reasons, and what would let one of them in."""

    why: str
    pods: tuple[str, ...]
    pod: str = ""
    """The pod that the remedies were found for; empty if none were found or looked for."""
    remedies: tuple[Blame, ...] = ()
    """Each suffices."""


@dataclass(frozen=True)
class Purchase:
    """A node to buy, as it would be bought."""

    nodepool: str
    option: Option
    pods: tuple[str, ...]
    requests: Resources
    """What its pods and daemons ask for."""
    claim: PlannedClaim | None
    """Nothing for a node of a static NodePool."""

    @property
    def price(self) -> float:
        """What it costs by the hour."""
        return self.option.offering.cost

    @property
    def runner_up(self) -> Option | None:
        """What would be bought if it were not to be had."""
        return None if self.claim is None else self.claim.runner_up


@dataclass(frozen=True)
class CheaperWithout:
    """What stands above the price where a plan is far from the bound: a plan without it costs less."""

    what: str
    """`order` (another NodePool first), `preferences` or `spread`."""
    price: float
    nodepool: str = ""


@dataclass(frozen=True)
class PlanReport:
    """A plan, and everything that is said about it. No function that draws it plans anything."""

    question: PlanQuestion
    plan: Plan
    prices: tuple[str, ...]
    missed: tuple[str, ...] = ()
    static: tuple[StaticNode, ...] = ()
    """The nodes that static NodePools have to buy, whatever the pods need."""
    catalogs: Mapping[str, Catalog] = field(default_factory=dict)
    """NodePool to what it can buy."""
    warnings: tuple[Finding, ...] = ()
    files_passed_over: tuple[str, ...] = ()
    attempts: tuple[Attempt, ...] = ()
    """The ways of planning that were tried."""
    left_over: tuple[LeftOver, ...] = ()
    costs: tuple[Cost, ...] | None = None
    pool_costs: tuple[PoolCost, ...] = ()
    """What limits, requirements and minValues of NodePools cost."""
    costs_not_priced: int = 0
    """Preferences that were not priced, because it would take too long."""
    purchases: tuple[PurchaseReasons, ...] = ()
    """Why each of the first claims is bought as it is."""
    bound: Bound | None = None
    cheaper_without: tuple[CheaperWithout, ...] = ()
    pod: PodReport | None = None

    @property
    def complete(self) -> bool:
        """Whether every pod is placed and every NodePool could be used."""
        return not (self.plan.refusals or self.plan.not_attempted or self.missed)

    @cached_property
    def purchases_made(self) -> tuple[Purchase, ...]:
        """Every node to buy: those of the plan, and those that static NodePools still have to buy."""
        planned = (
            Purchase(each.nodepool, each.options[0], each.pods, each.requests, each) for each in self.plan.claims
        )
        static = (
            Purchase(each.nodepool, each.option, self.plan.placements.get(each.name, ()), self._asked(each), None)
            for each in self.static
        )
        return (*planned, *static)

    @property
    def existing(self) -> Mapping[str, tuple[str, ...]]:
        """Nodes that are there already, and the pods that go to them."""
        static = {each.name for each in self.static}
        return {name: pods for name, pods in self.plan.placements.items() if name not in static}

    @cached_property
    def hourly(self) -> float:
        """What the nodes to buy are paid by the hour, at the prices of the plan: overlays count, reservations are paid for."""
        return sum(each.option.offering.bill for each in self.purchases_made)

    @cached_property
    def list_hourly(self) -> float:
        """The same at the prices of the catalogue, without NodeOverlays."""
        return sum(self.list_price(each) for each in self.purchases_made)

    def list_price(self, purchase: Purchase) -> float:
        """What a node costs without NodeOverlays; 0 where a reservation is paid for."""
        return before_overlays(self.catalogs[purchase.nodepool], purchase.option).bill

    def other_zones(self, purchase: Purchase) -> tuple[str, ...]:
        """The zones in which the same machine costs the same: the plan names one, and the cloud may choose another."""
        own, asked = purchase.option, None if purchase.claim is None else purchase.claim.requirements.at(labels.ZONE)
        key = (purchase.nodepool, own.name, own.offering.requirements, asked)
        if key not in self._zones:
            catalog = self.catalogs[purchase.nodepool]
            alike = (
                each.zone
                for each in catalog.offerings(self._types[purchase.nodepool][own.name])
                if (each.capacity_type, each.price, each.prepaid)
                == (own.offering.capacity_type, own.offering.price, False)
                and (asked is None or asked.has(each.zone))
            )
            self._zones[key] = tuple(sorted(set(alike) - {own.offering.zone}))
        return self._zones[key]

    @cached_property
    def _zones(self) -> dict[object, tuple[str, ...]]:
        return {}

    @cached_property
    def _types(self) -> dict[str, dict[str, InstanceType]]:
        return {name: {each.name: each for each in catalog.types} for name, catalog in self.catalogs.items()}

    def allocatable(self, nodepool: str, option: Option) -> Resources:
        """What pods can use on the node, bought as planned."""
        return self._types[nodepool][option.name].allocatable(option.offering)

    def _asked(self, node: StaticNode) -> Resources:
        """What the pods that the plan puts on a static node ask for, and its daemons."""
        there = {each.name: each for each in self.question.problem.nodes}[node.name]
        pods = {pod.key: pod for pod in self.question.problem.pods}
        asked = (of_spec(pods[name].spec) for name in self.plan.placements.get(node.name, ()))
        return resources.add(there.used, *asked)

    @cached_property
    def later_rounds(self) -> tuple[str, ...]:
        """A line for each NodePool whose limits refuse pods, though its nodes as they are bought leave room for another one."""
        refused = {reason.object for each in self.plan.refusals for reason in each.reasons if reason.rule == LIMITS}
        found = []
        for option in self.question.problem.pools:
            name, types = option.pool.name, self._types[option.pool.name]
            chosen = (each.options[0].name for each in self.plan.claims if each.nodepool == name)
            bought = [{**types[each].capacity, resources.NODES: quantity.MILLI} for each in chosen]
            limits = {key: int(amount) for key, amount in option.pool.spec.limits.items()}
            left = resources.subtract(limits, resources.add(option.used, *bought))
            least = {key: min((each.get(key, 0) for each in bought), default=0) for key in limits}
            if f"NodePool {name}" in refused and bought and all(left[key] >= least[key] for key in limits):
                told = ", ".join(f"{key} {resources.plain(key, left[key])}" for key in limits)
                found.append(
                    f"NodePool {name}: what is bought leaves {told} of its limits. Until a node is launched it counts as the"
                    " largest type that it may become, so controllers may place some of these pods in a later round"
                )
        return tuple(found)

    @cached_property
    def spare(self) -> int:
        """How many of the pods are virtual pods of CapacityBuffers."""
        return sum(map(is_virtual, self.question.problem.pods))

    def workload(self, pod: str) -> str:
        """The workload of a pod, as people call it."""
        return self.question.workload(pod)


def pose(manifests: Manifests, now: datetime, options: PlanOptions) -> PosedQuestion:
    """The problem that manifests pose. A NodePool that cannot be used is left out and named; raises if none can."""
    manifests = options.narrowing.of(manifests)
    opened = asyncio.run(catalogs.open_for(manifests, None, ()))
    options.narrowing.check(opened)
    missed = tuple(_left_out(opened.problems))
    if missed and not opened.views:
        raise Unsound("\n".join(missed))
    static = static_nodes(opened.views, manifests.all(Node), manifests.all(NodeClaim))
    pools = [view for view in opened.views if view.pool.spec.replicas is None]
    question = ask(manifests, pools, now, options.policy, options.spread, options.load, static)
    question = replace(
        question, notes=(*options.narrowing.notes(opened), *catalognotes.of_all(opened), *question.notes)
    )
    prices = tuple(dict.fromkeys(view.prices for view in opened.views))
    catalogs_of = {view.pool.name: view.catalog for view in opened.views}
    return PosedQuestion(question, prices, missed, static.nodes, catalogs_of, manifests.warnings, manifests.notes)


def _left_out(problems: Iterable[tuple[str, str]]) -> Iterator[str]:
    """A line for each reason, with all NodePools that cannot be used for it."""
    pools: dict[str, list[str]] = {}
    for name, why in problems:
        pools.setdefault(why, []).append(name)
    for why, names in pools.items():
        yield f"NodePool{' ' if len(names) == 1 else 's '}{', '.join(names)} {'is' if len(names) == 1 else 'are'} left out: {why}"


class _Attempts:
    """A planner's reporter that keeps the attempts, and passes the name of each way of planning on."""

    def __init__(self, progress: Progress) -> None:
        self.trying = progress
        self.found: list[Attempt] = []

    def tried(self, attempt: Attempt) -> None:
        """A way of planning has come to its end."""
        self.found.append(attempt)


def answer(posed: PosedQuestion, options: PlanOptions, progress: Progress = _silent) -> PlanReport:
    """Plan, and find out what the options ask about the plan."""
    question, attempts = posed.question, _Attempts(progress)
    problem = question.problem
    effort = None if options.effort is None else Tries(options.effort)
    plan = schedule(problem, reporter=attempts, effort=effort)
    report = PlanReport(
        question=question,
        plan=plan,
        prices=posed.prices,
        missed=posed.missed,
        static=posed.static,
        catalogs=posed.catalogs,
        warnings=posed.warnings,
        files_passed_over=posed.files_passed_over,
        attempts=tuple(attempts.found),
    )
    if options.pod is not None:
        return replace(report, pod=pod_report(question, plan, options.pod, priced=options.costs))
    report = replace(report, left_over=tuple(_left_over(report)))
    if options.costs:
        wished = alternatives.wishes(problem.pods)
        most = alternatives.affordable(len(problem.pods))
        found = tuple(alternatives.costs(problem, plan, wished[:most]))
        demanded = alternatives.pool_wishes(problem)
        of_pools = tuple(alternatives.pool_costs(problem, plan, demanded[:most]))
        rest = len(wished[most:]) + len(demanded[most:])
        report = replace(report, costs=found, pool_costs=of_pools, costs_not_priced=rest)
    if options.purchases:
        claims = plan.claims[:_EXPLAINED_CLAIMS]
        report = replace(report, purchases=tuple(alternatives.purchase(problem, plan, claim) for claim in claims))
    if options.bound:
        least = bound(problem, placed(plan))
        report = replace(report, bound=least, cheaper_without=tuple(_cheaper_without(report, least)))
    return report


# -- pods that are left over ---------------------------------------------------------------------------------------------


def _left_over(report: PlanReport) -> Iterator[LeftOver]:
    """Refused pods by reason, in order of workload; remedies as far as few questions to the planner tell."""
    problem, plan = report.question.problem, report.plan
    tries = 0 if len(problem.pods) > _REMEDIES_UP_TO else _TRIED_PODS
    rows = sorted(_by_reason(plan.refusals).items(), key=lambda row: (report.workload(row[1][0]), row[0]))
    for why, pods in rows:
        row = LeftOver(why, tuple(pods))
        for pod in _first_pods(report, pods)[:tries]:
            tries -= 1
            if remedies := blame(problem, plan, pod).blames[:_REMEDIES]:
                row = replace(row, pod=pod, remedies=tuple(remedies))
                break
        yield row


def _by_reason(refusals: Iterable[Refusal]) -> dict[str, list[str]]:
    """Reasons in words to the pods refused for them. Pods of one class share their reasons, so few texts are made."""
    known: dict[tuple[RefusalReason, ...], str] = {}
    found: dict[str, list[str]] = {}
    for refusal in refusals:
        why = known.get(refusal.reasons)
        if why is None:
            why = known[refusal.reasons] = _reasons(refusal)
        found.setdefault(why, []).append(refusal.pod)
    return found


def _reasons(refusal: Refusal) -> str:
    """Why a pod is left over, in one line of bearable length."""
    parts = [part.removeprefix(f"{ITSELF}: ") for part in refusal.told()] if refusal.ignored else refusal.told()
    rest = len(parts) - _SHOWN_REASONS
    more = f"; {rest} other reason{'' if rest == 1 else 's'}" if rest > 0 else ""
    return f"{'never tried: ' if refusal.ignored else ''}{'; '.join(parts[:_SHOWN_REASONS])}{more}"


def _first_pods(report: PlanReport, pods: Sequence[str]) -> list[str]:
    """The first pod of each of the first few workloads."""
    first = {report.workload(pod): pod for pod in reversed(pods)}
    return list(reversed(first.values()))[:_TRIED_WORKLOADS]


# -- the bound -----------------------------------------------------------------------------------------------------------


def _cheaper_without(report: PlanReport, least: Bound) -> Iterator[CheaperWithout]:
    """What decides before prices do, where the plan is far from the bound: found by planning without it."""
    problem, plan = report.question.problem, report.plan
    gap = least.gap(plan.price)
    if gap is None or gap < _FAR:
        return
    better = alternatives.best_order(problem, plan, _TRIED_POOLS)
    if better is not None:
        yield CheaperWithout("order", better[1], better[0])
    for what, loosened in (
        ("preferences", alternatives.without_preferences(problem)),
        ("spread", alternatives.without_spread(problem)),
    ):
        price = alternatives.compared(loosened, plan)
        if price is not None and price < plan.price:
            yield CheaperWithout(what, price)
