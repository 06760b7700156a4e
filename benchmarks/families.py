"""What plans cost on hundreds of small questions of many kinds, beside recorded answers of another scheduler."""

import json
from collections.abc import Iterable
from math import exp, log
from pathlib import Path
from typing import Any

from tests.differential.recordings import FAMILIES, Recording, price, recordings

from joiner.offline.scenario.reader import read
from joiner.scheduling.bound.lowerbound import bound, placed
from joiner.scheduling.schedule import schedule

QUESTION = "Small questions of many kinds: how far are plans from the cheapest possible?"
TOPOLOGY = frozenset({"pod affinity", "pod anti-affinity", "topology spread", "preferences", "host ports"})
"""Rules that the bound knows nothing of, and that make plans dearer for good reason."""
_FREE = 1e-5


def compared(recording: Recording) -> dict[str, Any] | None:
    """Our price and the dearest recorded one over the bound, if both place the same number of pods and pay anything."""
    problem = read(json.dumps(recording.scenario).encode(), Path()).problem
    plan = schedule(problem)
    least = bound(problem, placed(plan))
    served = len(placed(plan))
    theirs = [price(each) for each in recording.answers if _served(each) == served]
    if least.price < _FREE or len(theirs) < len(recording.answers) or not min(theirs):
        return None
    return {
        "ours": plan.price / least.price,
        "theirs": max(theirs) / least.price,
        "nodes": len(plan.claims),
        "their nodes": max(len(each["newNodeClaims"]) for each in recording.answers),
        "topology": bool(TOPOLOGY & set(least.dropped)),
    }


def _served(answer: dict[str, Any]) -> int:
    return sum(len(place["pods"]) for place in (*answer["newNodeClaims"], *answer["existingNodes"]))


def _mean(ratios: Iterable[float]) -> float:
    logs = [log(each) for each in ratios]
    return round(exp(sum(logs) / len(logs)), 3)


def _row(found: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "questions": len(found),
        "ours": _mean(each["ours"] for each in found),
        "theirs": _mean(each["theirs"] for each in found),
        "nodes": sum(each["nodes"] for each in found),
        "their nodes": sum(each["their nodes"] for each in found),
    }


def run() -> dict[str, Any]:
    rows: dict[str, Any] = {}
    everything: list[dict[str, Any]] = []
    for family in FAMILIES:
        found = [row for row in map(compared, recordings(family)) if row is not None]
        if found:
            rows[family] = _row(found)
            everything += found
    rows["all"] = _row(everything)
    rows["all without topology"] = _row([each for each in everything if not each["topology"]])
    return rows


def lines(kept: dict[str, Any]) -> list[str]:
    """The part of the page that is about small questions."""
    table = [
        "Prices over the bound, as geometric means, where both schedulers place the same pods; *theirs* is the dearest of",
        "three recorded runs. For a few pods the bound comes from going through all ways to serve them. It knows nothing of",
        "spread, affinity, preferences and host ports: where those bind, even the cheapest plan is above it.",
        "",
        "| kind | questions | ours ÷ bound | theirs ÷ bound | nodes | theirs |",
        "| --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    for name, row in kept["numbers"].items():
        cells = (row["questions"], f"{row['ours']:.2f}", f"{row['theirs']:.2f}", row["nodes"], row["their nodes"])
        table.append(f"| {name} | " + " | ".join(map(str, cells)) + " |")
    return table
