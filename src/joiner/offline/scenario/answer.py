"""Plans in the words of scenario files: the result that goes with each scenario, as plain data for one line of JSON."""

import resource
import sys
from collections.abc import Callable, Iterable
from typing import Any, Final

from joiner.catalog.units import Stock
from joiner.clock import Clock
from joiner.model import labels, resources
from joiner.model.codec import encode
from joiner.offline.scenario.reader import Scenario, shown
from joiner.requirements import Requirement, Requirements
from joiner.scheduling.plan import Plan, PlannedClaim
from joiner.scheduling.problem import Problem

NO_PRICE: Final = -1.0
_RSS_UNIT: Final = 1 if sys.platform == "darwin" else 1024


class Stopwatch:
    """How long something took, by the clock and in processor time."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._began = clock.monotonic()
        self._worked = _cpu_seconds()

    def seconds(self) -> float:
        """By the clock."""
        return self._clock.monotonic() - self._began

    def cpu_seconds(self) -> float:
        """Of all processors together."""
        return _cpu_seconds() - self._worked


def answer(
    scenario: Scenario, solve: Callable[[Problem], Plan], clock: Clock, setup_seconds: float = 0.0
) -> dict[str, Any]:
    """What the engine says about a scenario, and how long it took to say it."""
    watch = Stopwatch(clock)
    plan = solve(scenario.problem)
    seconds, cpu_seconds = watch.seconds(), watch.cpu_seconds()
    result = {**told(scenario, plan), **_measured(seconds, cpu_seconds, setup_seconds)}
    result["timedOut"] = bool(plan.not_attempted)
    pods = result["summary"]["pods"]
    result["summary"]["podsPerSecond"] = round(pods / seconds, 1) if seconds > 0 else 0.0
    return result


def failure(message: str, name: str = "") -> dict[str, Any]:
    """The result of a scenario that could not be answered."""
    empty = told(Scenario(name=name, problem=Problem(pods=())), Plan())
    named = {"name": name} if name else {}
    return {**named, "failure": message, **empty, **_measured(0.0, 0.0, 0.0), "timedOut": False}


def told(scenario: Scenario, plan: Plan) -> dict[str, Any]:
    """The plan without the times."""
    stocks = {option.pool.name: option.catalog.market.stock for option in scenario.problem.pools}
    made = (_claim(each, stocks[each.nodepool]) for each in plan.claims)
    claims = sorted(made, key=lambda each: each["pods"][:1])
    nodes = [
        {"name": name, "pods": _names(plan.placements.get(name, ()))}
        for name in sorted({node.name for node in scenario.problem.nodes} | plan.placements.keys())
    ]
    refused = {_name(each.pod): str(each) for each in plan.refusals if not each.ignored}
    ignored = {**scenario.ignored, **{_name(each.pod): str(each) for each in plan.refusals if each.ignored}}
    result: dict[str, Any] = {"name": scenario.name} if scenario.name else {}
    result |= {"newNodeClaims": claims, "existingNodes": nodes, "errors": dict(sorted(refused.items()))}
    more = {
        "ignored": dict(sorted(ignored.items())),
        "notAttempted": _names(plan.not_attempted),
        "overlays": dict(sorted(scenario.overlays.items())),
        "nodePools": dict(sorted(scenario.refused.items())),
    }
    result |= {field: content for field, content in more.items() if content}
    result["summary"] = _summary(scenario, plan, claims, nodes)
    return result


def _summary(
    scenario: Scenario, plan: Plan, claims: list[dict[str, Any]], nodes: list[dict[str, Any]]
) -> dict[str, Any]:
    priced = [each["cheapestPrice"] for each in claims if each["cheapestPrice"] >= 0]
    unpriced = {"unpriced": len(claims) - len(priced)} if len(priced) < len(claims) else {}
    return {
        "pods": len(scenario.problem.pods) - sum(each.ignored for each in plan.refusals),
        "newNodes": len(claims),
        "podsOnNewNodes": sum(len(each["pods"]) for each in claims),
        "podsOnExistingNodes": sum(len(each["pods"]) for each in nodes),
        "failed": sum(not each.ignored for each in plan.refusals),
        "notAttempted": len(plan.not_attempted),
        "totalCheapestPrice": sum(priced),
        **unpriced,
        "podsPerSecond": 0.0,
    }


def _claim(claim: PlannedClaim, stock: Stock) -> dict[str, Any]:
    result: dict[str, Any] = {
        "nodePool": claim.nodepool,
        "requirements": _requirements(_for_sale(claim, stock)),
        "instanceTypes": [option.name for option in claim.options],
        "pods": _names(claim.pods),
        "cheapestPrice": claim.price if claim.options else NO_PRICE,
    }
    if claim.options:
        first = claim.options[0]
        result["cheapest"] = {
            "instanceType": first.name,
            "capacityType": first.offering.capacity_type,
            "zone": first.offering.zone,
        }
    more = {
        "requests": resources.written({name: amount for name, amount in claim.requests.items() if amount}),
        "taints": encode(claim.taints),
        "reservationIDs": sorted(claim.reservations),
        "minValuesRelaxed": claim.min_values_relaxed,
        "priceOverlayApplied": any(option.offering.price_overlaid for option in claim.options),
    }
    return result | {field: content for field, content in more.items() if content}


def _for_sale(claim: PlannedClaim, stock: Stock) -> Requirements:
    """The requirements of a claim, with the capacity types that its types can be bought in."""
    if claim.reservations:
        return claim.requirements
    kinds = stock.capacity_types(claim.requirements, [option.name for option in claim.options])
    asked = claim.requirements.at(labels.CAPACITY_TYPE)
    chosen = Requirement(labels.CAPACITY_TYPE, kinds, min_values=asked.min_values)
    return claim.requirements.without(labels.CAPACITY_TYPE) & Requirements([chosen]) if kinds else claim.requirements


def _requirements(requirements: Requirements) -> list[dict[str, Any]]:
    """In order of key. The values of the instance type are left out: they are the list of types."""
    rows: dict[tuple[str, str], dict[str, Any]] = {}
    for entry in requirements.written():
        row: dict[str, Any] = {"key": entry.key, "operator": entry.operator}
        if entry.values and entry.key != labels.INSTANCE_TYPE:
            row["values"] = list(entry.values)
        if entry.min_values is not None:
            row["minValues"] = entry.min_values
        rows[entry.key, entry.operator] = row
    if labels.INSTANCE_TYPE not in requirements:
        rows[labels.INSTANCE_TYPE, "In"] = {"key": labels.INSTANCE_TYPE, "operator": "In"}
    return [rows[key] for key in sorted(rows)]


def _names(pods: Iterable[str]) -> list[str]:
    return sorted(map(_name, pods))


def _name(pod: str) -> str:
    return shown(*pod.split("/", 1)) if "/" in pod else pod


def _measured(seconds: float, cpu_seconds: float, setup_seconds: float) -> dict[str, Any]:
    """Times and sizes. Fields that mean nothing here are kept at zero, for readers that expect them."""
    return {
        "seconds": seconds,
        "cpuSeconds": cpu_seconds,
        "setupSeconds": setup_seconds,
        "newSchedulerSeconds": 0.0,
        "truncateSeconds": 0.0,
        "heapBytes": 0,
        "allocBytes": 0,
        "peakRSSBytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * _RSS_UNIT,
    }


def _cpu_seconds() -> float:
    spent = resource.getrusage(resource.RUSAGE_SELF)
    return spent.ru_utime + spent.ru_stime
