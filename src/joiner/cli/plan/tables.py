"""A `PlanReport` as tables: what is bought, where pods go, and what keeps the others out."""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from joiner.catalog.explain import bill_text, place
from joiner.cli import output
from joiner.model import resources
from joiner.model.resources import CPU, MEMORY
from joiner.offline.problem import short
from joiner.offline.report.plan import PlanReport, Purchase

HOURS_A_MONTH: Final = 730
BY_NAME: Final = "NodePools of equal weight are asked by name, the last in the alphabet first"
_SHOWN_PLACES: Final = 4
_SHOWN_WORKLOADS: Final = 3
_SHOWN_PODS: Final = 10
"""From so many pods without a workload on they share a row."""


def draw(view: PlanReport) -> None:
    """The whole plan, for people."""
    output.echo(output.Cell(_headline(view), "bold"))
    for line in _prices(view):
        output.echo(f"  {line}")
    section("What would be bought", _bought(view))
    section("Where pods would go", _places(view))
    section("What was given up", _given_up(view))
    section("What is left over, and why", _left_over(view))
    for number, line in enumerate(_remedies(view)):
        output.echo(f"{'' if number else chr(10)}{line}")
    if view.plan.not_attempted:
        left = len(view.plan.not_attempted)
        output.echo(
            f"\n{left} {'pod was' if left == 1 else 'pods were'} not tried: the effort was spent before their turn"
        )


def _headline(view: PlanReport) -> str:
    plan = view.plan
    new = sum(len(each.pods) for each in view.purchases_made)
    old = sum(map(len, view.existing.values()))
    places = [text for count, text in ((new, f"{new} on new nodes"), (old, f"{old} on existing nodes")) if count]
    left = len(plan.refusals) + len(plan.not_attempted)
    parts = [
        f"{counted(len(view.purchases_made), 'node')} to buy at {money(view.hourly)} $/h"
        f" ({view.hourly * HOURS_A_MONTH:,.2f} $ a month of {HOURS_A_MONTH} hours)",
        f"{new + old} of {counted(len(view.question.problem.pods), 'pod')} placed"
        + (f": {', '.join(places)}" if places else ""),
    ]
    more = (
        (left, f"{left} left over"),
        (len(view.static), f"{counted(len(view.static), 'node')} of static NodePools among them"),
        (view.spare, f"{view.spare} of the pods only keep room for a CapacityBuffer"),
    )
    return "; ".join([*parts, *(text for count, text in more if count)])


def _prices(view: PlanReport) -> Iterator[str]:
    """Where prices come from, and what the bill is where NodeOverlays have changed them."""
    yield from (f"prices: {line}" for line in view.prices)
    if not math.isclose(view.hourly, view.list_hourly, rel_tol=1e-9):
        month = view.list_hourly * HOURS_A_MONTH
        yield (
            f"NodeOverlays changed prices: these nodes cost {money(view.list_hourly)} $/h ({month:,.2f} $ a month) at the"
            " prices of the catalogue"
        )
    paid = sum(each.option.offering.prepaid for each in view.purchases_made)
    if paid:
        yield f"of these nodes {paid} {'is' if paid == 1 else 'are'} paid for already, by capacity reservations"


def money(price: float) -> str:
    """A sum of prices, with as many digits as mean something."""
    return f"{price:,.2f}" if price >= 1000 else f"{price:.6g}"


def counted(count: int, noun: str) -> str:
    """A number with its noun."""
    return f"{count} {noun}{'' if count == 1 else 's'}"


def cost_text(hourly: float | None) -> str:
    """What a wish costs. Plans that place different pods cannot be compared."""
    return "places other pods" if hourly is None else money(hourly)


def section(title: str, table: output.Table) -> None:
    """A table under a headline, if there is anything in it."""
    if table.rows:
        output.echo(output.Cell(f"\n{title}", "bold"))
        output.table(table)


def _bought(view: PlanReport) -> output.Table:
    """Nodes of one kind are one row. List prices have a column where NodeOverlays changed some."""
    groups: dict[tuple[str, str, str], list[Purchase]] = {}
    for each in view.purchases_made:
        groups.setdefault((_pool(each), each.option.name, _place(view, each)), []).append(each)
    lists = any(each.option.offering.price_overlaid for each in view.purchases_made)
    names = ("NODES", "NODEPOOL", "TYPE", "BOUGHT AS", "$/h EACH", *(("LIST $/h EACH",) if lists else ()), "$/h")
    names = (*names, "PODS", "CPU", "MEMORY", "RUNNER-UP")
    left = ("NODEPOOL", "TYPE", "BOUGHT AS", "RUNNER-UP")
    rows = tuple(
        (
            str(len(nodes)),
            *kind,
            bill_text(nodes[0].option.offering),
            *((_listed_price(view, nodes[0]),) if lists else ()),
            _sum(nodes),
            str(sum(len(each.pods) for each in nodes)),
            _filled(view, nodes, CPU),
            _filled(view, nodes, MEMORY),
            _runner_up(nodes[0]),
        )
        for kind, nodes in sorted(groups.items(), key=lambda item: (-sum(each.price for each in item[1]), item[0]))
    )
    columns = tuple(output.TableColumn(name, right=name not in left) for name in names)
    return output.Table(columns, rows, spare=("RUNNER-UP", "MEMORY", "CPU", "$/h EACH"))


def _pool(purchase: Purchase) -> str:
    return purchase.nodepool if purchase.claim is not None else f"{purchase.nodepool} (static)"


def _place(view: PlanReport, purchase: Purchase) -> str:
    """How it is bought, and in how many other zones it could be bought just as well."""
    ties = len(view.other_zones(purchase))
    return place(purchase.option.offering) + (f" or {ties} more zone{'' if ties == 1 else 's'}" if ties else "")


def _listed_price(view: PlanReport, purchase: Purchase) -> str:
    return "paid" if purchase.option.offering.prepaid else money(view.list_price(purchase))


def _sum(nodes: Iterable[Purchase]) -> str:
    bills = [each.option.offering.bill for each in nodes if not each.option.offering.prepaid]
    return money(sum(bills)) if bills else "paid"


def _runner_up(purchase: Purchase) -> str:
    """What would be bought otherwise, and how much dearer that is."""
    second = purchase.runner_up
    if second is None:
        return "none"
    return f"{second.name} +{money(second.offering.bill - purchase.option.offering.bill)}"


def _filled(view: PlanReport, nodes: Iterable[Purchase], name: str) -> str:
    """What is asked for, and which part of what is there that is."""
    asked = there = 0
    for each in nodes:
        asked += each.requests.get(name, 0)
        there += view.allocatable(each.nodepool, each.option).get(name, 0)
    share = f" {asked * 100 // there}%" if there else ""
    unit = "Gi" if resources.is_bytes(name) else ""
    amounts = (resources.plain(name, amount, digits=2).removesuffix(unit) for amount in (asked, there))
    return f"{'/'.join(amounts)}{unit}{share}"


def _places(view: PlanReport) -> output.Table:
    where: dict[str, Counter[str]] = {}
    for pod, target in _targets(view):
        where.setdefault(view.workload(pod), Counter())[target] += 1
    where = _together(where)
    rows = tuple((workload, str(sum(counts.values())), listed(counts)) for workload, counts in sorted(where.items()))
    return output.Table(
        (output.TableColumn("WORKLOAD"), output.TableColumn("PODS", right=True), output.TableColumn("WHERE")), rows
    )


def _together(where: dict[str, Counter[str]]) -> dict[str, Counter[str]]:
    """Many pods that belong to no workload are one row for each namespace."""
    alone = [name for name in where if name.startswith("Pod ")]
    if len(alone) <= _SHOWN_PODS:
        return where
    by_namespace: dict[str, list[str]] = {}
    for name in alone:
        by_namespace.setdefault(name.removeprefix("Pod ").rpartition("/")[0], []).append(name)
    found = {name: counts for name, counts in where.items() if name not in set(alone)}
    for names in by_namespace.values():
        plain = ", ".join(name.removeprefix("Pod ") for name in names[:_SHOWN_WORKLOADS])
        rest = len(names) - _SHOWN_WORKLOADS
        title = f"Pod {plain} and {rest:,} more" if rest > 0 else f"Pod {plain}"
        found[title] = sum((where[name] for name in names), Counter())
    return found


def _given_up(view: PlanReport) -> output.Table:
    """Wishes that were not kept; who gave up the same is one row."""
    who: dict[str, Counter[str]] = {}
    for each in view.plan.given_up:
        for wish in each.wishes:
            who.setdefault(wish, Counter()).update(map(view.workload, each.pods))
    rows = tuple((_workloads(pods), str(pods.total()), wish) for wish, pods in sorted(who.items()))
    return output.Table(
        (output.TableColumn("WORKLOAD"), output.TableColumn("PODS", right=True), output.TableColumn("WISH")), rows
    )


def _targets(view: PlanReport) -> Iterator[tuple[str, str]]:
    for name, pods in sorted(view.existing.items()):
        yield from ((pod, f"node {name}") for pod in pods)
    for each in view.purchases_made:
        target = f"new {each.option.name} {place(each.option.offering)}"
        yield from ((pod, target) for pod in each.pods)


def listed(counts: Mapping[str, int]) -> str:
    """Where pods go: the kinds of node with most of them by name, the others as a number."""
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    shown = len(ordered) if len(ordered) <= _SHOWN_PLACES + 1 else _SHOWN_PLACES
    parts = [f"{count} on {target}" for target, count in ordered[:shown]]
    if rest := ordered[shown:]:
        parts.append(f"{sum(count for _, count in rest)} on {len(rest)} other kinds of node")
    return "; ".join(parts)


def _left_over(view: PlanReport) -> output.Table:
    """Pods that are refused for the same reasons are one row."""
    rows = tuple(
        (_workloads(Counter(map(view.workload, row.pods))), str(len(row.pods)), row.why) for row in view.left_over
    )
    return output.Table(
        (output.TableColumn("WORKLOAD"), output.TableColumn("PODS", right=True), output.TableColumn("WHY")), rows
    )


def _workloads(counts: Mapping[str, int]) -> str:
    names = sorted(counts)
    more = f" and {len(names) - _SHOWN_WORKLOADS} more" if len(names) > _SHOWN_WORKLOADS else ""
    return ", ".join(names[:_SHOWN_WORKLOADS]) + more


def _remedies(view: PlanReport) -> Iterator[str]:
    """What would let a pod of each row in, and how to ask about the others."""
    for row in view.left_over:
        if row.remedies:
            without = ", or without ".join(map(str, row.remedies))
            yield f"{view.workload(row.pod)} would have a place without {without}"
    yield from view.later_rounds
    open_rows = [row for row in view.left_over if not row.remedies] or view.left_over
    for row in open_rows[:1]:
        yield f"--explain POD tells more of a pod, for instance --explain {short(row.pods[0])}"
