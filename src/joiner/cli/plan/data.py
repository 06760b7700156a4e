"""A `PlanReport` as plain data, for JSON and YAML (docs/reference/json.md)."""

from itertools import zip_longest
from typing import Any

from joiner.catalog.market import Option
from joiner.cli.findings import as_data as finding_data
from joiner.cli.findings import ignored_data
from joiner.cli.plan.costsandbound import why_far
from joiner.cli.plan.tables import HOURS_A_MONTH
from joiner.model import resources
from joiner.model.codec import encode
from joiner.offline.report.plan import LeftOver, PlanReport, Purchase
from joiner.offline.report.pod import PodReport
from joiner.scheduling.plan import PlannedClaim, Refusal, RefusalReason
from joiner.scheduling.reporter import Attempt
from joiner.scheduling.whatif.alternatives import Cost, PurchaseReasons
from joiner.scheduling.whatif.blockers import Blame, LiftedVerdict
from joiner.scheduling.whatif.constraints import Constraint


def as_data(view: PlanReport) -> dict[str, Any]:
    """The whole plan."""
    plan = view.plan
    return {
        "summary": {
            "pods": len(view.question.problem.pods),
            "sparePods": view.spare,
            "newNodes": len(view.purchases_made),
            "staticNodes": len(view.static),
            "podsOnNewNodes": sum(len(each.pods) for each in view.purchases_made),
            "podsOnExistingNodes": sum(map(len, view.existing.values())),
            "leftOver": len(plan.refusals),
            "notAttempted": len(plan.not_attempted),
            "hourly": round(view.hourly, 12),
            "monthly": round(view.hourly * HOURS_A_MONTH, 2),
            "listHourly": round(view.list_hourly, 12),
            "listMonthly": round(view.list_hourly * HOURS_A_MONTH, 2),
        },
        "prices": list(view.prices),
        **_told_data(view),
        "nodePoolsLeftOut": list(view.missed),
        "claims": [
            {**claim_data(view, claim), **({"why": purchase_data(why)} if why is not None else {})}
            for claim, why in zip_longest(plan.claims, view.purchases)
        ],
        "staticNodes": [static_data(view, each) for each in view.purchases_made if each.claim is None],
        "existingNodes": [{"name": name, "pods": list(pods)} for name, pods in sorted(view.existing.items()) if pods],
        "givenUp": [{"pods": list(each.pods), "wishes": list(each.wishes)} for each in plan.given_up],
        "leftOver": [refusal_data(view, refusal) for refusal in plan.refusals],
        "remedies": [remedy_data(view, row) for row in view.left_over if row.remedies],
        "notAttempted": list(plan.not_attempted),
        "planner": plan.planner,
        "ended": plan.ended,
        "attempts": [attempt_data(attempt) for attempt in view.attempts],
        **_costs_data(view),
        **_bound_data(view),
    }


def _told_data(view: PlanReport) -> dict[str, Any]:
    """What was assumed, what was left out, and what is odd about the files."""
    return {
        "notes": [*view.files_passed_over, *view.question.notes, *view.later_rounds],
        "ignored": [ignored_data(each) for each in view.question.ignored],
        "warnings": [finding_data(each) for each in view.warnings],
    }


def _costs_data(view: PlanReport) -> dict[str, Any]:
    if view.costs is None:
        return {}
    return {
        "costs": [cost_data(cost) for cost in view.costs],
        "nodePoolCosts": [
            {**constraint_data(cost.constraint), "hourly": None if cost.hourly is None else round(cost.hourly, 12)}
            for cost in view.pool_costs
        ],
        "costsNotLookedAt": view.costs_not_priced,
    }


def _bound_data(view: PlanReport) -> dict[str, Any]:
    least = view.bound
    if least is None:
        return {}
    parts = [{"pod": part.pod, "pods": part.count, "hourlyEach": part.price} for part in least.parts]
    return {
        "bound": {
            "hourly": least.price,
            "gap": least.gap(view.plan.price),
            "exact": least.exact,
            "method": least.method,
            "notCounted": list(least.dropped),
            "why": list(why_far(view, least)),
            "parts": parts,
            # The parts and this, less that, are the bound.
            "wholeNodes": least.nodes,
            "roomThatIsThere": least.surplus,
        }
    }


def remedy_data(view: PlanReport, row: LeftOver) -> dict[str, Any]:
    """What would let a pod in that stands for all pods with the same reasons: each change suffices."""
    return {
        "pod": row.pod,
        "workload": view.workload(row.pod),
        "pods": list(row.pods),
        "changes": [blame_data(remedy) for remedy in row.remedies],
    }


def attempt_data(attempt: Attempt) -> dict[str, Any]:
    """A way of planning that was tried."""
    told: dict[str, Any] = {"planner": attempt.planner, "outcome": attempt.outcome}
    if not attempt.given_up:
        told |= {"nodes": attempt.nodes, "hourly": round(attempt.price, 12), "leftOver": attempt.left_over}
    return told


def claim_data(view: PlanReport, claim: PlannedClaim) -> dict[str, Any]:
    """A node to buy."""
    second, first = claim.runner_up, claim.options[0]
    bought = Purchase(claim.nodepool, first, claim.pods, claim.requests, claim)
    return {
        "nodePool": claim.nodepool,
        "price": claim.price,
        "listPrice": view.list_price(bought),
        "paid": first.offering.prepaid,
        "otherZones": list(view.other_zones(bought)),
        "runnerUp": None if second is None else option_data(second),
        "pods": list(claim.pods),
        "requests": resources.written(claim.requests),
        "allocatable": resources.written(view.allocatable(claim.nodepool, first)),
        "requirements": encode(claim.requirements.written()),
        "taints": encode(claim.taints),
        "reservations": list(claim.reservations),
        "minValuesRelaxed": claim.min_values_relaxed,
        "options": [option_data(option) for option in claim.options],
    }


def static_data(view: PlanReport, node: Purchase) -> dict[str, Any]:
    """A node that a static NodePool has to buy."""
    return {
        "nodePool": node.nodepool,
        "price": node.option.offering.cost,
        "listPrice": view.list_price(node),
        "paid": node.option.offering.prepaid,
        "otherZones": list(view.other_zones(node)),
        "pods": list(node.pods),
        "requests": resources.written(node.requests),
        "allocatable": resources.written(view.allocatable(node.nodepool, node.option)),
        "option": option_data(node.option),
    }


def option_data(option: Option) -> dict[str, Any]:
    """A type that a node may be."""
    offering = option.offering
    return {
        "instanceType": option.name,
        "capacityType": offering.capacity_type,
        "zone": offering.zone,
        "price": offering.cost,
    }


def refusal_data(view: PlanReport, refusal: Refusal) -> dict[str, Any]:
    """A pod that found no place."""
    return {
        "pod": refusal.pod,
        "workload": view.workload(refusal.pod),
        "ignored": refusal.ignored,
        "reasons": [reason_data(reason) for reason in refusal.reasons],
    }


def reason_data(reason: RefusalReason) -> dict[str, Any]:
    """What one pool or node has against a pod; fields of which there is nothing to say are left out."""
    told: dict[str, Any] = {
        "rule": reason.rule,
        "object": reason.object,
        "message": reason.message,
        "wanted": reason.wanted,
        "had": reason.had,
        "hint": reason.hint,
        "funnel": [{"rule": stage.rule, "after": stage.after, "left": stage.left} for stage in reason.funnel],
    }
    return {field: content for field, content in told.items() if content}


def constraint_data(constraint: Constraint) -> dict[str, Any]:
    """A constraint of a pod, pool or node."""
    return {
        "rule": constraint.rule,
        "object": constraint.object,
        "field": constraint.field,
        "says": constraint.says,
        "change": constraint.change,
    }


def verdict_data(verdict: LiftedVerdict) -> dict[str, Any]:
    """What would let a pod in: each of the changes suffices."""
    return {
        "othersAsPlanned": verdict.on_the_plan,
        "cutShort": verdict.cut_short,
        "changes": [blame_data(blamed) for blamed in verdict.blames],
    }


def blame_data(blamed: Blame) -> dict[str, Any]:
    """Constraints without which a pod would have a place."""
    return {
        "constraints": [constraint_data(each) for each in blamed.constraints],
        **({"hint": blamed.hint} if blamed.hint else {}),
    }


def purchase_data(why: PurchaseReasons) -> dict[str, Any]:
    """Why a node is bought as it is."""
    return {
        "weight": why.weight,
        "typesThatWouldDo": why.types,
        "cheaperTypes": dict(why.cheaper),
        "preferencesHeeded": [{"pod": each.pod, "says": each.says, "cheaper": each.price} for each in why.heeded],
        "otherNodePools": [
            {"nodePool": each.nodepool, "weight": each.weight, "price": each.price, "reason": each.reason}
            for each in why.rivals
        ],
    }


def cost_data(cost: Cost) -> dict[str, Any]:
    """What a wish costs."""
    hourly = None if cost.hourly is None else round(cost.hourly, 12)
    return {"pod": cost.pod, "pods": cost.pods, **constraint_data(cost.constraint), "hourly": hourly}


def pod_data(view: PlanReport, story: PodReport) -> dict[str, Any]:
    """A single pod."""
    found: dict[str, Any] = {"pod": story.pod, "workload": view.workload(story.pod), **_told_data(view)}
    if story.node:
        found["node"] = story.node
    elif story.claim is not None and story.purchase is not None:
        found["claim"] = claim_data(view, story.claim)
        found["why"] = purchase_data(story.purchase)
    elif story.refusal is not None and story.verdict is not None:
        found["refusal"] = refusal_data(view, story.refusal)
        found["wouldHelp"] = verdict_data(story.verdict)
    else:
        found["notAttempted"] = True
    if story.given_up:
        found["givenUp"] = list(story.given_up)
    if story.nodes:
        found["existingNodes"] = [reason_data(each) for each in story.nodes]
    if story.costs:
        found["costs"] = [cost_data(each) for each in story.costs]
    return found | {"planner": view.plan.planner, "ended": view.plan.ended}
