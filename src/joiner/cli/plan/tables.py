"""Plans for people: tables of what is bought, where pods go, and what keeps the others out."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import click

from joiner.catalog.explain import place, price_text
from joiner.catalog.market import InstanceType
from joiner.cli import output
from joiner.model import resources
from joiner.model.resources import CPU, MEMORY, Resources
from joiner.offline.problem import PlanQuestion
from joiner.scheduling.plan import ITSELF, Plan, PlannedClaim, Refusal, RefusalReason
from joiner.scheduling.reporter import Attempt
from joiner.scheduling.whatif.alternatives import Cost
from joiner.scheduling.whatif.blockers import blame
from joiner.state.virtualpods import is_virtual

HOURS_A_MONTH: Final = 730
_SHOWN_PLACES: Final = 4
_SHOWN_WORKLOADS: Final = 3
_SHOWN_REASONS: Final = 3
_TRIED_PODS: Final = 8
"""For so many pods what would let them in is found out; each takes as long as dozens of small plans."""
_TRIED_WORKLOADS: Final = 2
_SHOWN_BLAMES: Final = 2
_REMEDIES_UP_TO: Final = 500
"""With more pods, what would help is looked for only when a pod is asked about."""


@dataclass(frozen=True)
class View:
    """A plan with everything that is told about it."""

    question: PlanQuestion
    plan: Plan
    prices: tuple[str, ...]
    """Where prices come from, and of which day they are."""
    missed: tuple[str, ...] = ()
    """Pools that could not be used, and why."""
    attempts: tuple[Attempt, ...] = ()
    """The ways of planning that were tried."""

    @cached_property
    def _types(self) -> dict[str, dict[str, InstanceType]]:
        return {
            option.pool.name: {each.name: each for each in option.catalog.types}
            for option in self.question.problem.pools
        }

    def allocatable(self, claim: PlannedClaim) -> Resources:
        """What pods can use on the node, bought as planned."""
        first = claim.options[0]
        return self._types[claim.nodepool][first.name].allocatable(first.offering)

    @cached_property
    def spare(self) -> int:
        """How many of the pods stand for room that buffers keep."""
        return sum(map(is_virtual, self.question.problem.pods))

    def workload(self, pod: str) -> str:
        """The workload of a pod, as people call it."""
        kind, namespace, name = self.question.workloads.get(pod, ("Pod", *pod.split("/", 1)))
        return f"{kind} {short(f'{namespace}/{name}')}"


def short(pod: str) -> str:
    """The name without the default namespace."""
    return pod.removeprefix("default/")


# -- tables --------------------------------------------------------------------------------------------------------------


def draw(view: View) -> None:
    """The whole plan, for people."""
    click.echo(output.bold(_headline(view)))
    for line in view.prices:
        click.echo(f"  prices: {line}")
    section("What would be bought", _bought(view))
    section("Where pods would go", _places(view))
    section("What was given up", _given_up(view))
    section("What is left over, and why", _left_over(view))
    for number, line in enumerate(_remedies(view)):
        click.echo(f"{'' if number else chr(10)}{line}")
    if view.plan.not_attempted:
        left = len(view.plan.not_attempted)
        click.echo(
            f"\n{left} {'pod was' if left == 1 else 'pods were'} not tried: the effort was spent before their turn"
        )


def _headline(view: View) -> str:
    plan = view.plan
    new = sum(len(claim.pods) for claim in plan.claims)
    old = sum(map(len, plan.placements.values()))
    places = [text for count, text in ((new, f"{new} on new nodes"), (old, f"{old} on existing nodes")) if count]
    left = len(plan.refusals) + len(plan.not_attempted)
    parts = [
        f"{counted(len(plan.claims), 'node')} to buy at {money(plan.price)} $/h"
        f" ({plan.price * HOURS_A_MONTH:,.2f} $ a month of {HOURS_A_MONTH} hours)",
        f"{new + old} of {counted(len(view.question.problem.pods), 'pod')} placed"
        + (f": {', '.join(places)}" if places else ""),
    ]
    more = ((left, f"{left} left over"), (view.spare, f"{view.spare} of the pods only keep room for a CapacityBuffer"))
    return "; ".join([*parts, *(text for count, text in more if count)])


def money(price: float) -> str:
    """A sum of prices, with as many digits as mean something."""
    return f"{price:,.2f}" if price >= 1000 else f"{price:.6g}"


def counted(count: int, noun: str) -> str:
    """A number with its noun."""
    return f"{count} {noun}{'' if count == 1 else 's'}"


def section(title: str, table: output.Table) -> None:
    """A table under a headline, if there is anything in it."""
    if table.rows:
        click.echo(f"\n{output.bold(title)}")
        output.table(table)


def _bought(view: View) -> output.Table:
    """Nodes of one kind are one row."""
    names = ("NODES", "NODEPOOL", "TYPE", "BOUGHT AS", "$/h EACH", "$/h", "PODS", "CPU", "MEMORY", "RUNNER-UP")
    left = ("NODEPOOL", "TYPE", "BOUGHT AS", "RUNNER-UP")
    groups: dict[tuple[str, str, str], list[PlannedClaim]] = {}
    for claim in view.plan.claims:
        first = claim.options[0]
        groups.setdefault((claim.nodepool, first.name, place(first.offering)), []).append(claim)
    rows = tuple(
        (
            str(len(claims)),
            *kind,
            price_text(claims[0].price),
            money(sum(claim.price for claim in claims)),
            str(sum(len(claim.pods) for claim in claims)),
            _filled(view, claims, CPU),
            _filled(view, claims, MEMORY),
            _runner_up(claims[0]),
        )
        for kind, claims in sorted(groups.items(), key=lambda item: (-sum(c.price for c in item[1]), item[0]))
    )
    return output.Table(tuple(output.TableColumn(name, right=name not in left) for name in names), rows)


def _runner_up(claim: PlannedClaim) -> str:
    """What would be bought otherwise, and how much dearer that is."""
    second = claim.runner_up
    return "none" if second is None else f"{second.name} +{money(second.offering.cost - claim.price)}"


def _filled(view: View, claims: Iterable[PlannedClaim], name: str) -> str:
    """What is asked for, and which part of what is there that is."""
    asked = there = 0
    for claim in claims:
        asked += claim.requests.get(name, 0)
        there += view.allocatable(claim).get(name, 0)
    share = f" {asked * 100 // there}%" if there else ""
    unit = "Gi" if resources.is_bytes(name) else ""
    amounts = (resources.plain(name, amount, digits=2).removesuffix(unit) for amount in (asked, there))
    return f"{'/'.join(amounts)}{unit}{share}"


def _places(view: View) -> output.Table:
    where: dict[str, Counter[str]] = {}
    for pod, target in _targets(view.plan):
        where.setdefault(view.workload(pod), Counter())[target] += 1
    rows = tuple((workload, str(sum(counts.values())), _listed(counts)) for workload, counts in sorted(where.items()))
    return output.Table(
        (output.TableColumn("WORKLOAD"), output.TableColumn("PODS", right=True), output.TableColumn("WHERE")), rows
    )


def _given_up(view: View) -> output.Table:
    """Wishes that were not kept; who gave up the same is one row."""
    who: dict[str, Counter[str]] = {}
    for each in view.plan.given_up:
        for wish in each.wishes:
            who.setdefault(wish, Counter()).update(map(view.workload, each.pods))
    rows = tuple((_workloads(pods), str(pods.total()), wish) for wish, pods in sorted(who.items()))
    return output.Table(
        (output.TableColumn("WORKLOAD"), output.TableColumn("PODS", right=True), output.TableColumn("WISH")), rows
    )


def _targets(plan: Plan) -> Iterator[tuple[str, str]]:
    for name, pods in sorted(plan.placements.items()):
        yield from ((pod, f"node {name}") for pod in pods)
    for claim in plan.claims:
        first = claim.options[0]
        yield from ((pod, f"new {first.name} {place(first.offering)}") for pod in claim.pods)


def _listed(counts: Mapping[str, int]) -> str:
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    parts = [f"{count} on {target}" for target, count in ordered[:_SHOWN_PLACES]]
    rest = ordered[_SHOWN_PLACES:]
    if rest:
        parts.append(f"{sum(count for _, count in rest)} on {counted(len(rest), 'other kind')} of node")
    return "; ".join(parts)


def _left_over(view: View) -> output.Table:
    """Whoever is refused for the same reason is one row."""
    rows = tuple((_workloads(Counter(map(view.workload, pods))), str(len(pods)), why) for why, pods in _rows(view))
    return output.Table(
        (output.TableColumn("WORKLOAD"), output.TableColumn("PODS", right=True), output.TableColumn("WHY")), rows
    )


def _rows(view: View) -> list[tuple[str, list[str]]]:
    """Stories and the pods they are told of, in the order in which they are shown."""
    return sorted(_by_reason(view).items(), key=lambda item: (view.workload(item[1][0]), item[0]))


def _by_reason(view: View) -> dict[str, list[str]]:
    """Stories to the pods that they are told of. Pods of one kind share their reasons, so most stories are told once."""
    known: dict[tuple[RefusalReason, ...], str] = {}
    found: dict[str, list[str]] = {}
    for refusal in view.plan.refusals:
        why = known.get(refusal.reasons)
        if why is None:
            why = known[refusal.reasons] = story(refusal)
        found.setdefault(why, []).append(refusal.pod)
    return found


def _workloads(counts: Mapping[str, int]) -> str:
    names = sorted(counts)
    more = f" and {len(names) - _SHOWN_WORKLOADS} more" if len(names) > _SHOWN_WORKLOADS else ""
    return ", ".join(names[:_SHOWN_WORKLOADS]) + more


def story(refusal: Refusal) -> str:
    """Why a pod is left over, in one line of bearable length."""
    parts = [part.removeprefix(f"{ITSELF}: ") for part in refusal.told()] if refusal.ignored else refusal.told()
    more = f"; {counted(len(parts) - _SHOWN_REASONS, 'other reason')}" if len(parts) > _SHOWN_REASONS else ""
    return f"{'never tried: ' if refusal.ignored else ''}{'; '.join(parts[:_SHOWN_REASONS])}{more}"


def _remedies(view: View) -> Iterator[str]:
    """For each row of what is left over what would let a pod of it in, as far as few questions tell; and how to ask on."""
    rows = _rows(view)
    tries = 0 if len(view.question.problem.pods) > _REMEDIES_UP_TO else _TRIED_PODS
    open_questions = []
    for _, pods in rows:
        for pod in _heads(view, pods)[:tries]:
            tries -= 1
            if blames := blame(view.question.problem, view.plan, pod).blames[:_SHOWN_BLAMES]:
                yield f"{view.workload(pod)} would have a place without {', or without '.join(map(str, blames))}"
                break
        else:
            open_questions.append(pods[0])
    for pod in (open_questions or [pods[0] for _, pods in rows])[:1]:
        yield f"--explain POD tells more of a pod, for instance --explain {short(pod)}"


def _heads(view: View, pods: Sequence[str]) -> list[str]:
    """The first pod of each of the first few workloads."""
    first = {view.workload(pod): pod for pod in reversed(pods)}
    return list(reversed(first.values()))[:_TRIED_WORKLOADS]


def costs_table(view: View, found: Iterable[Cost]) -> output.Table:
    """What wishes cost, the dearest first."""
    ordered = sorted(found, key=lambda cost: (-(cost.hourly or 0.0), cost.pod, cost.constraint.field))
    rows = tuple(
        (view.workload(each.pod), str(each.pods), each.constraint.says, cost_text(each.hourly)) for each in ordered
    )
    columns = (
        output.TableColumn("WORKLOAD"), output.TableColumn("PODS", right=True), output.TableColumn("WISH"),
        output.TableColumn("$/h", right=True),
    )  # fmt: skip
    return output.Table(columns, rows)


def attempts_table(view: View) -> output.Table:
    """What came of each way of planning, in the order in which they were tried."""
    names = ("PLANNER", "OUTCOME", "NODES", "$/h", "LEFT OVER")
    rows = tuple(
        (each.planner, each.outcome, *(("", "", "") if each.given_up else _came_to(each))) for each in view.attempts
    )
    return output.Table(tuple(output.TableColumn(name, right=name not in names[:2]) for name in names), rows)


def _came_to(attempt: Attempt) -> tuple[str, str, str]:
    return str(attempt.nodes), money(attempt.price), str(attempt.left_over)


def cost_text(hourly: float | None) -> str:
    """What a wish costs. Plans that place different pods cannot be compared."""
    return "places other pods" if hourly is None else money(hourly)
