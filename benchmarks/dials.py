"""What the two dials of the planner cost and bring: node counts and prices with each of them on and off."""

import json
from pathlib import Path
from textwrap import fill
from time import perf_counter
from typing import Any

from benchmarks import mixes
from joiner.model.labels import SPOT
from joiner.model.meta import replace
from joiner.offline.scenario import reader
from joiner.scheduling.problem import Policy, Problem
from joiner.scheduling.schedule import schedule
from joiner.scheduling.tuning import NODE_PRICE, SPOT_WIDTH, SPOT_WIDTH_COST

QUESTION = "Fewer nodes, and spot nodes with more types to choose from: what do they cost?"
CASES = (("deployments", 50), ("deployments", 1_000), ("deployments", 10_000), ("benchmark", 1_000))
SETTINGS = {
    "off": Policy(),
    "node price": Policy(node_price=NODE_PRICE),
    "spot width": Policy(spot_width=SPOT_WIDTH, spot_width_cost=SPOT_WIDTH_COST),
    "both": Policy(node_price=NODE_PRICE, spot_width=SPOT_WIDTH, spot_width_cost=SPOT_WIDTH_COST),
}


def measured(problem: Problem) -> dict[str, Any]:
    started = perf_counter()
    plan = schedule(problem)
    seconds = perf_counter() - started
    spot = [claim for claim in plan.claims if claim.options[0].offering.capacity_type == SPOT]
    return {
        "seconds": round(seconds, 4),
        "price": round(plan.price, 4),
        "nodes": len(plan.claims),
        "narrow spot nodes": sum(_types(claim.options) < SPOT_WIDTH for claim in spot),
    }


def _types(options: Any) -> int:
    return sum(option.offering.capacity_type == SPOT for option in options)


def run() -> dict[str, Any]:
    rows: dict[str, Any] = {}
    for mix, pods in CASES:
        document = getattr(mixes, mix)(pods)
        problem = reader.read(json.dumps(document).encode(), Path()).problem
        rows[document["name"]] = {name: measured(replace(problem, policy=policy)) for name, policy in SETTINGS.items()}
        print(f"   {document['name']}: {rows[document['name']]}", flush=True)
    return rows


def lines(kept: dict[str, Any]) -> list[str]:
    """The part of the page that is about the dials."""
    intro = (
        f"Two dials trade a little money for plans that are easier to live with. The *node price* charges {NODE_PRICE:g} of the"
        " median price of what can be bought for every node when plans are compared, and never leads to a dearer plan than first"
        f" fit's. The *spot width* splits spot nodes that fewer than {SPOT_WIDTH} types could be, for at most"
        f" {SPOT_WIDTH_COST:.0%} of the plan's price. Both are off in the table above, and for scenarios."
    )
    table = [
        "| question | dials | $/h | nodes | narrow spot nodes | seconds |",
        "| --- | --- | ---: | ---: | ---: | ---: |",
    ]
    for question, by_setting in kept["numbers"].items():
        for name, row in by_setting.items():
            cells = (question, name, row["price"], row["nodes"], row["narrow spot nodes"], row["seconds"])
            table.append("| " + " | ".join(map(str, cells)) + " |")
    return [fill(intro, 128), "", *table]
