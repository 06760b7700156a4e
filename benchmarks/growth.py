"""How the time for a plan grows: with the number of different services, with replicas of each, and with reservations."""

import gc
import json
from pathlib import Path
from time import perf_counter
from typing import Any

from benchmarks import mixes
from joiner.offline.scenario import reader
from joiner.scheduling.schedule import schedule

QUESTION = "What does a plan's time grow with: different pods, or more of the same?"
FIGURE = Path(__file__).resolve().parent.parent / "docs" / "reference" / "growth.svg"
PODS_EACH = 25
SERVICES = 50
STEPS = (1, 2, 4, 8, 16)
RESERVATIONS = 200
TURNS = 5
MIXES = (("benchmark", 5_000), ("deployments", 10_000))


def seconds(*documents: dict[str, Any]) -> list[float]:
    """For each question the best of a few turns, asked by turns; what was read is not looked through for garbage meanwhile."""
    problems = [reader.read(json.dumps(document).encode(), Path()).problem for document in documents]
    gc.collect()
    gc.freeze()
    best = [float("inf")] * len(problems)
    for _ in range(TURNS):
        for number, problem in enumerate(problems):
            started = perf_counter()
            schedule(problem)
            best[number] = min(best[number], perf_counter() - started)
    gc.unfreeze()
    return [round(each, 4) for each in best]


def run() -> dict[str, Any]:
    base = SERVICES * PODS_EACH
    rows: dict[str, Any] = {
        "more services": {
            str(step): seconds(mixes.deployments(base * step, services=SERVICES * step))[0] for step in STEPS
        },
        "more of each": {str(step): seconds(mixes.deployments(base * step, services=SERVICES))[0] for step in STEPS},
        "reservations": {},
    }
    for mix, pods in MIXES:
        document = getattr(mixes, mix)(pods)
        plain, reserved = seconds(document, mixes.with_reservations(document, RESERVATIONS))
        row = {"without": plain, "with": reserved, "ratio": round(reserved / plain, 2)}
        rows["reservations"][document["name"]] = row
    return rows


def lines(kept: dict[str, Any]) -> list[str]:
    """The part of the page that is about growth."""
    numbers = kept["numbers"]
    table = [
        f"![time against services and replicas]({FIGURE.name})",
        "",
        f"From {SERVICES} services of {PODS_EACH} pods on: so many times the services, or the pods of each.",
        "",
        "| times | more services, s | more of each, s |",
        "| ---: | ---: | ---: |",
        *(
            f"| {step} | {numbers['more services'][step]} | {numbers['more of each'][step]} |"
            for step in map(str, STEPS)
        ),
        "",
        f"With {RESERVATIONS} capacity reservations beside everything else:",
        "",
        "| question | without, s | with, s | ratio |",
        "| --- | ---: | ---: | ---: |",
    ]
    for name, row in numbers["reservations"].items():
        table.append(f"| {name} | {row['without']} | {row['with']} | {row['ratio']} |")
    return table


def svg(kept: dict[str, Any]) -> str:
    """The two ways to grow as lines, both axes linear."""
    numbers = kept["numbers"]
    series = (("more services", "#c0392b"), ("more of each", "#2471a3"))
    top = max(value for name, _ in series for value in numbers[name].values())

    def at(step: int, value: float) -> str:
        return f"{60 + 480 * step / STEPS[-1]:.1f},{280 - 250 * value / top:.1f}"

    drawn = [
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 600 330" font-family="sans-serif" font-size="13">',
        '<rect width="600" height="330" fill="white"/>',
        '<path d="M60 30V280H550" fill="none" stroke="black"/>',
        f'<text x="54" y="36" text-anchor="end">{top:.2f} s</text>',
        '<text x="54" y="284" text-anchor="end">0</text>',
        '<text x="300" y="320" text-anchor="middle">times as many pods</text>',
        *(f'<text x="{60 + 480 * step / STEPS[-1]:.1f}" y="298" text-anchor="middle">{step}</text>' for step in STEPS),
    ]
    for row, (name, colour) in enumerate(series):
        points = " ".join(at(step, numbers[name][str(step)]) for step in STEPS)
        drawn.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"/>')
        drawn.append(f'<text x="80" y="{50 + 18 * row}" fill="{colour}">{name}</text>')
    return "\n".join([*drawn, "</svg>", ""])
