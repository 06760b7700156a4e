"""How long a plan takes and what it costs, beside another scheduler where one is at hand.

`ORACLE=path python -m benchmarks scheduling` puts every question to a program that reads scenarios and answers with one line of
JSON each (`-summary -workers 1`), in the same run on the same machine. Without it the ratios last recorded are printed.
"""

import json
import os
import sys
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks import mixes
from benchmarks.processes import apart
from joiner.offline.scenario import reader
from joiner.scheduling.bound.lowerbound import bound, placed
from joiner.scheduling.schedule import schedule

QUESTION = "Thousands of pods on hundreds of types: how long does a plan take, and what does it cost?"
CASES = (
    ("benchmark", (1, 2, 5, 10, 20, 50, 100, 200, 400, 1_000, 2_000, 5_000, 10_000, 20_000)),
    ("deployments", (1, 5, 10, 50, 10_000, 50_000)),
    ("preferences", (4_000,)),
)
OURS = [sys.executable, "-m", "joiner", "plan", "--scenario", "-", "--output", "json"]
TURNS = 3
LONG_S = 20.0
"""Where one takes longer, all are asked only once."""
KEPT = Path(__file__).resolve().parent / "results" / "scheduling.json"


def ours(document: dict[str, Any]) -> dict[str, Any]:
    """Our plan: price, nodes, and what no plan can cost less than."""
    asked = reader.read(json.dumps(document).encode(), Path())
    plan = schedule(asked.problem)
    return {
        "price": round(plan.price, 4),
        "nodes": len(plan.claims),
        "left over": len(plan.refusals),
        "planner": plan.planner,
        "bound": round(bound(asked.problem, placed(plan)).price, 4),
    }


def answered(command: list[str], document: dict[str, Any]) -> tuple[dict[str, Any], int]:
    """What a program says to a question, and how many megabytes it had in use at the most."""
    said, peak = apart(command, json.dumps(document).encode() + b"\n")
    return json.loads(said), peak


def theirs(summary: dict[str, Any]) -> dict[str, Any]:
    """The other scheduler's plan of the same question."""
    return {
        "price": round(summary["totalCheapestPrice"], 4),
        "nodes": summary["newNodes"],
        "left over": summary["failed"],
    }


def by_turns(commands: list[list[str]], document: dict[str, Any]) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """What programs say to a question, and what it took: each is started anew, one after the other, and the median counts."""
    rounds = [[answered(command, document) for command in commands]]
    while len(rounds) < TURNS and max(said["seconds"] for said, _ in rounds[0]) < LONG_S:
        rounds.append([answered(command, document) for command in commands])
    return [
        (
            turns[0][0],
            {
                "seconds": round(median(said["seconds"] for said, _ in turns), 4),
                "peak MB": max(memory for _, memory in turns),
            },
        )
        for turns in zip(*rounds, strict=True)
    ]


def last_ratios() -> dict[str, Any]:
    """What was measured when the other scheduler was at hand."""
    if not KEPT.exists():
        return {}
    kept = json.loads(KEPT.read_text())["numbers"]
    return {name: row["ratio"] for name, row in kept.items() if "ratio" in row}


def run() -> dict[str, Any]:
    program = os.environ.get("ORACLE", "")
    known = last_ratios()
    rows: dict[str, Any] = {}
    for mix, sizes in CASES:
        for pods in sizes:
            document = getattr(mixes, mix)(pods)
            name = document["name"]
            commands = [OURS, [program, "-summary", "-workers", "1"]] if program else [OURS]
            (_, took), *others = by_turns(commands, {**document, "options": {"timeoutSeconds": 600}})
            own = {**took, **ours(document)}
            rows[name] = {"ours": own}
            for said, its in others:
                other = rows[name]["theirs"] = {**its, **theirs(said["summary"])}
                rows[name]["ratio"] = {
                    "times faster": round(other["seconds"] / own["seconds"], 1),
                    "price": round(own["price"] / other["price"], 3) if other["price"] else None,
                }
            if not program and name in known:
                rows[name]["ratio"] = {**known[name], "from an earlier run": True}
            print(f"   {name}: {rows[name]}", flush=True)
    return rows
