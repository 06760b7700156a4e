"""What minValues cost: one question without, with one label, and with four labels of which claims must leave several values."""

import gc
import json
import time
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks import mixes
from joiner.offline.scenario import reader
from joiner.scheduling.schedule import schedule

QUESTION = "How much longer does a plan take for pools with minValues?"
PODS = 6_000
KEYS = (0, 1, 4)
TURNS = 7


def run() -> dict[str, Any]:
    """The questions by turns, the median of each, in seconds of the processor."""
    plain = mixes.deployments(PODS)
    asked = {keys: mixes.with_min_values(plain, keys) if keys else plain for keys in KEYS}
    problems = {keys: reader.read(json.dumps(each).encode(), Path()).problem for keys, each in asked.items()}
    rows: dict[str, Any] = {}
    for keys, problem in problems.items():
        plan = schedule(problem)
        rows[str(keys)] = {"nodes": len(plan.claims), "price": round(plan.price, 4), "left over": len(plan.refusals)}
    gc.collect()
    gc.freeze()
    took: dict[int, list[float]] = {keys: [] for keys in KEYS}
    for _ in range(TURNS):
        for keys, problem in problems.items():
            began = time.process_time()
            schedule(problem)
            took[keys].append(time.process_time() - began)
    gc.unfreeze()
    without = median(took[0])
    for keys, seconds in took.items():
        rows[str(keys)] |= {"cpuSeconds": round(median(seconds), 4), "ratio": round(median(seconds) / without, 2)}
    return {"question": plain["name"], "labels": rows}


def lines(kept: dict[str, Any]) -> list[str]:
    """The part of the page about minValues."""
    table = [
        f"`{kept['numbers']['question']}` with minValues for so many labels, in seconds of the processor. Claims that must"
        " leave a choice hold fewer pods, so there are more of them.",
        "",
        "| labels | s | ratio | nodes | $/h | left over |",
        "| ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    names = ("cpuSeconds", "ratio", "nodes", "price", "left over")
    for keys, row in kept["numbers"]["labels"].items():
        table.append(f"| {keys} | " + " | ".join(str(row[each]) for each in names) + " |")
    return table
