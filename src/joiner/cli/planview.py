"""Plans for people and for machines: tables of what is bought and where pods go, and the story of a single pod."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import click

from joiner.admission.problem import nearest
from joiner.catalog.explain import place, price_text
from joiner.catalog.market import InstanceType, Option
from joiner.cli import output
from joiner.cli.question import Question
from joiner.cli.world import Unsound
from joiner.model import resources
from joiner.model.codec import encode
from joiner.model.resources import CPU, MEMORY, Resources
from joiner.scheduling.plan import Plan, PlannedClaim, Refusal

HOURS_A_MONTH: Final = 730
_SHOWN_OPTIONS: Final = 10
_SHOWN_PLACES: Final = 4


@dataclass(frozen=True)
class View:
    """A plan with everything that is told about it."""

    question: Question
    plan: Plan
    prices: tuple[str, ...]
    """Where prices come from, and of which day they are."""
    missed: tuple[str, ...] = ()
    """Pools that could not be used, and why."""

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
    _section("What would be bought", _bought(view))
    _section("Where pods would go", _places(view))
    _section("What is left over, and why", _left_over(view))
    if view.plan.not_attempted:
        click.echo(f"\n{len(view.plan.not_attempted)} pods were not tried: the effort was spent before their turn")


def _headline(view: View) -> str:
    plan = view.plan
    new = sum(len(claim.pods) for claim in plan.claims)
    old = sum(map(len, plan.placements.values()))
    places = [text for count, text in ((new, f"{new} on new nodes"), (old, f"{old} on existing nodes")) if count]
    left = len(plan.refusals) + len(plan.not_attempted)
    parts = [
        f"{_counted(len(plan.claims), 'node')} to buy at {money(plan.price)} $/h"
        f" ({plan.price * HOURS_A_MONTH:,.2f} $ a month of {HOURS_A_MONTH} hours)",
        f"{new + old} of {_counted(len(view.question.problem.pods), 'pod')} placed"
        + (f": {', '.join(places)}" if places else ""),
    ]
    return "; ".join([*parts, *([f"{left} left over"] if left else [])])


def money(price: float) -> str:
    """A sum of prices, with as many digits as mean something."""
    return f"{price:,.2f}" if price >= 1000 else f"{price:.6g}"


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"


def _section(title: str, table: output.Table) -> None:
    if table.rows:
        click.echo(f"\n{output.bold(title)}")
        output.table(table)


def _bought(view: View) -> output.Table:
    """Nodes of one kind are one row."""
    names = ("NODES", "NODEPOOL", "TYPE", "BOUGHT AS", "$/h EACH", "$/h", "PODS", "CPU", "MEMORY")
    left = ("NODEPOOL", "TYPE", "BOUGHT AS")
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
        )
        for kind, claims in sorted(groups.items(), key=lambda item: (-sum(c.price for c in item[1]), item[0]))
    )
    return output.Table(tuple(output.Column(name, right=name not in left) for name in names), rows)


def _filled(view: View, claims: Iterable[PlannedClaim], name: str) -> str:
    """What is asked for, and which part of what is there that is."""
    asked = there = 0
    for claim in claims:
        asked += claim.requests.get(name, 0)
        there += view.allocatable(claim).get(name, 0)
    share = f" {asked * 100 // there}%" if there else ""
    return f"{resources.text(name, asked)}/{resources.text(name, there)}{share}"


def _places(view: View) -> output.Table:
    where: dict[str, Counter[str]] = {}
    for pod, target in _targets(view.plan):
        where.setdefault(view.workload(pod), Counter())[target] += 1
    rows = tuple((workload, str(sum(counts.values())), _listed(counts)) for workload, counts in sorted(where.items()))
    return output.Table((output.Column("WORKLOAD"), output.Column("PODS", right=True), output.Column("WHERE")), rows)


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
        parts.append(f"{sum(count for _, count in rest)} on {_counted(len(rest), 'other kind')} of node")
    return "; ".join(parts)


def _left_over(view: View) -> output.Table:
    groups: Counter[tuple[str, str]] = Counter(
        (view.workload(refusal.pod), _story(refusal)) for refusal in view.plan.refusals
    )
    columns = (output.Column("WORKLOAD"), output.Column("PODS", right=True), output.Column("WHY"))
    rows = tuple((workload, str(count), why) for (workload, why), count in sorted(groups.items()))
    return output.Table(columns, rows)


def _story(refusal: Refusal) -> str:
    return f"never tried: {refusal}" if refusal.ignored else str(refusal)


# -- one pod -------------------------------------------------------------------------------------------------------------


def explain(view: View, name: str, form: str) -> None:
    """Tell of a single pod: where it goes and what that place is, or everything that keeps it out."""
    pod = _found(view, name)
    if form == output.TABLE:
        for line in _told(view, pod):
            click.echo(line)
    else:
        output.data(_pod_data(view, pod), form)


def _found(view: View, name: str) -> str:
    known = [f"{pod.metadata.namespace}/{pod.name}" for pod in view.question.problem.pods]
    wanted = name if "/" in name else f"default/{name}"
    if wanted in known:
        return wanted
    alike = [each for each in known if each.endswith(f"/{name}")]
    if len(alike) == 1:
        return alike[0]
    if alike:
        raise Unsound(f"there are several pods {name}: {', '.join(alike)}; name one with its namespace")
    members = [each for each in known if each.startswith(f"{wanted}-")]
    near = members[0] if members else nearest(wanted, known)
    raise Unsound(f"no pod {name} is waiting for a node{f'; did you mean {short(near)}?' if near else ''}")


def _told(view: View, pod: str) -> Iterator[str]:
    own, workload = f"Pod {short(pod)}", view.workload(pod)
    subject = own if workload == own else f"{own} ({workload})"
    for node, pods in view.plan.placements.items():
        if pod in pods:
            yield output.bold(f"{subject} goes to node {node}, which is there already")
            return
    for claim in view.plan.claims:
        if pod in claim.pods:
            yield from _claim_story(view, subject, claim)
            return
    refusal = next((each for each in view.plan.refusals if each.pod == pod), None)
    if refusal is None:
        yield output.bold(f"{subject} was not tried: the effort was spent before its turn")
        return
    yield output.bold(f"{subject} {'was never tried' if refusal.ignored else 'finds no place'}")
    rows = tuple((reason.object, reason.rule, reason.message) for reason in refusal.reasons)
    yield from output.plain(output.Table((output.Column("WHO"), output.Column("RULE"), output.Column("WHY")), rows))


def _claim_story(view: View, subject: str, claim: PlannedClaim) -> Iterator[str]:
    first = claim.options[0]
    yield output.bold(f"{subject} goes to a new node of NodePool {claim.nodepool}")
    yield f"  bought as:   {first.name} {place(first.offering)} at {price_text(claim.price)} $/h"
    yield f"  runner-up:   {_runner_up(claim)}"
    yield f"  shared with: {_counted(len(claim.pods) - 1, 'other pod')}"
    there = view.allocatable(claim)
    amounts = ", ".join(
        f"{name} {resources.text(name, amount)} of {resources.text(name, there.get(name, 0))}"
        for name, amount in sorted(claim.requests.items())
    )
    yield f"  asked for:   {amounts}"
    yield f"  must be:     {claim.requirements}"
    options = claim.options[:_SHOWN_OPTIONS]
    rows = tuple((each.name, place(each.offering), price_text(each.offering.cost)) for each in options)
    yield f"\nTypes that would do ({len(claim.options)}), cheapest first"
    columns = (output.Column("TYPE"), output.Column("BOUGHT AS"), output.Column("$/h", right=True))
    yield from output.plain(output.Table(columns, rows))


def _runner_up(claim: PlannedClaim) -> str:
    if len(claim.options) < 2:
        return "none; no other type would do"
    second = claim.options[1]
    dearer = money(second.offering.cost - claim.price)
    return f"{second.name} {place(second.offering)}, {dearer} $/h more"


# -- for machines --------------------------------------------------------------------------------------------------------


def as_data(view: View) -> dict[str, Any]:
    """The whole plan as plain data."""
    plan = view.plan
    return {
        "summary": {
            "pods": len(view.question.problem.pods),
            "newNodes": len(plan.claims),
            "podsOnNewNodes": sum(len(claim.pods) for claim in plan.claims),
            "podsOnExistingNodes": sum(map(len, plan.placements.values())),
            "leftOver": len(plan.refusals),
            "notAttempted": len(plan.not_attempted),
            "hourly": round(plan.price, 12),
            "monthly": round(plan.price * HOURS_A_MONTH, 2),
        },
        "prices": list(view.prices),
        "notes": list(view.question.notes),
        "claims": [_claim_data(view, claim) for claim in plan.claims],
        "existingNodes": [{"name": name, "pods": list(pods)} for name, pods in sorted(plan.placements.items()) if pods],
        "leftOver": [_refusal_data(view, refusal) for refusal in plan.refusals],
        "notAttempted": list(plan.not_attempted),
        "planner": plan.planner,
    }


def _claim_data(view: View, claim: PlannedClaim) -> dict[str, Any]:
    return {
        "nodePool": claim.nodepool,
        "price": claim.price,
        "pods": list(claim.pods),
        "requests": resources.written(claim.requests),
        "allocatable": resources.written(view.allocatable(claim)),
        "requirements": encode(claim.requirements.written()),
        "taints": encode(claim.taints),
        "reservations": list(claim.reservations),
        "minValuesRelaxed": claim.min_values_relaxed,
        "options": [_option_data(option) for option in claim.options],
    }


def _option_data(option: Option) -> dict[str, Any]:
    offering = option.offering
    return {
        "instanceType": option.name,
        "capacityType": offering.capacity_type,
        "zone": offering.zone,
        "price": offering.cost,
    }


def _refusal_data(view: View, refusal: Refusal) -> dict[str, Any]:
    return {
        "pod": refusal.pod,
        "workload": view.workload(refusal.pod),
        "ignored": refusal.ignored,
        "reasons": [
            {"rule": reason.rule, "object": reason.object, "message": reason.message} for reason in refusal.reasons
        ],
    }


def _pod_data(view: View, pod: str) -> dict[str, Any]:
    found: dict[str, Any] = {"pod": pod, "workload": view.workload(pod)}
    for node, pods in view.plan.placements.items():
        if pod in pods:
            return {**found, "node": node}
    for claim in view.plan.claims:
        if pod in claim.pods:
            return {**found, "claim": _claim_data(view, claim)}
    refusal = next((each for each in view.plan.refusals if each.pod == pod), None)
    return {**found, "refusal": _refusal_data(view, refusal)} if refusal else {**found, "notAttempted": True}
