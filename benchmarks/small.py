"""How long plans for 20 to 400 pods take beside Karpenter's scheduler: what an ordinary cluster asks for.

`ORACLE=path python -m benchmarks small`, as for `benchmarks.scheduling`. Both are started anew for each question, by turns, and
tell how many seconds of the processor the plan took; a busy machine changes those less than it does the time on the clock.
"""

import json
import os
import sys
import time
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks import mixes
from benchmarks.processes import apart
from joiner.offline.scenario import reader
from joiner.scheduling.schedule import schedule

QUESTION = "20 to 400 pods: how many seconds of the processor does a plan take?"
SIZES = (20, 50, 100, 200, 400)
TURNS = 3
OURS = [sys.executable, "-m", "benchmarks.small"]


def documents(pods: int) -> list[dict[str, Any]]:
    """The mixes of a size; services have about ten replicas."""
    return [mixes.benchmark(pods), mixes.deployments(pods, max(4, pods // 10)), mixes.topology(pods)]


def _told(command: list[str], document: dict[str, Any]) -> dict[str, Any]:
    said, _ = apart(command, json.dumps(document).encode() + b"\n")
    found: dict[str, Any] = json.loads(said)
    return found


def run() -> dict[str, Any]:
    program = os.environ.get("ORACLE", "")
    rows: dict[str, Any] = {}
    for document in (each for pods in SIZES for each in documents(pods)):
        turns = [
            (_told(OURS, document), _told([program, "-summary"], document) if program else {}) for _ in range(TURNS)
        ]
        own = rows[document["name"]] = {**turns[0][0], "cpuSeconds": median(ours["cpuSeconds"] for ours, _ in turns)}
        if program:
            own["their cpuSeconds"] = round(median(theirs["cpuSeconds"] for _, theirs in turns), 4)
            own["times faster"] = round(own["their cpuSeconds"] / own["cpuSeconds"], 1)
            own["their price"] = round(median(theirs["summary"]["totalCheapestPrice"] for _, theirs in turns), 4)
            own["their left over"] = turns[0][1]["summary"]["failed"]
        print(f"   {document['name']}: {own}", flush=True)
    return rows


def lines(kept: dict[str, Any]) -> list[str]:
    """The part of the page about small plans."""
    table = [
        "Seconds of the processor, each started anew; *theirs* is Karpenter's scheduler (v1.15.0, one worker).",
        "",
        "| question | ours, s | theirs, s | times faster | ours, $/h | theirs, $/h | left over | theirs | ended because |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | --- |",
    ]
    names = (
        "cpuSeconds",
        "their cpuSeconds",
        "times faster",
        "price",
        "their price",
        "left over",
        "their left over",
        "ended",
    )
    for name, row in kept["numbers"].items():
        table.append(f"| {name} | " + " | ".join(str(row.get(each, "")) for each in names) + " |")
    return table


def _one() -> None:
    """Answer the question on standard input."""
    problem = reader.read(sys.stdin.buffer.read(), Path()).problem
    began = time.process_time()
    plan = schedule(problem)
    took = round(time.process_time() - began, 4)
    found = {"cpuSeconds": took, "price": round(plan.price, 4), "left over": len(plan.refusals), "ended": plan.ended}
    print(json.dumps({**found, "planner": plan.planner, "nodes": len(plan.claims)}))


if __name__ == "__main__":
    _one()
